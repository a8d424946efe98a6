//! Kernel scheduler `round_robin`: a kernel of each application in turn.

use super::{Admitted, AppView, KernelScheduler, Turns};

/// Gives an application one kernel in its turn.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {
    turns: Turns,
}

impl RoundRobin {
    /// Builds the policy.
    pub fn new(_: &u16) -> RoundRobin {
        RoundRobin { turns: Turns::default() }
    }
}

impl KernelScheduler for RoundRobin {
    fn ended(&mut self, app: usize, _: u32) {
        self.turns.ended(app, |_| false);
    }
    fn admit(&mut self, apps: &[AppView]) -> Admitted {
        self.turns.admit(apps)
    }
}
