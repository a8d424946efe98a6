//! What flash as memory spends.

use super::Direct;
use config::SpecError;
use config::StatePower;
use config::units::{Energy, Power};
use engine::{Mutant, Time, planted_nth};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Activity, Attojoules, EnergyReport, Meter};

const READ: usize = 0;
const PROGRAM: usize = 1;
const ERASE: usize = 2;
const TRANSFER: usize = 3;
const PLANES_ON: usize = 4;
const PLANES_WORK: usize = 5;
const CONTROLLERS_ON: usize = 6;
const ACTIVITIES: [Activity; 7] = [
    Activity::operation("read"),
    Activity::operation("program"),
    Activity::operation("erase"),
    Activity::operation("flash network transfer"),
    Activity::state("planes on"),
    Activity::state("planes at work"),
    Activity::state("controllers on"),
];

/// What flash as memory spends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectEnergySpec {
    /// Energy of a page that is read from its array.
    pub read: Energy,
    /// Energy of a page that is programmed.
    pub program: Energy,
    /// Energy of a block that is erased.
    pub erase: Energy,
    /// Energy of a byte of lines on the network between controllers and packages, either way, all hops together.
    pub transfer: Energy,
    /// Power of a plane; that of its array at work, if operations do not have it already.
    pub plane: StatePower,
    /// Power of all controllers together.
    pub controllers_on: Power,
}

impl DirectEnergySpec {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let StatePower { idle, busy } = self.plane;
        if busy < idle {
            let what = format!("{busy} at work are less than {idle} without");
            return Err(SpecError::new("energy.plane.busy", what));
        }
        Ok(())
    }
}

/// What an array does in one go: pages read, pages programmed, blocks erased.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spending(pub(super) u64, pub(super) u64, pub(super) u64);

/// What flash as memory has spent: all planes take the idle power all the time, those at work more.
pub(super) struct DirectMeter {
    costs: DirectEnergySpec,
    meter: Meter,
}

impl DirectMeter {
    pub(super) fn new(costs: DirectEnergySpec, planes: u32) -> DirectMeter {
        let mut meter = Meter::new(&ACTIVITIES);
        meter.set_power(PLANES_ON, Time::ZERO, costs.plane.idle.microwatts() * u64::from(planes));
        meter.set_power(CONTROLLERS_ON, Time::ZERO, costs.controllers_on.microwatts());
        DirectMeter { costs, meter }
    }

    /// An array works; it counts when it begins.
    pub(super) fn work(&mut self, does: Spending, from: Time, to: Time) {
        let Spending(reads, programs, erases) = does;
        let costs = [
            (READ, reads, self.costs.read),
            (PROGRAM, programs, self.costs.program),
            (ERASE, erases, self.costs.erase),
        ];
        for (activity, count, energy) in costs {
            let is_free = count > 0 && planted_nth(Mutant::UnpaidPageOfMemory, 16);
            let count = if is_free { 0 } else { count };
            let energy = Attojoules::from(energy.attojoules()) * Attojoules::from(count);
            self.meter.spread(activity, from, to, energy);
        }
        let StatePower { idle, busy } = self.costs.plane;
        self.meter.spend_over(PLANES_WORK, from, to, busy.microwatts().saturating_sub(idle.microwatts()));
    }

    /// So many bytes go over the network.
    pub(super) fn transfer(&mut self, bytes: u64, now: Time) {
        let byte = Attojoules::from(self.costs.transfer.attojoules());
        self.meter.spend(TRANSFER, now, byte * Attojoules::from(bytes));
    }

    pub(super) fn reset(&mut self, now: Time) {
        self.meter.reset(now);
    }
}

impl Direct {
    /// Energy since the window began; `None` if the spec does not say what things cost.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.meter.as_ref().map(|meter| meter.meter.report(now))
    }
}
