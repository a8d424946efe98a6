//! What a coprocessor spends, on its link as well.

use super::Coprocessor;
use super::spec::CoprocessorEnergySpec;
use crate::vliw::meter::{CHIP_ON, CORES, ChipMeter, MEMORY_ON, MEMORY_TRANSFER, State};
use engine::Time;
use stats::{Activity, EnergyReport};

const MEMORY: usize = 3;
const LINK: usize = 5;
const ACTIVITIES: [Activity; 8] = [
    CORES[0],
    CORES[1],
    CORES[2],
    MEMORY_TRANSFER,
    MEMORY_ON,
    Activity::operation("link transfer"),
    Activity::state("link on"),
    CHIP_ON,
];

/// So many idle cores.
pub(super) fn meter(costs: &CoprocessorEnergySpec, cores: u16) -> ChipMeter {
    let on = [(MEMORY + 1, costs.memory_on), (LINK + 1, costs.link_on), (LINK + 2, costs.chip_on)];
    let on = on.map(|(activity, power)| (activity, power.microwatts()));
    let carries = [(MEMORY, costs.memory_transfer), (LINK, costs.link_transfer)];
    ChipMeter::new(&ACTIVITIES, (costs.worker, cores), on, carries)
}

impl Coprocessor {
    /// Energy since the measured window began; `None` if the spec does not say what things cost.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.meter.as_ref().map(|meter| meter.report(now))
    }

    /// So many cores go from one state to another.
    pub(super) fn turn(&mut self, now: Time, cores: usize, from: State, to: State) {
        if let Some(meter) = &mut self.meter {
            meter.turn(now, cores, (from, to));
        }
    }

    /// Bytes have crossed memory in a time, or will have.
    pub(super) fn carry(&mut self, from: Time, to: Time, bytes: u64) {
        self.stats.memory_bytes += bytes;
        if let Some(meter) = &mut self.meter {
            meter.carry(MEMORY, from, to, bytes);
        }
    }

    /// Bytes will have crossed the link in a time.
    pub(super) fn cross(&mut self, from: Time, to: Time, bytes: u64) {
        if let Some(meter) = &mut self.meter {
            meter.carry(LINK, from, to, bytes);
        }
    }
}
