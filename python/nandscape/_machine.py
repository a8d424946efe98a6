"""Runs, and machines that run in steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from . import _native
from ._errors import Error
from ._result import Result, recorded
from ._spec import Values, Workload, overrides, workload_texts
from ._system import System
from ._table import Table

SystemLike = System | str | os.PathLike[str] | Mapping[str, Any]
"""System object, name of a shipped system, file, or dict."""

Recorded = bool | Literal["waits"]
"""Whether requests are recorded, and with their waits."""

Policy = Callable[..., Any]
"""Function that replaces a policy of the spec. Its argument and its result depend on the key:

``flash.ftl.gc.victim``: a ``VictimView``; the closed unit that collection takes back next, ``None`` to wait.
``memory.dram_cache.admission``: the number of a missing page; whether it is kept.
``cpu.threads.scheduler``: a ``ThreadView``; ``"new"``, the index of a halted job, or ``None`` to sleep.
"""


def plan(
    system: SystemLike,
    workload: Workload | Sequence[Workload],
    *,
    set: Values | None = None,
    seed: int = 1,
    precondition: str | None = None,
    warmup: str | int | None = None,
    queue_depth: int | None = None,
) -> _native.Plan:
    """Builds the plan of a run."""
    of = system if isinstance(system, System) else System(system)
    return _native.Plan(
        of._name,
        of._text,
        [*of._set, *overrides(set)],
        workload_texts(workload),
        seed,
        precondition,
        None if warmup is None else str(warmup),
        queue_depth,
    )


class Machine:
    """Machine that runs in steps.

    >>> m = Machine("d16", "fio:rw=randread,bs=4k,iodepth=64,number_ios=100000")
    >>> m.run(until="1ms").now                                      # doctest: +SKIP
    >>> m.run().result().io.read.p99                                # doctest: +SKIP

    Its result does not depend on the steps. The arguments are those of ``run``.
    """

    def __init__(
        self,
        system: SystemLike,
        workload: Workload | Sequence[Workload],
        *,
        set: Values | None = None,
        seed: int = 1,
        precondition: str | None = None,
        warmup: str | int | None = None,
        queue_depth: int | None = None,
        requests: Recorded = False,
        policies: Mapping[str, Policy] | None = None,
    ) -> None:
        what = plan(
            system,
            workload,
            set=set,
            seed=seed,
            precondition=precondition,
            warmup=warmup,
            queue_depth=queue_depth,
        )
        self._native = made(what, requests, policies)

    def run(self, until: str | float | None = None) -> Machine:
        """Runs to the end, or through the first event at or after a time: ``"10ms"``, or a number of nanoseconds.

        An interrupt stops the machine; ``run`` continues from there.
        """
        self._native.run(until if until is None or isinstance(until, str) else f"{round(until * 1000)}ps")
        return self

    def change(self, values: Mapping[str, Any]) -> Machine:
        """Changes policies from now on: ``{"flash.ftl.gc.victim": "fifo"}``, or a function in place of a name.

        What looks at the present alone may change: ``flash.ftl.gc.victim``, ``memory.dram_cache.admission``, ``cpu.threads.scheduler``, and the same
        of parts by other names. Anything else is a ``SpecError``. The result warns of it, and has the spec as it was at the beginning.
        """
        functions = [(key, value) for key, value in values.items() if callable(value)]
        self._native.change(overrides({key: value for key, value in values.items() if not callable(value)}), functions)
        return self

    @property
    def now(self) -> float:
        """Simulated time in nanoseconds."""
        return self._native.look()[0]

    @property
    def events(self) -> int:
        """Number of events run so far."""
        return self._native.look()[1]

    @property
    def completed(self) -> int:
        """Number of requests completed since the measured window began, or of jobs since the run began."""
        return self._native.look()[2]

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self._native.look()[3]

    def result(self) -> Result:
        """Returns the result so far; ``partial`` until the run has ended."""
        return Result(self._native.result(), self._native.requests())

    def requests(self) -> Table:
        """Returns the requests completed so far, warm-up included; the machine must have been made with ``requests=True``."""
        return recorded(self._native.requests())

    def __repr__(self) -> str:
        now, events, completed, ended = self._native.look()
        return f"<nandscape.Machine: {now} ns, {events} events, {completed} completed{', ended' if ended else ''}>"


def run(
    system: SystemLike,
    workload: Workload | Sequence[Workload],
    *,
    set: Values | None = None,
    seed: int = 1,
    precondition: str | None = None,
    warmup: str | int | None = None,
    queue_depth: int | None = None,
    requests: Recorded = False,
    timeline: bool | str = False,
    policies: Mapping[str, Policy] | None = None,
) -> Result:
    """Runs a workload, or several side by side, on a system.

    ``system`` is the name of a shipped system, a TOML file, a dict, or a ``System``. ``workload`` is what the command takes (``"randread"``,
    ``"fio:rw=randread,bs=4k,iodepth=64,number_ios=100000"``, a trace file, a program), a dict of fio options, or a list of these.

    ``set`` overrides spec values by key; ``precondition`` the state of the drives (``"steady:share=90%"``). ``warmup`` excludes the
    first N requests, or all that complete before a time (``"10ms"``). ``queue_depth`` replays traces at that depth. ``requests=True``
    records every request, for ``Result.requests``; ``requests="waits"`` also its waits. ``timeline=True`` records a timeline of the machine, for ``Result.timeline``;
    ``timeline="slowest"`` the surroundings of the slowest request, ``"window=1ms..2ms"`` that span of time. ``policies`` are functions that replace policies of the spec:
    ``{"flash.ftl.gc.victim": function}``.

    The interpreter is free meanwhile, and an interrupt ends the run with ``KeyboardInterrupt``. Unusable input is a ``SpecError`` or a
    ``WorkloadError``.
    """
    what = plan(
        system,
        workload,
        set=set,
        seed=seed,
        precondition=precondition,
        warmup=warmup,
        queue_depth=queue_depth,
    )
    return finished(made(what, requests, policies, timeline))


def made(
    what: _native.Plan,
    requests: Recorded,
    policies: Mapping[str, Policy] | None,
    timeline: bool | str = False,
) -> _native.Machine:
    """Builds the machine of a plan."""
    if requests not in (True, False, "waits"):
        text = f"`requests` is {requests!r}"
        raise Error(f"{text}\n  allowed: True, False, 'waits'", what=text, allowed=["True", "False", "waits"])
    functions = list((policies or {}).items())
    shown = timeline if isinstance(timeline, str) else "all" if timeline else None
    return _native.Machine(what, requests=bool(requests), waits=requests == "waits", timeline=shown, functions=functions)


def finished(machine: _native.Machine) -> Result:
    """Runs a machine to its end, and returns its result."""
    machine.run()
    return Result(machine.result(), machine.requests(take=True), machine.timeline())
