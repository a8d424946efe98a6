//! Levels and readings over time in bounded memory: windows that double in width, and samples that thin out.

use engine::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// Mean and maximum of a level in each window of simulated time.
///
/// Windows are aligned to the origin. When time passes the last allowed window, neighbours are joined and the width
/// doubles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    origin: Time,
    width: u64,
    limit: usize,
    windows: Vec<Totals>,
    /// Current level; its start time follows.
    value: u64,
    since: Time,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    /// Integral of the level over time, in picoseconds.
    area: u128,
    /// Picoseconds for which the level is known.
    known: u64,
    max: u64,
}

/// Window of [`Levels`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LevelWindow {
    /// Start of the window in simulated time, nanoseconds.
    pub start_ns: f64,
    /// Length of the window, nanoseconds; the last one may be unfinished.
    pub width_ns: f64,
    /// Time-weighted mean.
    pub mean: f64,
    /// Highest value.
    pub max: u64,
}

impl Levels {
    /// Creates a level of zero with at most `limit` windows, the first from `origin` on, each initially `width` long.
    ///
    /// # Panics
    /// If `width` is zero or `limit` is less than two.
    pub fn new(origin: Time, width: Time, limit: usize) -> Levels {
        assert!(width > Time::ZERO, "the window width is zero");
        assert!(limit >= 2, "at least two windows are needed");
        Levels { origin, width: width.ps(), limit, windows: Vec::new(), value: 0, since: origin }
    }

    /// Sets the level to `value` from `now` on.
    #[inline]
    pub fn set(&mut self, now: Time, value: u64) {
        if value != self.value {
            self.advance(now);
            self.value = value;
        }
    }

    /// Counts the level up to `now`.
    pub fn advance(&mut self, now: Time) {
        let (mut from, to) = (self.since.since(self.origin).ps(), now.since(self.origin).ps());
        self.since = self.since.max(now);
        if to > from {
            while (to - 1) / self.width >= self.limit as u64 {
                self.double();
            }
        }
        while from < to {
            let at = (from / self.width) as usize;
            if at >= self.windows.len() {
                self.windows.resize(at + 1, Totals::default());
            }
            let end = ((at as u64 + 1) * self.width).min(to);
            let window = &mut self.windows[at];
            window.area += u128::from(self.value) * u128::from(end - from);
            window.known += end - from;
            window.max = window.max.max(self.value);
            from = end;
        }
    }

    fn double(&mut self) {
        self.width = self.width.saturating_mul(2);
        let joined = self.windows.len().div_ceil(2);
        for i in 0..joined {
            let (a, b) = (self.windows[2 * i], self.windows.get(2 * i + 1).copied().unwrap_or_default());
            self.windows[i] =
                Totals { area: a.area + b.area, known: a.known + b.known, max: a.max.max(b.max) };
        }
        self.windows.truncate(joined);
    }

    /// Iterates over the windows from the origin to the time counted so far.
    pub fn windows(&self) -> impl ExactSizeIterator<Item = LevelWindow> + '_ {
        let (origin, width) = (self.origin.as_ns_f64(), self.width as f64 / 1e3);
        self.windows.iter().enumerate().map(move |(i, w)| LevelWindow {
            start_ns: origin + i as f64 * width,
            width_ns: w.known as f64 / 1e3,
            mean: if w.known > 0 { w.area as f64 / w.known as f64 } else { 0.0 },
            max: w.max,
        })
    }

    /// Clears everything before `origin`; the level stays.
    pub fn reset(&mut self, origin: Time) {
        self.origin = origin;
        self.since = origin;
        self.windows.clear();
    }
}

// Readings over time in bounded memory: when there are too many, every second one is dropped.

/// At most `limit` readings, spread over the whole time.
///
/// For a quantity that grows with time (bytes, busy time), any two remaining readings give the exact growth between
/// them.
#[derive(Clone, Debug)]
pub struct Samples<T> {
    limit: usize,
    /// One in `stride` readings is kept.
    stride: u64,
    offered: u64,
    kept: Vec<(Time, T)>,
}

impl<T> Samples<T> {
    /// Creates an empty series of at most `limit` readings.
    ///
    /// # Panics
    /// If `limit` is less than two.
    pub fn new(limit: usize) -> Samples<T> {
        assert!(limit >= 2, "at least two readings are needed");
        Samples { limit, stride: 1, offered: 0, kept: Vec::new() }
    }

    /// Records a reading at `now`.
    pub fn record(&mut self, now: Time, reading: T) {
        let wanted = self.offered.is_multiple_of(self.stride);
        self.offered += 1;
        if !wanted {
            return;
        }
        if self.kept.len() == self.limit {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride *= 2;
            // The offered reading follows the last one in an odd position.
            if !(self.offered - 1).is_multiple_of(self.stride) {
                return;
            }
        }
        self.kept.push((now, reading));
    }

    /// Returns the readings, in order of time.
    pub fn kept(&self) -> &[(Time, T)] {
        &self.kept
    }

    /// Clears everything, at the end of warm-up.
    pub fn clear(&mut self) {
        *self = Samples::new(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Time;
    use proptest::prelude::*;

    const MS: Time = Time::from_ms(1);

    #[test]
    fn a_level_is_weighted_by_its_time() {
        let mut levels = Levels::new(Time::ZERO, MS.times(10), 4);
        levels.set(MS.times(5), 8);
        levels.set(MS.times(15), 2);
        levels.advance(MS.times(18));
        let windows: Vec<_> = levels.windows().map(|w| (w.mean, w.max, w.width_ns)).collect();
        // 5 ms of nothing and 5 of 8; then 5 of 8 and 3 of 2.
        assert_eq!(windows, [(4.0, 8, 10e6), (46.0 / 8.0, 8, 8e6)]);
    }

    #[test]
    fn windows_double_and_lose_nothing() {
        let mut levels = Levels::new(Time::ZERO, MS, 4);
        levels.set(MS.times(0), 3);
        levels.set(MS.times(7), 1);
        levels.advance(MS.times(33));
        let area: f64 = levels.windows().map(|w| w.mean * w.width_ns).sum();
        assert!((area - (7.0 * 3.0 + 26.0) * 1e6).abs() < 1.0, "{area}");
        assert!(levels.windows().len() <= 4);
        levels.reset(MS.times(40));
        levels.advance(MS.times(41));
        assert_eq!(levels.windows().map(|w| w.mean).collect::<Vec<_>>(), [1.0]);
    }

    proptest! {
        #[test]
        fn readings_stay_evenly_spread(limit in 2usize..40, n in 1u64..2000) {
            let mut samples = Samples::new(limit);
            (0..n).for_each(|at| samples.record(Time::from_ns(at), at));
            let kept: Vec<u64> = samples.kept().iter().map(|(_, at)| *at).collect();
            prop_assert!(kept.len() <= limit && kept[0] == 0);
            // Multiples of one power of two, none left out, and at least half the limit if enough were offered.
            let stride = kept.get(1).copied().unwrap_or(1);
            prop_assert!(stride.is_power_of_two());
            prop_assert!(kept.iter().zip(0..).all(|(at, k)| *at == k * stride));
            prop_assert!(n - kept[kept.len() - 1] <= stride);
            prop_assert!(kept.len() as u64 >= n.min(limit as u64 / 2));
        }
    }
}
