//! Coalescing of a warp's addresses into lines.

use crate::simt::spec::Reach;
use engine::{Mutant, planted_nth};
use proto::memory::LINE;

/// Line accessed by lanes of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Virtual page, in reaches of a translation entry.
    pub page: u64,
    /// First byte of the line inside the page.
    pub offset: u64,
    /// Bytes of the line that lanes touch.
    pub bytes: u8,
    /// True if no earlier line lies in the same page.
    pub opens_page: bool,
}

/// Coalescer of addresses into lines of 128 B; reuses its memory.
#[derive(Default)]
pub(super) struct Coalescer {
    lines: Vec<u64>,
    touched: Vec<u128>,
    pages: Vec<u64>,
    pieces: Vec<Piece>,
}

impl Coalescer {
    /// Returns the lines that accesses of `width` bytes touch, in the order in which lanes first touch them.
    ///
    /// Compute capability 2.x: the whole warp at once, one transaction per line (CUDA C Programming Guide 4.2, F.4.2).
    pub(super) fn merge(&mut self, addresses: &[u64], width: u8, reach: Reach) -> &[Piece] {
        self.lines.clear();
        self.touched.clear();
        // Neighbouring lanes mostly share a line: keep it at hand until a different one comes.
        let whole = (1u128 << width) - 1;
        let (mut current, mut touched) = (u64::MAX, 0);
        for address in addresses {
            let (line, first) = (address / LINE, address % LINE);
            if line != current {
                self.touch(current, touched);
                (current, touched) = (line, 0);
            }
            touched |= whole << first;
            let inside = LINE - first;
            if inside < u64::from(width) {
                self.touch(current, touched);
                (current, touched) = (line + 1, whole >> inside);
            }
        }
        self.touch(current, touched);
        self.pieces_of(reach)
    }

    /// Notes touched bytes of a line, if any.
    #[inline]
    fn touch(&mut self, line: u64, touched: u128) {
        if touched == 0 || planted_nth(Mutant::LostLane, 101) {
            return;
        }
        match self.lines.iter().position(|l| *l == line) {
            Some(at) => self.touched[at] |= touched,
            None => {
                self.lines.push(line);
                self.touched.push(touched);
            }
        }
    }

    fn pieces_of(&mut self, reach: Reach) -> &[Piece] {
        self.pages.clear();
        self.pieces.clear();
        let mut start = u64::MAX;
        let mut page = 0;
        for (line, touched) in self.lines.iter().zip(&self.touched) {
            let address = line * LINE;
            let mut opens_page = false;
            if address.wrapping_sub(start) >= reach.bytes() || start == u64::MAX {
                page = reach.page(address);
                start = page * reach.bytes();
                opens_page = !self.pages.contains(&page);
                if opens_page {
                    self.pages.push(page);
                }
            }
            let bytes = touched.count_ones() as u8;
            self.pieces.push(Piece { page, offset: address - start, bytes, opens_page });
        }
        &self.pieces
    }
}

// Bank conflicts of shared memory.

/// Most words of a warp's access: 32 lanes of 16 B.
pub(super) const MOST_WORDS: u64 = 128;

/// Size of a word, bytes.
const WORD: u64 = 4;

/// Counter of cycles for accesses to shared memory; reuses its memory.
pub(super) struct Banks {
    /// Number of banks, minus one.
    mask: u64,
    /// First word of the access in each bank, and the number of different words there.
    first: Vec<u64>,
    counts: Vec<u32>,
    /// Further words of the access.
    more: Vec<u64>,
}

impl Banks {
    pub(super) fn new(banks: u16) -> Banks {
        let places = usize::from(banks);
        Banks {
            mask: u64::from(banks) - 1,
            first: vec![0; places],
            counts: vec![0; places],
            more: Vec::with_capacity(MOST_WORDS as usize),
        }
    }

    /// Cycles of an access: the largest number of different words in one bank. Lanes that touch the same word share it
    /// (CUDA C Programming Guide 4.2, F.4.3).
    pub(super) fn cycles(&mut self, addresses: &[u64], width: u8) -> u64 {
        self.counts.fill(0);
        self.more.clear();
        let mut most = 1;
        for address in addresses {
            let last = address + u64::from(width.max(1)) - 1;
            for word in address / WORD..=last / WORD {
                most = most.max(self.count(word));
            }
        }
        most.into()
    }

    #[inline]
    fn count(&mut self, word: u64) -> u32 {
        let bank = (word & self.mask) as usize;
        if self.counts[bank] == 0 {
            self.first[bank] = word;
        } else if self.first[bank] == word || self.more.contains(&word) {
            return 0;
        } else {
            self.more.push(word);
        }
        self.counts[bank] += 1;
        self.counts[bank]
    }
}

#[cfg(test)]
mod tests {
    use super::{Coalescer, Piece};
    use crate::simt::spec::Reach;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn merge(addresses: &[u64], width: u8, reach: u64) -> Vec<Piece> {
        Coalescer::default().merge(addresses, width, Reach::new(reach)).to_vec()
    }

    fn strided(base: u64, stride: u64) -> Vec<u64> {
        (0..32).map(|lane| base + lane * stride).collect()
    }

    #[test]
    fn a_warp_in_one_line_is_one_request() {
        let piece = |offset, bytes, opens_page| Piece { page: 1, offset, bytes, opens_page };
        assert_eq!(merge(&strided(4096, 4), 4, 4096), [piece(0, 128, true)]);
        assert_eq!(merge(&[4100; 32], 4, 4096), [piece(0, 4, true)]);
        let reversed: Vec<u64> = strided(4096, 4).into_iter().rev().collect();
        assert_eq!(merge(&reversed, 4, 4096), [piece(0, 128, true)]);
        let misaligned = merge(&strided(4096 + 64, 4), 4, 4096);
        assert_eq!(misaligned, [piece(0, 64, true), piece(128, 64, false)]);
        assert_eq!(merge(&[4096 + 120], 16, 4096), [piece(0, 8, true), piece(128, 8, false)]);
    }

    #[test]
    fn a_stride_of_a_line_is_a_request_a_lane() {
        assert_eq!(merge(&strided(0, 128), 4, 4096).len(), 32);
        assert_eq!(merge(&strided(0, 16), 16, 4096).len(), 4);
        let pages = merge(&strided(0, 3 * 4096), 8, 3 * 4096);
        assert!(
            pages.iter().enumerate().all(|(lane, p)| p.page == lane as u64 && p.opens_page && p.bytes == 8)
        );
    }

    #[test]
    fn lines_stand_in_the_order_of_lanes() {
        let lines = merge(&[5 * 128, 128, 5 * 128 + 8, 4096, 0], 4, 4096);
        let order: Vec<_> = lines.iter().map(|p| (p.page, p.offset / 128, p.opens_page)).collect();
        assert_eq!(order, [(0, 5, true), (0, 1, false), (1, 0, true), (0, 0, false)]);
    }

    proptest! {
        #[test]
        fn every_byte_is_covered_once(
            addresses in prop::collection::vec(0u64..40_000, 0..=32),
            width in 1u8..=16,
            pages in 1u64..5,
        ) {
            let reach = pages * 4096;
            let mut naive: BTreeMap<u64, std::collections::BTreeSet<u64>> = BTreeMap::new();
            for byte in addresses.iter().flat_map(|a| *a..a + u64::from(width)) {
                naive.entry(byte / 128).or_default().insert(byte);
            }
            let merged = merge(&addresses, width, reach);
            let found: BTreeMap<u64, usize> =
                merged.iter().map(|p| ((p.page * reach + p.offset) / 128, p.bytes.into())).collect();
            prop_assert_eq!(found.len(), merged.len());
            prop_assert!(found.into_iter().eq(naive.into_iter().map(|(line, bytes)| (line, bytes.len()))));
            let opened = merged.iter().filter(|p| p.opens_page).map(|p| p.page);
            let distinct: std::collections::BTreeSet<u64> = merged.iter().map(|p| p.page).collect();
            prop_assert_eq!(opened.count(), distinct.len());
            prop_assert!(merged.iter().all(|p| p.offset < reach));
        }
    }
}

#[cfg(test)]
mod banks_tests {
    use super::Banks;
    use std::collections::{BTreeMap, BTreeSet};

    fn strided(stride: u64) -> Vec<u64> {
        (0..32).map(|lane| lane * stride).collect()
    }

    #[test]
    fn the_fullest_bank_gives_the_cycles() {
        let mut banks = Banks::new(32);
        // Strides of 1, 2, 3 and 32 words over 32 banks, from the programming guide's figure.
        for (stride, cycles) in [(4, 1), (8, 2), (12, 1), (128, 32), (0, 1)] {
            assert_eq!(banks.cycles(&strided(stride), 4), cycles, "stride {stride}");
        }
        // 16 B a lane, side by side: 128 words, four in each bank.
        assert_eq!(banks.cycles(&strided(16), 16), 4);
        assert_eq!(banks.cycles(&[], 4), 1);
        assert_eq!(Banks::new(1).cycles(&strided(16), 16), 128);
    }

    #[test]
    fn random_accesses_cost_what_a_count_of_words_says() {
        let mut rng = engine::Rng::stream(7, "banks");
        let mut banks = Banks::new(32);
        for _ in 0..500 {
            let width = [1, 2, 4, 8, 16][rng.below(5) as usize];
            let lanes = rng.below(33);
            let addresses: Vec<u64> =
                (0..lanes).map(|_| rng.below(2048 / u64::from(width)) * u64::from(width)).collect();
            let mut words: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
            for byte in addresses.iter().flat_map(|a| *a..a + u64::from(width)) {
                words.entry(byte / 4 % 32).or_default().insert(byte / 4);
            }
            let naive = words.values().map(BTreeSet::len).max().unwrap_or(1);
            assert_eq!(banks.cycles(&addresses, width), naive as u64);
        }
    }
}
