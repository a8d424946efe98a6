//! What cores that execute programs take, by what they do.

use super::spec::WorkerPower;
use kernel::Time;
use stats::{Activity, Meter};

/// What a core does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It has no work.
    Idle,
    /// It has some, and waits.
    Waits,
    /// It computes, stalls included.
    Computes,
}

/// The first activities of a part's meter, in the order of [`State`].
pub(super) const IDLE: Activity = Activity::state("worker idle");
/// The second.
pub(super) const WAITS: Activity = Activity::state("worker waits");
/// The third.
pub(super) const COMPUTES: Activity = Activity::state("worker computes");

/// Cores in each state.
pub(super) struct Workers {
    power: WorkerPower,
    count: [u64; 3],
}

impl Workers {
    /// So many idle cores.
    pub(super) fn new(power: WorkerPower, cores: u16, meter: &mut Meter) -> Workers {
        let workers = Workers { power, count: [cores.into(), 0, 0] };
        workers.set(Time::ZERO, meter);
        workers
    }

    fn set(&self, now: Time, meter: &mut Meter) {
        let each = [self.power.idle, self.power.waits, self.power.computes];
        for (state, (power, workers)) in each.into_iter().zip(self.count).enumerate() {
            meter.set_power(state, now, power.microwatts() * workers);
        }
    }

    /// So many of them go from one state to another.
    pub(super) fn turn(&mut self, now: Time, cores: usize, (from, to): (State, State), meter: &mut Meter) {
        self.count[from as usize] -= cores as u64;
        self.count[to as usize] += cores as u64;
        self.set(now, meter);
    }
}
