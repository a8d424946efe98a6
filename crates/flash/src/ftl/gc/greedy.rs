//! Fewest valid units first.

use super::{Victim, VictimView};

/// Takes the unit with the fewest valid map units; among equals, the one unchanged for longest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Greedy;

impl Victim for Greedy {
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32> {
        view.by_valid().next()
    }
}
