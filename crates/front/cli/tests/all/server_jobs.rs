//! What a server runs: recorded programs with their parameters, and what is said of a run.

use crate::common::{file, nandscape, refused};
use serde_json::Value;

/// One core, nothing but DRAM behind the shared cache, four jobs.
const ONE_CORE: [&str; 14] = [
    "--set",
    "cpu.cores=1",
    "--set",
    "fabric.mesh.rows=1",
    "--set",
    "fabric.mesh.columns=1",
    "--set",
    "l2.banks=1",
    "--set",
    "cpu.load.jobs=4",
    "--set",
    "cpu.warmup.fixed.jobs=0",
    "--set",
    "memory.dram.controllers=1",
];

/// What lackey writes of a program of 60 instructions without an access to memory.
fn recording() -> String {
    (0..60).map(|n| format!("I  {:08x},4\n", 0x40_0000 + 4 * n)).collect()
}

/// Instructions that one core has executed in four jobs.
fn instructions(workload: &str) -> u64 {
    let mut arguments = vec!["run", "dram-only", "--json", "--workload", workload];
    arguments.extend(ONE_CORE);
    let document = nandscape(&arguments).well().json();
    assert_eq!((&document["cpu"][0]["jobs"], &document["workload"][0]), (&4.into(), &workload.into()));
    document["cpu"][0]["instructions"].as_u64().expect("a count")
}

#[test]
fn a_recorded_program_is_cut_into_jobs_of_the_length_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "loop.trace", recording());
    for (parameters, job) in [("", 20_000), (":", 20_000), (":job=1", 1), (":job=50", 50), (":job=70", 70)] {
        assert_eq!(instructions(&format!("{path}{parameters}")), 4 * job, "{parameters}");
    }
    // A file of that name goes before a parameter.
    let path = file(folder.path(), "loop.trace:job=1", recording());
    assert_eq!((instructions(&path), instructions(&format!("{path}:job=3"))), (4 * 20_000, 4 * 3));
}

#[test]
fn parameters_that_a_file_does_not_take_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = file(folder.path(), "loop.trace", recording());
    let requests = file(folder.path(), "requests.fio", "[job]\nrw=read\nbs=4k\n");
    let missing = folder.path().join("none.trace").display().to_string();
    let cases: [(String, &[&str]); 7] = [
        (format!("{recorded}:jobs=5"), &["unknown parameter `jobs`", "did you mean `job`"]),
        (format!("{recorded}:job"), &["parameter `job` has no value", "instructions of a job"]),
        (format!("{recorded}:job=0"), &["`0` is no value of parameter `job`", "from 1 to 10000000"]),
        (format!("{recorded}:job=20k"), &["`20k` is no value of parameter `job`", "from 1 to 10000000"]),
        (format!("{recorded}:job=5,job=6"), &["parameter `job` is given twice"]),
        (format!("{requests}:job=5"), &["requests.fio` takes no parameters: `job=5`", "sort.nst:job=20000"]),
        (format!("{missing}:job=5"), &["none.trace"]),
    ];
    for (workload, said) in &cases {
        refused(&["run", "dram-only", "--json", "--workload", workload], said);
        refused(&["check", "dram-only", "--workload", workload], said);
    }
}

#[test]
fn the_formats_of_recorded_programs_are_listed_and_explained() {
    let whole = nandscape(&["list", "formats"]).well().stdout;
    let short = nandscape(&["list"]).well().stdout;
    for name in ["capture", "lackey", "memtrace", "addresses", "champsim"] {
        for list in [&whole, &short] {
            assert!(list.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}: {list}");
        }
        let text = nandscape(&["explain", name]).well().stdout;
        assert!(text.contains("job = 20000: instructions of a job"), "{text}");
    }
    assert!(nandscape(&["trace", "--help"]).well().stdout.contains("`list formats`"));
    assert!(nandscape(&["explain", "lakey"]).stderr.contains("did you mean `lackey`"));
}

/// What every core of a server does with a program that stores to 64 lines in turn: instructions a cycle and core, and lines that
/// cores have taken from each other.
fn on_cores(cores: u32, rows: u32, workload: &str) -> (f64, u64, String) {
    let sets = [
        format!("cpu.cores={cores}"),
        format!("fabric.mesh.rows={rows}"),
        format!("fabric.mesh.columns={}", cores / rows),
        format!("l2.banks={cores}"),
        format!("cpu.load.jobs={}", 20 * cores),
        "cpu.warmup.fixed.jobs=0".to_owned(),
    ];
    let mut arguments = vec!["run", "dram-only", "--json", "--workload", workload];
    sets.iter().for_each(|set| arguments.extend(["--set", set]));
    let document = nandscape(&arguments).well().json();
    let directory = &document["cpu"][0]["directory"];
    let taken = directory["invalidations"].as_u64().unwrap() + directory["forwarded"].as_u64().unwrap();
    (document["cpu"][0]["ipc"].as_f64().unwrap(), taken, document["warnings"].to_string())
}

/// Copies of a program in memory of their own disturb each other no more than the network does; in one memory they take its lines from
/// each other all the time.
#[test]
fn each_core_has_a_copy_of_a_recorded_program_unless_it_is_shared() {
    let folder = tempfile::tempdir().unwrap();
    let line =
        |n: u32| format!("{} 0x{:x} 6\n", if n.is_multiple_of(3) { 's' } else { 'l' }, 0x7000 + n % 64 * 64);
    let path = file(folder.path(), "lines.trace", (0..4000).map(line).collect::<String>());
    let job = |memory: &str| format!("{path}:job=2000{memory}");
    let (alone, taken, said) = on_cores(1, 1, &job(""));
    assert!(taken == 0 && !said.contains("memory="), "{taken} {said}");
    let (private, taken, said) = on_cores(4, 2, &job(""));
    assert_eq!((private, taken), (on_cores(4, 2, &job(",memory=private")).0, 0));
    assert!((private / alone - 1.0).abs() < 0.05, "{private} {alone}");
    assert!(said.contains("each of the 4 cores has a copy") && said.contains("memory=shared"), "{said}");
    let (shared, taken, said) = on_cores(4, 2, &job(",memory=shared"));
    assert!(taken > 1000 && shared < 0.5 * private, "{taken} {shared} {private}");
    assert!(said.contains("each of the 4 cores has the same data"), "{said}");
    refused(
        &["run", "dram-only", "--workload", &job(",memory=own")],
        &["`own` is no value of parameter `memory`", "private, shared"],
    );
}

/// The line about paging says what stands in the document.
#[test]
fn a_run_under_an_operating_system_says_what_paging_did() {
    let run = |more: &[&str]| {
        let mut arguments = vec!["run", "os-swap", "--workload", "tatp:size=64MiB,work=2000"];
        for set in [
            "cpu.cores=4",
            "fabric.mesh.rows=2",
            "fabric.mesh.columns=2",
            "l2.banks=4",
            "cpu.load.jobs=100",
            "cpu.warmup.fixed.jobs=0",
            "swap.memory=1MiB",
            "swap.free=64KiB",
            "flash.geometry.blocks=256",
        ] {
            arguments.extend(["--set", set]);
        }
        arguments.extend(more);
        nandscape(&arguments).well()
    };
    let text = run(&[]).stdout;
    let line =
        text.lines().find(|line| line.contains("paging: ")).unwrap_or_else(|| panic!("no line: {text}"));
    let document = run(&["--json"]).json();
    let swap = &document["cpu"][0]["memory"]["swap"];
    let figure = |name: &str| swap[name].as_u64().expect("a count");
    let walks = figure("present") + figure("faults") + figure("merged");
    assert!(figure("evictions") > 0 && figure("write_backs") > 0 && walks < 1000, "{swap}");
    let share = 100.0 * (figure("faults") + figure("merged")) as f64 / walks as f64;
    let wait = swap["fault_ns"].as_f64().expect("faults") / 1000.0;
    let halts = &document["cpu"][0]["threads"]["halts"];
    for part in [
        format!("{share:.2} % of {walks} walks"),
        format!("{} for pages under way", figure("merged")),
        format!("a fault waits {wait:.2} us on the mean"),
        format!("{} pages left", figure("evictions")),
        format!("{} shoot-downs", figure("shootdowns")),
        format!("{} written back", figure("write_backs")),
        format!("{halts} halts"),
    ] {
        assert!(line.contains(&part), "no `{part}` in {line}");
    }
}

// Loop nests on every kind of system: what each counts, and what is said where something does not run.

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
