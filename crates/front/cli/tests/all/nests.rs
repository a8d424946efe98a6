//! Loop nests on every kind of system: what each counts, and what is said where something does not run.

use crate::common::{nandscape, refused};
use serde_json::Value;

fn run(system: &str, workloads: &[&str]) -> Value {
    run_with(system, workloads, &[])
}

fn run_with(system: &str, workloads: &[&str], options: &[&str]) -> Value {
    let mut arguments = [&["run", system, "--json"], options].concat();
    workloads.iter().for_each(|workload| arguments.extend(["--workload", workload]));
    let document = nandscape(&arguments).well().json();
    assert_eq!(document["ok"], true, "{system} {workloads:?}");
    document
}

/// Operations of an instance, as `explain` counts them.
fn operations(text: &str) -> u64 {
    let page = nandscape(&["explain", text]).well().stdout;
    let found = page.lines().find_map(|line| line.trim().strip_prefix("operations")?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("{page}"))
}

/// Each instance is a job and each job an instance; every instruction is one that the nest counts.
#[test]
fn a_server_executes_what_a_nest_counts() {
    for (system, text, jobs) in [
        ("dram-only", "atax:m=40,n=24", 16),
        ("astriflash", "gemm:ni=12,nj=20,nk=16,t=8,u=5", 3),
        ("os-swap", "nw:n=24,ti=4,tj=8", 1),
        ("flash-sync", "path:rows=5,columns=600", 2),
    ] {
        let document = run(system, &[&format!("{text},instances={jobs}")]);
        let cpu = &document["cpu"][0];
        assert_eq!(
            (cpu["jobs"].as_u64(), cpu["fill_jobs"].as_u64()),
            (Some(jobs), Some(0)),
            "{system} {text}"
        );
        assert_eq!(cpu["instructions"].as_u64(), Some(jobs * operations(text)), "{system} {text}");
    }
    // Two applications: jobs of both.
    let both = run("dram-only", &["atax:m=16,n=16,instances=2", "mvt:n=16,t=4"]);
    let expected = 2 * operations("atax:m=16,n=16") + operations("mvt:n=16,t=4");
    assert_eq!(both["cpu"][0]["instructions"].as_u64(), Some(expected));
    // A program of a GPU, as a nest.
    assert_eq!(run("dram-only", &["gaus:n=20,pivots=2"])["cpu"][0]["jobs"].as_u64(), Some(1));
}

/// A kernel a microblock. ATAX: a row a thread, then a column, 32 each; a thread has 4 + 2 instructions for its number and one at its end, a
/// zero, and 32 times two operations, three loads, a store, its address in A and the loop's three: 10.
#[test]
fn a_gpu_executes_what_a_nest_counts() {
    let expected = 2 * 32 * (7 + 1 + 32 * 10);
    for system in ["zng", "mqms", "hetero"] {
        // Each once.
        let document = run_with(system, &["atax:m=32,n=32,instances=2"], &["--set", "gpu.repeat=false"]);
        let applications = document["gpu"][0]["applications"].as_array().expect("a list");
        assert_eq!(applications.len(), 2, "{system}");
        for one in applications {
            assert_eq!(
                (one["name"].as_str(), one["thread_instructions"].as_u64()),
                (Some("atax"), Some(expected))
            );
            assert_eq!(one["kernels"].as_array().map(Vec::len), Some(2));
        }
    }
    let beside = run("zng", &["gaus:n=32", "mvt:n=40,t=8"]);
    assert_eq!(beside["gpu"][0]["applications"].as_array().map(Vec::len), Some(2));
}

/// On an accelerator they are nests by the same names; on a GPU they stay what they are.
#[test]
fn programs_of_a_gpu_are_offloaded() {
    for (text, name) in
        [("gaus:n=64,pivots=3", "gaus"), ("FDT:n=48,steps=2", "FDT"), ("gram:n=48,columns=2", "gram")]
    {
        for (system, part) in [("flashabacus", "accelerator"), ("flashabacus-simd", "coprocessor")] {
            let document = run(system, &[text]);
            assert_eq!(document[part][0]["kernels"][0]["program"], name, "{system}");
        }
    }
    let names = |document: &Value| document["gpu"][0]["applications"][0]["kernels"][1]["name"].clone();
    assert_eq!(names(&run("zng", &["gaus:n=64,pivots=1"])), "gaus.Fan2#1");
    let page = nandscape(&["explain", "gaus"]).well().stdout;
    assert!(
        page.contains("gaus: a program of a GPU") && page.contains("gaus: a kernel of an accelerator"),
        "{page}"
    );
    let page = nandscape(&["explain", "fdtd:nx=50,ny=60"]).well().stdout;
    assert!(
        page.contains("serial; on a GPU 60 threads") && page.contains("on a GPU 60 x 49 threads"),
        "{page}"
    );
}

#[test]
fn what_does_not_run_is_told_with_what_does() {
    let cases: [(&str, &str, &[&str]); 9] = [
        ("flashabacus", "betw:scale=8", &["not known as a loop nest", "gaus, FDT, gram"]),
        ("flashabacus", "gaus:n=64,block=64", &["`block` is of a GPU"]),
        ("flashabacus", "gaus:n=64,pivot=2", &["did you mean `pivots`"]),
        ("dram-only", "wc:bytes=1kB", &["a server does not run it", "atax"]),
        ("dram-only", "atax:m=8,n=8,block=64", &["`block` is of a GPU"]),
        ("dram-only", "atax:m=8,n=8,inputs=own", &["`inputs` is of accelerators and coprocessors"]),
        ("zng", "nn:records=10", &["a GPU does not run it", "bfs1"]),
        ("zng", "atax:block=100", &["a multiple of 32 up to 1024"]),
        ("d16", "atax:m=8,n=8", &["has no accelerator", "flashabacus, flashabacus-simd, zng, dram-only"]),
    ];
    for (system, workload, said) in cases {
        for command in ["run", "check"] {
            refused(&[command, system, "--workload", workload], said);
        }
    }
    let two = ["run", "dram-only", "--workload", "atax:m=8,n=8", "--workload", "tatp:size=1GiB"];
    refused(&two, &["two programs of a server", "loop nests"]);
}
