//! Energy of links.

use config::units::{Energy, Power};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Activity, Attojoules, EnergyReport, Meter};

const TRANSFER: usize = 0;
const ON: usize = 1;
const ACTIVITIES: [Activity; 2] = [Activity::operation("link transfer"), Activity::state("link on")];

/// Energy of a link, both ends together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkEnergySpec {
    /// Energy per byte of payload in either direction, packet overhead included.
    pub transfer: Energy,
    /// Power of a link that is on, regardless of traffic: clocks, receivers, idle symbols.
    pub on: Power,
}

/// Energy spent by a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkMeter {
    byte: Attojoules,
    meter: Meter,
}

impl LinkMeter {
    /// Creates the meter of a link that is on from the start.
    pub fn new(spec: &LinkEnergySpec) -> LinkMeter {
        let mut meter = Meter::new(&ACTIVITIES);
        meter.set_power(ON, Time::ZERO, spec.on.microwatts());
        LinkMeter { byte: spec.transfer.attojoules().into(), meter }
    }

    /// Adds `bytes` that cross the link from one time to another, which may be in the future.
    #[inline]
    pub fn transfer(&mut self, bytes: u64, from: Time, to: Time) {
        self.meter.spread(TRANSFER, from, to, Attojoules::from(bytes) * self.byte);
    }

    /// Adds `bytes` that have crossed the link within a time that [is one window](LinkMeter::is_one_window).
    pub fn crossed(&mut self, bytes: u64, from: Time) {
        self.meter.spend(TRANSFER, from, Attojoules::from(bytes) * self.byte);
    }

    /// Returns whether a time span lies in one window of the power series.
    pub fn is_one_window(&self, from: Time, to: Time) -> bool {
        self.meter.is_one_window(from, to)
    }

    /// Returns whether both accounts of the energy agree.
    pub fn conserves(&self) -> bool {
        self.meter.conserves()
    }

    /// Returns the energy since the measured window began.
    pub fn report(&self, now: Time) -> EnergyReport {
        self.meter.report(now)
    }

    /// Starts the measured window.
    pub fn reset(&mut self, now: Time) {
        self.meter.reset(now);
    }
}
