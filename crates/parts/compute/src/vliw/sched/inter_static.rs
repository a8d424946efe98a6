//! Scheduler `inter_static`: a core for each application.

use super::super::{Chain, Unit};
use super::AcceleratorScheduler;

/// Gives each application's kernels to one core.
pub struct InterStatic {
    cores: u16,
}

impl InterStatic {
    pub(super) fn new(cores: &u16) -> InterStatic {
        InterStatic { cores: *cores }
    }
}

impl AcceleratorScheduler for InterStatic {
    fn splits(&self) -> bool {
        false
    }

    fn is_greedy(&self) -> bool {
        false
    }

    fn next(&mut self, chain: &Chain, core: u16) -> Option<Unit> {
        let own = |instance: &u32| chain.app(*instance) % self.cores == core && chain.is_fresh(*instance);
        chain.open().find(own).map(Unit::Kernel)
    }
}
