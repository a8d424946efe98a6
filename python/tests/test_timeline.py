"""A timeline in Perfetto's format, read back by Perfetto's own definition of it and, where its program can be had, by Perfetto itself."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import nandscape as ns
import pytest

trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

COMMAND = os.environ.get("NANDSCAPE_COMMAND")
JOB = "fio:rw=randrw,rwmixread=50,bs=4k,iodepth=16,number_ios=6000,loops=9,norandommap=1"
SMALL = ["geometry.channels=2", "geometry.ways=2", "geometry.blocks=48", "geometry.pages=32", "ftl.gc.start=3", "ftl.gc.stop=4"]

pytestmark = pytest.mark.skipif(COMMAND is None, reason="NANDSCAPE_COMMAND names no command")


def timeline(folder: Path, *more: str) -> tuple[Path, dict[str, Any]]:
    """The file, and the result of the same run."""
    path = folder / "t.pftrace"
    small = [word for key in SMALL for word in ("--set", f"flash.{key}")]
    words = ["run", "d16", "--workload", JOB, "--json", "--timeline", str(path), *small, *more]
    done = subprocess.run([str(COMMAND), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path, json.loads(done.stdout)


class Read:
    """The slices and curves of a file, by track."""

    def __init__(self, path: Path) -> None:
        trace = trace_pb2.Trace()
        trace.ParseFromString(path.read_bytes())
        names: dict[int, str] = {}
        words: dict[int, str] = {}
        self.tracks: dict[int, Any] = {}
        self.slices: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self.curves: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
        open_slices: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for packet in trace.packet:
            for name in packet.interned_data.event_names:
                names[name.iid] = name.name
            for name in packet.interned_data.debug_annotation_names:
                words[name.iid] = name.name
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if not packet.HasField("track_event"):
                continue
            event = packet.track_event
            if event.type == event.TYPE_COUNTER:
                track = self.tracks[event.track_uuid]
                key = (self.process(event.track_uuid), track.name)
                self.curves[key].append((packet.timestamp, event.double_counter_value))
            elif event.type == event.TYPE_SLICE_BEGIN:
                args = {words[a.name_iid]: a.uint_value for a in event.debug_annotations}
                flows = list(event.flow_ids)
                begun = {"name": names[event.name_iid], "from": packet.timestamp, "args": args, "flows": flows}
                open_slices[event.track_uuid].append(begun)
            else:
                assert event.type == event.TYPE_SLICE_END
                ended = open_slices[event.track_uuid].pop()
                assert packet.timestamp >= ended["from"]
                self.slices[event.track_uuid].append({**ended, "to": packet.timestamp})
        assert not any(open_slices.values()), "what begins ends"

    def process(self, uuid: int) -> str:
        """The name of the process that a track belongs to."""
        return str(self.tracks[self.tracks[uuid].parent_uuid].process.process_name)

    def of(self, process: str) -> list[tuple[str, dict[str, Any]]]:
        """The slices of a process, with the names of their tracks."""
        tracks = [uuid for uuid in self.slices if self.process(uuid) == process]
        return [(self.tracks[uuid].name, one) for uuid in tracks for one in self.slices[uuid]]


def test_slices_arrows_and_curves_are_those_of_the_run(tmp_path: Path) -> None:
    path, result = timeline(tmp_path)
    read = Read(path)
    requests = [one for _, one in read.of("requests")]
    assert len(requests) == result["io"]["all"]["requests"]
    assert sum(one["args"]["bytes"] for one in requests) == result["io"]["all"]["bytes"]
    # Latencies, to the nanosecond that the format has.
    mean = sum(one["to"] - one["from"] for one in requests) / len(requests)
    assert mean == pytest.approx(result["io"]["all"]["latency_ns"]["mean"], abs=1.0)
    # Every die was busy as the result says.
    busy: dict[str, int] = defaultdict(int)
    dies = read.of("dies")
    for track, one in dies:
        busy[track] += one["to"] - one["from"]
    for die, share in enumerate(result["flash"][0]["utilisation"]["die"]):
        assert busy[f"die {die}"] / result["simulated_ns"] == pytest.approx(share, abs=1e-3)
    erased = sum(one["args"]["planes"] for _, one in dies if one["name"] == "erase")
    assert erased == result["flash"][0]["erases"] > 0
    # An arrow begins at requests and ends at one command of a die, which begins while they wait.
    ends = {flow: one for _, one in dies for flow in one["flows"]}
    arrows = [(one, flow) for one in requests for flow in one["flows"]]
    assert len(arrows) > len(requests) / 4
    for one, flow in arrows:
        assert one["from"] <= ends[flow]["from"] <= one["to"]
    # A curve for every figure of the series.
    series = result["io"]["series"]
    curve = read.curves["requests", "p50_ns"]
    expected = [(int(w["start_ns"]), w["p50_ns"]) for w in series if w["p50_ns"] is not None]
    assert curve == expected
    assert {name for process, name in read.curves if process == "channels"} >= {"free_blocks", "write_amplification"}


def test_around_the_slowest_request_all_is_shown(tmp_path: Path) -> None:
    whole, result = timeline(tmp_path)
    everything = Read(whole)
    path, _ = timeline(tmp_path, "--timeline-show", "slowest")
    read = Read(path)
    slowest = max((one for _, one in everything.of("requests")), key=lambda one: one["to"] - one["from"])
    margin = 200_000
    span = (slowest["from"] - margin, slowest["to"] + margin)
    shown = sorted((one["from"], one["to"], one["name"]) for _, one in read.of("dies"))
    of_span = [one for _, one in everything.of("dies") if one["to"] > span[0] and one["from"] < span[1]]
    assert shown == sorted((one["from"], one["to"], one["name"]) for one in of_span)
    assert slowest["to"] - slowest["from"] == int(result["io"]["slowest"][0]["latency_ns"])


def test_perfetto_reads_it(tmp_path: Path) -> None:
    processor = pytest.importorskip("perfetto.trace_processor")
    path, result = timeline(tmp_path)
    try:
        opened = processor.TraceProcessor(trace=str(path))
    except Exception as fault:  # noqa: BLE001 - it downloads its program, and there are many ways to have no network
        pytest.skip(f"Perfetto's trace processor cannot be had: {fault}")
    with opened as perfetto:
        rows = perfetto.query(
            "select count(*) as n from slice join track on slice.track_id = track.id where track.name glob 'flow *'"
        )
        assert next(iter(rows)).n == result["io"]["all"]["requests"]
        assert next(iter(perfetto.query("select count(*) as n from flow"))).n > 0
        wrong = perfetto.query("select name, value from stats where severity = 'error' and value > 0")
        assert [(row.name, row.value) for row in wrong] == []


@pytest.mark.parametrize("shown", ["all", "slowest", "window=1ms..2ms"])
def test_the_package_s_timeline_is_the_command_s(tmp_path: Path, shown: str) -> None:
    path, _ = timeline(tmp_path, "--timeline-show", shown)
    small = {f"flash.{key}": value for key, value in (word.split("=") for word in SMALL)}
    run = ns.run("d16", JOB, set=small, timeline=True if shown == "all" else shown, requests=True)
    assert run.timeline(tmp_path / "ours.pftrace") == path.read_bytes() == (tmp_path / "ours.pftrace").read_bytes()
    # Whoever else looks on sees the same.
    assert len(run.requests()) == run.io.all.requests


def test_a_timeline_that_was_not_recorded_or_cannot_be() -> None:
    job = {"rw": "randread", "number_ios": 10}
    with pytest.raises(ns.Error, match="the timeline of this run was not recorded"):
        ns.run("d16", job, precondition="none").timeline()
    with pytest.raises(ns.Error, match="did you mean `slowest`"):
        ns.run("d16", job, timeline="slowst")
