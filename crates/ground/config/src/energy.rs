//! Powers that specs of several parts name alike.

use crate::units::Power;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What something takes that is at work or not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatePower {
    /// Power while there is nothing to do.
    pub idle: Power,
    /// Power at work, the idle power included.
    pub busy: Power,
}
