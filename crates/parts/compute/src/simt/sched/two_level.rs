//! Warp scheduler `two_level`.

use super::{WarpScheduler, WarpView, Warps, next_from};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Parameters of [`TwoLevel`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Number of active warps; at least one.
    #[schemars(range(min = 1, max = 128))]
    pub active: u8,
}

impl Default for Params {
    fn default() -> Params {
        Params { active: 8 }
    }
}

/// Round robin among a few active warps. An active warp that waits for memory or a barrier goes to the end of the
/// pending list; the first pending warp without such a wait takes its place.
#[derive(Clone, Debug)]
pub struct TwoLevel {
    most: u32,
    next: u32,
    active: Warps,
    pending: VecDeque<u32>,
}

impl TwoLevel {
    /// Builds the policy.
    pub fn new(params: &Params, _: &()) -> TwoLevel {
        TwoLevel { most: params.active.max(1).into(), next: 0, active: 0, pending: VecDeque::new() }
    }

    fn exchange(&mut self, far: Warps) {
        for slot in super::slots(self.active & far) {
            self.active &= !(1 << slot);
            self.pending.push_back(slot);
        }
        while self.active.count_ones() < self.most {
            let Some(at) = self.pending.iter().position(|slot| far >> slot & 1 == 0) else { break };
            if let Some(slot) = self.pending.remove(at) {
                self.active |= 1 << slot;
            }
        }
    }
}

impl WarpScheduler for TwoLevel {
    fn enter(&mut self, slot: u32) {
        self.pending.push_back(slot);
    }
    fn leave(&mut self, slot: u32) {
        self.active &= !(1 << slot);
        self.pending.retain(|pending| *pending != slot);
    }
    fn pick(&mut self, view: &WarpView) -> Option<u32> {
        self.exchange(view.far);
        let slot = next_from(view.ready & self.active, self.next)?;
        self.next = slot + 1;
        Some(slot)
    }
}
