//! Scheduler `intra_in_order`: one microblock at a time.

use super::super::{Chain, Unit};
use super::AcceleratorScheduler;

/// Runs the screens of one microblock at a time.
pub struct IntraInOrder;

impl IntraInOrder {
    pub(super) fn new(_: &u16) -> IntraInOrder {
        IntraInOrder
    }
}

impl AcceleratorScheduler for IntraInOrder {
    fn splits(&self) -> bool {
        true
    }

    fn is_greedy(&self) -> bool {
        false
    }

    fn next(&mut self, chain: &Chain, _: u16) -> Option<Unit> {
        let current = chain.open().next()?;
        (chain.ready(current) > 0).then_some(Unit::Screen(current))
    }
}
