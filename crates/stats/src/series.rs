//! A time series in bounded memory: windows that double in width instead of growing in number.

use kernel::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

/// Completions, bytes and latency per window of simulated time.
///
/// Windows are `width` long, aligned to the origin; when a completion falls beyond the last of the allowed
/// windows, neighbours are joined and the width doubles. Serialises as the sequence of its windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    origin: Time,
    width: u64,
    limit: usize,
    windows: Vec<Totals>,
    /// The window recorded into last, and its offset from the origin.
    latest: usize,
    latest_start: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    requests: u64,
    bytes: u64,
    latency: u128,
}

/// One window of a [`Series`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Window {
    /// Start of the window in simulated time, nanoseconds.
    pub start_ns: f64,
    /// Length of the window, nanoseconds.
    pub width_ns: f64,
    /// Requests completed in the window.
    pub requests: u64,
    /// Bytes of the requests completed in the window.
    pub bytes: u64,
    /// Mean latency of the requests completed in the window, nanoseconds; null without completions.
    pub latency_ns_mean: Option<f64>,
}

impl Series {
    /// At most `limit` windows, the first from `origin` on, each `width` long to begin with.
    ///
    /// # Panics
    /// If `width` is zero or `limit` is less than two.
    pub fn new(origin: Time, width: Time, limit: usize) -> Series {
        assert!(width > Time::ZERO, "windows of no width");
        assert!(limit >= 2, "fewer than two windows");
        Series { origin, width: width.ps(), limit, windows: Vec::new(), latest: 0, latest_start: 0 }
    }

    /// A request of `bytes` completes at `now` with `latency`; one before the origin counts in the first
    /// window.
    #[inline]
    pub fn record(&mut self, now: Time, bytes: u64, latency: Time) {
        let offset = now.since(self.origin).ps();
        // Completions come in order of time: most fall into the window of the one before.
        if offset.wrapping_sub(self.latest_start) >= self.width {
            self.turn_to(offset);
        }
        let at = self.latest;
        if at >= self.windows.len() {
            self.windows.resize(at + 1, Totals::default());
        }
        let w = &mut self.windows[at];
        w.requests += 1;
        w.bytes += bytes;
        w.latency += u128::from(latency.ps());
    }

    /// Makes the window that holds `offset` the latest one.
    #[cold]
    fn turn_to(&mut self, offset: u64) {
        while offset / self.width >= self.limit as u64 {
            self.double();
        }
        self.latest = (offset / self.width) as usize;
        self.latest_start = self.latest as u64 * self.width;
    }

    fn double(&mut self) {
        self.width = self.width.saturating_mul(2);
        let joined = self.windows.len().div_ceil(2);
        for i in 0..joined {
            let (a, b) = (self.windows[2 * i], self.windows.get(2 * i + 1).copied().unwrap_or_default());
            self.windows[i] = Totals {
                requests: a.requests + b.requests,
                bytes: a.bytes + b.bytes,
                latency: a.latency + b.latency,
            };
        }
        self.windows.truncate(joined);
    }

    /// The present width of a window.
    pub const fn width(&self) -> Time {
        Time::from_ps(self.width)
    }

    /// The windows from the origin to the last completion, empty ones included.
    pub fn windows(&self) -> impl ExactSizeIterator<Item = Window> + '_ {
        let (origin, width) = (self.origin.as_ns_f64(), self.width as f64 / 1e3);
        self.windows.iter().enumerate().map(move |(i, w)| Window {
            start_ns: origin + i as f64 * width,
            width_ns: width,
            requests: w.requests,
            bytes: w.bytes,
            latency_ns_mean: (w.requests > 0).then(|| w.latency as f64 / w.requests as f64 / 1e3),
        })
    }

    /// Forgets everything and starts at `origin` with the present width: the end of warm-up.
    pub fn reset(&mut self, origin: Time) {
        self.origin = origin;
        self.windows.clear();
        (self.latest, self.latest_start) = (0, 0);
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
    use kernel::Time;

    #[test]
    fn doubling_keeps_totals_and_alignment() {
        let mut s = Series::new(Time::from_ns(100), Time::from_ns(10), 4);
        for t in [100, 109, 110, 139] {
            s.record(Time::from_ns(t), 1, Time::from_ns(t));
        }
        let counts = |s: &Series| s.windows().map(|w| w.requests).collect::<Vec<_>>();
        assert_eq!(counts(&s), [2, 1, 0, 1]);
        s.record(Time::from_ns(140), 5, Time::from_ns(7));
        assert_eq!((counts(&s), s.width()), (vec![3, 1, 1], Time::from_ns(20)));
        let last = s.windows().last().unwrap();
        assert_eq!((last.start_ns, last.width_ns, last.bytes), (140.0, 20.0, 5));
        assert_eq!(last.latency_ns_mean, Some(7.0));
        s.record(Time::from_ns(100 + 10_000), 1, Time::ZERO);
        assert!(s.windows().len() <= 4);
        assert_eq!(counts(&s).iter().sum::<u64>(), 6);
        s.reset(Time::from_ns(20_000));
        assert_eq!(s.windows().len(), 0);
    }
}
