//! Kernel scheduler `shared`: all applications at once.

use super::{Admitted, AppView, KernelScheduler};

/// Lets blocks of all applications take turns.
#[derive(Clone, Copy, Debug)]
pub struct Shared;

impl Shared {
    /// Builds the policy.
    pub fn new(_: &u16) -> Shared {
        Shared
    }
}

impl KernelScheduler for Shared {
    fn ended(&mut self, _: usize, _: u32) {}
    fn admit(&mut self, _: &[AppView]) -> Admitted {
        Admitted::Every
    }
}
