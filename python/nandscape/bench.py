"""``python -m nandscape.bench``: measures the overhead of Python in a run, and the cost of a policy in Python."""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import astuple, dataclass

from ._machine import finished, made, plan, run
from ._native import ThreadView
from ._native import View as VictimView


@dataclass(frozen=True)
class Cost:
    """Times of one run, in milliseconds."""

    machine: float
    """Wall-clock time of the machine's own thread: the time of the run in Rust alone."""
    wall: float
    """Additional wall-clock time, from the call to the result."""
    cpu: float
    """CPU time of Python's thread, from the call to the result."""
    read: float
    """CPU time of the first access to a metric, which parses the document; without an access this cost does not arise."""


def cost(requests: int) -> Cost:
    """Runs this many random reads through Python."""
    job = {"rw": "randread", "bs": "4k", "iodepth": 64, "number_ios": requests}
    cpu, wall = time.thread_time(), time.perf_counter()
    machine = made(plan("d16", job, precondition="none"), False, None)
    result = finished(machine)
    cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
    own, read = machine.busy_s(), time.thread_time()
    assert result.io.read.requests == requests
    return Cost(own * 1e3, (wall - own) * 1e3, cpu * 1e3, (time.thread_time() - read) * 1e3)


def decision() -> tuple[float, float, int]:
    """Random overwrites of a small drive in its steady state, with ``greedy`` in Python: CPU time relative to a run with
    the one in Rust, microseconds per decision, and units to choose from."""
    key = "flash.ftl.gc.victim"
    drive = {
        "flash.geometry.channels": 2,
        "flash.geometry.ways": 2,
        "flash.geometry.blocks": 256,
        "flash.geometry.pages": 32,
        "flash.precondition": "steady",
    }
    job = {"rw": "randwrite", "bs": "4k", "iodepth": 64, "norandommap": 1, "number_ios": 100_000}
    units = 0

    def greedy(view: VictimView) -> int:
        nonlocal units
        units = len(view)
        return view.by_valid[0]

    theirs = run("d16", job, set={**drive, key: "greedy"})
    ours = run("d16", job, set=drive, policies={key: greedy})
    more = ours.run.cpu_s - theirs.run.cpu_s
    return ours.run.cpu_s / theirs.run.cpu_s, more / ours.flash[0].gc_runs * 1e6, units


def threads() -> tuple[float, float]:
    """Four cores of a server in front of flash, with ``priority`` and an admission of all pages in Python: CPU time relative to a run with those in Rust."""
    server = {
        "cpu.cores": 4,
        "fabric.mesh.rows": 2,
        "fabric.mesh.columns": 2,
        "l2.banks": 4,
        "l2.sets": 64,
        "memory.dram_cache.sets": 64,
        "memory.dram_cache.evict_buffer": 4,
        "flash.geometry.blocks": 256,
        "cpu.load.jobs": 8000,
        "cpu.warmup.fixed.jobs": 800,
    }
    job = "tatp:size=256MiB,work=2000"

    def priority(view: ThreadView) -> int | str | None:
        return 0 if view.due else "new" if view.new else None

    theirs = run("astriflash", job, set=server).run.cpu_s
    scheduled = run("astriflash", job, set=server, policies={"cpu.threads.scheduler": priority}).run.cpu_s
    admitted = run("astriflash", job, set=server, policies={"memory.dram_cache.admission": lambda page: True}).run.cpu_s
    return scheduled / theirs, admitted / theirs


def main() -> None:
    """Prints the medians of several runs."""
    parser = argparse.ArgumentParser(prog="python -m nandscape.bench", description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000, help="requests of each run")
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    runs = [astuple(cost(arguments.requests)) for _ in range(arguments.runs)]
    machine, wall, cpu, read = (statistics.median(column) for column in zip(*runs, strict=True))
    print(f"{arguments.requests} requests, median of {arguments.runs} runs")
    print(f"the machine's own thread          {machine:9.3f} ms")
    print(f"Python adds, wall clock           {wall:9.3f} ms")
    print(f"Python adds, CPU                  {cpu:9.3f} ms")
    print(f"first access to the result, CPU   {read:9.3f} ms")
    ratio, each, units = decision()
    print(f"a victim policy in Python: {ratio:.2f} times the run, {each:.0f} us per decision among {units} units")
    scheduled, admitted = threads()
    print(f"a scheduler of threads in Python: {scheduled:.2f} times the run; an admission: {admitted:.2f}")


if __name__ == "__main__":
    main()
