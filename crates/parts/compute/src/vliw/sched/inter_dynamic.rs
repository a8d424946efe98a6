//! Scheduler `inter_dynamic`: the next kernel for the next free core.

use super::super::{Chain, Unit};
use super::AcceleratorScheduler;

/// Gives the next kernel to the core that asks: the order follows from which core ends first.
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
