//! One block after the other.

use super::{Victim, VictimView};

/// Takes the used blocks in circular address order.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin {
    next: u32,
}

impl RoundRobin {
    /// Builds the policy.
    pub fn new(_: &()) -> RoundRobin {
        RoundRobin::default()
    }
}

impl Victim for RoundRobin {
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32> {
        let block = view.used_from(self.next).or_else(|| view.used_from(0))?;
        self.next = (block + 1) % view.blocks();
        Some(block)
    }
}
