//! Energy, by activity and over time, as exact integers.

use crate::energy::{Activity, EnergyReport, PowerSeries, Spent};
use engine::Time;

/// Energy in attojoules (10⁻¹⁸ J): a microwatt for a picosecond.
pub type Attojoules = u128;

/// First width of a part's windows. All parts begin with the same, so that their series can be added.
const WIDTH: Time = Time::from_us(10);
/// Most windows of a part.
const WINDOWS: usize = 1_024;

/// What a part has spent, by activity, and in each window of simulated time.
///
/// An activity is an operation that costs energy, or a state that costs power. All that is spent goes into one activity and one window, or is spread
/// over several of them without a remainder, so that the sums by activity and by window are equal to the last attojoule. Windows are aligned to the
/// origin; when time goes beyond the last of the allowed windows, neighbours are joined and the width doubles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    activities: &'static [Activity],
    origin: Time,
    width: u64,
    limit: usize,
    windows: Vec<Attojoules>,
    /// The window that was spent in last, and its offset from the origin.
    latest: usize,
    latest_start: u64,
    spent: Vec<Attojoules>,
    /// The power of each activity, and since when.
    states: Vec<(u64, Time)>,
}

impl Meter {
    /// Of a part's activities, which are named by their places from here on, and none of which takes any power yet.
    pub fn new(activities: &'static [Activity]) -> Meter {
        Meter::with_windows(activities, Time::ZERO, WIDTH, WINDOWS)
    }

    /// At most `limit` windows, the first from `origin` on, each `width` long to begin with.
    ///
    /// # Panics
    /// If `width` is zero or `limit` is less than two.
    pub fn with_windows(activities: &'static [Activity], origin: Time, width: Time, limit: usize) -> Meter {
        assert!(width > Time::ZERO, "windows of no width");
        assert!(limit >= 2, "fewer than two windows");
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

    /// An operation that was at `now`; one before the origin counts in the first window.
    #[inline]
    pub fn spend(&mut self, activity: usize, now: Time, energy: Attojoules) {
        let at = self.window(now.since(self.origin).ps());
        self.windows[at] += energy;
        self.spent[activity] += energy;
    }

    /// An operation that took from `from` to `to`: its energy is spread evenly over that time, or over what of it lies behind the origin.
    #[inline]
    pub fn spread(&mut self, activity: usize, from: Time, to: Time, energy: Attojoules) {
        let (from, to) = (from.since(self.origin).ps(), to.since(self.origin).ps());
        self.spent[activity] += energy;
        let at = self.window(to.saturating_sub(1));
        if from >= self.latest_start {
            self.windows[at] += energy;
        } else {
            // In two parts, so that no product is too large: what each picosecond has, and what is left.
            let whole = u128::from(to - from);
            let (each, left) = (energy / whole, energy % whole);
            self.divide(from, to, |part| each * u128::from(part) + left * u128::from(part) / whole);
        }
    }

    /// An operation that takes a power, in microwatts, for a time; nothing before the origin.
    #[inline]
    pub fn spend_over(&mut self, activity: usize, from: Time, to: Time, microwatts: u64) {
        let (from, to) = (from.since(self.origin).ps(), to.since(self.origin).ps());
        if from >= to {
            return;
        }
        let energy = u128::from(microwatts) * u128::from(to - from);
        self.spent[activity] += energy;
        // The last window first: the width is then the one of all of them.
        let at = self.window(to - 1);
        if from >= self.latest_start {
            self.windows[at] += energy;
        } else {
            self.divide(from, to, |part| u128::from(microwatts) * u128::from(part));
        }
    }

    /// Gives each window from `from` to `to` what it adds to the energy of so much of that time.
    fn divide(&mut self, from: u64, to: u64, energy: impl Fn(u64) -> Attojoules) {
        let (mut at, mut begin, mut given) = ((from / self.width) as usize, from, 0);
        while begin < to {
            let end = ((at as u64 + 1) * self.width).min(to);
            let so_far = energy(end - from);
            self.windows[at] += so_far - given;
            (at, begin, given) = (at + 1, end, so_far);
        }
    }

    /// An activity takes so much power, in microwatts, from `now` on.
    #[inline]
    pub fn set_power(&mut self, activity: usize, now: Time, microwatts: u64) {
        let (before, since) = self.states[activity];
        if before != microwatts {
            self.spend_over(activity, since, now, before);
            self.states[activity] = (microwatts, now);
        }
    }

    /// Whether all of a time lies in one window, so that it does not matter at which moments of it something was spent.
    pub fn is_one_window(&self, from: Time, to: Time) -> bool {
        if from < self.origin || from >= to {
            return false;
        }
        let window = |time: Time| time.since(self.origin).ps() / self.width;
        let last = window(to - Time::from_ps(1));
        window(from) == last && last < self.limit as u64
    }

    /// The power of an activity has changed from `from` to `to`, which lie in one window, and taken so much; at `to` it is again what it was at `from`.
    pub fn passed(&mut self, activity: usize, from: Time, to: Time, energy: Attojoules) {
        let (power, since) = self.states[activity];
        self.spend_over(activity, since, from, power);
        self.spend(activity, from, energy);
        self.states[activity].1 = to;
    }

    /// Counts what states take up to `now`.
    pub fn advance(&mut self, now: Time) {
        for activity in 0..self.states.len() {
            let (power, since) = self.states[activity];
            self.spend_over(activity, since, now, power);
            self.states[activity].1 = since.max(now);
        }
    }

    /// By activity, as far as it has been counted.
    pub fn spent(&self) -> &[Attojoules] {
        &self.spent
    }

    /// By window: the width of all of them, and what was spent in each.
    pub fn windows(&self) -> (Time, &[Attojoules]) {
        (Time::from_ps(self.width), &self.windows)
    }

    /// Whether what was spent by activity is what was spent over time, to the last attojoule.
    pub fn conserves(&self) -> bool {
        self.spent.iter().sum::<Attojoules>() == self.windows.iter().sum()
    }

    /// What was spent from the origin to `now`, states included.
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

    /// Forgets what was spent before `origin`; states go on.
    pub fn reset(&mut self, origin: Time) {
        self.origin = origin;
        self.windows.clear();
        self.windows.push(0);
        (self.latest, self.latest_start) = (0, 0);
        self.spent.fill(0);
        self.states.iter_mut().for_each(|(_, since)| *since = origin);
    }

    /// The window of a time, in picoseconds from the origin.
    #[inline]
    fn window(&mut self, ps: u64) -> usize {
        // Most of what is spent falls into the window of what was spent before.
        if ps.wrapping_sub(self.latest_start) >= self.width {
            self.turn_to(ps);
        }
        self.latest
    }

    /// Makes the window that holds a time the latest one.
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
mod tests;
