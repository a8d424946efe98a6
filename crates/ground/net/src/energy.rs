//! What links spend.

use config::units::{Energy, Power};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Activity, Attojoules, EnergyReport, Meter};

const TRANSFER: usize = 0;
const ON: usize = 1;
const ACTIVITIES: [Activity; 2] = [Activity::operation("link transfer"), Activity::state("link on")];

/// What a link spends, both of its ends together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkEnergySpec {
    /// Energy of a byte of payload, either way, with what its packets have around it.
    pub transfer: Energy,
    /// Power of being on, whatever is sent: clocks, receivers, idle symbols.
    pub on: Power,
}

/// What a link has spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkMeter {
    byte: Attojoules,
    meter: Meter,
}

impl LinkMeter {
    /// A link that is on from the start.
    pub fn new(spec: &LinkEnergySpec) -> LinkMeter {
        let mut meter = Meter::new(&ACTIVITIES);
        meter.set_power(ON, Time::ZERO, spec.on.microwatts());
        LinkMeter { byte: spec.transfer.attojoules().into(), meter }
    }

    /// So many bytes cross it from one time to another, which may lie ahead.
    #[inline]
    pub fn transfer(&mut self, bytes: u64, from: Time, to: Time) {
        self.meter.spread(TRANSFER, from, to, Attojoules::from(bytes) * self.byte);
    }

    /// So many bytes have crossed it within a time that [is one window](LinkMeter::is_one_window).
    pub fn crossed(&mut self, bytes: u64, from: Time) {
        self.meter.spend(TRANSFER, from, Attojoules::from(bytes) * self.byte);
    }

    /// Whether all of a time lies in one window of the power series.
    pub fn is_one_window(&self, from: Time, to: Time) -> bool {
        self.meter.is_one_window(from, to)
    }

    /// Whether both accounts of what was spent agree.
    pub fn conserves(&self) -> bool {
        self.meter.conserves()
    }

    /// Energy since the measured window began.
    pub fn report(&self, now: Time) -> EnergyReport {
        self.meter.report(now)
    }

    /// Starts the measured window.
    pub fn reset(&mut self, now: Time) {
        self.meter.reset(now);
    }
}
