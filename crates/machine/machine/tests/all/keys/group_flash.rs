//! The flash that an accelerator governs.

use super::Case;
use super::Predicted::{Differ, Falls, RefusedAfterFirst, Rises};
use super::accelerator::{MAKESPAN, PASSES, THREE};

const READ_GROUP: &str = "/group_flash/0/group_read_ns/mean";
const WRITE_GROUP: &str = "/group_flash/0/group_write_ns/mean";
const TWICE: &[&str] = &["nest:file=tests/keys/passes.toml,instances=2"];
/// The first ends long before the second, and with it its lock at the beginning of the map, where the second only reads.
const SHORT_AND_LONG: &[&str] = &["nest:file=tests/keys/chain.toml", "atax:m=2048,n=2048"];
const LONG: &[&str] = &["nest:file=tests/keys/passes.toml,instances=2,passes=12"];
/// Flash that is written anew as a whole: blocks are reclaimed.
const TINY: &[&str] = &[
    "accelerator.memory.size=4MiB",
    "group_flash.groups.geometry.packages=1",
    "group_flash.groups.geometry.blocks=12",
];
const SPREAD: &[&str] = &[
    "accelerator.memory.size=4MiB",
    "group_flash.groups.geometry.packages=1",
    "group_flash.groups.geometry.blocks=12",
    "group_flash.cell.spread={ program = \"0%\", erase = \"0%\", read = \"0%\" }",
];
/// A map of four page groups; those of kernels' outputs are the last.
const DUMPED: &[&str] = &[
    "group_flash.groups.geometry.blocks=512",
    "group_flash.groups.geometry.pages=64",
    "group_flash.groups.dump.period=1ms",
];
/// Reads behind programs on slow channels, over all dies.
const CROWDED: &[&str] = &[
    "accelerator.memory.size=4MiB",
    "group_flash.groups.geometry.packages=8",
    "group_flash.groups.geometry.blocks=12",
    "group_flash.groups.translation=striped",
    "group_flash.channel.rate=50MT/s",
];

/// Of the flash that it governs.
pub(crate) const CASES: &[Case] = &[
    Case {
        key: "group_flash.groups.geometry.channels",
        context: &[],
        jobs: THREE,
        values: &["4", "2"],
        predicted: RefusedAfterFirst("an accelerator needs groups of"),
    },
    // Every plane loses as many blocks as the worst.
    Case {
        key: "group_flash.bad_blocks.factory",
        context: &[],
        jobs: THREE,
        values: &["0%", "10%", "30%"],
        predicted: Falls("/group_flash/0/groups"),
    },
    Case {
        key: "group_flash.groups.geometry.planes",
        context: &[],
        jobs: THREE,
        values: &["2", "1"],
        predicted: RefusedAfterFirst("an accelerator needs groups of"),
    },
    Case {
        key: "group_flash.groups.geometry.page",
        context: &[],
        jobs: THREE,
        values: &["8KiB", "16KiB"],
        predicted: RefusedAfterFirst("an accelerator needs groups of"),
    },
    Case {
        key: "group_flash.groups.geometry.packages",
        context: &[],
        jobs: THREE,
        values: &["2", "4"],
        predicted: Rises("/group_flash/0/groups"),
    },
    Case {
        key: "group_flash.groups.geometry.dies",
        context: &[],
        jobs: THREE,
        values: &["1", "2"],
        predicted: Rises("/group_flash/0/groups"),
    },
    Case {
        key: "group_flash.groups.geometry.blocks",
        context: &[],
        jobs: THREE,
        values: &["32", "64"],
        predicted: Rises("/group_flash/0/groups"),
    },
    Case {
        key: "group_flash.groups.geometry.pages",
        context: &[],
        jobs: THREE,
        values: &["32", "48"],
        predicted: Rises("/group_flash/0/groups"),
    },
    Case {
        key: "group_flash.groups.translation",
        context: &[],
        jobs: THREE,
        values: &["literal", "striped"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.groups.metadata_pages",
        context: &[],
        jobs: THREE,
        values: &["1", "7"],
        predicted: Rises(READ_GROUP),
    },
    Case {
        key: "group_flash.groups.reclaim.victim",
        context: TINY,
        jobs: TWICE,
        values: &["round_robin", "greedy"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.groups.reclaim.reserve",
        context: TINY,
        jobs: TWICE,
        values: &["1", "2"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.groups.reclaim.below",
        context: TINY,
        jobs: TWICE,
        values: &["3", "6"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.groups.reclaim.moves",
        context: TINY,
        jobs: TWICE,
        values: &["1", "8"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.groups.dump.period",
        context: DUMPED,
        jobs: SHORT_AND_LONG,
        values: &["1ms", "10s"],
        predicted: Falls("/group_flash/0/dumped"),
    },
    Case {
        key: "group_flash.groups.dump.extent",
        context: DUMPED,
        jobs: SHORT_AND_LONG,
        values: &["changed", "whole"],
        predicted: Rises("/group_flash/0/dumped"),
    },
    Case {
        key: "group_flash.cell.bits",
        context: &[],
        jobs: THREE,
        values: &["3", "2"],
        predicted: RefusedAfterFirst("`"),
    },
    Case {
        key: "group_flash.cell.layout",
        context: &[],
        jobs: PASSES,
        values: &["by_word_line", "planar"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.cell.programming",
        context: &["group_flash.groups.geometry.pages=33", "group_flash.cell.program=[\"600us\"]"],
        jobs: THREE,
        values: &["page", "one_shot", "two_pass"],
        predicted: RefusedAfterFirst("page by page"),
    },
    Case {
        key: "group_flash.cell.read",
        context: &[],
        jobs: THREE,
        values: &["[\"3us\"]", "[\"50us\"]", "[\"80us\"]"],
        predicted: Rises(READ_GROUP),
    },
    Case {
        key: "group_flash.cell.program",
        context: &[],
        jobs: THREE,
        values: &["[\"100us\"]", "[\"600us\"]", "[\"1ms\"]"],
        predicted: Rises(WRITE_GROUP),
    },
    Case {
        key: "group_flash.cell.erase",
        context: TINY,
        jobs: PASSES,
        values: &["1ms", "10ms", "50ms"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "group_flash.cell.program_drift",
        context: TINY,
        jobs: PASSES,
        values: &["0%", "50%"],
        predicted: Falls(WRITE_GROUP),
    },
    Case {
        key: "group_flash.cell.erase_drift",
        context: TINY,
        jobs: LONG,
        values: &["0%", "100%"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.cell.spread.read",
        context: SPREAD,
        jobs: PASSES,
        values: &["0%", "5%", "20%"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.cell.spread.program",
        context: SPREAD,
        jobs: PASSES,
        values: &["0%", "5%", "20%"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.cell.spread.erase",
        context: SPREAD,
        jobs: PASSES,
        values: &["0%", "5%", "20%"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.channel.interface",
        context: &["group_flash.channel.rate=50MT/s"],
        jobs: THREE,
        values: &["sdr", "nv_ddr2", "toggle"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.channel.interface",
        context: &["group_flash.channel.rate=1GT/s"],
        jobs: THREE,
        values: &["nv_ddr3", "nv_ddr2", "sdr"],
        predicted: RefusedAfterFirst("`"),
    },
    Case {
        key: "group_flash.channel.interface",
        context: &["group_flash.channel.rate=2GT/s"],
        jobs: THREE,
        values: &["nv_lpddr4", "nv_ddr3"],
        predicted: RefusedAfterFirst("`"),
    },
    Case {
        key: "group_flash.channel.rate",
        context: &[],
        jobs: THREE,
        values: &["200MT/s", "400MT/s", "800MT/s"],
        predicted: Falls(READ_GROUP),
    },
    Case {
        key: "group_flash.channel.width",
        context: &[],
        jobs: THREE,
        values: &["8", "16"],
        predicted: Falls(READ_GROUP),
    },
    Case {
        key: "group_flash.channel.arbiter",
        context: CROWDED,
        jobs: TWICE,
        values: &["fifo", "data_first", "command_first"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.scheduler",
        context: CROWDED,
        jobs: TWICE,
        values: &["oldest", "in_order", "priority", "{ read_first = {} }"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.scheduler.read_first.max_wait",
        context: CROWDED,
        jobs: TWICE,
        values: &["100us", "50ms"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.link.rate",
        context: &[],
        jobs: THREE,
        values: &["100MB/s", "1GB/s", "4GB/s"],
        predicted: Falls(MAKESPAN),
    },
];
