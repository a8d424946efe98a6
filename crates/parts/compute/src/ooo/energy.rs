//! What a server's cores spend: all of them take the idle power all the time, more while they have something to run.

use super::spec::CpuEnergySpec;
use config::StatePower;
use engine::{Mutant, Time, planted_nth};
use stats::{Activity, EnergyReport, Meter};

const ON: usize = 0;
const WORK: usize = 1;
const REST: usize = 2;
const ACTIVITIES: [Activity; 3] =
    [Activity::state("cores on"), Activity::state("core at work"), Activity::state("chip on")];

/// What a core has spent, and the first one the rest of the chip.
#[derive(Clone)]
pub(super) struct CoreMeter {
    meter: Meter,
    /// What work adds, microwatts.
    work: u64,
    cycle: Time,
    width: u64,
    /// The slot from which on it has been at work, as far as that is not metered.
    from: u64,
}

impl CoreMeter {
    /// With cycles of so many slots.
    pub(super) fn new(costs: &CpuEnergySpec, number: u16, cycle: Time, width: u64) -> CoreMeter {
        let StatePower { idle, busy } = costs.core;
        let mut meter = Meter::new(&ACTIVITIES);
        meter.set_power(ON, Time::ZERO, idle.microwatts());
        if number == 0 {
            meter.set_power(REST, Time::ZERO, costs.chip_on.microwatts());
        }
        CoreMeter { meter, work: busy.microwatts().saturating_sub(idle.microwatts()), cycle, width, from: 0 }
    }

    fn time(&self, slot: u64) -> Time {
        Time::from_ps((u128::from(self.cycle.ps()) * u128::from(slot) / u128::from(self.width)) as u64)
    }

    /// It has been at work up to a slot.
    fn worked(&mut self, until: u64) {
        if until > self.from {
            let work = if planted_nth(Mutant::UnpaidCore, 4) { 0 } else { self.work };
            self.meter.spend_over(WORK, self.time(self.from), self.time(until), work);
            self.from = until;
        }
    }

    /// Between two slots it had nothing to run.
    #[cold]
    pub(super) fn idles(&mut self, from: u64, until: u64) {
        self.worked(from);
        self.from = until;
    }

    /// Energy since counters began. The core has been at work or idle as far as `until`, which may lie ahead.
    pub(super) fn report(&self, now: Time, until: u64) -> EnergyReport {
        let mut meter = self.clone();
        meter.worked(until.min(self.slot(now)));
        meter.meter.report(now)
    }

    /// Counters begin anew.
    pub(super) fn reset(&mut self, now: Time, until: u64) {
        self.worked(until.min(self.slot(now)));
        self.meter.reset(now);
    }

    /// The slot in which a time lies.
    fn slot(&self, now: Time) -> u64 {
        (u128::from(now.ps()) * u128::from(self.width) / u128::from(self.cycle.ps())) as u64
    }
}
