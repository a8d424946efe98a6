//! Fewest valid units first.

use super::{Victim, VictimContext, VictimView};

/// Takes the head of the lowest occupied bucket.
#[derive(Clone, Copy, Debug)]
pub struct Greedy;

impl Greedy {
    /// Builds the policy.
    pub fn new(_: &VictimContext) -> Greedy {
        Greedy
    }
}

impl Victim for Greedy {
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32> {
        view.by_valid().next()
    }
}
