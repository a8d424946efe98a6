//! Energy reports of components, in one common shape.

use crate::Attojoules;
use engine::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// Converts an energy to joules.
pub fn joules(energy: Attojoules) -> f64 {
    energy as f64 / 1e18
}

/// Kind of an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActivityKind {
    /// Discrete operation with an energy per occurrence.
    Operation,
    /// Lasting state with a power.
    State,
}

/// Activity that a component spends energy on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Name in results.
    pub name: &'static str,
    /// Kind: operation or state.
    pub kind: ActivityKind,
}

impl Activity {
    /// Creates an operation.
    pub const fn operation(name: &'static str) -> Activity {
        Activity { name, kind: ActivityKind::Operation }
    }

    /// Creates a state.
    pub const fn state(name: &'static str) -> Activity {
        Activity { name, kind: ActivityKind::State }
    }
}

/// Energy spent on one activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The activity.
    pub activity: Activity,
    /// Energy spent.
    pub energy: Attojoules,
}

/// Energy that a component has spent since the measured window began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergyReport {
    /// Energy by activity: every activity of the component, in its own order.
    pub activities: Vec<Spent>,
    /// Energy over time.
    pub series: PowerSeries,
}

impl EnergyReport {
    /// Returns the total over all activities.
    pub fn total(&self) -> Attojoules {
        self.activities.iter().map(|spent| spent.energy).sum()
    }

    /// Returns whether the sums by activity and over time are equal, to the last attojoule.
    pub fn conserves(&self) -> bool {
        self.total() == self.series.total()
    }

    /// Returns the energy of an activity.
    ///
    /// # Panics
    /// If the part has no activity of that name.
    pub fn of(&self, name: &str) -> Attojoules {
        let found = self.activities.iter().find(|spent| spent.activity.name == name);
        found.unwrap_or_else(|| panic!("no activity `{name}`")).energy
    }

    /// Adds the energy of a different component, or of a different half of the same one; activities with equal names
    /// are merged.
    pub fn add(&mut self, other: &EnergyReport) {
        for spent in &other.activities {
            match self.activities.iter_mut().find(|own| own.activity == spent.activity) {
                Some(own) => own.energy += spent.energy,
                None => self.activities.push(*spent),
            }
        }
        self.series.add(&other.series);
    }

    /// Returns the energy by activity, as shown in a result.
    pub fn by_activity(&self) -> Vec<ActivityEnergy> {
        let shown = |spent: &Spent| ActivityEnergy {
            activity: spent.activity.name,
            kind: spent.activity.kind,
            energy_j: joules(spent.energy),
        };
        self.activities.iter().map(shown).collect()
    }
}

/// Energy in windows of simulated time, aligned to the beginning of the measured window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerSeries {
    origin: Time,
    end: Time,
    width: u64,
    windows: Vec<Attojoules>,
}

impl PowerSeries {
    /// Creates the series of a component measured from `origin` to `end`.
    pub(crate) fn new(origin: Time, end: Time, width: Time, mut windows: Vec<Attojoules>) -> PowerSeries {
        let (width, length) = (width.ps(), end.since(origin).ps());
        let needed = length.div_ceil(width).max(1) as usize;
        // Operations at the very end belong to the window that ends there.
        let late: Attojoules = windows.iter().skip(needed).sum();
        windows.resize(needed, 0);
        windows[needed - 1] += late;
        PowerSeries { origin, end, width, windows }
    }

    /// Returns the total energy.
    pub fn total(&self) -> Attojoules {
        self.windows.iter().sum()
    }

    /// Returns the measured time in picoseconds.
    fn length(&self) -> u64 {
        self.end.since(self.origin).ps()
    }

    /// Reduces the series to at most `windows` windows.
    ///
    /// # Panics
    /// If `windows` is zero.
    #[must_use]
    pub fn at_most(mut self, windows: usize) -> PowerSeries {
        assert!(windows > 0, "a series of no windows");
        while self.windows.len() > windows {
            self.double();
        }
        self
    }

    /// Returns the mean power in watts; zero if no time was measured.
    pub fn mean_w(&self) -> f64 {
        watts(self.total(), self.length())
    }

    /// Returns the highest mean power of a window in watts, and at least the overall mean. A window cut short by the
    /// end is ignored: an operation that ends in it could give it any power.
    pub fn peak_w(&self) -> f64 {
        let whole = ((self.length() / self.width) as usize).min(self.windows.len());
        let most = self.windows[..whole].iter().max();
        most.map_or(0.0, |most| watts(*most, self.width)).max(self.mean_w())
    }

    /// Iterates over the windows from the origin to the end, empty ones included.
    pub fn windows(&self) -> impl ExactSizeIterator<Item = PowerWindow> + '_ {
        let (length, origin) = (self.length(), self.origin.as_ns_f64());
        self.windows.iter().enumerate().map(move |(n, energy)| {
            let start = n as u64 * self.width;
            let width = self.width.min(length.saturating_sub(start));
            PowerWindow {
                start_ns: origin + start as f64 / 1e3,
                width_ns: width as f64 / 1e3,
                power_w: watts(*energy, width),
            }
        })
    }

    /// Adds the series of a different component over the same time, using the wider windows of the two.
    ///
    /// # Panics
    /// If the two begin at different times, or their widths did not double from the same first width.
    pub fn add(&mut self, other: &PowerSeries) {
        assert_eq!(self.origin, other.origin, "series of different measured windows");
        while self.width < other.width {
            self.double();
        }
        let mut other = other.clone();
        while other.width < self.width {
            other.double();
        }
        assert_eq!(self.width, other.width, "widths must double from the same first width");
        self.end = self.end.max(other.end);
        self.windows.resize(self.windows.len().max(other.windows.len()), 0);
        self.windows.iter_mut().zip(&other.windows).for_each(|(sum, energy)| *sum += energy);
    }

    fn double(&mut self) {
        self.width = self.width.saturating_mul(2);
        self.windows = self.windows.chunks(2).map(|pair| pair.iter().sum()).collect();
    }
}

/// Converts an energy over a number of picoseconds to watts.
fn watts(energy: Attojoules, ps: u64) -> f64 {
    if ps == 0 { 0.0 } else { energy as f64 / ps as f64 / 1e6 }
}

/// Energy of one activity, as shown in a result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ActivityEnergy {
    /// The activity.
    pub activity: &'static str,
    /// Kind: operation or state.
    pub kind: ActivityKind,
    /// Energy, joules.
    pub energy_j: f64,
}

/// Window of a power series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PowerWindow {
    /// Start of the window in simulated time, nanoseconds.
    pub start_ns: f64,
    /// Length of the window, nanoseconds; the last one ends with the run.
    pub width_ns: f64,
    /// Mean power in the window, watts.
    pub power_w: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Meter;

    const ACTIVITIES: [Activity; 2] = [Activity::state("on"), Activity::operation("read")];
    const OTHERS: [Activity; 2] = [Activity::operation("read"), Activity::operation("write")];

    fn meter(activities: &'static [Activity]) -> Meter {
        Meter::with_windows(activities, Time::ZERO, Time::from_us(1), 4)
    }

    #[test]
    fn reports_of_two_parts_are_added() {
        let us = Time::from_us;
        let (mut one, mut two) = (meter(&ACTIVITIES), meter(&OTHERS));
        one.set_power(0, Time::ZERO, 1_000_000);
        one.spend(1, us(1), 5);
        two.spend(0, us(2), 7);
        two.spend(1, us(7), 9);
        let mut sum = one.report(us(8));
        assert_eq!(sum.series.width, 2_000_000);
        // The state's eight microseconds at a watt, and what both have read.
        sum.add(&two.report(us(8)));
        assert_eq!((sum.of("on"), sum.of("read"), sum.of("write")), (8_000_000_000_000, 12, 9));
        assert!(sum.conserves());
        assert_eq!(
            sum.series.windows,
            [2_000_000_000_005, 2_000_000_000_007, 2_000_000_000_000, 2_000_000_000_009]
        );
        assert_eq!(sum.series.windows().len(), 4);
    }

    #[test]
    #[should_panic(expected = "no activity `reads`")]
    fn an_activity_that_is_not_there_has_no_energy() {
        meter(&OTHERS).report(Time::from_us(1)).of("reads");
    }

    #[test]
    fn what_is_done_at_the_end_is_in_the_last_window() {
        let mut meter = meter(&OTHERS);
        meter.spend(0, Time::from_us(2), 3);
        let report = meter.report(Time::from_us(2));
        assert_eq!(report.series.windows, [0, 3]);
        assert!(report.conserves());
        // A component that is idle for long still has at most the allowed number of windows.
        assert_eq!(meter.report(Time::from_us(1_000)).series.windows, [3, 0, 0, 0]);
    }

    /// Each window has its power, and power times width is the energy.
    #[test]
    fn powers_of_windows_integrate_to_the_energy() {
        let mut meter = meter(&ACTIVITIES);
        meter.set_power(0, Time::ZERO, 2_500_000);
        meter.spend(1, Time::from_ns(100), 4_000_000_000_000);
        let report = meter.report(Time::from_ns(3_500));
        // 2.5 W for 3.5 us and 4 uJ are 12.75 uJ, in however many windows.
        for (windows, last, peak) in [(4, 500.0, 6.5), (2, 1_500.0, 4.5), (1, 3_500.0, 12.75 / 3.5)] {
            let series = report.series.clone().at_most(windows);
            let shown: Vec<PowerWindow> = series.windows().collect();
            let integral: f64 = shown.iter().map(|w| w.power_w * w.width_ns * 1e-9).sum();
            assert!((integral - 12.75e-6).abs() < 1e-15, "{windows}: {integral}");
            assert_eq!((shown.len(), shown.last().map(|w| w.width_ns)), (windows, Some(last)));
            assert!((series.peak_w() - peak).abs() < 1e-12, "{windows}: {}", series.peak_w());
        }
        let energies: Vec<f64> = report.by_activity().iter().map(|of| of.energy_j).collect();
        assert_eq!(energies, [8.75e-6, 4e-6]);
    }
}
