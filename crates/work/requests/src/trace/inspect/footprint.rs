//! How many distinct 4 KiB pages a trace touches, in bounded memory.

use rustc_hash::FxHashMap;

/// The page of the footprint.
pub(crate) const PAGE: u64 = 4096;
/// Pages per bitmap.
const PAGES: u64 = 64;
/// Bitmaps kept (7/8 of 2^23 slots of 17 B): 140 MiB of memory at most, exact up to 1.75 TiB of dense footprint.
const LIMIT: usize = 7 << 20;

/// A set of pages per flow: one bitmap per touched 256 KiB.
///
/// Beyond [`LIMIT`] bitmaps it keeps only those whose hash has its lowest bit clear, then its two lowest, and so on
/// (adaptive sampling, Flajolet 1990): the count becomes an estimate, with an error of about 1/sqrt(LIMIT) = 0.04 %.
pub(crate) struct Footprint {
    chunks: FxHashMap<u64, u64>,
    limit: usize,
    sampled_bits: u32,
}

impl Footprint {
    pub(crate) fn new() -> Footprint {
        Footprint::with_limit(LIMIT)
    }
    fn with_limit(limit: usize) -> Footprint {
        Footprint { chunks: FxHashMap::default(), limit, sampled_bits: 0 }
    }

    /// Adds the pages of `bytes` at `offset`.
    pub(crate) fn add(&mut self, flow: u16, offset: u64, bytes: u64) {
        let last_page = (offset + (bytes - 1)) / PAGE;
        let mut page = offset / PAGE;
        while page <= last_page {
            let chunk = page / PAGES;
            let end = last_page.min(chunk * PAGES + PAGES - 1);
            let (low, high) = (page % PAGES, end % PAGES);
            let bits = (u64::MAX >> (63 - (high - low))) << low;
            self.mark(u64::from(flow) << 46 | chunk, bits);
            page = end + 1;
        }
    }

    fn mark(&mut self, key: u64, bits: u64) {
        if !kept(key, self.sampled_bits) {
            return;
        }
        *self.chunks.entry(key).or_insert(0) |= bits;
        while self.chunks.len() > self.limit {
            self.sampled_bits += 1;
            let sampled_bits = self.sampled_bits;
            self.chunks.retain(|key, _| kept(*key, sampled_bits));
        }
    }

    /// Bytes of the pages touched.
    pub(crate) fn bytes(&self) -> u64 {
        // Addition does not care for the order of a hash map.
        let pages: u64 = self.chunks.values().map(|bits| u64::from(bits.count_ones())).sum();
        (pages << self.sampled_bits).saturating_mul(PAGE)
    }
    /// Whether the count is exact.
    pub(crate) fn is_exact(&self) -> bool {
        self.sampled_bits == 0
    }
}

fn kept(key: u64, sampled_bits: u32) -> bool {
    sampled_bits == 0 || mix(key) << (64 - sampled_bits) == 0
}

/// The finaliser of SplitMix64 (Steele et al. 2014).
pub(crate) fn mix(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

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
