//! Machines with a GPU that run side by side in one process give what each gives alone.

use crate::common::{file, nandscape};

const SWEEP: &str = r#"
system = "zng"
workloads = ["deg:scale=9", "gaus:n=64", "bfs1:scale=9"]
seeds = [1, 2]
metrics = ["gpu.0.ipc", "gpu.0.read_latency_ns.mean", "run.events"]

[set]
gpu.sms = [8, 16]
"#;

#[test]
fn a_sweep_is_the_same_for_any_number_of_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = file(folder.path(), "sweep.toml", SWEEP);
    let summary = |jobs: &str| {
        let out = folder.path().join(jobs);
        nandscape(&["sweep", &sweep, "--out", &out.display().to_string(), "--jobs", jobs]).well();
        std::fs::read_to_string(out.join("summary.csv")).unwrap()
    };
    let one = summary("1");
    // A row for each of three workloads, two seeds and two sizes, and the header.
    assert_eq!(one.lines().count(), 13, "{one}");
    assert_eq!(one, summary("4"));
}

/// A program that a table has the rows of, its own metrics among them; one that a server runs beside it.
#[test]
fn programs_of_gpus_and_servers_are_workloads_of_a_sweep() {
    const GPU: &str = "system = \"zng\"\nworkloads = [\"back:n=256\", [\"deg:scale=9\", \"gaus:n=64\"]]\n\
        metrics = [\"gpu.0.ipc\", \"gpu.0.applications.0.ipc\", \"gpu.0.applications.1.ipc\"]\n[set]\ngpu.sms = [8, 16]\n";
    const SERVER: &str = "system = \"dram-only\"\nworkloads = [\"tatp:size=1GiB\"]\nmetrics = [\"cpu.0.jobs\", \"cpu.0.ipc\"]\n\
        [set]\ncpu = { cores = 1, load.jobs = [4, 8], warmup.fixed.jobs = 0 }\n\
        fabric.mesh = { rows = 1, columns = 1 }\nl2.banks = 1\nmemory.dram.controllers = 1\n";
    let rows = |text: &str| -> Vec<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "sweep.toml", text);
        let out = folder.path().join("out");
        nandscape(&["sweep", &path, "--out", &out.display().to_string()]).well();
        let summary = std::fs::read_to_string(out.join("summary.csv")).unwrap();
        let cells = |line: &str| line.split(",runs/").next().unwrap().split(',').map(str::to_owned).collect();
        summary.lines().skip(1).map(cells).collect()
    };
    // run, workload, gpu.sms, seed, state, metrics.
    let gpu = rows(GPU);
    assert_eq!(gpu.len(), 4);
    for (row, programs) in gpu.iter().zip([1, 1, 2, 2]) {
        let metrics = &row[row.len() - 3..];
        let there = metrics.iter().filter(|cell| cell.parse::<f64>().is_ok_and(|ipc| ipc > 0.0)).count();
        assert_eq!(there, 1 + programs, "{row:?}");
    }
    let jobs: Vec<String> = rows(SERVER).into_iter().map(|row| row[row.len() - 2].clone()).collect();
    assert_eq!(jobs, ["4", "8"]);
}

/// Two programs side by side.
#[test]
fn a_run_is_the_same_in_every_process() {
    let run = || {
        let arguments = ["run", "zng", "--json", "--workload", "bfs1:scale=9", "--workload", "gaus:n=64"];
        let mut document = nandscape(&arguments).well().json();
        document.as_object_mut().unwrap().remove("run");
        document
    };
    let first = run();
    assert_eq!(first["gpu"][0]["applications"].as_array().map(Vec::len), Some(2));
    assert_eq!(run(), first);
}
