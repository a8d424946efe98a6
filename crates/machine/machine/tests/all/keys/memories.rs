//! The cache that the multiprocessors share, several memories behind it, and several drives as one.

use super::Predicted::{Differ, Falls, RefusedAfterFirst, Rises};
use super::{BACK, BFS, Case, GAUS, GRAM, LARGE_READ, ONE_READ, REPLACEMENT};

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

pub(crate) const L2: &[Case] = &[
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

const PROMOTED: &str = "/gpu/0/memory/placement/promotions";

const HOT: &str = "/gpu/0/memory/placement/candidates";

/// Pages are marked often, and rise as soon as they are used.
const FREQUENT: &[&str] = &[
    "placement.sizes=[\"32KiB\", \"64MiB\"]",
    "placement.policy={ hot = { threshold = \"10us\", scan = \"10us\", rate = \"100GB/s\", window = \"100us\", exchanges = 64 } }",
];

/// As [`FREQUENT`], a page or two in each window.
const LIMITED: &[&str] = &[
    "placement.sizes=[\"32KiB\", \"64MiB\"]",
    "placement.policy={ hot = { threshold = \"10us\", scan = \"2us\", rate = \"4GB/s\", window = \"2us\", exchanges = 64 } }",
];

const NEAR: &str = "/gpu/0/memory/placement/targets/0/line_share";

pub(crate) const PLACEMENT: &[Case] = &[
    Case {
        key: "placement.targets",
        context: &[],
        jobs: GRAM,
        values: &["[\"gddr\", \"nand\"]", "[\"gddr\", \"nowhere\"]"],
        predicted: RefusedAfterFirst("the part `nowhere` does not exist"),
    },
    Case {
        key: "placement.sizes",
        context: &["placement.policy=first_touch"],
        jobs: GRAM,
        values: &["[\"4KiB\", \"64MiB\"]", "[\"32KiB\", \"64MiB\"]", "[\"1MiB\", \"64MiB\"]"],
        predicted: Rises(NEAR),
    },
    Case {
        key: "placement.latency",
        context: &[],
        jobs: GRAM,
        values: &["0ns", "100ns", "1us"],
        predicted: Rises("/breakdown_ns/load/controller"),
    },
    Case {
        key: "placement.policy",
        context: &["placement.sizes=[\"32KiB\", \"64MiB\"]"],
        jobs: GRAM,
        values: &[
            "ranges",
            "interleave",
            "first_touch",
            "{ hot = { threshold = \"10us\", scan = \"2us\", rate = \"100GB/s\" } }",
        ],
        predicted: Differ,
    },
    Case {
        key: "placement.policy.interleave.granule",
        context: &["placement.sizes=[\"64KiB\", \"64MiB\"]"],
        jobs: GRAM,
        values: &["4KiB", "16KiB", "64KiB"],
        predicted: Differ,
    },
    Case {
        key: "placement.policy.hot.threshold",
        context: FREQUENT,
        jobs: GRAM,
        values: &["10ns", "1us", "10us"],
        predicted: Rises(HOT),
    },
    Case {
        key: "placement.policy.hot.scan",
        context: FREQUENT,
        jobs: GRAM,
        values: &["2us", "10us", "40us"],
        predicted: Falls(HOT),
    },
    Case {
        key: "placement.policy.hot.rate",
        context: FREQUENT,
        jobs: GRAM,
        values: &["50MB/s", "200MB/s", "10GB/s"],
        predicted: Rises(PROMOTED),
    },
    Case {
        key: "placement.policy.hot.window",
        context: LIMITED,
        jobs: GRAM,
        values: &["2us", "20us"],
        predicted: Differ,
    },
    Case {
        key: "placement.policy.hot.exchanges",
        context: FREQUENT,
        jobs: GRAM,
        values: &["1", "2"],
        predicted: Rises(PROMOTED),
    },
];

/// Of several drives as one.
pub(crate) const STRIPED: &[Case] = &[
    Case {
        key: "stripe.chunk",
        context: &[],
        jobs: LARGE_READ,
        values: &["16KiB", "32KiB", "64KiB"],
        predicted: Falls("/stripe/0/parts"),
    },
    Case {
        key: "stripe.submit",
        context: &[],
        jobs: ONE_READ,
        values: &["0us", "10us", "50us"],
        predicted: Rises("/io/read/latency_ns/mean"),
    },
    Case {
        key: "stripe.drives",
        context: &[],
        jobs: ONE_READ,
        values: &["flash", "nowhere"],
        predicted: RefusedAfterFirst("the part `nowhere` does not exist"),
    },
];
