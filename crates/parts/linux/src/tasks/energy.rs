//! What the cores of a host spend, with its memory.

use super::{CoreTime, Cores, Mode};
use config::SpecError;
use config::StatePower;
use config::units::Power;
use engine::{Mutant, Time, planted_nth};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Activity, EnergyReport, Meter};

const CORES_ON: usize = 0;
const USER: usize = 1;
const SYSTEM: usize = 2;
const INTERRUPT: usize = 3;
const PACKAGE_ON: usize = 4;
const MEMORY_ON: usize = 5;
const ACTIVITIES: [Activity; 6] = [
    Activity::state("cores on"),
    Activity::state("core in user mode"),
    Activity::state("core in system mode"),
    Activity::state("core in interrupts"),
    Activity::state("package on"),
    Activity::state("memory on"),
];

/// What the processor of a host and its memory spend.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostEnergySpec {
    /// Power of a core, at work for a program, for the kernel or in an interrupt, or not.
    pub core: StatePower,
    /// Power of the rest of the package: caches, ring, memory and PCIe controllers.
    pub package_on: Power,
    /// Power of main memory, all of it: what it takes on the average of what programs do with it.
    pub memory_on: Power,
}

impl HostEnergySpec {
    /// # Errors
    /// A core that takes less at work than without.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        let StatePower { idle, busy } = self.core;
        if busy < idle {
            let what = format!("{busy} at work are less than {idle} without");
            return Err(SpecError::new("core.busy", what));
        }
        Ok(())
    }
}

/// What cores have spent: all of them take the idle power all the time, those at work more.
#[derive(Clone, Debug)]
pub(super) struct CoresMeter {
    meter: Meter,
    /// What work adds, microwatts.
    work: u64,
}

impl CoresMeter {
    /// Of so many cores.
    pub(super) fn new(costs: &HostEnergySpec, cores: u16) -> CoresMeter {
        let mut meter = Meter::new(&ACTIVITIES);
        let idle = costs.core.idle.microwatts();
        let on = [
            (CORES_ON, idle * u64::from(cores)),
            (PACKAGE_ON, costs.package_on.microwatts()),
            (MEMORY_ON, costs.memory_on.microwatts()),
        ];
        on.into_iter().for_each(|(activity, power)| meter.set_power(activity, Time::ZERO, power));
        CoresMeter { meter, work: costs.core.busy.microwatts().saturating_sub(idle) }
    }

    /// A thread has run on a core.
    pub(super) fn ran(&mut self, mode: Mode, from: Time, to: Time) {
        let activity = match mode {
            Mode::User => USER,
            Mode::System => SYSTEM,
        };
        let work = if planted_nth(Mutant::UnpaidThread, 16) { 0 } else { self.work };
        self.meter.spend_over(activity, from, to, work);
    }

    /// An interrupt has a core until `to`, which may lie ahead.
    pub(super) fn interrupts(&mut self, from: Time, to: Time) {
        self.meter.spend_over(INTERRUPT, from, to, self.work);
    }

    /// Starts the measured window.
    pub(super) fn reset(&mut self, now: Time) {
        self.meter.reset(now);
    }
}

impl Cores {
    /// Time of all cores by use since the measured window began, up to `now`: what runs included.
    pub fn used(&self, now: Time) -> CoreTime {
        let mut used = self.stats.time.iter().fold(CoreTime::default(), |sum, of| CoreTime {
            user: sum.user + of.user,
            system: sum.system + of.system,
            interrupt: sum.interrupt + of.interrupt,
        });
        for core in self.cores.iter().filter(|core| core.armed.is_some()) {
            let Some(task) = core.current else { continue };
            match self.thread(task).mode {
                Mode::User => used.user += now.since(core.counted),
                Mode::System => used.system += now.since(core.counted),
            }
        }
        used
    }

    /// Energy of cores, package and memory since the measured window began; `None` if the spec does not say what they cost.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        let mut meter = CoresMeter::clone(self.meter.as_ref()?);
        for core in self.cores.iter().filter(|core| core.armed.is_some()) {
            if let Some(task) = core.current {
                meter.ran(self.thread(task).mode, core.counted, now);
            }
        }
        Some(meter.meter.report(now))
    }
}
