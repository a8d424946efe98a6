//! Energy, by activity and over time, as exact integers.

use kernel::Time;

/// Energy in attojoules (10⁻¹⁸ J): a microwatt for a picosecond.
pub type Attojoules = u128;

/// What a part has spent, by activity, and in each window of simulated time.
///
/// An activity is an operation that costs energy, or a state that costs power. All that is spent goes into one activity and one window, or is spread
/// over several of them without a remainder, so that the sums by activity and by window are equal to the last attojoule. Windows are aligned to the
/// origin; when time goes beyond the last of the allowed windows, neighbours are joined and the width doubles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    origin: Time,
    width: u64,
    limit: usize,
    windows: Vec<Attojoules>,
    spent: Vec<Attojoules>,
    /// The power of each activity, and since when.
    states: Vec<(u64, Time)>,
}

impl Meter {
    /// Of so many activities, none of which takes any power; at most `limit` windows, the first from `origin` on, each `width` long to begin with.
    ///
    /// # Panics
    /// If `width` is zero or `limit` is less than two.
    pub fn new(activities: usize, origin: Time, width: Time, limit: usize) -> Meter {
        assert!(width > Time::ZERO, "windows of no width");
        assert!(limit >= 2, "fewer than two windows");
        Meter {
            origin,
            width: width.ps(),
            limit,
            windows: Vec::new(),
            spent: vec![0; activities],
            states: vec![(0, origin); activities],
        }
    }

    /// An operation that was at `now`.
    #[inline]
    pub fn spend(&mut self, activity: usize, now: Time, energy: Attojoules) {
        let at = self.window(now.since(self.origin).ps());
        self.windows[at] += energy;
        self.spent[activity] += energy;
    }

    /// An operation that takes a power, in microwatts, for a time.
    pub fn spend_over(&mut self, activity: usize, from: Time, to: Time, microwatts: u64) {
        let (mut from, to) = (from.since(self.origin).ps(), to.since(self.origin).ps());
        if from >= to {
            return;
        }
        // The last window first: the width is then the one of all of them.
        self.window(to - 1);
        while from < to {
            let at = self.window(from);
            let end = ((at as u64 + 1) * self.width).min(to);
            let energy = u128::from(microwatts) * u128::from(end - from);
            self.windows[at] += energy;
            self.spent[activity] += energy;
            from = end;
        }
    }

    /// An activity takes so much power, in microwatts, from `now` on.
    pub fn set_power(&mut self, activity: usize, now: Time, microwatts: u64) {
        let (before, since) = self.states[activity];
        if before != microwatts {
            self.spend_over(activity, since, now, before);
            self.states[activity] = (microwatts, now);
        }
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

    /// Forgets what was spent before `origin`; states go on.
    pub fn reset(&mut self, origin: Time) {
        self.origin = origin;
        self.windows.clear();
        self.spent.fill(0);
        self.states.iter_mut().for_each(|(_, since)| *since = origin);
    }

    /// The window of a time, in picoseconds from the origin.
    #[inline]
    fn window(&mut self, ps: u64) -> usize {
        while ps / self.width >= self.limit as u64 {
            self.double();
        }
        let at = (ps / self.width) as usize;
        if at >= self.windows.len() {
            self.windows.resize(at + 1, 0);
        }
        at
    }

    #[cold]
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

    #[test]
    fn operations_and_states_add_up() {
        let mut meter = Meter::new(2, Time::ZERO, US, 8);
        // A watt for 2.5 us is 2.5 uJ.
        meter.set_power(0, Time::ZERO, 1_000_000);
        meter.spend(1, Time::from_ns(1_200), 40 * NANOJOULE);
        meter.set_power(0, Time::from_ns(2_500), 0);
        meter.advance(Time::from_us(4));
        assert_eq!(meter.spent(), [2_500 * NANOJOULE, 40 * NANOJOULE]);
        let nanojoules: Vec<_> = meter.windows().1.iter().map(|spent| spent / NANOJOULE).collect();
        assert_eq!(nanojoules, [1_000, 1_040, 500, 0]);
    }

    #[test]
    fn a_measured_window_begins_with_the_states_as_they_are() {
        let mut meter = Meter::new(1, Time::ZERO, US, 8);
        meter.set_power(0, Time::ZERO, 3_000_000);
        meter.advance(US.times(5));
        meter.reset(US.times(5));
        meter.advance(US.times(7));
        assert_eq!(meter.spent(), [6_000 * NANOJOULE]);
    }

    proptest! {
        /// Whatever happens, and however often windows double: both accounts have what was spent.
        #[test]
        fn windows_and_activities_agree(
            events in prop::collection::vec((0_usize..3, 0_u64..5_000_000, 0_u64..2_000_000, any::<bool>()), 1..60),
        ) {
            let mut meter = Meter::new(3, Time::ZERO, Time::from_ns(10), 16);
            let (mut now, mut expected, mut powers) = (0, 0_u128, [0_u64; 3]);
            for (activity, step, amount, is_state) in events {
                expected += powers.iter().map(|power| u128::from(*power) * u128::from(step)).sum::<u128>();
                now += step;
                if is_state {
                    meter.set_power(activity, Time::from_ps(now), amount);
                    powers[activity] = amount;
                } else {
                    meter.spend(activity, Time::from_ps(now), amount.into());
                    expected += u128::from(amount);
                }
            }
            meter.advance(Time::from_ps(now));
            prop_assert_eq!(meter.spent().iter().sum::<u128>(), expected);
            prop_assert_eq!(meter.windows().1.iter().sum::<u128>(), expected);
            prop_assert!(meter.windows().1.len() <= 16);
        }
    }
}
