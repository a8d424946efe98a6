//! One open unit with skipped pages.

use super::{Choice, OpenUnits, PageChoice, TYPES};
use crate::buffer::destage::Pace;
use config::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `write_point`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Maximum capacity of reclaim units with skipped pages; once it is used up, no other unit skips.
    pub region: Bytes,
}

impl Default for Params {
    fn default() -> Params {
        // FastDrain, Table I: 64 GB.
        Params { region: Bytes::new(64_000_000_000) }
    }
}

/// Write-point policy.
#[derive(Clone, Copy, Debug)]
pub struct WritePoint {
    region: u64,
}

impl WritePoint {
    pub(super) fn new(params: &Params) -> WritePoint {
        WritePoint { region: params.region.get() }
    }
}

impl PageChoice for WritePoint {
    fn open(&self) -> u32 {
        1
    }
    fn region(&self) -> u64 {
        self.region
    }
    fn choose(&self, pace: Pace, units: &OpenUnits) -> Option<Choice> {
        let next = (0..TYPES).find(|kind| units.of_type[*kind] > 0);
        match next {
            Some(kind) if kind > 0 && pace == Pace::Foreground && units.may_skip[kind] => {
                Some(Choice::Skip(kind))
            }
            Some(kind) => Some(Choice::Take(kind)),
            None => units.may_open.then_some(Choice::Open),
        }
    }
}
