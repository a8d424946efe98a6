"""Sweeps: runs of every combination of varied values."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from . import _native
from ._errors import Error
from ._html import html_table
from ._machine import SystemLike, Policy, finished, made, plan
from ._progress import teller
from ._result import Result
from ._spec import Values, Workload
from ._table import Table


_SHOWN = 20
"""Points of a sweep that a notebook shows."""

_METRICS = {
    "io.all.iops": ("IOPS", 1.0),
    "io.read.latency_ns.mean": ("read mean [us]", 1e-3),
    "io.read.latency_ns.p99": ("read p99 [us]", 1e-3),
    "io.write.latency_ns.mean": ("write mean [us]", 1e-3),
    "io.write.latency_ns.p99": ("write p99 [us]", 1e-3),
    "flash.0.write_amplification": ("WAF", 1.0),
    "gpu.0.ipc": ("IPC", 1.0),
    "cpu.0.throughput_per_s": ("jobs/s", 1.0),
}
"""Metrics that a notebook shows of a sweep, with names and scales."""


@dataclass(frozen=True)
class Failure:
    """Reason why a point has no result."""

    kind: str
    """Name of the exception: ``SpecError``, ``WorkloadError`` or ``RuntimeError``."""
    message: str


@dataclass(frozen=True)
class Point:
    """One combination with its outcome."""

    values: dict[str, Any]
    """Varied values: options of the workload, spec keys, and the seed."""
    result: Result | None
    failure: Failure | None = None


class Sweep(Sequence[Point]):
    """Points of a sweep, in the order of the axes: the last varies fastest."""

    def __init__(self, axes: dict[str, list[Any]], points: list[Point]) -> None:
        self.axes = axes
        """Varied keys with their values."""
        self.points = points

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, at: Any) -> Any:
        return self.points[at]

    @property
    def failures(self) -> list[Point]:
        """Returns the points without a result."""
        return [point for point in self.points if point.failure is not None]

    def frame(self, metrics: Iterable[str] | None = None) -> Table:
        """Returns a row per point: the values varied, metrics by their keys (all of them by default), and ``failure`` where a point has none.

        A metric that no result document has is an ``Error``."""
        wanted = None if metrics is None else list(metrics)
        for metric in wanted or []:
            _native.refuse_unknown_metric(metric)
        rows = []
        for point in self.points:
            row: dict[str, Any] = {name: _plain(value) for name, value in point.values.items()}
            if point.result is not None:
                figures = point.result.figures() if wanted is None else {m: point.result.get_figure(m) for m in wanted}
                row.update({name: value for name, value in figures.items() if name not in point.values})
            row["failure"] = None if point.failure is None else point.failure.message
            rows.append(row)
        return Table.of_rows(rows)

    def best(self, metric: str, *, most: bool = False) -> Point:
        """Returns the point with the least of a metric, or with ``most`` the most; the first of equals."""
        _native.refuse_unknown_metric(metric)
        found = [(point.result.get_figure(metric), point) for point in self.points if point.result is not None]
        numbers = [(value, point) for value, point in found if isinstance(value, (int, float)) and not isinstance(value, bool)]
        if not numbers:
            raise Error(f"no point has the metric `{metric}`", help="`nandscape.metrics()` lists all metrics")
        return (max if most else min)(numbers, key=lambda pair: pair[0])[1]

    def plot(self, metric: str, x: str | None = None, ax: Any = None) -> Any:
        """Draws a metric over an axis (the first with several values), with a line for each combination of the others, and means and
        extremes over seeds. Needs matplotlib; returns the axes drawn on."""
        from matplotlib import pyplot

        varied = [name for name, values in self.axes.items() if len(values) > 1 and name != "seed"]
        x = x or (varied[0] if varied else next(iter(self.axes)))
        if x not in self.axes:
            raise Error(f"`{x}` was not varied", allowed=list(self.axes))
        if ax is None:
            _, ax = pyplot.subplots()
        lines: dict[tuple[str, ...], dict[Any, list[float]]] = {}
        for point in self.points:
            value = point.result.get_figure(metric) if point.result is not None else None
            if value is not None:
                name = tuple(f"{other}={point.values[other]}" for other in varied if other != x)
                lines.setdefault(name, {}).setdefault(_plain(point.values[x]), []).append(value)
        for name, at in lines.items():
            means = [sum(values) / len(values) for values in at.values()]
            down = [mean - min(values) for mean, values in zip(means, at.values(), strict=True)]
            up = [max(values) - mean for mean, values in zip(means, at.values(), strict=True)]
            ax.errorbar(list(at), means, yerr=[down, up], marker="o", capsize=3, label=", ".join(name) or None)
        ax.set_xlabel(x)
        ax.set_ylabel(metric)
        if any(lines):
            ax.legend()
        return ax

    def _repr_html_(self) -> str:
        varied = {name: values for name, values in self.axes.items() if len(values) > 1}
        axes = ", ".join(f"{name}: {len(values)}" for name, values in varied.items())
        head = f"<div>{len(self)} points ({axes}), {len(self.failures)} without a result</div>"
        return head + html_table(self._shown(list(varied)))

    def _shown(self, varied: list[str]) -> list[dict[str, str]]:
        """The first points as a notebook shows them."""
        rows = []
        for point in self.points[:_SHOWN]:
            row = {name: str(point.values[name]) for name in varied}
            for metric, (name, scale) in _METRICS.items():
                value = point.result.get_figure(metric) if point.result is not None else None
                if isinstance(value, (int, float)):
                    row[name] = f"{value * scale:,.5g}"
            if point.failure is not None:
                row["failure"] = point.failure.message.partition("\n")[0]
            rows.append(row)
        return rows

    def __repr__(self) -> str:
        return f"<nandscape.Sweep: {len(self)} points over {', '.join(self.axes)}, {len(self.failures)} without a result>"


@dataclass(frozen=True)
class Task:
    """One run, in the form that is sent to a worker."""

    system: SystemLike
    workload: Workload
    set: dict[str, Any]
    seed: int
    precondition: str | None
    warmup: str | int | None
    policies: dict[str, Policy]

    def machine(self) -> _native.Machine:
        """Builds the machine of the run."""
        what = plan(self.system, self.workload, set=self.set, seed=self.seed, precondition=self.precondition, warmup=self.warmup)
        return made(what, False, self.policies)


def _run(task: Task) -> str:
    """Makes a run, here or on a worker; returns the document as text, which is smaller than the parsed one."""
    return finished(task.machine()).json()


def _fetched(future: Future[str], _: Task) -> Result:
    """Outcome of a run on a worker."""
    return Result(future.result())


@contextlib.contextmanager
def _executor(on: str | Executor) -> Iterator[Executor]:
    """Executor of remote runs; a Dask client is closed after its last use."""
    if isinstance(on, Executor):
        yield on
        return
    address = on.removeprefix("dask://")
    if address == on or ":" not in address:
        raise Error(f"`on` is {on!r}", place="on", help="give dask://HOST:PORT, or a concurrent.futures.Executor")
    import distributed

    dask: Any = distributed
    try:
        client = dask.Client(f"tcp://{address}", timeout=10, set_as_default=False)
    except OSError as fault:
        raise Error(f"no Dask scheduler answers at {address}: {fault}", place="on", help="`dask scheduler` starts one") from None
    with client:
        # A run whose worker was lost is repeated.
        yield client.get_executor(pure=False, retries=5)


def _plain(value: Any) -> Any:
    """Converts a value for a column."""
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def _values(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, range)) else [value]


def sweep(
    system: SystemLike | list[SystemLike],
    workload: Workload | list[Workload],
    *,
    set: Values | None = None,
    seeds: int | Sequence[int] = 1,
    jobs: int | None = None,
    precondition: str | None = None,
    warmup: str | int | None = None,
    policies: Mapping[str, Policy] | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    on: str | Executor | None = None,
) -> Sweep:
    """Runs every combination of systems, workloads, values of the spec and seeds.

    ``workload`` is a workload, a list of workloads, or a dict of fio's options in which lists are varied. Lists in ``set`` are varied, too
    (a value that is a list itself stands in a list of its own: ``[[1, 2]]``). ``seeds`` is how many (1, 2, …), or which. ``jobs`` run at once, as
    many as there are CPUs if it is left out; results do not depend on it. ``progress`` is told how many points are done, and of how many; ``True`` shows a line, ``False`` nothing. By
    default a terminal and a notebook get the line.

    ``on`` makes the runs remotely: ``"dask://HOST:PORT"``, a Dask scheduler, or any ``concurrent.futures.Executor`` (processes, MPI, Ray). The package must be
    installed there, and files have the same paths.

    A point that cannot run is a ``Failure`` in its place, and the others run. If no point can run, the error is raised.
    """
    axes: dict[str, list[Any]] = {}
    if isinstance(system, list):
        axes["system"] = system
    options = {name: _values(value) for name, value in workload.items()} if isinstance(workload, Mapping) else {}
    if isinstance(workload, list):
        axes["workload"] = workload
    axes.update(options)
    values = {key: _values(value) for key, value in (set or {}).items()}
    axes.update(values)
    axes["seed"] = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    empty = [name for name, of in axes.items() if not of]
    if empty:
        raise Error(f"the axis `{empty[0]}` has no values", key=empty[0])
    if jobs is not None and jobs < 1:
        raise Error(f"`jobs` is {jobs}: it must be at least 1", key="jobs")
    combinations = [dict(zip(axes, combination, strict=True)) for combination in itertools.product(*axes.values())]
    done, lock, cancelled = 0, threading.Lock(), threading.Event()
    tell = teller(progress, "points")
    errors: list[Error] = []
    going: dict[int, _native.Machine] = {}

    def task(at: dict[str, Any]) -> Task:
        return Task(
            at["system"] if isinstance(system, list) else system,
            {name: at[name] for name in options} if options else at.get("workload", workload),
            {key: at[key] for key in values},
            at["seed"],
            precondition,
            warmup,
            dict(policies or {}),
        )

    def here(what: Task) -> Result | None:
        if cancelled.is_set():
            return None
        machine = what.machine()
        going[id(machine)] = machine
        try:
            return None if cancelled.is_set() else finished(machine)
        finally:
            del going[id(machine)]

    def one(at: dict[str, Any], make: Callable[[Task], Result | None]) -> Point:
        nonlocal done
        result, failure = None, None
        try:
            result = make(task(at))
        except (Error, RuntimeError) as fault:
            failure = Failure(type(fault).__name__, str(fault))
            if isinstance(fault, Error):
                errors.append(fault)
        with lock:
            done += 1
            tell(done, len(combinations))
        return Point(at, result, failure)

    if on is not None:
        with _executor(on) as executor:
            futures = [executor.submit(_run, task(at)) for at in combinations]
            try:
                points = [one(at, functools.partial(_fetched, future)) for at, future in zip(combinations, futures, strict=True)]
            except BaseException:
                for future in futures:
                    future.cancel()
                raise
    else:
        with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
            try:
                points = list(pool.map(lambda at: one(at, here), combinations))
            except BaseException:
                # Points that have not begun are cancelled, and running ones end early.
                cancelled.set()
                for machine in list(going.values()):
                    machine.stop()
                raise
    if len(errors) == len(points):
        raise errors[0]
    return Sweep(axes, points)
