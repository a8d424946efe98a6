//! The state before the run.

use super::Predicted::{Differ, RefusedAfterFirst, Rises};
use super::{Case, OVERWRITE, READ};

const MAPPED: &str = "/flash/0/precondition/mapped_share";
const WRITES: &str = "/flash/0/precondition/drive_writes";

/// Nothing is written but what the trace writes. Files stand beside this one.
const NOTHING_BEFORE: &[&str] = &[
    "flash.precondition={ trace = { file = \"tests/keys/far.trace\", format = \"mqsim\", share = \"0%\" } }",
];
const NEAR: &[&str] = &[
    "flash.precondition={ trace = { file = \"tests/keys/near.trace\", format = \"mqsim\", share = \"0%\" } }",
];

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "flash.precondition",
        context: &[],
        jobs: OVERWRITE,
        values: &[
            "none",
            "sequential",
            "interleaved",
            "uniform",
            "zipf",
            "steady",
            "analytic",
            "{ trace = { file = \"tests/keys/near.trace\", format = \"mqsim\" } }",
        ],
        predicted: Differ,
    },
    Case {
        key: "flash.precondition.sequential.share",
        context: &[],
        jobs: READ,
        values: &["10%", "50%", "100%"],
        predicted: Rises(MAPPED),
    },
    Case {
        key: "flash.precondition.interleaved.share",
        context: &[],
        jobs: READ,
        values: &["10%", "50%", "100%"],
        predicted: Rises(MAPPED),
    },
    Case {
        key: "flash.precondition.uniform.share",
        context: &[],
        jobs: READ,
        values: &["10%", "50%", "100%"],
        predicted: Rises(MAPPED),
    },
    Case {
        key: "flash.precondition.uniform.invalid",
        context: &[],
        jobs: READ,
        values: &["0%", "2%", "5%"],
        predicted: Rises("/flash/0/precondition/invalid_share"),
    },
    Case {
        key: "flash.precondition.zipf.share",
        context: &[],
        jobs: READ,
        values: &["10%", "50%", "100%"],
        predicted: Rises(MAPPED),
    },
    Case {
        key: "flash.precondition.zipf.theta",
        context: &[],
        jobs: OVERWRITE,
        values: &["0.5", "0.99", "1.5"],
        predicted: Differ,
    },
    Case {
        key: "flash.precondition.zipf.writes",
        context: &[],
        jobs: READ,
        values: &["1.0", "2.0", "4.0"],
        predicted: Rises(WRITES),
    },
    Case {
        key: "flash.precondition.steady.share",
        context: &[],
        jobs: READ,
        values: &["30%", "70%", "100%"],
        predicted: Rises(MAPPED),
    },
    Case {
        key: "flash.precondition.steady.distribution",
        context: &[],
        jobs: OVERWRITE,
        values: &["uniform", "zipf"],
        predicted: Differ,
    },
    Case {
        key: "flash.precondition.steady.distribution.zipf.theta",
        context: &[],
        jobs: OVERWRITE,
        values: &["0.5", "0.99", "1.5"],
        predicted: Differ,
    },
    // A smaller tolerance takes longer.
    Case {
        key: "flash.precondition.steady.tolerance",
        context: &[],
        jobs: READ,
        values: &["20%", "1%", "0.2%"],
        predicted: Rises(WRITES),
    },
    Case {
        key: "flash.precondition.analytic.share",
        context: &[],
        jobs: READ,
        values: &["50%", "80%", "100%"],
        predicted: Rises(MAPPED),
    },
    Case {
        key: "flash.precondition.trace.file",
        context: NOTHING_BEFORE,
        jobs: READ,
        values: &["tests/keys/near.trace", "tests/keys/far.trace"],
        predicted: Differ,
    },
    // What is a sector to one format is a byte to the other.
    Case {
        key: "flash.precondition.trace.format",
        context: NEAR,
        jobs: READ,
        values: &["femu", "mqsim"],
        predicted: Rises(MAPPED),
    },
    Case {
        key: "flash.precondition.trace.remap",
        context: NOTHING_BEFORE,
        jobs: READ,
        values: &["compact", "wrap"],
        predicted: Differ,
    },
    Case {
        key: "flash.precondition.trace.remap",
        context: NOTHING_BEFORE,
        jobs: READ,
        values: &["wrap", "error"],
        predicted: RefusedAfterFirst("beyond"),
    },
    Case {
        key: "flash.precondition.trace.share",
        context: NEAR,
        jobs: READ,
        values: &["10%", "50%", "100%"],
        predicted: Rises(MAPPED),
    },
    Case {
        key: "flash.precondition.trace.passes",
        context: NEAR,
        jobs: READ,
        values: &["1", "2", "4"],
        predicted: Rises(WRITES),
    },
];
