"""Systems as values."""

from __future__ import annotations

from pathlib import Path

import nandscape as ns
import pytest

from conftest import READS, SMALL


def test_a_system_is_its_values(tmp_path: Path) -> None:
    small = ns.System("d16").with_(SMALL)
    assert small != ns.System("d16") and small == ns.System("d16").with_(**SMALL)
    assert hash(small) == hash(ns.System("d16").with_(SMALL)) and len({small, ns.System("d16").with_(SMALL)}) == 1
    text = small.to_toml()
    path = tmp_path / "small.toml"
    path.write_text(text)
    assert ns.System.from_toml(text) == ns.System.from_file(path) == ns.System(path) == small
    assert ns.System({"inherits": "d16", "flash": {"geometry": {"ways": 3}}}) == ns.System("d16").with_({"flash.geometry.ways": 3})
    assert small.flash.geometry.channels == small["flash.geometry.channels"] == 2
    assert ns.run(small, READS).spec == ns.run("d16", READS, set=SMALL).spec


def test_keys_are_explained() -> None:
    system = ns.System("d16")
    assert "flash.geometry.channels" in system.keys("flash.geometry")
    assert set(system.keys("flash.geometry")) <= set(system.keys())
    text = system.explain("flash.geometry.channels")
    assert text.startswith(f"flash.geometry.channels = {system.flash.geometry.channels}\n") and "integer" in text
    assert "ns" in ns.explain("io.read.latency_ns.p99")
    assert ns.metrics("io.read.latency_ns")["io.read.latency_ns.p99"] == "ns"
    assert "flash.geometry.channels" in ns.params("flash.geometry")
    with pytest.raises(ns.SpecError) as raised:
        ns.explain("flash.geometry.chanels")
    assert raised.value.nearest == "flash.geometry.channels"


def test_what_is_shipped() -> None:
    assert {"d16", "pm9a3", "zng"} <= set(ns.systems())
    assert ns.workloads()["randread"].startswith("fio:rw=randread")
    assert ns.schema()["$schema"].startswith("https://json-schema.org/")


def test_every_shipped_system_has_values() -> None:
    for name in ns.systems():
        system = ns.System(name)
        assert system.keys() and ns.System.from_toml(system.to_toml(), name=name) == system
