//! Energy of a memory: operations and standby, in the form of data sheets' currents (Micron TN-41-01, DRAMPower).
//!
//! Rows count as open from the first activation of a controller's banks until the next refresh, which closes all of
//! them. A precharge alone does not, because the row that needs it is opened right after. Refreshes that no access has
//! waited for are counted on demand.

use super::Timing;
use config::units::{Energy, Power};
use engine::{Mutant, Time, planted, planted_nth};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Activity, Attojoules, EnergyReport, Meter};

const ACTIVATE: usize = 0;
const READ: usize = 1;
const WRITE: usize = 2;
const REFRESH: usize = 3;
const STANDBY: usize = 4;
const ACTIVE: usize = 5;
const ACTIVITIES: [Activity; 6] = [
    Activity::operation("activate"),
    Activity::operation("read"),
    Activity::operation("write"),
    Activity::operation("refresh"),
    Activity::state("standby"),
    Activity::state("active standby"),
];

/// Energies of a memory, for all devices of one controller together: operations beyond standby.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DramEnergySpec {
    /// Energy of an activation and its precharge: V (IDD0 tRC - IDD3N tRAS - IDD2N (tRC - tRAS)) per device.
    pub activate: Energy,
    /// Energy of a read burst: V (IDD4R - IDD3N) times its length per device, plus driving the bus.
    pub read: Energy,
    /// Energy of a write burst: V (IDD4W - IDD3N) times its length per device, plus terminating the bus.
    pub write: Energy,
    /// Energy of a refresh: V (IDD5 - IDD2N) tRFC per device.
    pub refresh: Energy,
    /// Power while all rows are closed: V IDD2N per device.
    pub standby: Power,
    /// Power while a row is open: V IDD3N per device.
    pub active: Power,
}

/// State of the devices of one controller.
#[derive(Clone, Copy, Debug)]
struct Rank {
    is_open: bool,
    since: Time,
    /// Refreshes counted, and their lead over those of the first controller.
    refreshes: u64,
    shift: Time,
}

/// Energy meter of a memory.
#[derive(Clone, Debug)]
pub(super) struct DramMeter {
    costs: DramEnergySpec,
    meter: Meter,
    /// Bursts per line.
    bursts: u64,
    ranks: Vec<Rank>,
}

impl DramMeter {
    /// Creates a meter with `bursts` per line, and the shift of each controller's refreshes.
    pub(super) fn new(costs: DramEnergySpec, bursts: u64, shifts: impl Iterator<Item = Time>) -> DramMeter {
        let rank = |shift| Rank { is_open: false, since: Time::ZERO, refreshes: 0, shift };
        DramMeter { costs, meter: Meter::new(&ACTIVITIES), bursts, ranks: shifts.map(rank).collect() }
    }

    /// Energy of `count` activations, refreshes, or lines read or written, by the name of the activity.
    pub(super) fn of(&self, activity: &str, count: u64) -> Attojoules {
        let DramEnergySpec { activate, read, write, refresh, .. } = self.costs;
        let (each, times) = match activity {
            "activate" => (activate, 1),
            "refresh" => (refresh, 1),
            "read" => (read, self.bursts),
            _ => (write, self.bursts),
        };
        Attojoules::from(each.attojoules()) * Attojoules::from(times) * Attojoules::from(count)
    }

    /// Counts an activation of a row.
    pub(super) fn activate(&mut self, controller: usize, now: Time) {
        if !self.ranks[controller].is_open {
            self.turn(controller, now, true);
        }
        if !planted_nth(Mutant::UnpaidActivation, 16) {
            self.meter.spend(ACTIVATE, now, self.costs.activate.attojoules().into());
        }
    }

    /// Counts lines on the bus.
    pub(super) fn access(&mut self, write: bool, lines: u64, begin: Time, end: Time) {
        let (activity, burst) = if write && planted(Mutant::WriteAsRead) {
            (WRITE, self.costs.read)
        } else if write {
            (WRITE, self.costs.write)
        } else {
            (READ, self.costs.read)
        };
        let energy = Attojoules::from(burst.attojoules()) * Attojoules::from(lines * self.bursts);
        self.meter.spread(activity, begin, end, energy);
    }

    /// Counts a controller's refreshes due up to now.
    pub(super) fn refresh(&mut self, controller: usize, now: Time, timing: &Timing) {
        let Some(refresh) = timing.refresh else { return };
        let Rank { is_open, refreshes, shift, .. } = self.ranks[controller];
        let begun = (now + shift).ps() / refresh.interval.ps();
        if begun == refreshes {
            return;
        }
        let due = |number: u64| refresh.interval.times(number).since(shift);
        let first = due(refreshes + 1);
        if is_open {
            self.turn(controller, first, false);
        }
        let energy = Attojoules::from(self.costs.refresh.attojoules()) * Attojoules::from(begun - refreshes);
        let energy = if planted(Mutant::UnpaidRefresh) { 0 } else { energy };
        self.meter.spread(REFRESH, first, due(begun) + refresh.duration, energy);
        self.ranks[controller].refreshes = begun;
    }

    /// Notes that rows of a controller are open from now on, or closed.
    fn turn(&mut self, controller: usize, now: Time, is_open: bool) {
        self.stand(controller, now);
        self.ranks[controller].is_open = is_open;
    }

    /// Counts a controller's standby energy up to now.
    fn stand(&mut self, controller: usize, now: Time) {
        let Rank { is_open, since, .. } = self.ranks[controller];
        let (state, power) =
            if is_open { (ACTIVE, self.costs.active) } else { (STANDBY, self.costs.standby) };
        self.meter.spend_over(state, since, now, power.microwatts());
        self.ranks[controller].since = now;
    }

    /// Counts everything up to now.
    fn advance(&mut self, now: Time, timing: &Timing) {
        for controller in 0..self.ranks.len() {
            self.refresh(controller, now, timing);
            self.stand(controller, now);
        }
    }

    /// Energy since the measured window began.
    pub(super) fn report(&self, now: Time, timing: &Timing) -> EnergyReport {
        let mut meter = self.clone();
        meter.advance(now, timing);
        meter.meter.report(now)
    }

    /// Starts the measured window.
    pub(super) fn reset(&mut self, now: Time, timing: &Timing) {
        self.advance(now, timing);
        self.meter.reset(now);
    }
}
