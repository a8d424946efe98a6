//! Energy by activity and over time, as exact integers.

use crate::energy::{Activity, EnergyReport, PowerSeries, Spent};
use engine::Time;

/// Energy in attojoules (10⁻¹⁸ J): a microwatt for a picosecond.
pub type Attojoules = u128;

/// Initial window width of all components, so that their series can be added.
const WIDTH: Time = Time::from_us(10);
/// Maximum number of windows of a component.
const WINDOWS: usize = 1_024;

/// Energy spent by a component, by activity and in each window of simulated time.
///
/// An activity is an operation that costs energy, or a state that takes power. All energy goes to one activity and one
/// window, or is spread over several windows without a remainder, so the sums by activity and by window are equal to
/// the last attojoule. Windows are aligned to the origin. When time passes the last allowed window, neighbours are
/// joined and the width doubles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    activities: &'static [Activity],
    origin: Time,
    width: u64,
    limit: usize,
    windows: Vec<Attojoules>,
    /// Window used last; its offset from the origin follows.
    latest: usize,
    latest_start: u64,
    spent: Vec<Attojoules>,
    /// Power of each activity, in microwatts, and the time since when.
    states: Vec<(u64, Time)>,
}

impl Meter {
    /// Creates the meter of a component's activities, which are identified by position from here on; no state takes
    /// power yet.
    pub fn new(activities: &'static [Activity]) -> Meter {
        Meter::with_windows(activities, Time::ZERO, WIDTH, WINDOWS)
    }

    /// Creates a meter with at most `limit` windows, the first from `origin` on, each initially `width` long.
    ///
    /// # Panics
    /// If `width` is zero or `limit` is less than two.
    pub fn with_windows(activities: &'static [Activity], origin: Time, width: Time, limit: usize) -> Meter {
        assert!(width > Time::ZERO, "the window width is zero");
        assert!(limit >= 2, "at least two windows are needed");
        Meter {
            activities,
            origin,
            width: width.ps(),
            limit,
            windows: vec![0],
            latest: 0,
            latest_start: 0,
            spent: vec![0; activities.len()],
            states: vec![(0, origin); activities.len()],
        }
    }

    /// Adds an operation at `now`; one before the origin counts in the first window.
    #[inline]
    pub fn spend(&mut self, activity: usize, now: Time, energy: Attojoules) {
        let at = self.window(now.since(self.origin).ps());
        self.windows[at] += energy;
        self.spent[activity] += energy;
    }

    /// Adds an operation from `from` to `to`: its energy is spread evenly over that time, or over the part of it after
    /// the origin.
    #[inline]
    pub fn spread(&mut self, activity: usize, from: Time, to: Time, energy: Attojoules) {
        let (from, to) = (from.since(self.origin).ps(), to.since(self.origin).ps());
        self.spent[activity] += energy;
        let at = self.window(to.saturating_sub(1));
        if from >= self.latest_start {
            self.windows[at] += energy;
        } else {
            // In two parts, to keep products from overflowing: the share of each picosecond, and the remainder.
            let whole = u128::from(to - from);
            let (each, left) = (energy / whole, energy % whole);
            self.divide(from, to, |part| each * u128::from(part) + left * u128::from(part) / whole);
        }
    }

    /// Adds an operation that takes a power, in microwatts, for a time; the time before the origin is ignored.
    #[inline]
    pub fn spend_over(&mut self, activity: usize, from: Time, to: Time, microwatts: u64) {
        let (from, to) = (from.since(self.origin).ps(), to.since(self.origin).ps());
        if from >= to {
            return;
        }
        let energy = u128::from(microwatts) * u128::from(to - from);
        self.spent[activity] += energy;
        // The last window first, so that the width is final for all of them.
        let at = self.window(to - 1);
        if from >= self.latest_start {
            self.windows[at] += energy;
        } else {
            self.divide(from, to, |part| u128::from(microwatts) * u128::from(part));
        }
    }

    /// Divides energy among the windows from `from` to `to`. `energy` returns the energy of a part of that time.
    fn divide(&mut self, from: u64, to: u64, energy: impl Fn(u64) -> Attojoules) {
        let (mut at, mut begin, mut given) = ((from / self.width) as usize, from, 0);
        while begin < to {
            let end = ((at as u64 + 1) * self.width).min(to);
            let so_far = energy(end - from);
            self.windows[at] += so_far - given;
            (at, begin, given) = (at + 1, end, so_far);
        }
    }

    /// Sets the power of a state, in microwatts, from `now` on.
    #[inline]
    pub fn set_power(&mut self, activity: usize, now: Time, microwatts: u64) {
        let (before, since) = self.states[activity];
        if before != microwatts {
            self.spend_over(activity, since, now, before);
            self.states[activity] = (microwatts, now);
        }
    }

    /// Returns whether a time span lies in one window, so that the exact moments within it do not matter.
    pub fn is_one_window(&self, from: Time, to: Time) -> bool {
        if from < self.origin || from >= to {
            return false;
        }
        let window = |time: Time| time.since(self.origin).ps() / self.width;
        let last = window(to - Time::from_ps(1));
        window(from) == last && last < self.limit as u64
    }

    /// Adds the energy of a state whose power changed between `from` and `to`, which are in one window; at `to` it is
    /// as at `from`.
    pub fn passed(&mut self, activity: usize, from: Time, to: Time, energy: Attojoules) {
        let (power, since) = self.states[activity];
        self.spend_over(activity, since, from, power);
        self.spend(activity, from, energy);
        self.states[activity].1 = to;
    }

    /// Counts the energy of states up to `now`.
    pub fn advance(&mut self, now: Time) {
        for activity in 0..self.states.len() {
            let (power, since) = self.states[activity];
            self.spend_over(activity, since, now, power);
            self.states[activity].1 = since.max(now);
        }
    }

    /// Returns the energy by activity, as counted so far.
    pub fn spent(&self) -> &[Attojoules] {
        &self.spent
    }

    /// Returns the window width and the energy in each window.
    pub fn windows(&self) -> (Time, &[Attojoules]) {
        (Time::from_ps(self.width), &self.windows)
    }

    /// Returns whether the sums by activity and over time are equal, to the last attojoule.
    pub fn conserves(&self) -> bool {
        self.spent.iter().sum::<Attojoules>() == self.windows.iter().sum()
    }

    /// Returns the energy from the origin to `now`, states included.
    pub fn report(&self, now: Time) -> EnergyReport {
        let mut meter = self.clone();
        meter.window(now.since(meter.origin).ps().saturating_sub(1));
        meter.advance(now);
        let spent = meter.activities.iter().zip(&meter.spent);
        EnergyReport {
            activities: spent
                .map(|(activity, energy)| Spent { activity: *activity, energy: *energy })
                .collect(),
            series: PowerSeries::new(meter.origin, now, Time::from_ps(meter.width), meter.windows),
        }
    }

    /// Clears the energy before `origin`; states go on.
    pub fn reset(&mut self, origin: Time) {
        self.origin = origin;
        self.windows.clear();
        self.windows.push(0);
        (self.latest, self.latest_start) = (0, 0);
        self.spent.fill(0);
        self.states.iter_mut().for_each(|(_, since)| *since = origin);
    }

    /// Returns the window of a time, in picoseconds from the origin.
    #[inline]
    fn window(&mut self, ps: u64) -> usize {
        // Most spending falls into the same window as the previous one.
        if ps.wrapping_sub(self.latest_start) >= self.width {
            self.turn_to(ps);
        }
        self.latest
    }

    /// Makes the window that contains a time the latest one.
    #[cold]
    fn turn_to(&mut self, ps: u64) {
        while ps / self.width >= self.limit as u64 {
            self.double();
        }
        self.latest = (ps / self.width) as usize;
        self.latest_start = self.latest as u64 * self.width;
        if self.latest >= self.windows.len() {
            self.windows.resize(self.latest + 1, 0);
        }
    }

    fn double(&mut self) {
        self.width = self.width.saturating_mul(2);
        let joined = self.windows.len().div_ceil(2);
        for at in 0..joined {
            self.windows[at] = self.windows[2 * at] + self.windows.get(2 * at + 1).copied().unwrap_or(0);
        }
        self.windows.truncate(joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const US: Time = Time::from_us(1);
    const NANOJOULE: Attojoules = 1_000_000_000;
    const ACTIVITIES: [Activity; 3] =
        [Activity::state("idle"), Activity::operation("read"), Activity::operation("write")];

    fn meter(width: Time, limit: usize) -> Meter {
        Meter::with_windows(&ACTIVITIES, Time::ZERO, width, limit)
    }

    fn nanojoules(meter: &Meter) -> Vec<u128> {
        meter.windows().1.iter().map(|spent| spent / NANOJOULE).collect()
    }

    #[test]
    fn operations_and_states_add_up() {
        let mut meter = meter(US, 8);
        // A watt for 2.5 us is 2.5 uJ.
        meter.set_power(0, Time::ZERO, 1_000_000);
        meter.spend(1, Time::from_ns(1_200), 40 * NANOJOULE);
        meter.set_power(0, Time::from_ns(2_500), 0);
        meter.advance(Time::from_us(4));
        assert_eq!(meter.spent(), [2_500 * NANOJOULE, 40 * NANOJOULE, 0]);
        assert_eq!(nanojoules(&meter)[..3], [1_000, 1_040, 500]);
    }

    /// 70 nJ over 3.5 us are 20 nJ a microsecond.
    #[test]
    fn an_operation_is_spread_over_its_time() {
        let mut meter = meter(US, 8);
        meter.spread(1, Time::from_ns(500), Time::from_us(4), 70 * NANOJOULE);
        assert_eq!(nanojoules(&meter), [10, 20, 20, 20]);
        // Seven attojoules over three windows leave no remainder.
        meter.spread(2, Time::ZERO, US.times(3), 7);
        assert!(meter.conserves());
        assert_eq!(meter.spent(), [0, 70 * NANOJOULE, 7]);
        let added: Vec<u128> = meter.windows().1.iter().map(|spent| spent % NANOJOULE).collect();
        assert_eq!(added, [2, 2, 3, 0]);
    }

    #[test]
    fn a_measured_window_begins_with_the_states_as_they_are() {
        let mut meter = meter(US, 8);
        meter.set_power(0, Time::ZERO, 3_000_000);
        meter.advance(US.times(5));
        meter.reset(US.times(5));
        // What began before, and ends now, counts as a whole; in the first windows.
        meter.spread(1, US.times(3), US.times(7), 8 * NANOJOULE);
        meter.advance(US.times(7));
        assert_eq!(meter.spent(), [6_000 * NANOJOULE, 8 * NANOJOULE, 0]);
        assert_eq!(nanojoules(&meter), [3_004, 3_004]);
    }

    /// Two watts for 3 us, and 3 uJ in the second of them: 9 uJ in 3 us, at most 5 W.
    #[test]
    fn a_report_has_energies_and_powers() {
        let mut meter = meter(US, 8);
        meter.set_power(0, Time::ZERO, 2_000_000);
        meter.spend(1, Time::from_ns(1_500), 3_000 * NANOJOULE);
        let report = meter.report(US.times(3));
        assert!(report.conserves());
        assert_eq!(report.total(), 9_000 * NANOJOULE);
        assert_eq!((report.series.mean_w(), report.series.peak_w()), (3.0, 5.0));
        // The meter itself has not moved.
        assert_eq!(meter.spent()[0], 0);
    }

    proptest! {
        /// Whatever happens, and however often windows double: both accounts have the same energy.
        #[test]
        fn windows_and_activities_agree(
            events in prop::collection::vec((0_usize..3, 0_u64..5_000_000, 0_u64..2_000_000, 0_u8..3), 1..60),
        ) {
            let mut meter = meter(Time::from_ns(10), 16);
            let (mut now, mut expected, mut powers) = (0, 0_u128, [0_u64; 3]);
            for (activity, step, amount, kind) in events {
                expected += powers.iter().map(|power| u128::from(*power) * u128::from(step)).sum::<u128>();
                let before = now;
                now += step;
                match kind {
                    0 => {
                        meter.set_power(activity, Time::from_ps(now), amount);
                        powers[activity] = amount;
                    }
                    1 => meter.spend(activity, Time::from_ps(now), amount.into()),
                    _ => meter.spread(activity, Time::from_ps(before), Time::from_ps(now), amount.into()),
                }
                expected += if kind == 0 { 0 } else { u128::from(amount) };
            }
            meter.advance(Time::from_ps(now));
            prop_assert_eq!(meter.spent().iter().sum::<u128>(), expected);
            prop_assert_eq!(meter.windows().1.iter().sum::<u128>(), expected);
            prop_assert!(meter.windows().1.len() <= 16);
            let report = meter.report(Time::from_ps(now));
            prop_assert!(report.conserves() && report.total() == expected);
        }
    }

    /// The largest energy that a spec allows: a joule for each nanosecond of a day.
    #[test]
    fn nothing_is_too_large_to_be_spread() {
        let mut meter = meter(US, 8);
        let (day, energy) = (Time::from_ms(86_400_000), 86_400_000_000_000 * 1_000_000_000_000_000_000);
        meter.spread(1, Time::ZERO, day, energy);
        assert!(meter.conserves());
        assert_eq!(meter.spent()[1], energy);
    }

    proptest! {
        /// Changes of a state within one window: one by one, and as their total.
        #[test]
        fn what_has_passed_is_what_its_changes_come_to(
            begins in 0u64..20_000_000,
            steps in prop::collection::vec((1u64..300_000, 0u64..5_000_000), 1..12),
            after in 1u64..9_000_000,
        ) {
            let ps = Time::from_ps;
            let (mut each, mut whole) = (meter(US, 64), meter(US, 64));
            for meter in [&mut each, &mut whole] {
                meter.set_power(0, Time::ZERO, 7_000);
                meter.spend(1, ps(begins / 2), 11);
            }
            let (mut at, mut energy, mut power) = (begins, 0, 7_000);
            for (wait, next) in &steps {
                energy += u128::from(*wait) * u128::from(power);
                at += wait;
                each.set_power(0, ps(at), *next);
                power = *next;
            }
            each.set_power(0, ps(at), 7_000);
            if whole.is_one_window(ps(begins), ps(at)) {
                whole.passed(0, ps(begins), ps(at), energy);
            } else {
                // A span over several windows is not one window.
                prop_assert!(begins / US.ps() != (at - 1) / US.ps());
                return Ok(());
            }
            let end = ps(at + after);
            prop_assert_eq!(each.report(end), whole.report(end));
        }
    }
}
