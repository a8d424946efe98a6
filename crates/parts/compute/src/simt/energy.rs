//! What multiprocessors spend: all of them take the idle power all the time, more in cycles in which they issue.

use super::spec::GpuEnergySpec;
use config::StatePower;
use engine::{Mutant, Time, planted_nth};
use stats::{Activity, EnergyReport, Meter};

const ON: usize = 0;
const ISSUE: usize = 1;
const REST: usize = 2;
const ACTIVITIES: [Activity; 3] = [
    Activity::state("multiprocessors on"),
    Activity::state("multiprocessor issues"),
    Activity::state("chip on"),
];

/// What multiprocessors have spent.
pub(super) struct GpuMeter {
    meter: Meter,
    /// What a multiprocessor takes beyond the idle power in a cycle in which it issues, microwatts.
    issues: u64,
    /// Such cycles of all multiprocessors, as far as they have been metered.
    cycles: u64,
}

impl GpuMeter {
    /// Of so many multiprocessors.
    pub(super) fn new(costs: &GpuEnergySpec, sms: u16) -> GpuMeter {
        let StatePower { idle, busy } = costs.multiprocessor;
        let mut meter = Meter::new(&ACTIVITIES);
        meter.set_power(ON, Time::ZERO, idle.microwatts() * u64::from(sms));
        meter.set_power(REST, Time::ZERO, costs.chip_on.microwatts());
        GpuMeter { meter, issues: busy.microwatts().saturating_sub(idle.microwatts()), cycles: 0 }
    }

    /// Counters begin anew.
    pub(super) fn reset(&mut self, now: Time) {
        self.meter.reset(now);
        self.cycles = 0;
    }

    /// What was spent since counters began.
    pub(super) fn report(&self, now: Time) -> EnergyReport {
        self.meter.report(now)
    }

    /// A cycle has been served; so many of all multiprocessors have issued since counters began.
    pub(super) fn cycle(&mut self, (begin, end): (Time, Time), cycles: u64) {
        if !planted_nth(Mutant::UnpaidIssue, 16) {
            self.meter.spend_over(ISSUE, begin, end, self.issues * (cycles - self.cycles));
        }
        self.cycles = cycles;
    }
}
