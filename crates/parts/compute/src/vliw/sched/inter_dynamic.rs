//! The next kernel for whoever is free.

use super::super::{Chain, Unit};
use super::AcceleratorScheduler;

/// The policy. Whoever is free asks, so that turns follow from who ends first.
pub struct InterDynamic;

impl InterDynamic {
    pub(super) fn new(_: &u16) -> InterDynamic {
        InterDynamic
    }
}

impl AcceleratorScheduler for InterDynamic {
    fn splits(&self) -> bool {
        false
    }

    fn is_greedy(&self) -> bool {
        true
    }

    fn next(&mut self, chain: &Chain, _: u16) -> Option<Unit> {
        chain.open().find(|instance| chain.is_fresh(*instance)).map(Unit::Kernel)
    }
}
