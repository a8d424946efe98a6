//! What servers and GPUs run: recorded programs with their parameters, and machines side by side in one process,
//! each of which gives what it gives alone.

use crate::common::{file, nandscape, refused};

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

/// Recording of lackey: a program of 60 instructions without an access to memory.
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
        (format!("{recorded}:job=0"), &["`0` is not a valid value of parameter `job`", "from 1 to 10000000"]),
        (
            format!("{recorded}:job=20k"),
            &["`20k` is not a valid value of parameter `job`", "from 1 to 10000000"],
        ),
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

/// Runs a program that stores to 64 lines in turn on every core of a server: instructions a cycle and core, and lines
/// that cores have taken from each other.
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
    assert!(
        said.contains("each of the 4 cores has its own copy") && said.contains("memory=shared"),
        "{said}"
    );
    let (shared, taken, said) = on_cores(4, 2, &job(",memory=shared"));
    assert!(taken > 1000 && shared < 0.5 * private, "{taken} {shared} {private}");
    assert!(said.contains("each of the 4 cores has the same data"), "{said}");
    refused(
        &["run", "dram-only", "--workload", &job(",memory=own")],
        &["`own` is not a valid value of parameter `memory`", "private, shared"],
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
        format!("a fault waits {wait:.2} us on average"),
        format!("{} pages evicted", figure("evictions")),
        format!("{} shoot-downs", figure("shootdowns")),
        format!("{} written back", figure("write_backs")),
        format!("{halts} halts"),
    ] {
        assert!(line.contains(&part), "no `{part}` in {line}");
    }
}

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
