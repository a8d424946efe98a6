//! Several memories behind one shared cache, and several drives as one.

use super::Predicted::{Differ, Falls, RefusedAfterFirst, Rises};
use super::{Case, GRAM, LARGE_READ, ONE_READ};

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

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "placement.targets",
        context: &[],
        jobs: GRAM,
        values: &["[\"gddr\", \"nand\"]", "[\"gddr\", \"nowhere\"]"],
        predicted: RefusedAfterFirst("there is no part `nowhere`"),
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
        predicted: RefusedAfterFirst("there is no part `nowhere`"),
    },
];
