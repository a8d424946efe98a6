//! Applications that share a GPU in different ways, while their flash reclaims space.

use super::{figure, lasting, run};

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
            assert!(figure(&document, "/gpu/0/memory/direct/gc_runs") > 0.0, "{policies:?}: nobody was held");
            // Three for each time step of the stencil, at least one of the search.
            assert!(kernels(&document).len() > 6, "{policies:?}");
        }
    }
}

/// Where nobody is held a kernel has the GPU for itself, whatever memory is like.
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
