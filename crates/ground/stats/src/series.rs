//! Time series in bounded memory: windows that double in width instead of growing in number.

use crate::Histogram;
use engine::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use std::borrow::Cow;

/// Completions, bytes and latency per window of simulated time.
///
/// Windows are `width` long and aligned to the origin. When a completion falls beyond the last allowed window,
/// neighbours are joined and the width doubles. The last window ends with the last completion. Serialises as the
/// sequence of its windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    origin: Time,
    width: u64,
    limit: usize,
    windows: Vec<Totals>,
    /// Window of the last record; its offset from the origin follows.
    latest: usize,
    latest_start: u64,
    /// Time of the last completion, as an offset from the origin.
    last: u64,
    /// Number of times that a different window became the latest.
    turns: u64,
    /// Empty windows whose memory is reused.
    spare: Vec<Totals>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Totals {
    bytes: u64,
    latency: Latency,
}

impl Totals {
    fn add(&mut self, other: &Totals) {
        self.bytes += other.bytes;
        self.latency.0.merge(&other.latency.0);
    }

    /// Converts the totals to a window that starts at `start_ns` and is `width_ns` long.
    fn window(&self, start_ns: f64, width_ns: f64) -> Window {
        let ns = |ps: u64| ps as f64 / 1e3;
        let latency = &self.latency.0;
        Window {
            start_ns,
            width_ns,
            requests: latency.count(),
            bytes: self.bytes,
            latency_ns_mean: latency.mean().map(|mean| mean / 1e3),
            p50_ns: latency.percentile_unchecked(0.5).map(ns),
            p99_ns: latency.percentile(0.99).map(ns),
            queue_depth: latency.sum() as f64 / 1e3 / width_ns,
        }
    }
}

/// Latencies of a window, eight buckets per octave.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Latency(Histogram);

impl Default for Latency {
    fn default() -> Latency {
        let mut latencies = Histogram::with_bits(BITS);
        latencies.cover(COVERED.0, COVERED.1);
        Latency(latencies)
    }
}

/// Sub-bucket bits per octave of a window's latencies: percentiles of a window are known to 13 %.
const BITS: u32 = 3;
/// Latencies that a window has room for from the beginning, picoseconds (1 us to 17 ms), so that windows rarely grow
/// during a run; *chosen*.
const COVERED: (u64, u64) = (1 << 20, (1 << 34) - 1);

/// Window of a [`Series`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Window {
    /// Start of the window in simulated time, nanoseconds.
    pub start_ns: f64,
    /// Length of the window, nanoseconds; the last one ends with the last completion.
    pub width_ns: f64,
    /// Requests completed in the window.
    pub requests: u64,
    /// Bytes of the requests completed in the window.
    pub bytes: u64,
    /// Mean latency of the requests completed in the window, nanoseconds; null without completions.
    pub latency_ns_mean: Option<f64>,
    /// Median latency of the requests completed in the window, nanoseconds, to 13 %; null without completions.
    pub p50_ns: Option<f64>,
    /// 99th percentile of their latency, nanoseconds, to 13 %; null if fewer than ten requests lie above it.
    pub p99_ns: Option<f64>,
    /// Mean number in flight, by Little's law: the latencies of the requests completed in the window over its length.
    /// Requests longer than a window count in the window of their completion.
    pub queue_depth: f64,
}

impl Series {
    /// Creates a series of at most `limit` windows, the first from `origin` on, each initially `width` long.
    ///
    /// # Panics
    /// If `width` is zero or `limit` is less than two.
    pub fn new(origin: Time, width: Time, limit: usize) -> Series {
        assert!(width > Time::ZERO, "the window width is zero");
        assert!(limit >= 2, "at least two windows are needed");
        Series {
            origin,
            width: width.ps(),
            limit,
            windows: Vec::new(),
            latest: 0,
            latest_start: 0,
            last: 0,
            turns: 0,
            spare: Vec::new(),
        }
    }

    /// Creates the series of a run's requests from time zero on: at most 512 windows, initially of 10 us. All such
    /// series can be merged.
    pub fn of_run() -> Series {
        Series::new(Time::ZERO, Time::from_us(10), 512)
    }

    /// Records a request of `bytes` that completes at `now` with `latency`; one before the origin counts in the first
    /// window.
    #[inline]
    pub fn record(&mut self, now: Time, bytes: u64, latency: Time) {
        let offset = now.since(self.origin).ps();
        // Completions arrive in order of time: most fall into the window of the previous one.
        if offset.wrapping_sub(self.latest_start) >= self.width {
            self.turn_to(offset);
        }
        let at = self.latest;
        if at >= self.windows.len() {
            let spare = &mut self.spare;
            self.windows.resize_with(at + 1, || spare.pop().unwrap_or_default());
        }
        self.last = self.last.max(offset);
        let w = &mut self.windows[at];
        w.bytes += bytes;
        w.latency.0.record(latency.ps());
    }

    /// Makes the window that contains `offset` the latest one.
    #[cold]
    fn turn_to(&mut self, offset: u64) {
        while offset / self.width >= self.limit as u64 {
            self.double();
        }
        self.latest = (offset / self.width) as usize;
        self.latest_start = self.latest as u64 * self.width;
        self.turns += 1;
    }

    fn double(&mut self) {
        self.width = self.width.saturating_mul(2);
        let joined = self.windows.len().div_ceil(2);
        for i in 0..joined {
            self.windows.swap(i, 2 * i);
            if 2 * i + 1 < self.windows.len() {
                let (before, after) = self.windows.split_at_mut(2 * i + 1);
                before[i].add(&after[0]);
            }
        }
        self.give_up(joined);
    }

    /// Drops the windows from an index on, but keeps their memory.
    fn give_up(&mut self, from: usize) {
        for mut window in self.windows.drain(from..) {
            window.bytes = 0;
            window.latency.0.clear();
            self.spare.push(window);
        }
    }

    /// Returns the current window width.
    pub const fn width(&self) -> Time {
        Time::from_ps(self.width)
    }

    /// Adds the completions of a different series over the same time, using the wider windows of the two.
    ///
    /// # Panics
    /// If the two begin at different times, or their widths did not double from the same first width.
    pub fn merge(&mut self, other: &Series) {
        assert_eq!(self.origin, other.origin, "series of different measured windows");
        let mut other = other.clone();
        while self.width < other.width {
            self.double();
        }
        while other.width < self.width {
            other.double();
        }
        assert_eq!(self.width, other.width, "widths must double from the same first width");
        let windows = self.windows.len().max(other.windows.len());
        self.windows.resize_with(windows, Totals::default);
        self.windows.iter_mut().zip(&other.windows).for_each(|(sum, window)| sum.add(window));
        self.last = self.last.max(other.last);
        self.latest = (self.last / self.width) as usize;
        self.latest_start = self.latest as u64 * self.width;
    }

    /// Iterates over the windows from the origin to the last completion, empty ones included. The last window ends with
    /// that completion. A completion at the very start of a window belongs to the previous window, unless all are at
    /// the origin.
    pub fn windows(&self) -> impl ExactSizeIterator<Item = Window> + '_ {
        let count = self.windows.len();
        let ends_a_window = count > 1 && self.last == (count as u64 - 1) * self.width;
        let late = self.windows.last().filter(|_| ends_a_window);
        let count = count - usize::from(ends_a_window);
        (0..count).map(move |at| {
            let start = at as u64 * self.width;
            let is_last = at + 1 == count;
            let width = if is_last && self.last > start { self.last - start } else { self.width };
            let mut totals = Cow::Borrowed(&self.windows[at]);
            if let Some(late) = late.filter(|_| is_last) {
                totals.to_mut().add(late);
            }
            totals.window(self.origin.as_ns_f64() + start as f64 / 1e3, width as f64 / 1e3)
        })
    }

    /// Returns how often a request has begun a new window; a sampler that reads at each of these turns has the same
    /// number of points.
    pub const fn turns(&self) -> u64 {
        self.turns
    }

    /// Clears everything and starts at `origin` with the current width, at the end of warm-up.
    pub fn reset(&mut self, origin: Time) {
        self.origin = origin;
        self.give_up(0);
        (self.latest, self.latest_start, self.last) = (0, 0, 0);
        self.turns += 1;
    }
}

impl Serialize for Series {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let windows = self.windows();
        let mut seq = serializer.serialize_seq(Some(windows.len()))?;
        for w in windows {
            seq.serialize_element(&w)?;
        }
        seq.end()
    }
}

impl JsonSchema for Series {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Series".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        <Vec<Window>>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::Series;
    use engine::Time;
    use proptest::prelude::*;

    #[test]
    fn doubling_keeps_totals_and_alignment() {
        let mut s = Series::new(Time::from_ns(100), Time::from_ns(10), 4);
        for t in [100, 109, 110, 139] {
            s.record(Time::from_ns(t), 1, Time::from_ns(t));
        }
        let counts = |s: &Series| s.windows().map(|w| w.requests).collect::<Vec<_>>();
        assert_eq!(counts(&s), [2, 1, 0, 1]);
        s.record(Time::from_ns(140), 5, Time::from_ns(7));
        assert_eq!((counts(&s), s.width()), (vec![3, 2], Time::from_ns(20)));
        let last = s.windows().last().unwrap();
        // The completion at 140 ns ends the window from 120 ns on, in which one of 139 ns has completed.
        assert_eq!((last.start_ns, last.width_ns, last.bytes, last.requests), (120.0, 20.0, 6, 2));
        assert_eq!((last.latency_ns_mean, last.queue_depth), (Some(73.0), 7.3));
        s.record(Time::from_ns(150), 1, Time::from_ns(7));
        let last = s.windows().last().unwrap();
        // Two requests of 7 ns in the 10 ns from 140 to 150 ns.
        assert_eq!((last.start_ns, last.width_ns, last.queue_depth), (140.0, 10.0, 1.4));
        s.record(Time::from_ns(100 + 10_000), 1, Time::ZERO);
        assert!(s.windows().len() <= 4);
        assert_eq!(counts(&s).iter().sum::<u64>(), 7);
        s.reset(Time::from_ns(20_000));
        assert_eq!(s.windows().len(), 0);
    }
    /// Requests and bytes at times in order, in windows of 10 ns.
    fn series(limit: usize, times: &[u64]) -> Series {
        let mut series = Series::new(Time::ZERO, Time::from_ns(10), limit);
        times.iter().for_each(|at| series.record(Time::from_ns(*at), 1, Time::from_ns(3)));
        series
    }

    #[test]
    fn all_at_the_origin_have_a_whole_window() {
        let windows: Vec<_> = series(4, &[0, 0]).windows().map(|w| (w.width_ns, w.requests)).collect();
        assert_eq!(windows, [(10.0, 2)]);
    }

    proptest! {
        /// Windows follow one another and end with the last completion; each holds what completed in it.
        #[test]
        fn windows_tile_the_time_and_count_everything(
            mut times in prop::collection::vec(0u64..2000, 1..300), limit in 2usize..40,
        ) {
            times.sort_unstable();
            let last = times[times.len() - 1];
            let windows: Vec<_> = series(limit, &times).windows().collect();
            prop_assert!(windows.len() <= limit);
            let mut end = 0.0;
            for (at, window) in windows.iter().enumerate() {
                prop_assert_eq!(window.start_ns, end);
                end += window.width_ns;
                let is_last = at + 1 == windows.len();
                let inside = |t: &&u64| {
                    **t as f64 >= window.start_ns && ((**t as f64) < end || is_last)
                };
                prop_assert_eq!(window.requests, times.iter().filter(inside).count() as u64);
                prop_assert!(window.width_ns > 0.0 && window.width_ns <= windows[0].width_ns);
            }
            prop_assert!(end == last as f64 || last == 0);
        }

        /// Merged series are that of all completions together.
        #[test]
        fn merged_series_are_one(
            mut a in prop::collection::vec(0u64..5000, 0..100), mut b in prop::collection::vec(0u64..500, 0..100),
        ) {
            let mut all = [a.clone(), b.clone()].concat();
            [&mut a, &mut b, &mut all].into_iter().for_each(|times| times.sort_unstable());
            let [a, b, all] = [a, b, all].map(|times| series(8, &times));
            for (first, second) in [(&a, &b), (&b, &a)] {
                let mut sum = first.clone();
                sum.merge(second);
                prop_assert!(sum.windows().eq(all.windows()));
            }
        }
    }
}
