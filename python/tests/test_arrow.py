"""Tables reach other packages without a copy."""

from __future__ import annotations

from typing import Any

import nandscape as ns
import pytest

from conftest import READS, SMALL

COLUMNS = "id flow op at_ns issued_ns submitted_ns answered_ns completed_ns offset bytes latency_ns".split()


@pytest.fixture(scope="module")
def result() -> ns.Result:
    return ns.run("d16", [READS, {**READS, "rw": "randwrite", "number_ios": 300}], set=SMALL, requests=True)


def address(table: ns.Table, name: str) -> int:
    found: int = table[name].__array_interface__["data"][0]
    return found


def test_requests_agree_with_the_document(result: ns.Result) -> None:
    table = result.requests()
    assert set(COLUMNS) <= set(table.columns)
    assert len(table) == result.io.all.requests == 5300
    column = {name: table[name].to_list() for name in COLUMNS}
    assert column["op"].count("read") == 5000 and column["op"].count("write") == 300
    assert sorted(column["id"]) == list(range(5300)) and set(column["flow"]) == {0, 1}
    reads = [ns_ for ns_, op in zip(column["latency_ns"], column["op"], strict=True) if op == "read"]
    assert sum(reads) / 5000 == pytest.approx(result.io.read.latency_ns.mean, rel=1e-9)
    assert (min(reads), max(reads)) == (result.io.read.latency_ns.min, result.io.read.latency_ns.max)
    assert sum(column["bytes"]) == result.io.all.bytes
    rows = zip(*(column[name] for name in COLUMNS[3:8]), column["latency_ns"], strict=True)
    for at, issued, submitted, answered, completed, latency in rows:
        assert at <= issued <= submitted <= answered <= completed
        assert completed - at == pytest.approx(latency, abs=1e-3)
    assert column["completed_ns"] == sorted(column["completed_ns"])


def test_numpy_reads_columns_where_they_lie(result: ns.Result) -> None:
    numpy = pytest.importorskip("numpy")
    table = result.requests()
    for name in ("id", "flow", "offset", "latency_ns"):
        column = numpy.asarray(table[name])
        assert column.__array_interface__["data"] == (address(table, name), True)
        assert column.tolist() == table[name].to_list()
    with pytest.raises(AttributeError, match="to_list"):
        table["op"].__array_interface__  # noqa: B018
    kept = numpy.asarray(ns.run("d16", READS, set=SMALL, requests=True).requests()["latency_ns"])
    # The table is gone, its memory is not.
    assert len(kept) == 5000 and kept.min() > 0


def test_pyarrow_reads_columns_where_they_lie(result: ns.Result) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = result.requests()
    for theirs in (table.to_arrow(), pyarrow.table(table), pyarrow.RecordBatchReader.from_stream(table).read_all()):
        for name in ("offset", "latency_ns", "completed_ns"):
            (chunk,) = theirs[name].chunks
            assert chunk.buffers()[1].address == address(table, name)
            assert chunk.to_numpy(zero_copy_only=True).tolist() == table[name].to_list()
        assert theirs["op"].to_pylist() == table["op"].to_list()
    assert pyarrow.schema(table).names == table.columns


def test_polars_reads_columns_where_they_lie(result: ns.Result) -> None:
    polars = pytest.importorskip("polars")
    table = result.requests()
    theirs = polars.DataFrame(table)
    assert theirs["op"].cast(polars.String).to_list() == table["op"].to_list()
    column = theirs["latency_ns"].to_numpy(allow_copy=False)
    assert column.__array_interface__["data"][0] == address(table, "latency_ns")
    assert table.to_polars().equals(theirs)


def test_pandas_reads_tables(result: ns.Result) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    theirs = pandas.DataFrame.from_arrow(result.requests())
    assert theirs["latency_ns"].mean() == pytest.approx(result.io.all.latency_ns.mean, rel=1e-9)
    assert result.requests().to_pandas().equals(theirs)


def test_a_frame_has_every_figure(result: ns.Result) -> None:
    frame = result.frame()
    assert len(frame) == 1
    figures: dict[str, Any] = {name: values[0] for name, values in frame.to_dict().items()}
    assert figures["io.read.latency_ns.p99"] == result.io.read.p99
    assert figures["flash.0.write_amplification"] == result.flash[0].write_amplification
    assert figures["ok"] is True and figures["system"] == "d16"
    assert not any(name.startswith(("spec.", "io.series")) for name in figures)


def test_series_are_rows(result: ns.Result) -> None:
    series = result.series()
    windows = result.to_dict()["io"]["series"]
    assert len(series) == len(windows) > 1
    assert series["start_ns"].to_list() == [window["start_ns"] for window in windows]
    assert sum(series["requests"].to_list()) == 5300
    with pytest.raises(ns.Error, match="no series of `moon`"):
        result.series("moon")


def test_waits_sum_to_the_latency() -> None:
    found = ns.run("d16", [READS, {**READS, "rw": "randwrite", "number_ios": 300}], set=SMALL, requests="waits")
    columns = found.requests().to_dict()
    assert len(columns["latency_ns"]) == 5300
    # The milestones are the columns between the latency and the share of the host.
    names = list(columns)
    waits = names[names.index("latency_ns") + 1 : names.index("host_ns") + 1]
    assert len(waits) > 10 and "die_wait_ns" in waits
    for n, latency in enumerate(columns["latency_ns"]):
        assert sum(columns[name][n] for name in waits) == pytest.approx(latency, abs=1e-2)
    reads = [n for n, op in enumerate(columns["op"]) if op == "read"]
    mean = found.breakdown_ns["read"]["die_wait"]
    assert sum(columns["die_wait_ns"][n] for n in reads) / 5000 == pytest.approx(mean, rel=1e-6)
    waited = [n for n in reads if columns["die_wait_ns"][n] > 0]
    assert waited and all(columns["blocked_by"][n] is not None for n in waited)
    assert {columns["channel"][n] for n in waited} <= {0, 1}
    with pytest.raises(ns.Error, match="allowed: True, False, 'waits'"):
        ns.run("d16", READS, requests="all")  # type: ignore[arg-type]


def test_what_was_not_recorded_is_not_there() -> None:
    with pytest.raises(ns.Error, match="requests=True"):
        ns.run("d16", READS, set=SMALL).requests()


def test_columns_of_every_kind() -> None:
    columns: dict[str, list[Any]] = {
        "whole": [1, None, -3],
        "real": [1, 2.5, None],
        "text": ["a", None, "c"],
        "mixed": ["a", 1, None],
        "truth": [True, None, False],
        "nothing": [None, None, None],
    }
    table = ns.Table.of(columns)
    assert table.to_dict() == {**columns, "real": [1.0, 2.5, None], "mixed": ["a", "1", None]}
    with pytest.raises(KeyError):
        table["no"]
    with pytest.raises(ValueError):
        ns.Table.of({"a": [1], "b": [1, 2]})
