//! Whole machines with a GPU: every platform runs, twice the same, and what is known in advance comes out.

mod rungs;

use machine::result::Document;
use machine::run::{Outside, Plan, run_alone};
use proptest::prelude::*;
use rungs::kernel;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Every shipped platform of a GPU.
const PLATFORMS: [&str; 8] =
    ["ideal", "optane", "hetero", "hybridgpu", "zng-base", "zng-rdopt", "zng-wropt", "zng"];

/// A file of the data sets, or `None` with a word on the terminal.
fn data(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("NANDSCAPE_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"), PathBuf::from);
    let file = root.join(path);
    if !file.exists() {
        println!("skipped: no data");
        return None;
    }
    Some(file)
}

/// Runs workloads side by side; every check must pass.
fn run(system: &str, workloads: &[&str], set: &[&str]) -> Document {
    let mut plan = Plan::new(system, "");
    plan.workloads = workloads.iter().map(|text| (*text).to_owned()).collect();
    let plan = set.iter().fold(plan, |plan, assignment| plan.set(assignment));
    let document = run_alone(&plan).unwrap_or_else(|refused| panic!("{system}, {workloads:?}: {refused}"));
    let failed: Vec<_> = document.checks.iter().filter(|check| !check.ok).collect();
    assert!(document.ok && !document.partial, "{system}, {workloads:?}: {failed:?}");
    document
}

/// The result without what differs from run to run.
fn lasting(document: &Document) -> Value {
    let mut value = serde_json::to_value(document).expect("a document has a JSON form");
    value.as_object_mut().expect("a document is a table").remove("run");
    value
}

/// A figure of a result document, by its path.
fn figure(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}"))
}

/// Panics unless a value is within a share of what is expected.
#[track_caller]
fn near(what: &str, found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{what}: {found} instead of {expected}");
}

// Recorded traces of real GPUs run on every kind of memory.

/// Each trace, with the warp instructions and kernels that its description counts.
const TRACES: [(&str, f64, usize); 3] = [
    ("gpu_traces/accelsim_traceg/kernelslist.g", 26_601.0, 1),
    ("gpu_traces/macsim_nvbit_vectormultadd_4096.tar.xz", 5_376.0, 3),
    ("gpu_traces/macsim_nvbit_vectormultadd_16384.tar.xz", 21_504.0, 3),
];

#[test]
fn recorded_traces_run_whole() {
    for (path, instructions, kernels) in TRACES {
        let Some(file) = data(path) else { return };
        for system in PLATFORMS {
            let document = lasting(&run(system, &[&file.display().to_string()], &[]));
            assert_eq!(figure(&document, "/gpu/0/warp_instructions"), instructions, "{system}, {path}");
            let launched = document["gpu"][0]["applications"][0]["kernels"].as_array().map_or(0, Vec::len);
            assert_eq!(launched, kernels, "{system}, {path}");
        }
    }
}

// Instructions over time: all of them, and nothing else changes.

#[test]
fn a_series_holds_every_instruction_and_changes_nothing() {
    for system in PLATFORMS {
        let workloads: &[&str] = &["bfs1:scale=9", "gaus:n=64"];
        let without = lasting(&run(system, workloads, &[]));
        assert!(without["gpu"][0].get("series").is_none(), "{system}: not asked for");
        for width in ["100ns", "10us"] {
            let mut with = lasting(&run(system, workloads, &[&format!("sim.series={width}")]));
            let gpu = with["gpu"][0].as_object_mut().expect("a GPU");
            let series = gpu.remove("series").expect("asked for");
            for app in 0..workloads.len() {
                let issued = |window: &Value| window["warp_instructions"][app].as_u64().unwrap_or_default();
                let sum: u64 = series.as_array().into_iter().flatten().map(issued).sum();
                let all = &with["gpu"][0]["applications"][app]["warp_instructions"];
                assert_eq!(Some(sum), all.as_u64(), "{system}: application {app} in windows of {width}");
            }
            for part in ["simulated_ns", "gpu", "flash", "breakdown_ns", "checks"] {
                assert_eq!(with[part], without[part], "{system}, {width}: {part}");
            }
        }
    }
}

/// An interval of no length, one without instructions to record, and a share for a program that is not there.
#[test]
fn what_cannot_be_recorded_or_filled_is_refused() {
    let refused = |system: &str, set: &str, workload: &str| {
        let plan = machine::run::Plan::new(system, workload).set(set);
        machine::run::run_alone(&plan).err().map(|why| why.to_string()).unwrap_or_default()
    };
    let fio = "fio:rw=randread,bs=4k,iodepth=1,number_ios=1";
    assert!(refused("ideal", "sim.series=0ns", "gaus:n=64").contains("is zero"));
    assert!(refused("d16", "sim.series=1us", fio).contains("without a GPU"));
    let shares = "memory.direct.mapping.log_filled=[\"0%\", \"50%\"]";
    assert!(refused("zng", shares, "gaus:n=64").contains("2 shares for 1 programs"));
    assert!(refused("zng", "memory.direct.mapping.log_filled=[\"101%\"]", "gaus:n=64").contains("101%"));
    assert!(refused("zng", "memory.direct.mapping.log_filled=[]", "gaus:n=64").contains("no share"));
}

// Applications that share a GPU in different ways, while their flash reclaims space.

/// Registers that thrash and log blocks of two pages: garbage is collected, and applications are held meanwhile.
const RECLAIMING: &[&str] = &[
    "memory.direct.geometry.dies=1",
    "memory.direct.geometry.pages=2",
    "memory.direct.registers.count=2",
    "mmu.table.block.reach=1MiB",
];

/// When each kernel of every application began and ended.
fn kernels(document: &serde_json::Value) -> Vec<(f64, f64)> {
    let applications = document["gpu"][0]["applications"].as_array().expect("a list of applications");
    let all = applications.iter().flat_map(|app| app["kernels"].as_array().expect("a list of kernels"));
    let mut all: Vec<_> =
        all.map(|kernel| (figure(kernel, "/begun_ns"), figure(kernel, "/ended_ns"))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// Every check of a run passes: all requests are answered, all work is done.
#[test]
fn every_way_of_sharing_ends_though_applications_are_held() {
    for blocks in ["round_robin", "large_chunk", "strided"] {
        for sharing in ["shared", "partitioned", "round_robin", "large_chunk", "automatic"] {
            let policies = [
                format!("gpu.blocks={blocks}"),
                format!("gpu.kernels={sharing}"),
                "gpu.repeat=false".to_owned(),
            ];
            let set: Vec<&str> =
                RECLAIMING.iter().copied().chain(policies.iter().map(String::as_str)).collect();
            let workloads = ["bfs1:scale=9", "FDT:n=256,launches=6"];
            let document = lasting(&run("zng", &workloads, &set));
            assert!(figure(&document, "/gpu/0/memory/direct/gc_runs") > 0.0, "{policies:?}: GC never ran");
            // Three for each time step of the stencil, at least one of the search.
            assert!(kernels(&document).len() > 6, "{policies:?}");
        }
    }
}

/// If no application is held, a kernel has the GPU to itself, whatever the memory.
#[test]
fn kernels_that_take_turns_do_not_overlap() {
    for system in ["ideal", "hybridgpu"] {
        for (sharing, apart) in [("shared", false), ("round_robin", true), ("large_chunk", true)] {
            let set = format!("gpu.kernels={sharing}");
            let workloads = ["gaus:n=64,pivots=3", "bfs1:scale=8", "back:n=256"];
            let document = lasting(&run(system, &workloads, &[set.as_str(), "gpu.repeat=false"]));
            let one_after_another = kernels(&document).windows(2).all(|pair| pair[0].1 <= pair[1].0);
            assert_eq!(one_after_another, apart, "{system}, {sharing}");
        }
    }
}

/// With repetition a short application runs as long as a long one, and the long one ends when it would beside an idle share.
#[test]
fn an_application_that_ends_early_begins_again() {
    for system in ["ideal", "hybridgpu", "zng", "hetero"] {
        let run = |repeat: &str| lasting(&run(system, &["deg:scale=8", "gaus:n=96,pivots=20"], &[repeat]));
        let (once, again) = (run("gpu.repeat=false"), run("gpu.repeat=true"));
        let app = |document: &serde_json::Value, path: &str| {
            figure(document, &format!("/gpu/0/applications{path}"))
        };
        let issued = "/0/warp_instructions";
        assert!(app(&again, issued) >= 2.0 * app(&once, issued), "{system}: it has run once");
        assert_eq!(app(&again, "/1/warp_instructions"), app(&once, "/1/warp_instructions"), "{system}");
        let last =
            |document: &serde_json::Value| app(document, "/0/ended_ns").max(app(document, "/1/ended_ns"));
        let cycles = figure(&again, "/gpu/0/cycles");
        // 1.2 GHz, a period in whole picoseconds.
        let last = last(&again);
        assert!((cycles / (last * 1.2) - 1.0).abs() < 1e-3, "{system}: {cycles} cycles, ended at {last} ns");
    }
}

// Machines with hardly any room: whatever waits for whom, every program ends and every account agrees.

const PROGRAMS: [&str; 8] = [
    "bfs1:scale=6",
    "bfs5:scale=6",
    "bfs6:scale=6",
    "gc2:scale=6",
    "back:n=256",
    "gaus:n=32",
    "FDT:n=64,launches=3",
    "gram:n=32",
];

/// Everything that all platforms have as small as it can be, or nearly.
fn narrow() -> impl Strategy<Value = Vec<String>> {
    let small = prop::sample::select(vec![1_u32, 2, 8]);
    let few = prop::sample::select(vec![1_u32, 4]);
    let sizes = (small.clone(), small.clone(), small.clone(), small.clone(), small.clone(), small);
    (sizes, few.clone(), few.clone(), few, 1..=6_u32, prop::sample::select(vec![0_u32, 1, 8])).prop_map(
        |((queue, stores, missing, misses, registers, slots), entries, sets, ways, banks, merges)| {
            let all: [(&str, u32); 17] = [
                ("gpu.sms", banks),
                ("gpu.load_store.queue", queue),
                ("gpu.load_store.stores", stores),
                ("gpu.l1.miss_registers", missing),
                ("gpu.l1.merges", merges),
                ("gpu.l1.sets", sets),
                ("gpu.l1.ways", ways),
                ("gpu.tlb.entries", entries),
                ("gpu.tlb.ways", entries),
                ("gpu.tlb.misses", misses),
                ("mmu.walkers", misses),
                ("l2.banks", banks),
                ("l2.registers", registers),
                ("l2.merges", merges.max(1)),
                ("l2.write_slots", slots),
                ("l2.sets", sets),
                ("l2.ways", ways),
            ];
            all.iter().map(|(key, value)| format!("{key}={value}")).collect()
        },
    )
}

/// Properties of a platform, scaled down: log blocks of two pages that fill at once, registers and buffers that thrash,
/// less GPU memory than data.
fn own(system: &str) -> &'static [&'static str] {
    const FLASH: [&str; 3] =
        ["memory.direct.geometry.dies=1", "memory.direct.geometry.pages=2", "mmu.table.block.reach=1MiB"];
    const REGISTERS: [&str; 5] =
        [FLASH[0], FLASH[1], FLASH[2], "memory.direct.registers.count=2", "l2.parked=0B"];
    match system {
        "hybridgpu" => &[
            "memory.engine.evictions=1",
            "memory.engine.ftl_in_service=1",
            "memory.engine.write_buffer.capacity=32KiB",
            "memory.engine.read_buffer.capacity=32KiB",
        ],
        "hetero" => &["paging.memory=128KiB", "paging.copies=1", "paging.driver.batch=1"],
        "zng" | "zng-wropt" => &REGISTERS,
        "zng-base" | "zng-rdopt" => &FLASH,
        _ => &[],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_narrow_machine_ends(
        system in prop::sample::select(&PLATFORMS),
        programs in prop::sample::subsequence(&PROGRAMS, 1..=2),
        narrow in narrow(),
    ) {
        let set: Vec<&str> = own(system).iter().copied().chain(narrow.iter().map(String::as_str)).collect();
        run(system, &programs, &set);
    }
}

// Every platform runs programs to their end, twice the same, and no platform changes what a program does.

/// Two single programs of either suite, and a pair that shares the machine.
const WORKLOADS: [&[&str]; 4] =
    [&["bfs1:scale=9"], &["gaus:n=64"], &["back:n=1024"], &["bfs1:scale=9", "gaus:n=64"]];

#[test]
fn every_platform_runs_programs_to_their_end_and_twice_the_same() {
    for system in PLATFORMS {
        for workloads in WORKLOADS {
            let document = lasting(&run(system, workloads, &[]));
            let applications = document["gpu"][0]["applications"].as_array().map_or(0, Vec::len);
            assert_eq!(applications, workloads.len(), "{system}");
            let tiles = |check: &&Value| check["name"] == "the stages of loads and stores tile their latency";
            assert_eq!(document["checks"].as_array().into_iter().flatten().filter(tiles).count(), 1);
            assert_eq!(lasting(&run(system, workloads, &[])), document, "{system}, {workloads:?}");
        }
    }
}

/// Flash behind a GPU keeps its data, and following them changes nothing.
#[test]
fn a_shadow_changes_nothing() {
    for system in ["zng-base", "zng-rdopt", "zng-wropt", "zng", "hybridgpu"] {
        for workloads in [&["gaus:n=64"][..], &["back:n=4096"]] {
            let with = lasting(&run(system, workloads, &["sim.shadow=true"]));
            let without = lasting(&run(system, workloads, &[]));
            let checks = |document: &Value| document["checks"].as_array().map_or(0, Vec::len);
            assert!(checks(&with) > checks(&without), "{system}: the shadow adds its checks");
            for part in ["simulated_ns", "gpu", "flash", "breakdown_ns"] {
                assert_eq!(with[part], without[part], "{system}, {workloads:?}: {part}");
            }
        }
    }
}

/// A machine that runs inside another's pauses, and one beside it in another thread, change nothing.
#[test]
fn machines_do_not_see_each_other() {
    // Long enough to pause.
    const OUTER: &str = "bfs1:scale=11";
    let alone = |system: &str| lasting(&run(system, &["bfs1:scale=9"], &[]));
    let expected: Vec<Value> = PLATFORMS.iter().map(|system| alone(system)).collect();
    std::thread::scope(|scope| {
        for (system, expected) in PLATFORMS.into_iter().zip(&expected) {
            scope.spawn(move || assert_eq!(&alone(system), expected, "{system} in a thread"));
        }
    });
    for (n, outer) in PLATFORMS.iter().enumerate() {
        let inner = (n + 1) % PLATFORMS.len();
        let mut found = Vec::new();
        let mut outside = Outside {
            cpu_s: &|| 0.0,
            wall_s: &|| 0.0,
            peak_rss: &|| 0,
            stop: &AtomicBool::new(false),
            watch: &mut |_| {
                if found.is_empty() {
                    found.push(alone(PLATFORMS[inner]));
                }
            },
            states: None,
        };
        let plan = Plan::new(outer, OUTER);
        let document = machine::run::run(&plan, &mut outside).unwrap_or_else(|refused| panic!("{refused}"));
        assert_eq!(found, [expected[inner].clone()], "{} inside {outer}", PLATFORMS[inner]);
        assert_eq!(lasting(&document), lasting(&run(outer, &[OUTER], &[])), "{outer}");
    }
}

/// Each warp loads a line of a page of its own and stores what it has loaded there: every translation is a load's, so that
/// the stages of loads sum to their latency and those of stores to theirs.
#[test]
fn the_breakdown_sums_to_the_latency() {
    let text = || {
        kernel(16, 4, |block, number, warp| {
            for round in 0..8 {
                let at = u64::from(block * 4 + number) * 4096 + round * 256;
                warp.load(1, 0xff, 4, at);
                warp.add(2, 1);
                warp.store(2, at + 128);
            }
        })
    };
    for system in PLATFORMS {
        let document = rungs::run_application(system, 64 * 4096, &[text()], &[]);
        for (kind, latency) in [("load", "read_latency_ns"), ("store", "write_latency_ns")] {
            let parts = document["breakdown_ns"][kind].as_object().expect("a breakdown");
            let sum: f64 = parts.values().filter_map(Value::as_f64).sum();
            let mean = figure(&document, &format!("/gpu/0/{latency}/mean"));
            near(&format!("{system}, {kind}"), sum, mean, 1e-9);
        }
    }
}

/// Programs whose warps write nothing that another warp of the kernel reads.
#[test]
fn what_a_program_does_is_the_same_on_every_platform() {
    for program in ["deg:scale=9", "back:n=1024", "gaus:n=64", "FDT:n=64", "gram:n=64"] {
        let work = |system: &str| {
            let document = lasting(&run(system, &[program], &[]));
            let count = |what: &str| figure(&document, &format!("/gpu/0/{what}"));
            ["thread_instructions", "warp_instructions", "memory_instructions", "lines"].map(count)
        };
        let expected = work(PLATFORMS[0]);
        assert!(expected.iter().all(|count| *count > 0.0), "{program}: {expected:?}");
        for system in &PLATFORMS[1..] {
            assert_eq!(work(system), expected, "{program} on {system}");
        }
    }
}
