//! What multiprocessors spend: all of them take the idle power all the time, more in cycles in which they issue.

use super::Gpu;
use super::spec::GpuEnergySpec;
use config::energy::StatePower;
use kernel::Time;
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
}

impl Gpu {
    /// Energy of the multiprocessors since counters began, and of the rest of their chip; `None` if the spec does not say what they cost.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.meter.as_ref().map(|meter| meter.meter.report(now))
    }

    /// A cycle has been served.
    pub(super) fn meter_cycle(&mut self, cycle: u64) {
        let Some(meter) = &mut self.meter else { return };
        let cycles = self.stats.sms.iter().map(|sm| sm.busy).sum();
        let (begin, end) = (self.model.period.times(cycle), self.model.period.times(cycle + 1));
        meter.meter.spend_over(ISSUE, begin, end, meter.issues * (cycles - meter.cycles));
        meter.cycles = cycles;
    }
}
