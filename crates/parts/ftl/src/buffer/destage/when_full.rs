//! Write-back only when the buffer is full.

use super::{Destage, DestageContext, Fill, Pace};
use engine::{Snapshot, Time};

/// Policy state.
#[derive(Clone, Copy, Debug)]
pub struct WhenFull {
    high: u32,
    low: u32,
    draining: bool,
}

impl WhenFull {
    pub(super) fn new(context: &DestageContext) -> WhenFull {
        WhenFull { high: context.high, low: context.low, draining: false }
    }
}

impl Destage for WhenFull {
    fn pace(&mut self, _: Time, fill: &Fill) -> Option<Pace> {
        self.draining |= fill.pressed || fill.used() > self.high;
        self.draining &= fill.dirty > self.low;
        // Kept lines are not a reason to drain, but must be written back if nothing else makes room.
        (self.draining || (fill.pressed && fill.flushing == 0)).then_some(Pace::Even)
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.draining.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.draining = bool::load(input)?;
        Some(())
    }
}
