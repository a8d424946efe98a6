//! Bank conflicts of shared memory.

/// Most words that a warp accesses: 32 lanes of 16 B.
pub(super) const MOST_WORDS: u64 = 128;

/// Bytes of a word.
const WORD: u64 = 4;

/// Counts the cycles of accesses to shared memory; keeps its memory.
pub(super) struct Banks {
    /// Banks, minus one.
    mask: u64,
    /// For each bank: the first word of the access that lies there, and how many different ones do.
    first: Vec<u64>,
    counts: Vec<u32>,
    /// Further words.
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

    /// Cycles of an access: the most different words in one bank. Lanes that touch the same word share it (CUDA C
    /// Programming Guide 4.2, F.4.3).
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
