//! Fewest valid groups first.

use super::{Victim, VictimView};

/// Takes the used block with the fewest valid groups; among equals the first.
#[derive(Clone, Copy, Debug)]
pub struct Greedy;

impl Greedy {
    /// Builds the policy.
    pub fn new(_: &()) -> Greedy {
        Greedy
    }
}

impl Victim for Greedy {
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32> {
        view.used().min_by_key(|block| view.valid(*block))
    }
}
