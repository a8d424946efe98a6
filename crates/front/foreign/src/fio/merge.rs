//! Latencies of several jobs as one.

use super::NAMED;
use super::json::{number, rounded, whole};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A latency as fio has it, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Latency {
    /// How many there are.
    pub(super) count: u64,
    mean: f64,
    /// Sum of squares of what differs from the mean.
    squares: f64,
    min: Option<f64>,
    max: Option<f64>,
    /// Percentiles that were printed; none of what was put together of several.
    percentiles: BTreeMap<u64, f64>,
    /// Counts by value; none if they were not printed.
    pub(super) bins: BTreeMap<u64, u64>,
}

/// A percentile as a key: in millionths.
fn key(percent: f64) -> u64 {
    libm::round(percent * 1e6) as u64
}

impl Latency {
    /// Reads `clat_ns` or, of versions before 3, `clat` in microseconds. `count` stands in where it has none of its own.
    pub(super) fn read(direction: &Value, name: &str, count: u64) -> Latency {
        let (found, unit) = match direction.get(format!("{name}_ns")) {
            Some(found) => (found, 1.0),
            None => (direction.get(name).unwrap_or(&Value::Null), 1e3),
        };
        let own = whole(found, "N");
        let count = if found.get("N").is_some() { own } else { count };
        let Some(mean) = number(found, "mean").filter(|_| count > 0) else { return Latency::default() };
        let of = |name: &str| number(found, name).map(|value| value * unit);
        let table = |name: &str| found.get(name).and_then(Value::as_object).into_iter().flatten();
        let percentiles = table("percentile")
            .filter_map(|(percent, value)| Some((key(percent.parse().ok()?), value.as_f64()? * unit)));
        let bins = table("bins").filter_map(|(value, count)| Some((value.parse().ok()?, count.as_u64()?)));
        let spread = of("stddev").unwrap_or_default();
        Latency {
            count,
            mean: mean * unit,
            squares: spread * spread * count.saturating_sub(1) as f64,
            min: of("min"),
            max: of("max"),
            percentiles: percentiles.collect(),
            bins: bins.filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// Adds those of another.
    pub(super) fn merge(&mut self, other: &Latency) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other.clone();
            return;
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        self.squares += other.squares + apart * apart * a * b / (a + b);
        self.mean += apart * b / (a + b);
        self.count = self.count.saturating_add(other.count);
        self.min = [self.min, other.min].into_iter().flatten().reduce(f64::min);
        self.max = [self.max, other.max].into_iter().flatten().reduce(f64::max);
        self.percentiles.clear();
        // Of one without bins nothing is known of the whole.
        if self.bins.is_empty() || other.bins.is_empty() {
            self.bins.clear();
        }
        if !self.bins.is_empty() {
            for (value, count) in &other.bins {
                let sum = self.bins.entry(*value).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
    }

    /// The percentile: as printed, else from the bins; none where neither is there.
    fn percentile(&self, percent: f64) -> Option<f64> {
        if let Some(value) = self.percentiles.get(&key(percent)) {
            return Some(*value);
        }
        let all: u64 = self.bins.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        // A percentile that fewer than ten requests lie above is none, as in every result.
        if all == 0 || all as f64 * (1.0 - percent / 100.0) < 10.0 {
            return None;
        }
        let rank = libm::ceil(all as f64 * percent / 100.0) as u64;
        let mut below = 0u64;
        self.bins.iter().find_map(|(value, count)| {
            below = below.saturating_add(*count);
            (below >= rank).then_some(*value as f64)
        })
    }

    /// Whether something is known of how they are distributed.
    pub(super) fn is_distributed(&self) -> bool {
        !self.percentiles.is_empty() || !self.bins.is_empty()
    }

    /// As a document has it: what is not known is null.
    pub(super) fn summary(&self) -> Value {
        let known = self.count > 0;
        let of = |value: Option<f64>| value.filter(|_| known).map_or(Value::Null, rounded);
        let spread = (self.count > 1).then(|| libm::sqrt(self.squares / (self.count - 1) as f64));
        let mut all = Map::new();
        for (name, value) in
            [("mean", Some(self.mean)), ("stddev", spread), ("min", self.min), ("max", self.max)]
        {
            all.insert(name.to_owned(), of(value));
        }
        for (name, percent) in NAMED {
            all.insert(name.to_owned(), of(self.percentile(percent)));
        }
        Value::Object(all)
    }

    /// The bins as a document's histogram: each value is a bucket.
    pub(super) fn histogram(&self) -> Option<Value> {
        let values: Vec<f64> = self.bins.keys().map(|value| *value as f64).collect();
        (!values.is_empty()).then(|| {
            let counts: Vec<u64> = self.bins.values().copied().collect();
            serde_json::json!({ "from": values, "to": values, "requests": counts })
        })
    }
}
