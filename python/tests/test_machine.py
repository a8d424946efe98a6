"""Machines in steps, threads, interrupts, panics."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time

import nandscape as ns
import pytest

from conftest import OVERWRITES, READS, SMALL


@pytest.mark.parametrize("workload", [READS, OVERWRITES, [READS, {**OVERWRITES, "loops": 1}]])
def test_a_run_in_steps_is_the_run(workload: object) -> None:
    whole = ns.run("d16", workload, set=SMALL, requests=True)
    machine = ns.Machine("d16", workload, set=SMALL, requests=True)
    step, seen = whole.simulated_ns / 17.3, []
    while not machine.ended:
        machine.run(until=step * (len(seen) + 1))
        seen.append((machine.now, machine.events, machine.completed, len(machine.requests())))
        assert machine.result().partial != machine.ended
    assert len(seen) > 15 and all(sorted(column) == list(column) for column in zip(*seen, strict=True))
    assert machine.result() == whole and machine.events == whole.run.events
    assert machine.result().requests().to_dict() == whole.requests().to_dict()
    assert machine.run().result() == whole


def test_a_step_ends_at_its_time() -> None:
    machine = ns.Machine("d16", READS, set=SMALL)
    assert (machine.now, machine.events, machine.ended) == (0, 0, False)
    assert 1e6 <= machine.run(until="1ms").now < 1.1e6
    before = machine.events
    assert machine.run(until="1us").events == before
    with pytest.raises(ns.Error, match="soon"):
        machine.run(until="soon")


def test_the_interpreter_is_free_while_machines_run() -> None:
    """Four at once, while another thread counts: it could not while one held the interpreter."""
    going = [ns.Machine("d16", {**OVERWRITES, "loops": 20}, set=SMALL, seed=seed) for seed in range(1, 5)]
    beats: list[list[int]] = [[] for _ in going]
    count, done = 0, threading.Event()

    def run(machine: ns.Machine, beat: list[int]) -> None:
        beat.append(count)
        machine.run()
        beat.append(count)

    def tick() -> None:
        nonlocal count
        while not done.is_set():
            count += 1
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    threads = [threading.Thread(target=run, args=pair) for pair in zip(going, beats, strict=True)]
    ticking.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    ticking.join()
    # All four were under way at once, and the counter went on meanwhile.
    assert max(first for first, _ in beats) < min(last for _, last in beats)
    assert all(machine.ended for machine in going)
    assert going[0].result() == ns.run("d16", {**OVERWRITES, "loops": 20}, set=SMALL, seed=1)


def test_an_interrupt_ends_a_run_and_the_machine_goes_on() -> None:
    child = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, "python/tests")
        import nandscape as ns
        from conftest import OVERWRITES, SMALL
        machine = ns.Machine("d16", {**OVERWRITES, "loops": 1000000}, set=SMALL)
        print("ready", flush=True)
        try:
            machine.run()
        except KeyboardInterrupt:
            at = machine.now
            assert 0 < at < machine.run(until=at + 1e6).now
            print("interrupted", flush=True)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == ("interrupted\n", 0)


def test_python_adds_little() -> None:
    """At most a millisecond of CPU time a run: the least of several, which a busy machine disturbs least."""
    from nandscape.bench import cost

    assert min(cost(1000).cpu for _ in range(10)) < 1.0


VICTIM = "flash.ftl.gc.victim"


def test_policies_change_between_steps() -> None:
    def run(first: str, then: object, at: str) -> ns.Result:
        return ns.Machine("d16", OVERWRITES, set={**SMALL, VICTIM: first}).run(until=at).change({VICTIM: then}).run().result()

    greedy = ns.run("d16", OVERWRITES, set={**SMALL, VICTIM: "greedy"})
    fifo = ns.run("d16", OVERWRITES, set={**SMALL, VICTIM: "fifo"})
    # Before anything is collected, after the preconditioning that leaves the same whatever the policy: as if it had begun with it.
    changed = run("greedy", "fifo", "1ns")
    assert changed.flash[0].gc_programs == fifo.flash[0].gc_programs != greedy.flash[0].gc_programs
    assert any(f"`{VICTIM}` is `fifo`, not `greedy`" in text and text.startswith("from ") for text in changed.warnings)
    # Half way, it is neither.
    half = f"{round(greedy.simulated_ns / 2)}ns"
    between = run("greedy", "fifo", half).flash[0].gc_programs
    assert between not in (fifo.flash[0].gc_programs, greedy.flash[0].gc_programs)
    # A function that decides as the policy does.
    assert run("greedy", lambda view: view.by_age[0], half).flash[0].gc_programs == between
    # What was said is what it was at the beginning.
    assert changed.spec.flash.ftl.gc.victim == "greedy"


def test_what_cannot_change_is_refused_and_changes_nothing() -> None:
    machine = ns.Machine("d16", OVERWRITES, set=SMALL).run(until="1ms")
    for values, said in (
        ({"flash.cell.read": ["1us"]}, "cannot change while a machine runs"),
        ({VICTIM: "fifo", "flash.die.scheduler": "read_first"}, "`flash.die.scheduler` cannot change"),
        ({VICTIM: "gredy"}, "greedy"),
        ({"flash.ftl.gc.victm": "fifo"}, "victim"),
        ({"cpu.threads.scheduler": lambda view: None}, "cannot be written in Python"),
    ):
        with pytest.raises(ns.Error, match=said):
            machine.change(values)
    assert machine.run().result().to_dict()["flash"] == ns.run("d16", OVERWRITES, set=SMALL).to_dict()["flash"]
