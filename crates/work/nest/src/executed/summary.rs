//! What a program does in all.

use super::{Body, Executed, Watch};
use crate::counts::Counts;

/// A program's microblocks and operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Microblocks.
    pub microblocks: u64,
    /// Those of them that are serial.
    pub serial: u64,
    /// Operations.
    pub counts: Counts,
}

impl Summary {
    /// Executes a program.
    pub fn of(program: &dyn Executed) -> Summary {
        let mut listener = Listener { bodies: program.bodies(), summary: Summary::default() };
        program.execute(&mut listener);
        listener.summary
    }
}

struct Listener {
    bodies: Vec<Body>,
    summary: Summary,
}

impl Watch for Listener {
    fn microblock(&mut self, is_split: bool) {
        self.summary.microblocks += 1;
        self.summary.serial += u64::from(!is_split);
    }

    fn piece(&mut self) {}

    fn body(&mut self, body: usize, _: u64, passes: u64) {
        self.summary.counts += self.bodies[body].own.times(passes);
    }

    fn access(&mut self, _: usize, _: u64, _: bool) {}
}
