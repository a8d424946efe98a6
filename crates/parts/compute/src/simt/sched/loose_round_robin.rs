//! Warp scheduler `loose_round_robin`.

use super::{WarpScheduler, WarpView, next_from};

/// Picks the next ready warp after the one that issued last, in the order of slots.
#[derive(Clone, Copy, Debug, Default)]
pub struct LooseRoundRobin {
    next: u32,
}

impl LooseRoundRobin {
    /// Builds the policy.
    pub fn new(_: &()) -> LooseRoundRobin {
        LooseRoundRobin::default()
    }
}

impl WarpScheduler for LooseRoundRobin {
    fn enter(&mut self, _: u32) {}
    fn leave(&mut self, _: u32) {}
    #[inline]
    fn pick(&mut self, view: &WarpView) -> Option<u32> {
        let slot = next_from(view.ready, self.next)?;
        self.next = slot + 1;
        Some(slot)
    }
}
