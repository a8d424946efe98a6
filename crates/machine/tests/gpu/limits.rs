//! Rungs of bandwidth: a kernel that streams through memory is limited by what the spec makes the narrowest.

use crate::script::{kernel, run};
use crate::{figure, near};
use serde_json::Value;

/// Blocks, and warps of a block: as many as the 16 multiprocessors hold, four blocks and 80 warps each.
const BLOCKS: u32 = 64;
const WARPS: u32 = 20;
/// Bytes that a warp loads with one instruction: 16 a lane, four lines.
const PIECE: u64 = 512;

/// All warps load, `rounds` times, the next piece of what all of them together go through, `stride` bytes apart, and wait
/// for nothing.
fn stream(system: &str, rounds: u64, stride: u64, set: &[&str]) -> Value {
    let all = u64::from(BLOCKS * WARPS);
    let text = kernel(BLOCKS, WARPS, |block, number, warp| {
        let first = u64::from(block * WARPS + number);
        for round in 0..rounds {
            warp.stream((round * all + first) * stride);
        }
    });
    run(system, rounds * all * stride, &[text], set)
}

fn bandwidth(document: &Value) -> f64 {
    figure(document, "/gpu/memory/bandwidth_bytes_per_s")
}

#[test]
fn report() {
    for (system, rounds, stride, set) in [
        ("ideal", 12, PIECE, vec![]),
        ("ideal", 48, PIECE, vec![]),
        ("ideal", 48, PIECE, vec!["network.width=64B"]),
        ("optane", 12, PIECE, vec![]),
        ("optane", 48, PIECE, vec![]),
        ("zng-base", 6, PIECE, vec![]),
        ("zng-base", 12, PIECE, vec![]),
        ("zng", 12, PIECE, vec!["memory.direct.transfer=page"]),
        ("zng", 48, PIECE, vec!["memory.direct.transfer=page"]),
        ("zng", 12, PIECE, vec!["memory.direct.transfer=page", "l2.prefetch=none"]),
        ("zng", 48, PIECE, vec![]),
        ("hybridgpu", 24, PIECE, vec![]),
        ("hybridgpu", 4, 4096, vec!["memory.engine.ftl_in_service=4"]),
    ] {
        let begun = std::time::Instant::now();
        let d = stream(system, rounds, stride, &set);
        println!(
            "{system} {rounds} {stride} {set:?}: {:.3} GB/s in {} us; {}\n {} {:?}",
            bandwidth(&d) / 1e9,
            figure(&d, "/simulated_ns") / 1e3,
            d["gpu"]["memory"],
            d["breakdown_ns"],
            begun.elapsed()
        );
    }
    near("x", 1.0, 1.0, 0.1);
}
