//! The cache that the multiprocessors share.

use super::Predicted::{Differ, Falls, RefusedAfterFirst, Rises};
use super::{BACK, BFS, Case, GAUS, REPLACEMENT};

const GRANULARITY: &str = "/gpu/0/l2/prefetch_granularity_bytes";
const L2_HITS: &str = "/gpu/0/l2/hit_share";
const PREFETCHED: &str = "/gpu/0/l2/prefetched_lines";
const SIM: &str = "/simulated_ns";
const STALLED: &str = "/gpu/0/l2/stalled_share";

/// Caches that hold next to nothing.
const SMALL: &[&str] = &["gpu.l1.sets=1", "gpu.l1.ways=1", "l2.sets=4", "l2.ways=4"];
/// An access monitor that looks often.
const DYNAMIC: &[&str] = &[
    "gpu.l1.sets=1",
    "gpu.l1.ways=1",
    "l2.sets=4",
    "l2.ways=4",
    "l2.prefetch={ dynamic = { window = 16 } }",
];

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "l2.banks",
        context: &["l2.interleave=128B"],
        jobs: BACK,
        values: &["1", "2", "6"],
        predicted: Falls(SIM),
    },
    Case { key: "l2.sets", context: SMALL, jobs: BFS, values: &["2", "8", "32"], predicted: Rises(L2_HITS) },
    Case { key: "l2.ways", context: SMALL, jobs: BFS, values: &["1", "4", "16"], predicted: Rises(L2_HITS) },
    Case {
        key: "l2.line",
        context: &[],
        jobs: BFS,
        values: &["128B", "64B", "256B"],
        predicted: RefusedAfterFirst("l2.line"),
    },
    Case {
        key: "l2.clock",
        context: SMALL,
        jobs: GAUS,
        values: &["0.1GHz", "1.2GHz", "4.8GHz"],
        predicted: Falls(SIM),
    },
    Case {
        key: "l2.read_latency",
        context: &[],
        jobs: GAUS,
        values: &["1", "4", "16"],
        predicted: Rises(SIM),
    },
    Case {
        key: "l2.write_latency",
        context: &[],
        jobs: GAUS,
        values: &["1", "4", "16"],
        predicted: Rises(SIM),
    },
    // Large pieces of memory crowd in a bank.
    Case {
        key: "l2.interleave",
        context: &[],
        jobs: BACK,
        values: &["128B", "4KiB", "64KiB"],
        predicted: Rises(SIM),
    },
    Case {
        key: "l2.registers",
        context: SMALL,
        jobs: BACK,
        values: &["1", "4", "64"],
        predicted: Falls(SIM),
    },
    Case {
        key: "l2.merges",
        context: SMALL,
        jobs: GAUS,
        values: &["1", "4", "64"],
        predicted: Falls(STALLED),
    },
    Case {
        key: "l2.write_slots",
        context: SMALL,
        jobs: BACK,
        values: &["1", "4", "64"],
        predicted: Falls(STALLED),
    },
    Case { key: "l2.replacement", context: SMALL, jobs: BFS, values: REPLACEMENT, predicted: Differ },
    Case {
        key: "l2.writes",
        context: &[],
        jobs: GAUS,
        values: &["write_back", "read_only"],
        predicted: Rises("/gpu/0/l2/written_lines"),
    },
    Case {
        key: "l2.prefetch",
        context: SMALL,
        jobs: &["bfs1:scale=10"],
        values: &["none", "fixed", "predicted", "dynamic"],
        predicted: Differ,
    },
    Case {
        key: "l2.prefetch.fixed.chunk",
        context: &[],
        jobs: BACK,
        values: &["256B", "1KiB", "4KiB"],
        predicted: Rises(PREFETCHED),
    },
    Case {
        key: "l2.prefetch.predicted.entries",
        context: &[
            "gpu.l1.sets=1",
            "gpu.l1.ways=1",
            "l2.sets=4",
            "l2.ways=4",
            "l2.prefetch={ predicted = { cutoff = 4 } }",
        ],
        jobs: &["betw:scale=8"],
        values: &["8", "16"],
        predicted: Differ,
    },
    Case {
        key: "l2.prefetch.predicted.cutoff",
        context: SMALL,
        jobs: BFS,
        values: &["0", "11", "14"],
        predicted: Falls(PREFETCHED),
    },
    Case {
        key: "l2.prefetch.predicted.chunk",
        context: SMALL,
        jobs: BFS,
        values: &["256B", "1KiB", "4KiB"],
        predicted: Rises(GRANULARITY),
    },
    Case {
        key: "l2.prefetch.dynamic.entries",
        context: &[
            "gpu.l1.sets=1",
            "gpu.l1.ways=1",
            "l2.sets=4",
            "l2.ways=4",
            "l2.prefetch={ dynamic = { cutoff = 4 } }",
        ],
        jobs: BFS,
        values: &["8", "16"],
        predicted: Differ,
    },
    Case {
        key: "l2.prefetch.dynamic.cutoff",
        context: SMALL,
        jobs: BFS,
        values: &["2", "8", "14"],
        predicted: Falls(PREFETCHED),
    },
    Case {
        key: "l2.prefetch.dynamic.high",
        context: &[
            "gpu.l1.sets=1",
            "gpu.l1.ways=1",
            "l2.sets=4",
            "l2.ways=4",
            "l2.prefetch={ dynamic = { window = 16 } }",
            "l2.prefetch.dynamic.low=0%",
        ],
        jobs: BFS,
        values: &["10%", "50%", "100%"],
        predicted: Rises(GRANULARITY),
    },
    Case {
        key: "l2.prefetch.dynamic.low",
        context: &[
            "gpu.l1.sets=1",
            "gpu.l1.ways=1",
            "l2.sets=4",
            "l2.ways=4",
            "l2.prefetch={ dynamic = { window = 16 } }",
            "l2.prefetch.dynamic.high=90%",
        ],
        jobs: BFS,
        values: &["0%", "50%", "90%"],
        predicted: Rises(GRANULARITY),
    },
    Case {
        key: "l2.prefetch.dynamic.step",
        context: &[
            "gpu.l1.sets=1",
            "gpu.l1.ways=1",
            "l2.sets=4",
            "l2.ways=4",
            "l2.prefetch={ dynamic = { window = 16 } }",
            "l2.prefetch.dynamic.high=80%",
            "l2.prefetch.dynamic.low=75%",
        ],
        jobs: BFS,
        values: &["128B", "1KiB", "4KiB"],
        predicted: Rises(GRANULARITY),
    },
    // The granularity begins with its greatest value.
    Case {
        key: "l2.prefetch.dynamic.window",
        context: SMALL,
        jobs: BFS,
        values: &["16", "4096"],
        predicted: Rises(GRANULARITY),
    },
    Case {
        key: "l2.prefetch.dynamic.least",
        context: DYNAMIC,
        jobs: BFS,
        values: &["256B", "1KiB", "4KiB"],
        predicted: Rises(GRANULARITY),
    },
    Case {
        key: "l2.prefetch.dynamic.most",
        context: SMALL,
        jobs: BFS,
        values: &["256B", "1KiB", "4KiB"],
        predicted: Rises(GRANULARITY),
    },
];
