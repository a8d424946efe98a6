//! What a chip spends that executes programs: its cores by what they do, its memory by what it carries, whatever else is on.

use super::spec::WorkerPower;
use config::units::Energy;
use engine::{Mutant, Time, planted_nth};
use stats::{Activity, Attojoules, EnergyReport, Meter};

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

/// The first activities of a chip's meter, in the order of [`State`].
pub(super) const CORES: [Activity; 3] =
    [Activity::state("worker idle"), Activity::state("worker waits"), Activity::state("worker computes")];
/// Bytes cross memory.
pub(super) const MEMORY_TRANSFER: Activity = Activity::operation("memory transfer");
/// Memory is on.
pub(super) const MEMORY_ON: Activity = Activity::state("memory on");
/// The rest of the chip is on.
pub(super) const CHIP_ON: Activity = Activity::state("chip on");

/// What a chip has spent.
pub(super) struct ChipMeter {
    power: WorkerPower,
    /// Cores in each state.
    count: [u64; 3],
    /// A byte that crosses something, by its activity.
    bytes: [Attojoules; MOST],
    meter: Meter,
}

/// Activities of a chip at most.
const MOST: usize = 8;

impl ChipMeter {
    /// So many idle cores, whose activities come first. Of other activities, the power of what is on, in microwatts, and the energy of a byte of what carries some.
    pub(super) fn new(
        activities: &'static [Activity; MOST],
        (power, cores): (WorkerPower, u16),
        on: impl IntoIterator<Item = (usize, u64)>,
        carries: impl IntoIterator<Item = (usize, Energy)>,
    ) -> ChipMeter {
        let mut meter = Meter::new(activities);
        on.into_iter().for_each(|(activity, power)| meter.set_power(activity, Time::ZERO, power));
        let mut bytes = [0; MOST];
        carries.into_iter().for_each(|(activity, byte)| bytes[activity] = byte.attojoules().into());
        let mut chip = ChipMeter { power, count: [cores.into(), 0, 0], bytes, meter };
        chip.set(Time::ZERO);
        chip
    }

    fn set(&mut self, now: Time) {
        let each = [self.power.idle, self.power.waits, self.power.computes];
        for (state, (power, cores)) in each.into_iter().zip(self.count).enumerate() {
            self.meter.set_power(state, now, power.microwatts() * cores);
        }
    }

    /// So many cores go from one state to another.
    pub(super) fn turn(&mut self, now: Time, cores: usize, (from, to): (State, State)) {
        self.count[from as usize] -= cores as u64;
        self.count[to as usize] += cores as u64;
        if !planted_nth(Mutant::UnpaidWorker, 16) {
            self.set(now);
        }
    }

    /// Bytes cross something in a time, or will.
    pub(super) fn carry(&mut self, activity: usize, from: Time, to: Time, bytes: u64) {
        self.meter.spread(activity, from, to, self.bytes[activity] * Attojoules::from(bytes));
    }

    /// Something takes more for a time.
    pub(super) fn spend_over(&mut self, activity: usize, from: Time, to: Time, microwatts: u64) {
        self.meter.spend_over(activity, from, to, microwatts);
    }

    /// What was spent since the measured window began.
    pub(super) fn report(&self, now: Time) -> EnergyReport {
        self.meter.report(now)
    }

    /// Starts the measured window.
    pub(super) fn reset(&mut self, now: Time) {
        self.meter.reset(now);
    }
}
