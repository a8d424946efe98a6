"""Sensitivity, reports and progress."""

from __future__ import annotations

from pathlib import Path

import pytest

import nandscape as ns

JOB = "fio:rw=randread,bs=4k,iodepth=4,number_ios=500"


def test_the_cell_decides_an_idle_read() -> None:
    found = ns.sensitivity("d16", JOB, "io.read.latency_ns.mean", keys=["flash.cell.read", "flash.cell.erase"], precondition="sequential", progress=False)
    first = found[0]
    assert first.key == "flash.cell.read"
    assert first.with_more is not None and first.with_less is not None
    assert first.with_more > 0.5 and first.with_less < -0.2
    assert len(found.frame()) == len(found)
    assert "flash.cell.read" in found._repr_html_()
    still = next(effect for effect in found if effect.key == "flash.cell.erase")
    assert still.width == 0.0 and still not in found.moving()


def test_a_misspelt_metric_or_key_is_an_error() -> None:
    with pytest.raises(ns.Error, match="unknown metric"):
        ns.sensitivity("d16", JOB, "io.read.latency_ns.p9")
    with pytest.raises(ns.Error, match="flash.cel"):
        ns.sensitivity("d16", JOB, "io.all.iops", keys="flash.cel")
    points = ns.sweep("d16", JOB, precondition="none")
    with pytest.raises(ns.Error, match="unknown metric"):
        points.frame(["io.read.latency_ns.p9"])
    with pytest.raises(ns.Error, match="unknown metric"):
        points.best("io.read.iop")


def test_a_report_is_the_page_of_the_command(tmp_path: Path) -> None:
    page = ns.run("d16", JOB, precondition="none").report(tmp_path / "page.html")
    assert page.html.startswith("<!doctype html>") and "Latency" in page.html
    assert (tmp_path / "page.html").read_bytes() == page.html.encode()
    assert page._repr_html_().startswith("<iframe srcdoc=")


def test_progress_is_a_line_and_points_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    points = ns.sweep("d16", {"rw": "randread", "bs": ["4k", "8k"], "number_ios": 100}, precondition="none", progress=True)
    assert capsys.readouterr().err.endswith("2 of 2 points\n")
    assert "<th>bs</th>" in points._repr_html_() and "<td>8k</td>" in points._repr_html_()
    ns.sweep("d16", JOB, precondition="none", progress=False)
    assert capsys.readouterr().err == ""


def test_the_build_says_its_commit() -> None:
    assert ns.__commit__ and ns.__results__
    assert ns.run("d16", JOB, precondition="none").run.commit == ns.__commit__
