//! Every platform runs programs to their end, twice the same, and no platform changes what a program does.

use crate::gpu::script::{self, kernel};
use crate::gpu::{PLATFORMS, figure, lasting, near, run};
use machine::run::{Outside, Plan};
use serde_json::Value;
use std::sync::atomic::AtomicBool;

/// Two single programs of either suite, and a pair that shares the machine.
const WORKLOADS: [&[&str]; 4] =
    [&["bfs1:scale=9"], &["gaus:n=64"], &["back:n=4096"], &["bfs1:scale=9", "gaus:n=64"]];

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
        let document = script::run(system, 64 * 4096, &[text()], &[]);
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
