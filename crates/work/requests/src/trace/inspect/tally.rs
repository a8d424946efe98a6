//! Running counts of an inspection: sizes, rate per second, streams.

use std::collections::BTreeMap;

/// Distinct sizes counted one by one; any more are rounded up to 1/64 of their power of two.
const SIZES: usize = 65_536;

/// How often each request size occurs.
#[derive(Default)]
pub(crate) struct Sizes {
    counts: BTreeMap<u64, u64>,
    requests: u64,
    bytes: u128,
    rounded: bool,
}

impl Sizes {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes += u128::from(bytes);
        let known = self.counts.len() < SIZES || self.counts.contains_key(&bytes);
        self.rounded |= !known;
        let key = if known { bytes } else { coarse(bytes) };
        *self.counts.entry(key).or_insert(0) += 1;
    }
    pub(crate) fn min(&self) -> u64 {
        self.counts.keys().next().copied().unwrap_or(0)
    }
    pub(crate) fn max(&self) -> u64 {
        self.counts.keys().next_back().copied().unwrap_or(0)
    }
    pub(crate) fn mean(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.bytes as f64 / self.requests as f64 }
    }
    /// The lower of the two middle sizes if their number is even.
    pub(crate) fn median(&self) -> u64 {
        let middle = self.requests.div_ceil(2);
        let mut below = 0;
        for (size, count) in &self.counts {
            below += count;
            if below >= middle {
                return *size;
            }
        }
        0
    }
    /// The `n` most frequent sizes with their shares; the smaller first among equals.
    pub(crate) fn top(&self, n: usize) -> Vec<(u64, f64)> {
        let mut all: Vec<(u64, u64)> = self.counts.iter().map(|(size, count)| (*size, *count)).collect();
        all.sort_by_key(|(size, count)| (std::cmp::Reverse(*count), *size));
        all.truncate(n);
        all.into_iter().map(|(size, count)| (size, count as f64 / self.requests as f64)).collect()
    }
    /// Whether every size was counted as it is.
    pub(crate) fn is_exact(&self) -> bool {
        !self.rounded
    }
}

fn coarse(bytes: u64) -> u64 {
    let step = 1 << (63 - (bytes | 64).leading_zeros() - 6);
    bytes.div_ceil(step) * step
}

/// Seconds whose counts are open at once; a request later than that counts in a second of its own.
const OPEN_SECONDS: usize = 4_096;

/// The busiest second of a trace.
#[derive(Default)]
pub(crate) struct PeakRate {
    open: BTreeMap<u128, u64>,
    last: Option<u128>,
    peak: u64,
}

impl PeakRate {
    /// Adds a request at `ps` on the trace's own clock.
    pub(crate) fn add(&mut self, ps: u128) {
        let second = ps / 1_000_000_000_000;
        let count = self.open.entry(second).or_insert(0);
        *count += 1;
        self.peak = self.peak.max(*count);
        if self.last != Some(second) && self.open.len() > OPEN_SECONDS {
            self.open.pop_first();
        }
        self.last = Some(second);
    }
    /// Requests in the busiest second.
    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }
}

/// Requests, bytes and the last end of one stream.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stream {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) end: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_statistics_of_a_sorted_list() {
        let mut sizes = Sizes::default();
        [512, 4096, 4096, 8192].into_iter().for_each(|s| sizes.add(s));
        assert_eq!((sizes.min(), sizes.median(), sizes.max()), (512, 4096, 8192));
        assert_eq!(sizes.mean(), 4224.0);
        assert_eq!(sizes.top(2), [(4096, 0.5), (512, 0.25)]);
    }

    #[test]
    fn ever_new_sizes_do_not_take_ever_more_memory() {
        let mut sizes = Sizes::default();
        (1..=200_000_u64).for_each(|n| sizes.add(n * 7));
        assert!(sizes.counts.len() < SIZES + 64 * 64);
        assert!(!sizes.is_exact());
        let median = sizes.median() as f64;
        assert!((median / 700_000.0 - 1.0).abs() < 0.02, "{median}");
    }

    #[test]
    fn the_peak_is_the_most_requests_of_one_second() {
        let second = 1_000_000_000_000_u128;
        let mut rate = PeakRate::default();
        for ps in [0, 5, second - 1, second, 9 * second, second + 1] {
            rate.add(ps);
        }
        assert_eq!(rate.peak(), 3);
    }
}
