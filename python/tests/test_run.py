"""A run, its result and its errors."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
from pathlib import Path

import nandscape as ns
import pytest

from conftest import OVERWRITES, READS, SMALL


@pytest.fixture(scope="module")
def result() -> ns.Result:
    return ns.run("d16", READS, set=SMALL)


def test_a_result_is_attributes_and_entries(result: ns.Result) -> None:
    p99 = json.loads(result.json())["io"]["read"]["latency_ns"]["p99"]
    assert p99 > 0
    assert result.io.read.latency_ns.p99 == result.io.read.p99 == result["io"]["read"]["latency_ns"]["p99"] == p99
    assert result.get_figure("io.read.latency_ns.p99") == p99
    assert result.ok and result.io.read.requests == 5000
    assert result.flash[0].write_amplification == result["flash"][0]["write_amplification"]
    assert "io" in result and "io" in dir(result) and set(result.io.keys()) >= {"all", "read"}
    assert all(check.ok for check in result.checks) and isinstance(result.warnings, list)


def test_what_a_result_lacks_is_named_with_the_nearest(result: ns.Result) -> None:
    with pytest.raises(AttributeError, match="`io` has no `raed`; did you mean `read`"):
        result.io.raed  # noqa: B018
    with pytest.raises(KeyError):
        result["nothing"]


def test_a_result_goes_through_a_file_and_pickle(result: ns.Result, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    result.to_json(path)
    assert ns.Result.load(path).to_dict() == result.to_dict() == pickle.loads(pickle.dumps(result)).to_dict()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not json", "not a result document"),
        ("[]", "not a result document"),
        ('{"io": {}}', "not a result document"),
        ('{"schema": "nandscape.result/99"}', "`nandscape.result/99`"),
    ],
)
def test_what_is_no_result_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(ns.Error, match=said) as raised:
        ns.Result.load(path)
    assert raised.value.place == str(path)


def test_html_has_the_figures(result: ns.Result) -> None:
    page = result._repr_html_()
    assert "5,000" in page and f"{result.io.read.p99 / 1e3:,.2f}" in page
    # What a user writes must not become markup.
    bold = ns.System.from_toml(ns.System("d16").to_toml(), name="<b>")
    assert "&lt;b&gt;" in ns.run(bold, READS, set=SMALL)._repr_html_()


def test_the_seed_and_nothing_else_decides(result: ns.Result) -> None:
    assert ns.run("d16", READS, set=SMALL) == result
    assert ns.run("d16", READS, set=SMALL, seed=2) != result


def test_several_workloads_run_side_by_side() -> None:
    both = ns.run("d16", [READS, {**READS, "rw": "randwrite", "number_ios": 700}], set=SMALL)
    assert (both.io.read.requests, both.io.write.requests) == (5000, 700)
    assert len(both.workload) == 2


def test_warm_up_and_precondition() -> None:
    warm = ns.run("d16", READS, set={**SMALL, "flash.precondition": "none"}, precondition="sequential", warmup=1000)
    assert warm.io.read.requests == 4000
    assert warm.spec.flash.precondition == ns.System("d16").with_(SMALL).flash.precondition


def test_values_of_all_kinds() -> None:
    policy = {"d_choices": {"d": 7}}
    spec = ns.System("d16").with_({"flash.ftl.gc.victim": policy, "sim.fold": False, "flash.geometry.ways": 3, "sim.until": "5ms"})
    assert spec["flash.ftl.gc.victim"].to_dict() == policy
    assert spec["sim.fold"] is False and spec["flash.geometry.ways"] == 3
    numpy = pytest.importorskip("numpy")
    assert ns.System("d16").with_({"flash.geometry.ways": numpy.int64(3)})["flash.geometry.ways"] == 3
    with pytest.raises(ns.SpecError, match="is not a spec value") as raised:
        ns.run("d16", READS, set={"flash.geometry.ways": None})
    assert raised.value.key == "flash.geometry.ways"


@pytest.mark.parametrize(
    ("arguments", "kind", "key", "nearest"),
    [
        (("d61", READS), ns.SpecError, "", "d16"),
        (("d16", READS, {"flash.geometry.chanels": 3}), ns.SpecError, "flash.geometry.chanels", "channels"),
        (("d16", READS, {"flash.geometry.channels": "many"}), ns.SpecError, "flash.geometry.channels", None),
        (("d16", {**READS, "rw": "raed"}), ns.WorkloadError, "rw", "read"),
        (("d16", "randraed"), ns.WorkloadError, "", "randread"),
        (("d16", "/no/such.trace"), ns.WorkloadError, "", None),
        (("d16", []), ns.WorkloadError, "", None),
    ],
)
def test_unusable_input_is_one_diagnostic(arguments: tuple, kind: type[ns.Error], key: str, nearest: str | None) -> None:
    system, workload, *values = arguments
    with pytest.raises(kind) as raised:
        ns.run(system, workload, set=values[0] if values else None)
    fault = raised.value
    assert isinstance(fault, ValueError) and type(fault) is kind
    assert (fault.key, fault.nearest) == (key, nearest)
    assert fault.what and "--" not in str(fault).replace("-->", "")
    again = pickle.loads(pickle.dumps(fault))
    assert (type(again), str(again), again.key, again.nearest) == (kind, str(fault), key, nearest)


def test_a_fault_of_a_file_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('inherits = "d16"\n[flash.geometry]\nchanels = 3\n')
    with pytest.raises(ns.SpecError) as raised:
        ns.System.from_file(path).to_toml()
    assert raised.value.place == f"{path}:3:1"
    with pytest.raises(ns.WorkloadError, match="warmup takes"):
        ns.run("d16", READS, warmup="soon")
    with pytest.raises(ns.SpecError) as raised:
        ns.run("d16", READS, precondition="staedy")
    assert raised.value.nearest == "steady"


def test_bits_are_those_of_the_command() -> None:
    command = os.environ.get("NANDSCAPE_COMMAND") or shutil.which("nandscape")
    if command is None:
        pytest.skip("no command `nandscape` on the path, and NANDSCAPE_COMMAND names none")
    job = "fio:" + ",".join(f"{name}={value}" for name, value in OVERWRITES.items())
    values = [f"--set={key}={value}" for key, value in SMALL.items()]
    done = subprocess.run(
        [command, "run", "d16", "--workload", job, *values, "--seed", "3", "--json"], check=True, capture_output=True, text=True
    )
    theirs = json.loads(done.stdout)
    ours = ns.run("d16", job, set=SMALL, seed=3).to_dict()
    assert theirs.pop("run") and ours["run"]
    assert theirs == {name: value for name, value in ours.items() if name != "run"}
