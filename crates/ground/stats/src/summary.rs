//! Latency metrics of the result document.

use crate::{Batched, Histogram};
use engine::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// Latency in nanoseconds, from a histogram of picoseconds. A metric that the samples do not support is `None`: all of
/// them for an empty histogram, a percentile `p` if `N (1 - p) < 10`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// Arithmetic mean, ns.
    pub mean: Option<f64>,
    /// Sample standard deviation, ns.
    pub stddev: Option<f64>,
    /// Smallest, ns.
    pub min: Option<f64>,
    /// Largest, ns.
    pub max: Option<f64>,
    /// Median, ns.
    pub p50: Option<f64>,
    /// 90th percentile, ns.
    pub p90: Option<f64>,
    /// 95th percentile, ns.
    pub p95: Option<f64>,
    /// 99th percentile, ns.
    pub p99: Option<f64>,
    /// 99.9th percentile, ns.
    pub p99_9: Option<f64>,
    /// 99.99th percentile, ns.
    pub p99_99: Option<f64>,
    /// 99.999th percentile, ns.
    pub p99_999: Option<f64>,
}

impl Summary {
    /// Summarises a histogram whose unit is the picosecond.
    pub fn from_ps(h: &Histogram) -> Summary {
        let ns = |ps: u64| ps as f64 / 1e3;
        let percentile = |p| h.percentile(p).map(ns);
        Summary {
            mean: h.mean().map(|m| m / 1e3),
            stddev: h.stddev().map(|s| s / 1e3),
            min: h.min().map(ns),
            max: h.max().map(ns),
            p50: percentile(0.5),
            p90: percentile(0.9),
            p95: percentile(0.95),
            p99: percentile(0.99),
            p99_9: percentile(0.999),
            p99_99: percentile(0.9999),
            p99_999: percentile(0.99999),
        }
    }
}

/// Half-widths of two-sided 95 % confidence intervals in nanoseconds, from batches of picoseconds. A metric is `None`
/// if there are fewer than about `100 / (1 - p)` values: it needs ten batches, each with its own percentile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct HalfWidths {
    /// Half the 95 % confidence interval of the mean, ns.
    pub mean: Option<f64>,
    /// Half the 95 % confidence interval of the median, ns.
    pub p50: Option<f64>,
    /// Half the 95 % confidence interval of the 90th percentile, ns.
    pub p90: Option<f64>,
    /// Half the 95 % confidence interval of the 95th percentile, ns.
    pub p95: Option<f64>,
    /// Half the 95 % confidence interval of the 99th percentile, ns.
    pub p99: Option<f64>,
    /// Half the 95 % confidence interval of the 99.9th percentile, ns.
    pub p99_9: Option<f64>,
}

impl HalfWidths {
    /// Computes the half-widths of a sequence in picoseconds.
    pub fn from_ps(sequence: &Batched) -> HalfWidths {
        const CONFIDENCE: f64 = 0.95;
        let ns = |ps: f64| ps / 1e3;
        let percentile = |p| sequence.percentile_half_width(p, CONFIDENCE).map(ns);
        HalfWidths {
            mean: sequence.mean_half_width(CONFIDENCE).map(ns),
            p50: percentile(0.5),
            p90: percentile(0.9),
            p95: percentile(0.95),
            p99: percentile(0.99),
            p99_9: percentile(0.999),
        }
    }
}

// Measurements of requests of one kind.

/// Requests of one kind in one flow.
#[derive(Clone, Debug, Default)]
pub struct OpStats {
    /// Requests completed.
    pub requests: u64,
    /// Bytes of these requests.
    pub bytes: u64,
    /// Latency from arrival to completion, picoseconds.
    pub latency: Histogram,
    /// Three parts of the latency; kept separately only from the first request on that makes them differ.
    parts: Option<Box<Parts>>,
}

/// Latencies of the stages, picoseconds.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Time from arrival to submission.
    pub submission: Histogram,
    /// Time from submission to completion.
    pub completion: Histogram,
    /// Time inside the device.
    pub device: Histogram,
}

impl OpStats {
    /// Adds a completed request: times from its arrival to submission, inside the device, and to completion.
    #[inline]
    pub fn record(&mut self, bytes: u64, submission: Time, device: Time, latency: Time) {
        if self.parts.is_some() || device != latency {
            self.record_parts(submission, device, latency);
        }
        self.requests += 1;
        self.bytes += bytes;
        self.latency.record(latency.ps());
    }

    fn record_parts(&mut self, submission: Time, device: Time, latency: Time) {
        let parts = self.parts.get_or_insert_with(|| {
            // Until now all latency was device time.
            let mut submission = Histogram::new();
            (0..self.requests).for_each(|_| submission.record(0));
            Box::new(Parts { submission, completion: self.latency.clone(), device: self.latency.clone() })
        });
        parts.submission.record(submission.ps());
        parts.completion.record((latency - submission).ps());
        parts.device.record(device.ps());
    }

    /// Adds the requests of a different flow.
    pub fn merge(&mut self, other: &OpStats) {
        if self.parts.is_some() || other.parts.is_some() {
            let mut mine = self.parts();
            let theirs = other.parts();
            mine.submission.merge(&theirs.submission);
            mine.completion.merge(&theirs.completion);
            mine.device.merge(&theirs.device);
            self.parts = Some(Box::new(mine));
        }
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
    }

    /// Returns the stages' latencies.
    pub fn parts(&self) -> Parts {
        match &self.parts {
            Some(parts) => (**parts).clone(),
            None => {
                let mut submission = Histogram::new();
                (0..self.requests).for_each(|_| submission.record(0));
                Parts { submission, completion: self.latency.clone(), device: self.latency.clone() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Summary;
    use crate::Histogram;

    #[test]
    fn nothing_from_nothing() {
        assert_eq!(Summary::from_ps(&Histogram::new()), Summary::default());
    }

    #[test]
    fn percentiles_appear_when_ten_samples_lie_above() {
        let shown = |n: u64| {
            let mut h = Histogram::new();
            (0..n).for_each(|_| h.record(7_000));
            let s = Summary::from_ps(&h);
            [s.p50, s.p90, s.p95, s.p99, s.p99_9, s.p99_99, s.p99_999].map(|p| p.is_some())
        };
        for (n, first_missing) in [
            (19, 0),
            (20, 1),
            (99, 1),
            (100, 2),
            (199, 2),
            (200, 3),
            (999, 3),
            (1000, 4),
            (9_999, 4),
            (10_000, 5),
        ] {
            let expected: [bool; 7] = std::array::from_fn(|i| i < first_missing);
            assert_eq!(shown(n), expected, "N = {n}");
        }
        assert_eq!(shown(99_999), [true, true, true, true, true, false, false]);
        assert_eq!(shown(100_000), [true, true, true, true, true, true, false]);
        assert_eq!(shown(1_000_000), [true; 7]);
    }

    /// Among the values 1 to 1,000 the 95th percentile is 950, within a bucket of the histogram.
    #[test]
    fn percentiles_are_those_of_the_values() {
        let mut h = Histogram::new();
        (1..=1_000).for_each(|ns| h.record(ns * 1_000));
        let s = Summary::from_ps(&h);
        for (found, ns) in [(s.p50, 500.0), (s.p90, 900.0), (s.p95, 950.0), (s.p99, 990.0)] {
            let found = found.unwrap();
            assert!((found / ns - 1.0).abs() < 0.01, "{found} for {ns}");
        }
    }

    #[test]
    fn picoseconds_become_nanoseconds() {
        let mut h = Histogram::new();
        h.record(1_000);
        h.record(3_000);
        let s = Summary::from_ps(&h);
        assert_eq!((s.mean, s.min, s.max), (Some(2.0), Some(1.0), Some(3.0)));
        assert!((s.stddev.unwrap() - 2f64.sqrt()).abs() < 1e-12);
    }
}
