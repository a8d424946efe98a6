"""Results of runs."""

from __future__ import annotations

import difflib
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property
from html import escape
from typing import Any

from . import _native
from ._errors import Error
from ._html import page
from ._table import Table

_SCHEMAS = ("nandscape.result/1", "nandscape.result/2")
_LEFT_OUT = ("spec", "warnings", "checks", "workload")
"""Tables without a column in a frame of metrics, besides lists."""


class Node(Mapping[str, Any]):
    """Table of a document: a dict whose entries are attributes too.

    ``latency_ns`` can be omitted: ``io.read.p99`` is ``io.read.latency_ns.p99``.
    """

    __slots__ = ("_data", "_of", "_path")

    def __init__(self, data: dict[str, Any], path: str = "", of: str = "result") -> None:
        self._data, self._path, self._of = data, path, of

    def _wrap(self, name: str, value: Any) -> Any:
        path = f"{self._path}.{name}" if self._path else name
        if isinstance(value, dict):
            return Node(value, path, self._of)
        if isinstance(value, list) and any(isinstance(item, dict) for item in value):
            return [Node(item, f"{path}.{n}", self._of) if isinstance(item, dict) else item for n, item in enumerate(value)]
        return value

    def __getitem__(self, name: str) -> Any:
        return self._wrap(name, self._data[name])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._data:
            return self[name]
        latency = self._data.get("latency_ns")
        if isinstance(latency, dict) and name in latency:
            return latency[name]
        where = f"`{self._path}`" if self._path else f"the {self._of}"
        nearest = difflib.get_close_matches(name, self._data, 1)
        raise AttributeError(f"{where} has no `{name}`" + (f"; did you mean `{nearest[0]}`?" if nearest else ""))

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def to_dict(self) -> dict[str, Any]:
        """Converts to plain dicts, lists and values."""
        return self._data

    def __repr__(self) -> str:
        return f"<{self._path or self._of}: {', '.join(self._data)}>"


def recorded(requests: _native.Table | None) -> Table:
    """Returns the table of requests of a run that has recorded them."""
    if requests is None:
        what = "the requests of this run were not recorded"
        raise Error(f"{what}\n  help: run it with `requests=True`", what=what, help="run it with `requests=True`")
    return Table(requests)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields every metric below a table of a document with its key; list elements by index, without columns of numbers."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        if path.rpartition(".")[2] not in ("series", "slowest"):
            for n, inner in enumerate(value):
                if isinstance(inner, dict):
                    yield from leaves(inner, f"{path}.{n}")
    else:
        yield path, value


class Report:
    """A page of HTML that loads nothing; a notebook shows it in a frame."""

    def __init__(self, html: str, height: int = 900) -> None:
        self.html, self.height = html, height

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="{self.height}" frameborder="0"></iframe>'

    def __repr__(self) -> str:
        return f"<nandscape.Report: {len(self.html)} characters>"


class Result(Node):
    """Result document of a run: its tables and metrics are attributes, and entries of a dict.

    >>> r.io.read.latency_ns.p99, r.io.read.p99, r["io"]["read"]["latency_ns"]["p99"]       # doctest: +SKIP

    ``docs/metrics.md`` and ``explain`` say what each is, and its unit.
    """

    __slots__ = ("__dict__",)

    def __init__(
        self,
        text: str,
        requests: _native.Table | None = None,
        timeline: tuple[bytes, list[str]] | None = None,
    ) -> None:
        self._text, self._requests, self._timeline = text, requests, timeline

    @cached_property
    def _data(self) -> dict[str, Any]:  # type: ignore[override]
        data: dict[str, Any] = json.loads(self._text)
        return data

    _path = ""
    _of = "result"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Reads a result from a file written by ``to_json``, or by the command's ``--json`` or ``--out``."""
        name = os.fspath(path)
        with open(name, encoding="utf-8") as file:
            text = file.read()
        try:
            data = json.loads(text)
            schema = data["schema"]
        except (ValueError, TypeError, KeyError):
            raise Error(f"`{name}` is not a result document", place=name, help="`nandscape run --json` prints one") from None
        if schema not in _SCHEMAS:
            raise Error(
                f"`{name}` has the schema `{schema}`\n  allowed: {', '.join(_SCHEMAS)}",
                place=name,
                allowed=list(_SCHEMAS),
                help="read it with the nandscape version that wrote it, or a later one",
            )
        return cls(text)

    @property
    def ok(self) -> bool:
        """Whether every check passed and all work was done."""
        return bool(self._data["ok"])

    @property
    def warnings(self) -> list[str]:
        """Warnings of the run."""
        found: list[str] = self._data["warnings"]
        return found

    def json(self) -> str:
        """Returns the document as JSON, as the command prints it."""
        return self._text

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Writes the document to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._text + "\n")

    def figures(self) -> dict[str, Any]:
        """Returns every metric by its key: ``io.read.latency_ns.p99``, ``flash.0.write_amplification``."""
        kept = {name: value for name, value in self._data.items() if name not in _LEFT_OUT}
        return dict(leaves(kept))

    def get_figure(self, key: str) -> Any:
        """Returns the metric of a key; ``None`` if this run does not have it."""
        at: Any = self._data
        for part in key.split("."):
            if isinstance(at, list) and part.isdecimal() and int(part) < len(at):
                at = at[int(part)]
            elif isinstance(at, dict) and part in at:
                at = at[part]
            else:
                return None
        return at

    def frame(self) -> Table:
        """Returns one row with a column for every metric."""
        return Table.of_rows([self.figures()])

    def series(self, of: str = "io") -> Table:
        """Returns a time series with a row per window: of requests (``io``), or of a component (``flash.0``, ``gpu.0``)."""
        windows = self.get_figure(f"{of}.series")
        if not isinstance(windows, list):
            what = f"this run has no series of `{of}`"
            raise Error(what, what=what, help="`io`, and components such as `flash.0`, have series")
        return Table.of_rows(windows)

    def requests(self) -> Table:
        """Returns a row per request, in order of completion, warm-up included; the run must have had ``requests=True``.

        Times are in nanoseconds, ``offset`` and ``bytes`` in bytes. ``flow`` is the number of the stream. With
        ``requests="waits"`` there are also the time before each milestone (``die_wait_ns`` …, ``host_ns``: they sum to the latency), what was in
        the way longest (``blocked_by``), and the die and channel of the operation that was waited for last; missing of a request whose
        target gives no account.
        """
        return recorded(self._requests)

    def timeline(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """Returns the timeline in Perfetto's format (``.pftrace``), and writes it to a file if named: https://ui.perfetto.dev opens it. The run must
        have had ``timeline``. More than a million events are sampled evenly, with a warning."""
        if self._timeline is None:
            what = "the timeline of this run was not recorded"
            raise Error(f"{what}\n  help: run it with `timeline=True`", what=what, help="run it with `timeline=True`")
        trace, told = self._timeline
        for text in told:
            warnings.warn(f"the timeline: {text}", stacklevel=2)
        if path is not None:
            with open(path, "wb") as file:
                file.write(trace)
        return trace

    def report(self, path: str | os.PathLike[str] | None = None) -> Report:
        """The page that ``nandscape report`` draws, for a notebook, and written to a file if one is named."""
        drawn = Report(_native.report(self._data["system"], self._text))
        if path is not None:
            drawn.save(path)
        return drawn

    def _repr_html_(self) -> str:
        return page(self)

    def __repr__(self) -> str:
        data = self._data
        state = "ok" if data["ok"] else "partial" if data["partial"] else "NOT ok"
        everything = data["io"]["all"]
        mean = (everything.get("latency_ns") or {}).get("mean")
        latency = "" if mean is None else f", mean {mean / 1e3:.4g} us"
        return (
            f"<nandscape.Result: {data['system']}, {' '.join(data['workload'])}, {state}: "
            f"{everything['requests']} requests, {everything['iops']:.6g} IOPS{latency}>"
        )

    def __eq__(self, other: object) -> bool:
        """Returns whether all but the cost of the run is equal."""
        return isinstance(other, Result) and self._without_run() == other._without_run()

    __hash__ = None  # type: ignore[assignment]

    def _without_run(self) -> dict[str, Any]:
        return {name: value for name, value in self._data.items() if name != "run"}

    def __reduce__(self) -> tuple[Any, ...]:
        return Result, (self._text,)
