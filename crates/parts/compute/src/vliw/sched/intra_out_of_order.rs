//! Scheduler `intra_out_of_order`: screens of any microblock that may begin.

use super::super::{Chain, Unit};
use super::AcceleratorScheduler;

/// Runs the oldest screen that may begin.
pub struct IntraOutOfOrder;

impl IntraOutOfOrder {
    pub(super) fn new(_: &u16) -> IntraOutOfOrder {
        IntraOutOfOrder
    }
}

impl AcceleratorScheduler for IntraOutOfOrder {
    fn splits(&self) -> bool {
        true
    }

    fn is_greedy(&self) -> bool {
        true
    }

    fn next(&mut self, chain: &Chain, _: u16) -> Option<Unit> {
        chain.open().find(|instance| chain.ready(*instance) > 0).map(Unit::Screen)
    }
}
