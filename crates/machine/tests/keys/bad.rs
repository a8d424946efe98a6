//! Bad blocks.

use super::Predicted::{Falls, Rises};
use super::{Case, OVERWRITE};

/// Room for blocks to fail in.
const SPARE: &str = "flash.ftl.over_provisioning=50%";
const GOOD: &str = "flash.bad_blocks.factory=0%";
const GROWN: &str = "/flash/0/bad_blocks/grown";

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "flash.bad_blocks.factory",
        context: &[SPARE],
        jobs: OVERWRITE,
        values: &["0%", "2%", "8%"],
        predicted: Rises("/flash/0/bad_blocks/factory"),
    },
    Case {
        key: "flash.bad_blocks.grown.endurance",
        context: &[SPARE, GOOD, "flash.bad_blocks.grown.shape=1.0"],
        jobs: OVERWRITE,
        values: &["10", "40", "100000"],
        predicted: Falls(GROWN),
    },
    Case {
        key: "flash.bad_blocks.grown.shape",
        context: &[SPARE, GOOD, "flash.bad_blocks.grown.endurance=12"],
        jobs: OVERWRITE,
        values: &["1.0", "4.0"],
        predicted: Falls(GROWN),
    },
];
