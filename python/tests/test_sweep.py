"""Sweeps."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time

import nandscape as ns
import pytest

from conftest import READS, SMALL


def test_every_combination_in_order_whatever_the_jobs() -> None:
    axes = {"bs": ["4k", "16k"], "iodepth": [1, 8]}
    values = {**SMALL, "flash.geometry.ways": [1, 2]}
    one = ns.sweep("d16", {**READS, **axes, "number_ios": 500}, set=values, seeds=2, jobs=1)
    four = ns.sweep("d16", {**READS, **axes, "number_ios": 500}, set=values, seeds=2, jobs=4)
    at = [tuple(point.values[name] for name in ("bs", "iodepth", "flash.geometry.ways", "seed")) for point in four]
    assert at == [(b, q, w, s) for b in axes["bs"] for q in axes["iodepth"] for w in (1, 2) for s in (1, 2)]
    assert [point.result for point in one] == [point.result for point in four]
    alone = ns.run("d16", {**READS, "bs": "16k", "iodepth": 8, "number_ios": 500}, set={**SMALL, "flash.geometry.ways": 2}, seed=2)
    assert four[-1].result == alone
    frame = four.frame(["io.read.iops"]).to_dict()
    assert frame["bs"][-1] == "16k" and frame["io.read.iops"][-1] == alone.io.read.iops and frame["failure"] == [None] * 16
    assert four.best("io.read.latency_ns.mean").values["iodepth"] == 1
    assert four.best("io.read.iops", most=True).values["iodepth"] == 8
    with pytest.raises(ns.Error, match="unknown metric"):
        four.best("io.raed.iops")


def test_a_point_that_fails_is_kept_as_such() -> None:
    found = ns.sweep("d16", {**READS, "iodepth": [0, 4], "number_ios": 100}, set=SMALL)
    assert [point.failure is None for point in found] == [False, True]
    assert found.failures == [found[0]] and found[0].failure.kind == "WorkloadError"
    assert found.frame(["io.read.iops"])["io.read.iops"].to_list() == [None, found[1].result.io.read.iops]
    with pytest.raises(ns.WorkloadError):
        ns.sweep("d16", {**READS, "rw": ["raed", "wriet"]})
    for wrong in ({"jobs": 0}, {"seeds": 0}):
        with pytest.raises(ns.Error):
            ns.sweep("d16", READS, **wrong)


def test_systems_and_workloads_are_axes() -> None:
    job = "fio:rw=randread,bs=4k,number_ios=100"
    found = ns.sweep(["d16", ns.System("d16").with_({"flash.geometry.ways": 2})], [job, job.replace("4k", "8k")], set=SMALL)
    assert len(found) == 4 and found[0].values["workload"] == job
    assert found.frame(["io.read.bytes"])["io.read.bytes"].to_list() == [409600, 819200, 409600, 819200]


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    ns.sweep("d16", {**READS, "number_ios": 50}, set=SMALL, seeds=3, progress=lambda *now: told.append(now))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_an_interrupt_ends_a_sweep() -> None:
    child = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, "python/tests")
        import nandscape as ns
        from conftest import OVERWRITES, SMALL
        print("ready", flush=True)
        try:
            ns.sweep("d16", {**OVERWRITES, "loops": 1000000}, set=SMALL, seeds=50)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == ("interrupted\n", 0)


def test_a_sweep_is_drawn() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    found = ns.sweep("d16", {**READS, "iodepth": [1, 4], "bs": ["4k", "8k"], "number_ios": 100}, set=SMALL, seeds=2)
    axes = found.plot("io.read.iops", x="iodepth")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("iodepth", "io.read.iops")
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"bs=4k", "bs=8k"}
    with pytest.raises(ns.Error, match="was not varied"):
        found.plot("io.read.iops", x="rwmixread")
