"""Sweeps of the command and of the package on clusters of Dask: whatever is killed, each point is there once, and is what it is here."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import nandscape as ns
import pytest

from conftest import READS, SMALL

distributed = pytest.importorskip("distributed")

COMMAND = os.environ.get("NANDSCAPE_COMMAND") or shutil.which("nandscape") or ""
pytestmark = pytest.mark.skipif(not COMMAND, reason="no command: NANDSCAPE_COMMAND names one")

SWEEP = """
system = "d16"
seeds = {seeds}
metrics = ["io.all.iops", "io.write.latency_ns.p99", "flash.0.erases"]
[workload]
rw = "randwrite"
bs = "4k"
iodepth = [1, 8]
norandommap = 1
number_ios = {requests}
[set]
flash.precondition = "sequential"
flash.geometry = {{ channels = [1, 2], ways = 1, blocks = 64, pages = 32 }}
flash.ftl.over_provisioning = "20%"
flash.ftl.gc = {{ start = 3, stop = 4, hard = 1 }}
"""
"""Four combinations of small drives that collect."""

LONG = 20_000
"""Requests of a run that takes some tenths of a second: long enough to be killed in."""


def sweep(out: Path, file: Path, *more: str) -> subprocess.Popen[str]:
    arguments = [COMMAND, "--quiet", "sweep", str(file), "--out", str(out), *more]
    environment = {**os.environ, "NANDSCAPE_PYTHON": sys.executable}
    return subprocess.Popen(arguments, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process: subprocess.Popen[str], limit: int = 120) -> tuple[int, str]:
    """Status and standard error."""
    try:
        _, said = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, said


def documents(out: Path) -> dict[str, Any]:
    """Result documents by name, without what their runs have cost."""
    found = {}
    for path in (out / "runs").glob("*.json"):
        document = json.loads(path.read_text())
        document.pop("run")
        found[path.name] = document
    return found


@pytest.fixture
def local(tmp_path: Path) -> tuple[Path, Path]:
    """A sweep's file, and the folder of what it is on this machine."""
    file = tmp_path / "s.toml"
    file.write_text(SWEEP.format(seeds=5, requests=LONG))
    assert ended(sweep(tmp_path / "here", file))[0] == 0
    return file, tmp_path / "here"


@pytest.fixture
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as made:
        yield made


def at(cluster: Any) -> str:
    return str(cluster.scheduler_address).replace("tcp://", "dask://")


def test_workers_that_are_killed_lose_no_point(local: tuple[Path, Path], cluster: Any, tmp_path: Path) -> None:
    file, here = local
    draw = random.Random(17)
    process = sweep(tmp_path / "there", file, "--on", at(cluster))
    killed = 0
    while process.poll() is None:
        time.sleep(draw.uniform(0.1, 0.8))
        pids = [nanny.pid for nanny in cluster.workers.values() if nanny.process is not None and nanny.pid]
        if pids and process.poll() is None and killed < 8:
            try:
                os.kill(draw.choice(pids), signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass
    status, said = ended(process)
    assert status == 0, said
    assert killed >= 2, "the sweep was over too soon to say anything"
    assert (tmp_path / "there" / "summary.csv").read_bytes() == (here / "summary.csv").read_bytes()
    assert documents(tmp_path / "there") == documents(here)
    written = [json.loads(line)["key"] for line in (tmp_path / "there" / "digests.jsonl").read_text().splitlines()]
    assert len(written) == len(set(written)) == 20


def test_a_scheduler_that_is_lost_is_resumed_from_the_store(local: tuple[Path, Path], tmp_path: Path) -> None:
    file, here = local
    there = tmp_path / "there"
    code = "import distributed, time\nif __name__ == '__main__':\n    c = distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None, host='127.0.0.1')\n    print(c.scheduler_address, flush=True)\n    time.sleep(600)\n"
    script = tmp_path / "scheduler.py"
    script.write_text(code)
    scheduler = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert scheduler.stdout is not None
        address = scheduler.stdout.readline().strip().replace("tcp://", "dask://")
        process = sweep(there, file, "--on", address)
        while len(list((there / "runs").glob("*.json"))) < 3 and process.poll() is None:
            time.sleep(0.02)
        scheduler.kill()
        status, said = ended(process, 60)
    finally:
        scheduler.kill()
        scheduler.wait()
    kept = {path: path.stat().st_mtime_ns for path in (there / "runs").glob("*.json")}
    assert status == 1 and "runs are not done" in said and "--resume runs the rest" in said, said
    assert 3 <= len(kept) < 20
    assert ended(sweep(there, file, "--resume"))[0] == 0
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items()), "none is made again"
    assert (there / "summary.csv").read_bytes() == (here / "summary.csv").read_bytes()


def test_an_interrupt_cancels_what_runs_there(cluster: Any, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(SWEEP.format(seeds=5, requests=LONG).replace(f"number_ios = {LONG}", "loops = 1000000"))
    process = sweep(tmp_path / "out", file, "--on", at(cluster))

    def points() -> int:
        found = subprocess.run(["pgrep", "-fc", f"{COMMAND} --quiet point"], capture_output=True, text=True)
        return int(found.stdout or 0)

    for _ in range(200):
        if points() == 4:
            break
        time.sleep(0.1)
    assert points() == 4
    process.send_signal(signal.SIGINT)
    status, said = ended(process, 30)
    assert status == 1 and "0 of 20 runs succeeded" in said, said
    for _ in range(100):
        if points() == 0:
            return
        time.sleep(0.1)
    raise AssertionError("runs go on whose result is not awaited")


def test_a_damaged_state_is_made_again_as_here(cluster: Any, tmp_path: Path) -> None:
    file, states = tmp_path / "s.toml", tmp_path / "states"
    file.write_text(SWEEP.format(seeds=1, requests=200))
    cached = ("--state-cache", str(states))
    assert ended(sweep(tmp_path / "first", file, *cached))[0] == 0
    damaged, *_ = sorted(states.glob("*.state"))
    whole = damaged.read_bytes()
    tables = []
    for out, on in ((tmp_path / "here", ()), (tmp_path / "there", ("--on", at(cluster)))):
        damaged.write_bytes(whole[:-100])
        assert ended(sweep(out, file, *cached, *on))[0] == 0
        assert damaged.read_bytes() == whole
        tables.append((out / "summary.csv").read_text())
    assert tables[0] == tables[1] and tables[0].count(",ok,") == 4, tables


def test_a_batch_system_makes_the_cluster(local: tuple[Path, Path], tmp_path: Path) -> None:
    """Slurm's commands are stood in for by scripts that run a job where they are called."""
    file, here = local
    bin = tmp_path / "bin"
    bin.mkdir()
    log = tmp_path / "jobs"
    # It takes a copy of the script, which is removed once it was taken.
    sbatch = f'#!/bin/bash\ncp "${{@: -1}}" {log}.$$.sh\nsetsid bash {log}.$$.sh >{log}.$$.out 2>&1 &\necho $! >>{log}\necho "Submitted batch job $!"\n'
    scancel = f'#!/bin/bash\nfor job in "$@"; do kill -- -"$job"; done 2>/dev/null\necho "$@" >>{log}.cancelled\n'
    for name, text in (("sbatch", sbatch), ("scancel", scancel)):
        (bin / name).write_text(text)
        (bin / name).chmod(0o755)
    made = tmp_path / "slurm.toml"
    made.write_text(
        textwrap.dedent(
            f"""
            cluster = "slurm"
            jobs = 2
            [options]
            cores = 1
            memory = "1GB"
            walltime = "00:10:00"
            python = "{sys.executable}"
            shebang = "#!/bin/bash"
            log_directory = "{tmp_path}"
            interface = "lo"
            scheduler_options = {{ host = "127.0.0.1", dashboard_address = ":0" }}
            """
        )
    )
    environment = os.environ["PATH"]
    os.environ["PATH"] = f"{bin}:{environment}"
    try:
        status, said = ended(sweep(tmp_path / "there", file, "--on", str(made)))
    finally:
        os.environ["PATH"] = environment
        for job in (log.read_text().split() if log.exists() else []):
            try:
                os.killpg(int(job), signal.SIGKILL)
            except ProcessLookupError:
                pass
    assert status == 0, said
    assert len(log.read_text().split()) == 2 and all("#SBATCH" in script.read_text() for script in tmp_path.glob("jobs.*.sh"))
    assert len((tmp_path / "jobs.cancelled").read_text().split()) >= 2, "its jobs are given back"
    assert (tmp_path / "there" / "summary.csv").read_bytes() == (here / "summary.csv").read_bytes()


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(SWEEP.format(seeds=1, requests=100))
    for on, what in (("dask://127.0.0.1:1", "no Dask scheduler answers"), ("dask://nowhere", "has no host and port"), ("slurm", "is not a cluster")):
        status, said = ended(sweep(tmp_path / "out", file, "--on", on), 60)
        assert status == 2 and what in said and "help: " in said and said.count("error: ") == 1, said


def test_the_package_s_sweeps_run_elsewhere_too(cluster: Any) -> None:
    axes = {**READS, "iodepth": [1, 8], "number_ios": 500}
    here = ns.sweep("d16", axes, set=SMALL, seeds=3)
    there = ns.sweep("d16", axes, set=SMALL, seeds=3, on=at(cluster))
    assert [point.values for point in there] == [point.values for point in here]
    assert [point.result for point in there] == [point.result for point in here]
    wrong = ns.sweep("d16", {**axes, "iodepth": [0, 8]}, set=SMALL, on=at(cluster))
    assert [point.failure.kind if point.failure else None for point in wrong] == ["WorkloadError", None]
    with pytest.raises(ns.Error, match="no Dask scheduler answers"):
        ns.sweep("d16", axes, set=SMALL, on="dask://127.0.0.1:1")
    with pytest.raises(ns.Error, match="`on` is"):
        ns.sweep("d16", axes, set=SMALL, on="somewhere")


def test_any_executor_will_do() -> None:
    with ProcessPoolExecutor(2) as executor:
        there = ns.sweep("d16", {**READS, "number_ios": 200}, set=SMALL, seeds=2, on=executor)
    assert [point.result for point in there] == [point.result for point in ns.sweep("d16", {**READS, "number_ios": 200}, set=SMALL, seeds=2)]
