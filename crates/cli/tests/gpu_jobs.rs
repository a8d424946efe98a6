//! Machines with a GPU that run side by side in one process give what each gives alone.

mod common;

use common::{file, nandscape};

const SWEEP: &str = r#"
system = "zng"
workloads = ["deg:scale=9", "gaus:n=64", "bfs1:scale=9"]
seeds = [1, 2]
metrics = ["gpu.ipc", "gpu.read_latency_ns.mean", "run.events"]

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
    assert_eq!(first["gpu"]["applications"].as_array().map(Vec::len), Some(2));
    assert_eq!(run(), first);
}
