//! Warp scheduler `greedy_then_oldest`.

use super::{WarpScheduler, WarpView, slots};

/// Picks the warp that issued last as long as it is ready, then the oldest.
#[derive(Clone, Debug, Default)]
pub struct GreedyThenOldest {
    last: Option<u32>,
    entered: u64,
    /// Entry number of the warp in each slot, counted in warps.
    ages: Vec<u64>,
}

impl GreedyThenOldest {
    /// Builds the policy.
    pub fn new(_: &()) -> GreedyThenOldest {
        GreedyThenOldest::default()
    }
}

impl WarpScheduler for GreedyThenOldest {
    fn enter(&mut self, slot: u32) {
        if self.ages.len() <= slot as usize {
            self.ages.resize(slot as usize + 1, 0);
        }
        self.ages[slot as usize] = self.entered;
        self.entered += 1;
    }
    fn leave(&mut self, slot: u32) {
        self.last = self.last.filter(|last| *last != slot);
    }
    #[inline]
    fn pick(&mut self, view: &WarpView) -> Option<u32> {
        let slot = match self.last {
            Some(last) if view.ready >> last & 1 == 1 => last,
            _ => slots(view.ready).min_by_key(|slot| self.ages[*slot as usize])?,
        };
        self.last = Some(slot);
        Some(slot)
    }
}
