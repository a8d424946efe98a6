//! Page choice by lists of the type of the next page.

use super::{Choice, OpenUnits, PageChoice, TYPES};
use crate::buffer::destage::Pace;
use config::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `by_type`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Number of reclaim units that a group may have open for the host.
    #[schemars(range(min = 1))]
    pub open: u32,
    /// Maximum capacity of reclaim units with skipped pages; once it is used up, no other unit skips.
    pub region: Bytes,
}

impl Default for Params {
    fn default() -> Params {
        // The number is chosen; the region is that of FastDrain, Table I.
        Params { open: 8, region: Bytes::new(64_000_000_000) }
    }
}

/// FastDrain's policy.
#[derive(Clone, Copy, Debug)]
pub struct ByType {
    open: u32,
    region: u64,
}

impl ByType {
    pub(super) fn new(params: &Params) -> ByType {
        ByType { open: params.open.max(1), region: params.region.get() }
    }

    fn foreground(units: &OpenUnits) -> Option<Choice> {
        let has = |kind: &usize| units.of_type[*kind] > 0;
        if has(&0) {
            return Some(Choice::Take(0));
        }
        if units.may_open {
            return Some(Choice::Open);
        }
        // The slowest is the last of its word line: it loses the fewest pages.
        let skipped = (1..TYPES).rev().find(|kind| has(kind) && units.may_skip[*kind]);
        skipped.map(Choice::Skip).or_else(|| (1..TYPES).find(has).map(Choice::Take))
    }
}

impl PageChoice for ByType {
    fn open(&self) -> u32 {
        self.open
    }
    fn region(&self) -> u64 {
        self.region
    }
    fn choose(&self, pace: Pace, units: &OpenUnits) -> Option<Choice> {
        let has = |kind: &usize| units.of_type[*kind] > 0;
        let opened = || units.may_open.then_some(Choice::Open);
        match pace {
            Pace::Foreground => ByType::foreground(units),
            // CSB and MSB before LSB.
            Pace::Background => (1..TYPES).chain([0]).find(has).map(Choice::Take).or_else(opened),
            // Word lines already begun come first.
            Pace::Even => (0..TYPES).rev().find(has).map(Choice::Take).or_else(opened),
        }
    }
}
