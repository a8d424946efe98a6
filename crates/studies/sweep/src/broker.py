"""Connects `nandscape sweep --on` with a Dask cluster: runs come as lines of JSON on standard input, outcomes go to
standard output. The only argument describes the cluster, as `On` does.

In:   {"run": 3, "order": {...}, "program": "...", "folder": "..."}    a run; closed standard input ends the work
Out:  {"ready": 8}                       threads of the cluster, at the start and whenever they change
      {"run": 3, "answer": "..."}        the line printed by `nandscape point`
      {"run": 3, "fault": "..."}         the run failed
      {"refused": "...", "help": "..."}  the cluster does not exist
      {"lost": "..."}                    the cluster is gone
"""

from __future__ import annotations

import json
import queue
import signal
import sys
import threading
from typing import Any

TRIES = 4
"""Number of attempts for a run whose worker was lost; Dask retries a few times within each."""
LOOK_S = 0.5
"""Poll interval of the cluster, in seconds."""
CONNECT_S = 10
"""Time limit for a scheduler to answer, in seconds."""


def work(order: str, program: str, folder: str) -> str:
    """Runs `nandscape point` on a worker, in the folder of the sweep. Pickled by value: a worker needs only Dask and the program."""
    import os
    import shutil
    import subprocess
    import threading

    from distributed import get_worker

    found = program if os.access(program, os.X_OK) else shutil.which("nandscape")
    if found is None:
        raise FileNotFoundError(f"nandscape not found on this worker, neither as {program} nor on its PATH")
    worker = get_worker()
    key = worker.get_current_task()
    process = subprocess.Popen(
        [found, "--quiet", "point"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    # Its standard input stays open: if this worker is killed, it closes and the run ends.
    process.stdin.write(order + "\n")
    process.stdin.flush()
    said: dict[str, str] = {}

    def read(name: str, pipe: Any) -> None:
        said[name] = pipe.read()

    readers = [threading.Thread(target=read, args=of) for of in (("out", process.stdout), ("err", process.stderr))]
    for reader in readers:
        reader.start()
    while True:
        try:
            status = process.wait(timeout=0.2)
            break
        except subprocess.TimeoutExpired:
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                # The task was cancelled: discard its result.
                process.kill()
    for reader in readers:
        reader.join()
    if status != 0:
        raise RuntimeError(f"nandscape ended with status {status}: {said['err'].strip()[-2000:]}")
    return said["out"].strip()


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def refuse(what: str, help: str) -> None:
    say(refused=what, help=help)
    sys.exit(0)


def connected(on: dict[str, Any]) -> tuple[Any, Any]:
    """Returns a client, and the cluster created for it, if any."""
    try:
        import distributed

        dask: Any = distributed
    except ImportError as fault:
        refuse(f"this Python ({sys.executable}) has no Dask: {fault}", "`pip install distributed`; NANDSCAPE_PYTHON names another Python")
    if "address" in on:
        try:
            return dask.Client(on["address"], timeout=CONNECT_S, set_as_default=False), None
        except Exception as fault:
            refuse(
                f"no Dask scheduler answers at {on['address']} ({type(fault).__name__}: {fault})",
                "start one with `dask scheduler`, and its workers with `dask worker ADDRESS`, all with the same version of Dask",
            )
    made = on["made"]
    try:
        if made["cluster"] == "local":
            options = {"threads_per_worker": 1, "dashboard_address": None, **made["options"]}
            cluster = dask.LocalCluster(n_workers=made["jobs"], **options)
        else:
            import dask_jobqueue

            names = {"slurm": "SLURM", "pbs": "PBS", "lsf": "LSF", "sge": "SGE", "htcondor": "HTCondor", "oar": "OAR", "moab": "Moab"}
            cluster = getattr(dask_jobqueue, names[made["cluster"]] + "Cluster")(**made["options"])
            cluster.scale(jobs=made["jobs"])
        return dask.Client(cluster, set_as_default=False), cluster
    except ImportError as fault:
        refuse(f"this Python ({sys.executable}) has no dask-jobqueue: {fault}", "`pip install dask-jobqueue`; NANDSCAPE_PYTHON names another Python")
    except Exception as fault:
        refuse(f"the cluster cannot be created: {type(fault).__name__}: {fault}", "[options] holds the arguments of dask-jobqueue's class for this batch system")
    raise AssertionError


def main() -> None:
    # A terminal's interrupt goes to the whole group: the sweep handles it, and closes standard input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    client, cluster = connected(json.loads(sys.argv[1]))
    from distributed import KilledWorker

    events: queue.Queue[tuple[str, Any]] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            events.put(("order", json.loads(line)))
        events.put(("closed", None))

    threading.Thread(target=listen, daemon=True).start()
    orders: dict[int, dict[str, Any]] = {}
    tries: dict[int, int] = {}
    futures: dict[int, Any] = {}

    def give(run: int) -> None:
        tries[run] = tries.get(run, 0) + 1
        order = orders[run]
        future = client.submit(work, json.dumps(order["order"]), order["program"], order["folder"], pure=False)
        futures[run] = future
        future.add_done_callback(lambda future: events.put(("ended", (run, future))))

    def settle(run: int, **what: Any) -> None:
        for of in (orders, tries, futures):
            of.pop(run, None)
        say(run=run, **what)

    threads = -1
    kind: str
    what: Any
    while True:
        try:
            kind, what = events.get(timeout=LOOK_S)
        except queue.Empty:
            kind, what = "look", None
        if client.status != "running":
            say(lost=f"the scheduler is gone ({client.status})")
            break
        now = sum(client.nthreads().values()) if kind == "look" or threads < 0 else threads
        if now != threads:
            threads = now
            say(ready=threads)
        if kind == "closed":
            break
        if kind == "order":
            orders[what["run"]] = what
            give(what["run"])
        elif kind == "ended":
            run, future = what
            if run not in futures or futures[run] is not future:
                continue
            if future.status == "finished":
                try:
                    settle(run, answer=future.result())
                    continue
                except Exception as fault:
                    error: BaseException | None = fault
            else:
                error = future.exception() if future.status == "error" else None
            # A lost worker, or a run cancelled by others: try again, a few times.
            is_lost = error is None or isinstance(error, KilledWorker) or "status -9" in str(error)
            if is_lost and client.status == "running" and tries[run] < TRIES:
                give(run)
            elif client.status == "running":
                settle(run, fault=f"{type(error).__name__}: {error}" if error else "it was cancelled on the cluster")
    try:
        client.cancel(list(futures.values()), force=True)
    except Exception:
        pass
    for of in (client, cluster):
        try:
            if of is not None:
                of.close(timeout=5)
        except Exception:
            pass


main()
