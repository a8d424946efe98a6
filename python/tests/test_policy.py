"""Policies in Python keep the contract of those in Rust: the same decisions give the same bits."""

from __future__ import annotations

import nandscape as ns
import pytest

from conftest import OVERWRITES, SMALL

KEY = "flash.ftl.gc.victim"


def greedy(view: ns.VictimView) -> int:
    return view.by_valid[0]


def fifo(view: ns.VictimView) -> int:
    return view.by_age[0]


def d_choices(view: ns.VictimView) -> int:
    """Emptiest of all, by its own count."""
    return min(view.by_age, key=lambda unit: (view.valid(unit), -view.age(unit)))


def figures(result: ns.Result) -> dict[str, object]:
    return {name: value for name, value in result.to_dict().items() if name not in ("run", "spec", "spec_sha256", "warnings")}


@pytest.mark.parametrize(("function", "name"), [(greedy, "greedy"), (fifo, "fifo")])
def test_a_policy_decides_as_its_twin_does(function: object, name: str) -> None:
    theirs = ns.run("d16", OVERWRITES, set={**SMALL, KEY: name})
    # The spec names another policy, which must have no say.
    other = "fifo" if name == "greedy" else "greedy"
    ours = ns.run("d16", OVERWRITES, set={**SMALL, KEY: other}, policies={KEY: function})
    assert theirs.flash[0].gc_runs > 100
    assert figures(ours) == figures(theirs)
    assert any("a supplied policy" in text for text in ours.warnings)


def test_the_view_keeps_its_word() -> None:
    asked = 0

    def policy(view: ns.VictimView) -> int:
        nonlocal asked
        asked += 1
        assert len(view) == len(view.by_age) == len(set(view.by_age)) > 0
        assert set(view.by_valid) <= set(view.by_age)
        valid = [view.valid(unit) for unit in view.by_valid]
        assert valid == sorted(set(valid)) and valid[0] == min(view.valid(unit) for unit in view.by_age)
        ages = [view.age(unit) for unit in view.by_age]
        assert ages == sorted(ages, reverse=True) and all(0 <= age <= view.now for age in ages)
        assert all(0 <= view.valid(unit) <= view.units_per_ru for unit in view.by_age)
        assert all(view.erases(unit) >= 0 for unit in view.by_age)
        with pytest.raises(KeyError):
            view.valid(10**6)
        return view.by_valid[0]

    ns.run("d16", OVERWRITES, set=SMALL, policies={KEY: policy})
    assert asked > 100


def test_what_a_policy_raises_ends_the_run() -> None:
    def broken(view: ns.VictimView) -> int:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        ns.run("d16", OVERWRITES, set=SMALL, policies={KEY: broken})
    with pytest.raises(ValueError, match="999999, which is not closed"):
        ns.run("d16", OVERWRITES, set=SMALL, policies={KEY: lambda view: 999999})
    with pytest.raises(TypeError):
        ns.run("d16", OVERWRITES, set=SMALL, policies={KEY: lambda view: "a"})


def test_a_policy_that_cannot_be_written_in_python_is_refused() -> None:
    with pytest.raises(ns.Error, match="cannot be written in Python") as raised:
        ns.run("d16", OVERWRITES, policies={"flash.ftl.gc.victm": greedy})
    assert raised.value.nearest == KEY


SERVER = {
    "cpu.cores": 4,
    "fabric.mesh.rows": 2,
    "fabric.mesh.columns": 2,
    "l2.banks": 4,
    "l2.sets": 64,
    "memory.dram_cache.sets": 64,
    "memory.dram_cache.evict_buffer": 4,
    "flash.geometry.blocks": 256,
    "cpu.load.jobs": 800,
    "cpu.warmup.fixed.jobs": 80,
}
"""Four cores before a cache of 4 MiB, in front of flash."""
TATP = "tatp:size=256MiB,work=2000"
THREADS, ADMISSION = "cpu.threads.scheduler", "memory.dram_cache.admission"


def priority(view: ns.ThreadView) -> object:
    return 0 if view.due else "new" if view.new else None


def fifo_threads(view: ns.ThreadView) -> object:
    looks = view.moment == "missed" or not view.new
    return 0 if looks and view.due else "new" if view.new else None


def notified(view: ns.ThreadView) -> object:
    arrived = [n for n, (_, come) in enumerate(view.halted) if come]
    return arrived[0] if arrived else priority(view)


@pytest.mark.parametrize(("function", "name"), [(priority, "priority"), (fifo_threads, "fifo"), (notified, "notified")])
def test_a_scheduler_decides_as_its_twin_does(function: object, name: str) -> None:
    theirs = ns.run("astriflash", TATP, set={**SERVER, THREADS: name})
    other = "fifo" if name == "priority" else "priority"
    ours = ns.run("astriflash", TATP, set={**SERVER, THREADS: other}, policies={THREADS: function})
    assert figures(ours) == figures(theirs)
    # The twins can be told apart by what they find.
    assert figures(theirs) != figures(ns.run("astriflash", TATP, set={**SERVER, THREADS: other}))


def test_an_admission_decides_as_its_twin_does() -> None:
    """2Q's names of past misses, by a list; as many as the cache has pages."""
    pages = 64 * 16
    past: list[int] = []

    def second_touch(page: int) -> bool:
        waiting = page in past[-pages:]
        if waiting:
            past[len(past) - 1 - past[::-1].index(page)] = -1
        past.append(-1 if waiting else page)
        return waiting

    set = {**SERVER, ADMISSION: {"second_touch": {"window": 1.0}}}
    theirs = ns.run("astriflash", TATP, set=set)
    sizes = theirs.spec.memory.dram_cache
    pages = sizes.sets * sizes.ways * sizes.dram.controllers
    ours = ns.run("astriflash", TATP, set=SERVER, policies={ADMISSION: second_touch})
    assert figures(ours) == figures(theirs) != figures(ns.run("astriflash", TATP, set=SERVER))


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda view: 10**6, "chose halted job 1000000"),
        (lambda view: None, "chose to sleep while"),
        (lambda view: "later", "returned `later`"),
    ],
)
def test_a_scheduler_that_breaks_the_contract_ends_the_run(function: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ns.run("astriflash", TATP, set=SERVER, policies={THREADS: function})


def test_what_a_policy_in_python_stands_for_must_be_there() -> None:
    for system, key in (("d16", THREADS), ("d16", ADMISSION), ("astriflash", "cpu.threads.shceduler")):
        with pytest.raises(ns.Error, match="cannot be written in Python"):
            ns.run(system, "randread" if system == "d16" else TATP, policies={key: priority})
