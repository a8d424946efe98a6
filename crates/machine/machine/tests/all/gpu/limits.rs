//! Rungs of bandwidth: a kernel that streams through memory is limited by what the spec makes the narrowest.

use super::script::{kernel, run};
use crate::gpu::{figure, near};
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

/// Panics unless a figure stays below a limit, and reaches all but a share of it.
#[track_caller]
fn reaches(what: &str, found: f64, limit: f64, share: f64) {
    assert!(found <= limit && found >= limit * (1.0 - share), "{what}: {found} of {limit}");
}

fn bandwidth(document: &Value) -> f64 {
    figure(document, "/gpu/0/memory/bandwidth_bytes_per_s")
}

/// Six controllers with buses of 64 bits at 4,008 MT/s, which refresh takes for 110 ns of 3.9 us.
const GDDR5: f64 = 6.0 * 8.0 * 4.008e9 * (1.0 - 110.0 / 3_900.0);

#[test]
fn a_stream_reaches_the_buses_of_gddr5() {
    let wide = stream("ideal", 48, PIECE, &["network.width=64B"]);
    reaches("GDDR5", bandwidth(&wide), GDDR5, 0.02);
}

/// Between the cache and the multiprocessors a line and its header of 8 B take five cycles of 32 B. Six links of this kind
/// are a little slower than the buses of GDDR5.
#[test]
fn a_stream_is_limited_by_the_banks_links() {
    let links = 6.0 * 128.0 / 5.0 * 1.2e9;
    assert!(links < GDDR5);
    reaches("links", bandwidth(&stream("ideal", 48, PIECE, &[])), links, 0.02);
}

/// ZnG, Table I: six modules, 39 GB/s together.
#[test]
fn a_stream_reaches_what_optane_gives() {
    reaches("Optane", bandwidth(&stream("optane", 48, PIECE, &[])), 39e9, 0.02);
}

/// Every page crosses the bus of the buffer twice: from flash, and, in lines, to the cache.
#[test]
fn a_stream_is_limited_by_the_buffer_of_the_engine() {
    let document = stream("hybridgpu", 24, PIECE, &[]);
    reaches("the buffer", bandwidth(&document), 6.4e9 / 2.0, 0.02);
    let translations = figure(&document, "/gpu/0/memory/engine/ftl_requests") / seconds(&document);
    assert!(translations < 0.6 * 8.0 / 5e-6, "{translations} translations a second");
}

/// One line of each page: with half of its firmware's places the engine translates more slowly than its buffer moves.
#[test]
fn a_stride_of_pages_is_limited_by_the_translation_layer() {
    let document = stream("hybridgpu", 4, 4096, &["memory.engine.ftl_in_service=4"]);
    let translations = figure(&document, "/gpu/0/memory/engine/ftl_requests") / seconds(&document);
    reaches("translations", translations, 4.0 / 5e-6, 0.02);
    assert!(figure(&document, "/gpu/0/memory/engine/buffer_busy_share") < 0.9);
}

fn seconds(document: &Value) -> f64 {
    figure(document, "/simulated_ns") / 1e9
}

/// With whole pages on the flash network every line costs a page: 16 controllers with a link of 8 B at 800 MT/s each.
#[test]
fn pages_on_the_flash_network_are_limited_by_its_links() {
    let apart = "memory.direct.array.merge_reads=false";
    for (system, set) in [("zng-base", &[apart][..]), ("zng", &[apart, "l2.prefetch=none"])] {
        let document = stream(system, 12, PIECE, set);
        let moved = figure(&document, "/gpu/0/memory/direct/network_bytes_per_s");
        reaches(system, moved, 16.0 * 8.0 * 800e6, 0.01);
        near("lines of a page", moved / bandwidth(&document), 32.0, 1e-9);
    }
}

/// Where lines are sent alone and fetched before they are asked for, the links carry nothing in vain.
#[test]
fn a_stream_of_lines_reaches_the_flash_network() {
    let document = stream("zng", 48, PIECE, &["memory.direct.transfer=lines"]);
    reaches("zng", bandwidth(&document), 16.0 * 8.0 * 800e6, 0.02);
}
