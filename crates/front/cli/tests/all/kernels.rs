//! Loop nests: those of `examples/kernels` on an accelerator, what every kind of system counts of one, and what is
//! said where something does not run.

use crate::common::{file, nandscape, refused};
use serde_json::Value;

const EXAMPLES: [&str; 3] = ["heat", "above", "scaled-product"];

fn example(name: &str) -> String {
    format!("{}/../../../examples/kernels/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// Four instances, whose input is theirs together: all are over, all checks hold, and what `explain` says of one is what all process.
#[test]
fn examples_run_on_an_accelerator() {
    for name in EXAMPLES {
        let workload = format!("nest:file={},instances=4", example(name));
        let document = nandscape(&["run", "flashabacus", "--json", "--workload", &workload]).well().json();
        let accelerator = &document["accelerator"][0];
        let kernels = accelerator["kernels"].as_array().expect("a list");
        assert_eq!(kernels.len(), 4, "{name}");
        assert!(kernels.iter().all(|kernel| kernel["program"] == name && kernel["over_ns"].is_f64()));
        assert_eq!(document["ok"], true, "{name}");
        // Squares of 1,024 of f32, two for the product; 4,096 x 1,024 values.
        let input = match name {
            "heat" => 4 << 20,
            "above" => 16 << 20,
            _ => 8 << 20,
        };
        assert_eq!(accelerator["input_bytes"].as_u64(), Some(4 * input), "{name}");
        let explained = nandscape(&["explain", &format!("nest:file={}", example(name))]).well().stdout;
        assert!(explained.contains(&format!("{:.1} MB", input as f64 / 1e6)), "{explained}");
    }
}

/// Microblocks are a list, so text cannot express a cycle of them; a kernel that inherits itself would be one.
#[test]
fn what_is_wrong_with_a_kernel_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let heat = std::fs::read_to_string(example("heat")).expect("the example");
    let cases = [
        ("for i in 1..n - 1 {\n  for j", "for i in 0..n - 1 {\n  for j", "plate"),
        ("share * (", "shore * (", "share"),
        ("plate[s][i - 1][j]", "plate[s + 1][i - 1][j]", "split"),
        ("section = \"scratch\"", "section = \"scrach\"", "scratch"),
    ];
    for (from, to, said) in cases {
        assert!(heat.contains(from), "{from}");
        let path = file(folder.path(), "mine.toml", heat.replacen(from, to, 1));
        let workload = format!("nest:file={path}");
        for arguments in [
            vec!["run", "flashabacus", "--json", "--workload", &workload],
            vec!["check", "flashabacus", "--workload", &workload],
            vec!["explain", &workload],
        ] {
            refused(&arguments, &[said, "mine.toml"]);
        }
    }
    let path = file(folder.path(), "itself.toml", "inherits = \"itself\"\nname = \"itself\"\n");
    refused(&["explain", &format!("nest:file={path}")], &["itself"]);
}

/// Programs that depend on their data.
#[test]
fn programs_are_executed_on_data() {
    let folder = tempfile::tempdir().unwrap();
    let text = file(folder.path(), "words.txt", "the cat and the dog\n".repeat(10_000));
    let records = file(folder.path(), "places.txt", format!("{:48}\n", "1950 1 1").repeat(500));
    for (workload, bytes) in [
        ("bfs:nodes=5000,degree=4,instances=2".to_owned(), None),
        (format!("wc:text={text},instances=2"), Some(400_000)),
        (format!("nn:file={records},instances=2"), Some(49_000)),
    ] {
        let document = nandscape(&["run", "flashabacus", "--json", "--workload", &workload]).well().json();
        assert_eq!(document["ok"], true, "{workload}");
        let input = document["accelerator"][0]["input_bytes"].as_u64().expect("a count");
        assert!(bytes.is_none_or(|bytes| bytes == input), "{workload}: {input}");
    }
    for (workload, said) in [
        (format!("nn:file={text}"), "not a multiple of the record size of 49 B"),
        ("wc:text=there-is-none".to_owned(), "cannot read `there-is-none`"),
        (format!("wc:text={},words=4", text), "applies to generated data"),
        ("bfs:nodes=1".to_owned(), "`1` is not a valid value of parameter `nodes`"),
        ("bfs:grph=a.txt".to_owned(), "did you mean `graph`"),
    ] {
        refused(&["run", "flashabacus", "--json", "--workload", &workload], &[said]);
    }
}

/// Phases of each kernel, cores, steps and the link: as long as the result says, a slice each time. A second thread that moves data has a track of its own, and no track does two things at once.
#[test]
fn the_timeline_of_a_coprocessor_accounts_for_every_busy_moment() {
    accounted(&[], &[""]);
    let set = ["--set", "coprocessor.memory.size=1MiB", "--set", "coprocessor.buffers=2"];
    accounted(&set, &["", " moves"]);
}

/// `threads` are what a kernel's tracks are called behind its name.
fn accounted(set: &[&str], threads: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.json");
    let path_text = path.display().to_string();
    let workload = "atax:m=512,n=512,instances=2";
    let arguments = [&["run", "flashabacus-simd", "--json", "--workload", workload], set].concat();
    let plain = nandscape(&arguments).well().json();
    let document = nandscape(&[&arguments[..], &["--timeline", &path_text]].concat()).well().json();
    assert_eq!(document["coprocessor"], plain["coprocessor"]);
    let timeline: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(timeline["otherData"]["events_left_out"], 0);
    let events = timeline["traceEvents"].as_array().unwrap();
    let named = |what: &'static str| events.iter().filter(move |event| event["name"] == what);
    let process = |name: &str| {
        named("process_name").find(|event| event["args"]["name"] == name).expect(name)["pid"].clone()
    };
    let (cores, kernels) = (process("coprocessor cores"), process("coprocessor kernels"));
    assert!(process("channels") != process("dies"), "of the drive");
    let slices = |pid: &Value, track: &str| -> Vec<&Value> {
        let is_its = |event: &&Value| event["pid"] == *pid && event["args"]["name"] == track;
        let tid = &named("thread_name").find(is_its).expect(track)["tid"];
        events.iter().filter(|e| e["ph"] == "X" && e["pid"] == *pid && e["tid"] == *tid).collect()
    };
    let us = |pid: &Value, track: &str, name: Option<&str>| -> f64 {
        let slices = slices(pid, track);
        let wanted = slices.iter().filter(|slice| name.is_none_or(|name| slice["name"] == name));
        wanted.map(|slice| slice["dur"].as_f64().unwrap()).sum()
    };
    let near =
        |found: f64, expected: f64| assert!((found - expected).abs() < 1e-3, "{found}, not {expected} us");
    let result = &document["coprocessor"][0];
    let makespan_us = result["makespan_ns"].as_f64().unwrap() / 1e3;
    for (core, of) in result["cores"].as_array().unwrap().iter().enumerate() {
        near(us(&cores, &format!("core {core}"), None), of["busy_share"].as_f64().unwrap() * makespan_us);
    }
    for (track, share) in
        [("steps", "executing_share"), ("sends", "link_in_share"), ("receives", "link_out_share")]
    {
        near(us(&cores, track, None), result[share].as_f64().unwrap() * makespan_us);
    }
    for (instance, kernel) in result["kernels"].as_array().unwrap().iter().enumerate() {
        let tracks: Vec<String> = threads.iter().map(|thread| format!("atax 0.{instance}{thread}")).collect();
        for (phase, of) in kernel["phases"].as_object().unwrap() {
            let shown = tracks.iter().map(|track| us(&kernels, track, Some(phase))).sum();
            near(shown, of["time_ns"].as_f64().unwrap() / 1e3);
        }
        let us_of = |name: &str| kernel[name].as_f64().map_or(0.0, |ns| ns / 1e3);
        near(us(&kernels, &tracks[0], None) + us_of("waited_ns"), us_of("over_ns") - us_of("begun_ns"));
        for track in &tracks {
            let mut last = us_of("begun_ns");
            for slice in slices(&kernels, track) {
                let [from, lasts] = ["ts", "dur"].map(|key| slice[key].as_f64().unwrap());
                assert!(from > last - 1e-3, "{track}: {from} us, before {last}");
                last = from + lasts;
            }
            assert!(last < us_of("over_ns") + 1e-3, "{track} goes on until {last} us");
        }
    }
}

fn run_nest(system: &str, workloads: &[&str]) -> Value {
    run_nest_with(system, workloads, &[])
}

fn run_nest_with(system: &str, workloads: &[&str], options: &[&str]) -> Value {
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
        let document = run_nest(system, &[&format!("{text},instances={jobs}")]);
        let cpu = &document["cpu"][0];
        assert_eq!(
            (cpu["jobs"].as_u64(), cpu["fill_jobs"].as_u64()),
            (Some(jobs), Some(0)),
            "{system} {text}"
        );
        assert_eq!(cpu["instructions"].as_u64(), Some(jobs * operations(text)), "{system} {text}");
    }
    // Two applications: jobs of both.
    let both = run_nest("dram-only", &["atax:m=16,n=16,instances=2", "mvt:n=16,t=4"]);
    let expected = 2 * operations("atax:m=16,n=16") + operations("mvt:n=16,t=4");
    assert_eq!(both["cpu"][0]["instructions"].as_u64(), Some(expected));
    // A program of a GPU, as a nest.
    assert_eq!(run_nest("dram-only", &["gaus:n=20,pivots=2"])["cpu"][0]["jobs"].as_u64(), Some(1));
}

/// A kernel a microblock. ATAX: a row a thread, then a column, 32 each; a thread has 4 + 2 instructions for its number and one at its end, a
/// zero, and 32 times two operations, three loads, a store, its address in A and the loop's three: 10.
#[test]
fn a_gpu_executes_what_a_nest_counts() {
    let expected = 2 * 32 * (7 + 1 + 32 * 10);
    for system in ["zng", "mqms", "hetero"] {
        // Each once.
        let document = run_nest_with(system, &["atax:m=32,n=32,instances=2"], &["--set", "gpu.repeat=false"]);
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
    let beside = run_nest("zng", &["gaus:n=32", "mvt:n=40,t=8"]);
    assert_eq!(beside["gpu"][0]["applications"].as_array().map(Vec::len), Some(2));
}

/// On an accelerator they are nests by the same names; on a GPU they stay what they are.
#[test]
fn programs_of_a_gpu_are_offloaded() {
    for (text, name) in
        [("gaus:n=64,pivots=3", "gaus"), ("FDT:n=48,steps=2", "FDT"), ("gram:n=48,columns=2", "gram")]
    {
        for (system, part) in [("flashabacus", "accelerator"), ("flashabacus-simd", "coprocessor")] {
            let document = run_nest(system, &[text]);
            assert_eq!(document[part][0]["kernels"][0]["program"], name, "{system}");
        }
    }
    let names = |document: &Value| document["gpu"][0]["applications"][0]["kernels"][1]["name"].clone();
    assert_eq!(names(&run_nest("zng", &["gaus:n=64,pivots=1"])), "gaus.Fan2#1");
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
        ("flashabacus", "betw:scale=8", &["without a loop nest", "gaus, FDT, gram"]),
        ("flashabacus", "gaus:n=64,block=64", &["`block` applies to GPUs"]),
        ("flashabacus", "gaus:n=64,pivot=2", &["did you mean `pivots`"]),
        ("dram-only", "wc:bytes=1kB", &["runs only on an accelerator", "atax"]),
        ("dram-only", "atax:m=8,n=8,block=64", &["`block` applies to GPUs"]),
        ("dram-only", "atax:m=8,n=8,inputs=own", &["`inputs` applies to accelerators and coprocessors only"]),
        ("zng", "nn:records=10", &["runs only on an accelerator", "bfs1"]),
        ("zng", "atax:block=100", &["a multiple of 32 up to 1024"]),
        ("d16", "atax:m=8,n=8", &["has no accelerator", "flashabacus, flashabacus-simd, zng, dram-only"]),
    ];
    for (system, workload, said) in cases {
        for command in ["run", "check"] {
            refused(&[command, system, "--workload", workload], said);
        }
    }
    let two = ["run", "dram-only", "--workload", "atax:m=8,n=8", "--workload", "tatp:size=1GiB"];
    refused(&two, &["two programs for one server", "loop nests"]);
}
