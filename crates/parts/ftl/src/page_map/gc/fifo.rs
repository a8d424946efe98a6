//! First-closed unit first.

use super::{Victim, VictimContext, VictimView};

/// Takes the oldest closed unit.
#[derive(Clone, Copy, Debug)]
pub struct Fifo;

impl Fifo {
    /// Builds the policy.
    pub fn new(_: &VictimContext) -> Fifo {
        Fifo
    }
}

impl Victim for Fifo {
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32> {
        view.by_age().next()
    }
}
