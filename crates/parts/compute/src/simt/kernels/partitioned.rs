//! Kernel scheduler `partitioned`: separate multiprocessors for each application.

use super::{Admitted, AppView, KernelScheduler};
use std::ops::Range;

/// Runs all applications at once, each on its share of the multiprocessors.
#[derive(Clone, Copy, Debug)]
pub struct Partitioned;

impl Partitioned {
    /// Builds the policy.
    pub fn new(_: &u16) -> Partitioned {
        Partitioned
    }
}

impl KernelScheduler for Partitioned {
    fn ended(&mut self, _: usize, _: u32) {}

    fn admit(&mut self, _: &[AppView]) -> Admitted {
        Admitted::Every
    }

    fn share(&self, app: usize, apps: usize, sms: u16) -> Range<u16> {
        let all = usize::from(sms);
        let (from, to) =
            if apps <= all { (app * all / apps, (app + 1) * all / apps) } else { (app % all, app % all + 1) };
        from as u16..to as u16
    }
}
