//! The helper thread of ZnG, which merges log blocks on a multiprocessor.

use crate::gpu::{figure, lasting, run};
use serde_json::Value;

/// Flash with few planes and short blocks, so that log blocks fill.
const FLASH: [&str; 14] = [
    "gpu.resident.blocks=4",
    "gpu.kernels=shared",
    "memory.direct.geometry.channels=4",
    "memory.direct.geometry.dies=1",
    "memory.direct.geometry.planes=4",
    "memory.direct.geometry.blocks=16",
    "memory.direct.geometry.pages=16",
    "memory.direct.mapping.group=16",
    "memory.direct.mapping.data_blocks=8",
    "memory.direct.controller.count=4",
    "memory.direct.network={ mesh = { rows = 2, columns = 2 } }",
    "mmu.table.block.reach=1MiB",
    "l2.writes=read_only",
    "memory.direct.mapping.log_filled=[\"75%\"]",
];

fn document(set: &[&str]) -> Value {
    lasting(&run("zng-base", &["back:n=4096"], &[&FLASH[..], set].concat()))
}

/// It executes as many instructions for each page and each block, and they are no application's.
#[test]
fn every_page_and_every_block_costs_instructions() {
    let with = document(&[]);
    let direct = |name: &str| figure(&with, &format!("/gpu/0/memory/direct/{name}"));
    assert!(direct("gc_runs") > 0.0);
    let expected = 28.0 * direct("gc_programs") + 56.0 * direct("erases");
    let beyond = figure(&with, "/gpu/0/helper_instructions") - expected;
    // A step of each plane may be prepared or under way at the end.
    assert!((0.0..=16.0 * 56.0).contains(&beyond), "{beyond} beyond {expected}");
    let without = document(&["memory.direct.helper.page=0", "memory.direct.helper.block=0"]);
    assert!(without["gpu"][0].get("helper_instructions").is_none());
    let instructions = |document: &Value| figure(document, "/gpu/0/warp_instructions");
    assert_eq!(instructions(&with), instructions(&without));
}

/// The more it executes, the longer merges take.
#[test]
fn merges_wait_for_it() {
    let time = |page: u32| {
        let document = document(&[&format!("memory.direct.helper.page={page}")]);
        figure(&document, "/simulated_ns")
    };
    assert!(time(10_000) > 1.2 * time(0));
}
