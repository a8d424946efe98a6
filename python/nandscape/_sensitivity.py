"""How far each key of a spec moves a metric."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from . import _native
from ._errors import Error
from ._html import html_table
from ._machine import SystemLike, finished, made, plan
from ._progress import teller
from ._spec import Values, Workload
from ._table import Table

_MOVES = 0.005
"""Relative change that counts as an effect, as for the command."""


@dataclass(frozen=True)
class Effect:
    """Effect of one key on the metric."""

    key: str
    now: str
    """Value in the machine."""
    less: str | None
    """Smaller value; ``None`` where a whole number cannot get smaller."""
    more: str | None
    """Larger value."""
    with_less: float | None
    """Relative change of the metric with the smaller value; ``None`` without a result."""
    with_more: float | None
    """Relative change with the larger value."""
    refused: str | None = None
    """Why a value cannot be run."""

    @property
    def width(self) -> float:
        """The larger change, without sign."""
        return max(abs(self.with_less or 0.0), abs(self.with_more or 0.0))


class Sensitivity(Sequence[Effect]):
    """The keys of a spec, the one that moves the metric most first."""

    def __init__(self, metric: str, base: float, effects: list[Effect]) -> None:
        self.metric = metric
        self.base = base
        """The metric of the machine as it is."""
        self.effects = sorted(effects, key=lambda effect: -effect.width)

    def __len__(self) -> int:
        return len(self.effects)

    def __getitem__(self, at: Any) -> Any:
        return self.effects[at]

    def moving(self) -> list[Effect]:
        """Keys that move the metric by 0.5 % or more."""
        return [effect for effect in self.effects if effect.width >= _MOVES]

    def frame(self) -> Table:
        """A row per key."""
        return Table.of_rows([dict(vars(effect)) for effect in self.effects])

    def plot(self, ax: Any = None, most: int = 16) -> Any:
        """Draws a tornado of the ``most`` widest keys. Needs matplotlib; the axes come back."""
        from matplotlib import pyplot

        if ax is None:
            _, ax = pyplot.subplots()
        shown = self.moving()[:most][::-1]
        keys = [effect.key for effect in shown]
        ax.barh(keys, [100 * (effect.with_less or 0.0) for effect in shown], label="smaller", alpha=0.8)
        ax.barh(keys, [100 * (effect.with_more or 0.0) for effect in shown], label="larger", alpha=0.8)
        ax.axvline(0, color="gray", linewidth=0.8)
        ax.set_xlabel(f"change of {self.metric} [%]")
        ax.legend()
        return ax

    def _repr_html_(self) -> str:
        def cell(change: float | None) -> str:
            return "" if change is None else f"{100 * change:+.1f} %"

        rows = [
            {"key": effect.key, "now": effect.now, "smaller": cell(effect.with_less), "larger": cell(effect.with_more)}
            for effect in self.moving()
        ]
        return f"<div>{self.metric} is {self.base:.6g}</div>{html_table(rows)}"

    def __repr__(self) -> str:
        first = f", {self.effects[0].key} first" if self.moving() else ""
        return f"<nandscape.Sensitivity: {self.metric}, {len(self.moving())} of {len(self)} keys move it{first}>"


def sensitivity(
    system: SystemLike,
    workload: Workload | Sequence[Workload],
    metric: str,
    *,
    keys: str | Sequence[str] = (),
    by: float = 2.0,
    set: Values | None = None,
    seed: int = 1,
    precondition: str | None = None,
    warmup: str | int | None = None,
    jobs: int | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
) -> Sensitivity:
    """Divides and multiplies each number of a system by ``by``, one key at a time, and ranks the keys by their effect on ``metric``.

    ``keys`` selects keys by their beginnings (``"flash.cell"``); all by default. The other arguments are those of ``sweep``. A value that
    cannot be run has no change, and says why.
    """
    _native.refuse_unknown_metric(metric)
    base = plan(system, workload, set=set, seed=seed, precondition=precondition, warmup=warmup)
    near = _native.nearby(base, [keys] if isinstance(keys, str) else list(keys), by)
    tried = [(n, side) for n, (_, _, less, more) in enumerate(near) for side in (less, more) if side is not None]
    tell, done, lock = teller(progress, "runs"), 0, threading.Lock()
    cancelled = threading.Event()

    def value(what: _native.Plan) -> float:
        if cancelled.is_set():
            raise RuntimeError("interrupted")
        found = finished(made(what, False, None)).get_figure(metric)
        if not isinstance(found, (int, float)) or isinstance(found, bool):
            raise Error(f"the run has no number `{metric}`", help="docs/metrics.md says which runs have it")
        return float(found)

    def one(of: tuple[int, str]) -> float | str:
        nonlocal done
        n, side = of
        came: float | str
        try:
            came = value(base.with_set(f"{near[n][0]}={side}"))
        except (Error, RuntimeError) as fault:
            came = str(fault).partition("\n")[0]
        with lock:
            done += 1
            tell(done, len(tried))
        return came

    now = value(base)
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        try:
            came = dict(zip(tried, pool.map(one, tried), strict=True))
        except BaseException:
            cancelled.set()
            raise
    effects = []
    for n, (key, text, less, more) in enumerate(near):
        sides = [None if side is None else came[n, side] for side in (less, more)]
        changes = [(side - now) / abs(now) if isinstance(side, float) and now else None for side in sides]
        refused = next((side for side in sides if isinstance(side, str)), None)
        effects.append(Effect(key, text, less, more, changes[0], changes[1], refused))
    return Sensitivity(metric, now, effects)
