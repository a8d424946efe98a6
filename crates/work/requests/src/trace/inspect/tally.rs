//! Running counts of an inspection: sizes, rate per second, streams, distinct pages.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Number of distinct sizes counted individually; any more are rounded up to 1/64 of their power of two.
const SIZES: usize = 65_536;

/// Frequency of each request size.
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
    /// Returns the median size; the lower of the two middle ones if their number is even.
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
    /// Returns the `n` most frequent sizes with their shares; the smaller first among equals.
    pub(crate) fn top(&self, n: usize) -> Vec<(u64, f64)> {
        let mut all: Vec<(u64, u64)> = self.counts.iter().map(|(size, count)| (*size, *count)).collect();
        all.sort_by_key(|(size, count)| (std::cmp::Reverse(*count), *size));
        all.truncate(n);
        all.into_iter().map(|(size, count)| (size, count as f64 / self.requests as f64)).collect()
    }
    /// Returns true if every size was counted exactly.
    pub(crate) fn is_exact(&self) -> bool {
        !self.rounded
    }
}

fn coarse(bytes: u64) -> u64 {
    let step = 1 << (63 - (bytes | 64).leading_zeros() - 6);
    bytes.div_ceil(step) * step
}

/// Number of seconds with open counts; a request later than that gets a separate second.
const OPEN_SECONDS: usize = 4_096;

/// Busiest second of a trace.
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
    /// Returns the number of requests in the busiest second.
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

// Count of the distinct 4 KiB pages that a trace touches, in bounded memory.

/// Page size of the footprint in bytes.
pub(crate) const PAGE: u64 = 4096;

/// Number of pages per bitmap.
const BITMAP_PAGES: u64 = 64;

/// Maximum number of bitmaps (7/8 of 2^23 slots of 17 B): at most 140 MiB of memory, exact up to 1.75 TiB of dense
/// footprint.
const BITMAPS_MAX: usize = 7 << 20;

/// Set of pages per flow: one bitmap per touched 256 KiB.
///
/// Beyond [`BITMAPS_MAX`] bitmaps it keeps only those whose hash has its lowest bit clear, then its two lowest, and so on
/// (adaptive sampling, Flajolet 1990): the count becomes an estimate, with an error of about 1/sqrt(LIMIT) = 0.04 %.
pub(crate) struct Footprint {
    chunks: FxHashMap<u64, u64>,
    limit: usize,
    sampled_bits: u32,
}

impl Footprint {
    pub(crate) fn new() -> Footprint {
        Footprint::with_limit(BITMAPS_MAX)
    }
    fn with_limit(limit: usize) -> Footprint {
        Footprint { chunks: FxHashMap::default(), limit, sampled_bits: 0 }
    }

    /// Adds the pages of `bytes` at `offset`.
    pub(crate) fn add(&mut self, flow: u16, offset: u64, bytes: u64) {
        let last_page = (offset + (bytes - 1)) / PAGE;
        let mut page = offset / PAGE;
        while page <= last_page {
            let chunk = page / BITMAP_PAGES;
            let end = last_page.min(chunk * BITMAP_PAGES + BITMAP_PAGES - 1);
            let (low, high) = (page % BITMAP_PAGES, end % BITMAP_PAGES);
            let bits = (u64::MAX >> (63 - (high - low))) << low;
            self.mark(u64::from(flow) << 46 | chunk, bits);
            page = end + 1;
        }
    }

    fn mark(&mut self, key: u64, bits: u64) {
        if !is_kept(key, self.sampled_bits) {
            return;
        }
        *self.chunks.entry(key).or_insert(0) |= bits;
        while self.chunks.len() > self.limit {
            self.sampled_bits += 1;
            let sampled_bits = self.sampled_bits;
            self.chunks.retain(|key, _| is_kept(*key, sampled_bits));
        }
    }

    /// Returns the bytes of the pages touched.
    pub(crate) fn bytes(&self) -> u64 {
        // Addition does not depend on the order of a hash map.
        let pages: u64 = self.chunks.values().map(|bits| u64::from(bits.count_ones())).sum();
        (pages << self.sampled_bits).saturating_mul(PAGE)
    }
    /// Returns true if the count is exact.
    pub(crate) fn is_exact(&self) -> bool {
        self.sampled_bits == 0
    }
}

fn is_kept(key: u64, sampled_bits: u32) -> bool {
    sampled_bits == 0 || mix(key) << (64 - sampled_bits) == 0
}

/// Applies the finaliser of SplitMix64 (Steele et al. 2014).
pub(crate) fn mix(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

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

    proptest! {
        #[test]
        fn counts_the_pages_of_a_plain_set(
            requests in prop::collection::vec((0_u16..3, 0_u64..4_000_000, 1_u64..2_000_000), 0..40),
        ) {
            let mut footprint = Footprint::new();
            let mut plain = BTreeSet::new();
            for (flow, offset, bytes) in requests {
                footprint.add(flow, offset, bytes);
                plain.extend((offset / 4096..(offset + bytes).div_ceil(4096)).map(|page| (flow, page)));
            }
            prop_assert_eq!(footprint.bytes(), plain.len() as u64 * 4096);
            prop_assert!(footprint.is_exact());
        }
    }

    #[test]
    fn the_last_page_of_all_is_counted() {
        let mut footprint = Footprint::new();
        footprint.add(u16::MAX, u64::MAX - 4096, 4096);
        assert_eq!(footprint.bytes(), 8192);
    }

    #[test]
    fn beyond_the_limit_it_estimates_within_a_few_deviations() {
        let mut footprint = Footprint::with_limit(4096);
        let pages = 200_000_u64;
        (0..pages).for_each(|n| footprint.add(0, n * 1_000_003 / 512 * 512 * 8, 512));
        let distinct: BTreeSet<u64> = (0..pages).map(|n| n * 1_000_003 / 512 * 512 * 8 / 4096).collect();
        let share = footprint.bytes() as f64 / (distinct.len() as f64 * 4096.0);
        assert!(!footprint.is_exact());
        assert!(footprint.chunks.len() <= 4096);
        // Standard error about 1/sqrt(2048) = 2.2 %.
        assert!((0.9..1.1).contains(&share), "{share}");
    }
}
