//! The state before the run.

use super::Predicted::{Differ, Rises};
use super::{Case, OVERWRITE, READ};

const MAPPED: &str = "/precondition/mapped_share";
const WRITES: &str = "/precondition/drive_writes";

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "precondition",
        context: &[],
        jobs: OVERWRITE,
        values: &["none", "sequential", "uniform", "zipf", "steady", "analytic"],
        predicted: Differ,
    },
    Case {
        key: "precondition.sequential.share",
        context: &[],
        jobs: READ,
        values: &["10%", "50%", "100%"],
        predicted: Rises(MAPPED),
    },
    Case {
        key: "precondition.uniform.share",
        context: &[],
        jobs: READ,
        values: &["10%", "50%", "100%"],
        predicted: Rises(MAPPED),
    },
    Case {
        key: "precondition.uniform.invalid",
        context: &[],
        jobs: READ,
        values: &["0%", "2%", "5%"],
        predicted: Rises("/precondition/invalid_share"),
    },
    Case {
        key: "precondition.zipf.share",
        context: &[],
        jobs: READ,
        values: &["10%", "50%", "100%"],
        predicted: Rises(MAPPED),
    },
    Case {
        key: "precondition.zipf.theta",
        context: &[],
        jobs: OVERWRITE,
        values: &["0.5", "0.99", "1.5"],
        predicted: Differ,
    },
    Case {
        key: "precondition.zipf.writes",
        context: &[],
        jobs: READ,
        values: &["1.0", "2.0", "4.0"],
        predicted: Rises(WRITES),
    },
    Case {
        key: "precondition.steady.share",
        context: &[],
        jobs: READ,
        values: &["30%", "70%", "100%"],
        predicted: Rises(MAPPED),
    },
    Case {
        key: "precondition.steady.distribution",
        context: &[],
        jobs: OVERWRITE,
        values: &["uniform", "zipf"],
        predicted: Differ,
    },
    Case {
        key: "precondition.steady.distribution.zipf.theta",
        context: &[],
        jobs: OVERWRITE,
        values: &["0.5", "0.99", "1.5"],
        predicted: Differ,
    },
    // What must be steadier takes longer.
    Case {
        key: "precondition.steady.tolerance",
        context: &[],
        jobs: READ,
        values: &["20%", "1%", "0.2%"],
        predicted: Rises(WRITES),
    },
    Case {
        key: "precondition.analytic.share",
        context: &[],
        jobs: READ,
        values: &["50%", "80%", "100%"],
        predicted: Rises(MAPPED),
    },
];
