//! What a coprocessor spends: its cores by what they do, its memory by what it carries, the chip by being on.

use super::spec::CoprocessorEnergySpec;
use crate::vliw::workers::{COMPUTES, IDLE, State, WAITS, Workers};
use kernel::Time;
use stats::{Activity, Attojoules, EnergyReport, Meter};

const MEMORY_TRANSFER: usize = 3;
const MEMORY_ON: usize = 4;
const LINK_TRANSFER: usize = 5;
const LINK_ON: usize = 6;
const CHIP_ON: usize = 7;
const ACTIVITIES: [Activity; 8] = [
    IDLE,
    WAITS,
    COMPUTES,
    Activity::operation("memory transfer"),
    Activity::state("memory on"),
    Activity::operation("link transfer"),
    Activity::state("link on"),
    Activity::state("chip on"),
];

/// What a coprocessor has spent.
pub(super) struct CoprocessorMeter {
    memory_byte: Attojoules,
    link_byte: Attojoules,
    meter: Meter,
    workers: Workers,
}

impl CoprocessorMeter {
    /// So many idle cores.
    pub(super) fn new(costs: &CoprocessorEnergySpec, cores: u16) -> CoprocessorMeter {
        let mut meter = Meter::new(&ACTIVITIES);
        meter.set_power(MEMORY_ON, Time::ZERO, costs.memory_on.microwatts());
        meter.set_power(LINK_ON, Time::ZERO, costs.link_on.microwatts());
        meter.set_power(CHIP_ON, Time::ZERO, costs.chip_on.microwatts());
        let workers = Workers::new(costs.worker, cores, &mut meter);
        CoprocessorMeter {
            memory_byte: costs.memory_transfer.attojoules().into(),
            link_byte: costs.link_transfer.attojoules().into(),
            meter,
            workers,
        }
    }

    /// So many cores go from one state to another.
    pub(super) fn turn(&mut self, now: Time, cores: usize, states: (State, State)) {
        self.workers.turn(now, cores, states, &mut self.meter);
    }

    /// Bytes cross memory in a time.
    pub(super) fn carry(&mut self, from: Time, to: Time, bytes: u64) {
        self.meter.spread(MEMORY_TRANSFER, from, to, self.memory_byte * Attojoules::from(bytes));
    }

    /// Bytes cross the link in a time.
    pub(super) fn cross(&mut self, from: Time, to: Time, bytes: u64) {
        self.meter.spread(LINK_TRANSFER, from, to, self.link_byte * Attojoules::from(bytes));
    }

    pub(super) fn report(&self, now: Time) -> EnergyReport {
        self.meter.report(now)
    }

    pub(super) fn reset(&mut self, now: Time) {
        self.meter.reset(now);
    }
}
