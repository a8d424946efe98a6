//! Sparse tables: memory is used only where an entry is written.
//!
//! Entries are `None` ("inherit": ask the implicit base), or `Some(word)`. Chunks are allocated when first written and
//! come zeroed from the operating system, so that untouched pages of a chunk cost nothing: a 64 TiB drive costs only
//! what is written to it.
//!
//! Tables that fit in memory whole use large chunks, on huge pages. Larger ones are accessed here and there, at random
//! and in a few blocks of each plane: they use leaves of a few entries, so that the memory in use is proportional to
//! the content.

mod store;

use engine::Snapshot;
use std::ops::Range;
use store::{Chunks, Leaves};

/// Entries per chunk, as a power of two: one huge page.
const CHUNK_BITS: u32 = 19;
/// Maximum number of entries of a table in chunks: the map of 128 GiB in 4 KiB units.
const DENSE: u64 = 1 << 25;
/// Minimum number of flags of a sparse set: map units of 4 TiB in 4 KiB units.
const SPARSE: u64 = 1 << 30;
/// Entries per leaf of a sparse table, as a power of two: four cache lines of narrow entries.
const LEAF_BITS: u32 = 6;
/// Words per leaf of a sparse set of flags, as a power of two: one cache line, the flags of 2 MiB in 4 KiB units.
const SPARSE_FLAGS_BITS: u32 = 3;

/// Table of words below a bound, packed into 32 or 64 bits.
#[derive(Clone, Debug)]
pub struct Table {
    store: Store,
}

#[derive(Clone, Debug)]
enum Store {
    Dense(Chunks<u32>),
    Narrow(Leaves<u32, LEAF_BITS>),
    Wide(Leaves<u64, LEAF_BITS>),
}

impl Table {
    /// Creates `len` inherited entries; words will be below `bound`.
    pub fn new(len: u64, bound: u64) -> Table {
        let narrow = bound < u64::from(u32::MAX);
        let store = match narrow {
            true if len <= DENSE => Store::Dense(Chunks::new(len, CHUNK_BITS)),
            true => Store::Narrow(Leaves::new(len)),
            false => Store::Wide(Leaves::new(len)),
        };
        Table { store }
    }
    /// Returns the word at `index`, or `None` if it was never written.
    #[inline]
    pub fn get(&self, index: u64) -> Option<u64> {
        let word = match &self.store {
            Store::Dense(c) => u64::from(c.get(index)),
            Store::Narrow(c) => u64::from(c.get(index)),
            Store::Wide(c) => c.get(index),
        };
        word.checked_sub(1)
    }
    /// Prefetches the word at `index`.
    #[inline]
    pub fn prefetch(&self, index: u64) {
        match &self.store {
            Store::Dense(c) => c.prefetch(index),
            Store::Narrow(c) => c.prefetch(index),
            Store::Wide(c) => c.prefetch(index),
        }
    }
    /// Writes a word.
    #[inline]
    pub fn set(&mut self, index: u64, word: u64) {
        match &mut self.store {
            Store::Dense(c) => *c.slot(index) = word as u32 + 1,
            Store::Narrow(c) => *c.slot(index) = word as u32 + 1,
            Store::Wide(c) => *c.slot(index) = word + 1,
        }
    }
    /// Iterates over the indices of the written entries, in ascending order; the cost is proportional to the number
    /// written.
    pub fn written(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match &self.store {
            Store::Dense(c) => Box::new(c.written().map(|(at, _)| at)),
            Store::Narrow(c) => Box::new(c.written()),
            Store::Wide(c) => Box::new(c.written()),
        }
    }
    /// Iterates over the written entries, by index in ascending order; the cost is proportional to the number written.
    pub fn written_words(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.written().filter_map(|at| Some((at, self.get(at)?)))
    }
    /// Returns whether this table has the same length and layout as a different one.
    pub fn is_like(&self, other: &Table) -> bool {
        std::mem::discriminant(&self.store) == std::mem::discriminant(&other.store)
            && self.len() == other.len()
    }
    /// Returns true if no entry of a range was ever written; such a range has no memory allocated.
    pub fn is_untouched(&self, range: Range<u64>) -> bool {
        match &self.store {
            Store::Dense(c) => c.is_untouched(range),
            Store::Narrow(c) => c.is_untouched(range),
            Store::Wide(c) => c.is_untouched(range),
        }
    }
    /// Returns the number of entries.
    pub fn len(&self) -> u64 {
        match &self.store {
            Store::Dense(c) => c.len,
            Store::Narrow(c) => c.len(),
            Store::Wide(c) => c.len(),
        }
    }
    /// Returns the number of bytes allocated.
    pub fn bytes(&self) -> u64 {
        match &self.store {
            Store::Dense(c) => c.bytes(),
            Store::Narrow(c) => c.bytes(),
            Store::Wide(c) => c.bytes(),
        }
    }
    /// Returns whether the table has no entries at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the number of entries, or of words of flags, of the table at the start of `input`.
pub fn length_ahead(input: &[u8]) -> Option<u64> {
    u64::load(&mut input.get(1..)?)
}

impl Snapshot for Table {
    fn save(&self, out: &mut Vec<u8>) {
        match &self.store {
            Store::Dense(c) => {
                0u8.save(out);
                c.save(out);
            }
            Store::Narrow(c) => {
                1u8.save(out);
                c.save(out);
            }
            Store::Wide(c) => {
                2u8.save(out);
                c.save(out);
            }
        }
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        let store = match u8::load(input)? {
            0 => Store::Dense(Chunks::load_of(input, CHUNK_BITS)?),
            1 => Store::Narrow(Leaves::load(input)?),
            2 => Store::Wide(Leaves::load(input)?),
            _ => return None,
        };
        Some(Table { store })
    }
}

/// Sparse set of flags, all clear at first.
#[derive(Clone, Debug)]
pub struct Bits {
    words: Words,
}

/// Words of 64 flags each.
#[derive(Clone, Debug)]
enum Words {
    Dense(Chunks<u64>),
    Sparse(Leaves<u64, SPARSE_FLAGS_BITS>),
}

impl Words {
    fn len(&self) -> u64 {
        match self {
            Words::Dense(c) => c.len,
            Words::Sparse(c) => c.len(),
        }
    }
    #[inline]
    fn get(&self, word: u64) -> u64 {
        match self {
            Words::Dense(c) => c.get(word),
            Words::Sparse(c) => c.get(word),
        }
    }
    #[inline]
    fn slot(&mut self, word: u64) -> &mut u64 {
        match self {
            Words::Dense(c) => c.slot(word),
            Words::Sparse(c) => c.slot(word),
        }
    }
}

impl Words {
    fn is_untouched(&self, words: Range<u64>) -> bool {
        match self {
            Words::Dense(c) => c.is_untouched(words),
            Words::Sparse(c) => c.is_untouched(words),
        }
    }
}

impl Snapshot for Bits {
    fn save(&self, out: &mut Vec<u8>) {
        match &self.words {
            Words::Dense(c) => {
                0u8.save(out);
                c.save(out);
            }
            Words::Sparse(c) => {
                1u8.save(out);
                c.save(out);
            }
        }
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        let words = match u8::load(input)? {
            0 => Words::Dense(Chunks::load_of(input, CHUNK_BITS)?),
            1 => Words::Sparse(Leaves::load(input)?),
            _ => return None,
        };
        Some(Bits { words })
    }
}

impl Bits {
    /// Creates `len` clear flags.
    pub fn new(len: u64) -> Bits {
        let words = len.div_ceil(64);
        let words = match len < SPARSE {
            true => Words::Dense(Chunks::new(words, CHUNK_BITS)),
            false => Words::Sparse(Leaves::new(words)),
        };
        Bits { words }
    }
    /// Returns whether this set has the same number of words and the same layout as a different one.
    pub fn is_like(&self, other: &Bits) -> bool {
        std::mem::discriminant(&self.words) == std::mem::discriminant(&other.words)
            && self.words.len() == other.words.len()
    }
    /// Iterates over the flags, 64 at a time.
    pub fn words(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.words.len()).map(|word| self.words.get(word))
    }
    /// Returns a flag.
    #[inline]
    pub fn get(&self, index: u64) -> bool {
        self.words.get(index >> 6) >> (index & 63) & 1 == 1
    }
    /// Inverts a flag.
    #[inline]
    pub fn flip(&mut self, index: u64) {
        *self.words.slot(index >> 6) ^= 1 << (index & 63);
    }
    /// Inverts the flags of a range.
    #[inline]
    pub fn flip_range(&mut self, range: Range<u64>) {
        range.for_each(|index| self.flip(index));
    }
    /// Iterates in order over the flags of a range that are set after each word has been XORed with `mask`.
    #[inline]
    pub fn ones(&self, range: Range<u64>, mask: u64) -> impl Iterator<Item = u64> + '_ {
        let mut at = range.start;
        let mut word = 0u64;
        std::iter::from_fn(move || {
            while word == 0 {
                if at >= range.end {
                    return None;
                }
                word = (self.words.get(at >> 6) ^ mask) >> (at & 63) << (at & 63);
                let next = (at | 63) + 1;
                if next > range.end {
                    word &= u64::MAX >> (next - range.end);
                }
                at = next;
            }
            let bit = word.trailing_zeros();
            word &= word - 1;
            // The word is the one before `at`, which is at its end.
            Some(((at - 1) & !63) + u64::from(bit))
        })
    }
    /// Returns true if no flag of a range was ever inverted; such a range has no memory allocated.
    pub fn is_untouched(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.words.is_untouched(range.start >> 6..((range.end - 1) >> 6) + 1)
    }
    /// Clears the flags of a range.
    pub fn clear(&mut self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            if at & 63 == 0 && range.end - at >= 64 {
                if self.words.get(at >> 6) != 0 {
                    *self.words.slot(at >> 6) = 0;
                }
                at += 64;
            } else {
                if self.get(at) {
                    self.flip(at);
                }
                at += 1;
            }
        }
    }
    /// Returns the number of bytes allocated.
    pub fn bytes(&self) -> u64 {
        match &self.words {
            Words::Dense(c) => c.bytes(),
            Words::Sparse(c) => c.bytes(),
        }
    }
    /// Prefetches the word of a flag.
    #[inline]
    pub fn prefetch(&self, index: u64) {
        match &self.words {
            Words::Dense(c) => c.prefetch(index >> 6),
            Words::Sparse(c) => c.prefetch(index >> 6),
        }
    }
    /// Returns the 64 flags from `64 * word`.
    #[inline]
    pub fn word(&self, word: u64) -> u64 {
        self.words.get(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn is_a_map(writes in prop::collection::vec((0u64..1 << 21, 0u64..1 << 40), 0..60)) {
            let mut table = Table::new(1 << 21, 1 << 40);
            let mut naive = BTreeMap::new();
            for (at, word) in writes {
                table.set(at, word);
                naive.insert(at, word);
            }
            for (at, word) in &naive {
                prop_assert_eq!(table.get(*at), Some(*word));
            }
            prop_assert_eq!(table.written().collect::<Vec<u64>>(), naive.keys().copied().collect::<Vec<u64>>());
            let empty = (0..1 << 21).step_by(4099).filter(|i| !naive.contains_key(i));
            for at in empty {
                prop_assert_eq!(table.get(at), None);
            }
        }

        #[test]
        fn clears_exactly_a_range(len in 1u64..500, a in 0u64..500, b in 0u64..500) {
            let (a, b) = (a.min(b) % len, a.max(b) % len);
            let mut bits = Bits::new(len);
            (0..len).for_each(|i| bits.flip(i));
            bits.clear(a..b);
            for i in 0..len {
                prop_assert_eq!(bits.get(i), !(a..b).contains(&i));
            }
        }
    }

    proptest! {
        #[test]
        fn lists_exactly_the_ones(flips in prop::collection::vec(0u64..400, 0..80), a in 0u64..400, b in 0u64..400, flip: bool) {
            let mut bits = Bits::new(400);
            let mut naive = [flip; 400];
            for at in flips {
                bits.flip(at);
                naive[at as usize] ^= true;
            }
            let range = a.min(b)..a.max(b);
            let expected: Vec<u64> = range.clone().filter(|i| naive[*i as usize]).collect();
            let mask = if flip { !0 } else { 0 };
            prop_assert_eq!(bits.ones(range.clone(), mask).collect::<Vec<_>>(), expected);
            bits.flip_range(range.clone());
            let left: Vec<u64> = range.clone().filter(|i| !naive[*i as usize]).collect();
            prop_assert_eq!(bits.ones(range, mask).collect::<Vec<_>>(), left);
        }
    }

    /// The sparse set equals the dense one, with different memory.
    #[test]
    fn flags_of_a_large_device_are_flags() {
        let (mut large, mut small) = (Bits::new(SPARSE), Bits::new(1 << 20));
        for n in 0..5_000u64 {
            let at = n * n * 31 % (1 << 20);
            large.flip(at);
            small.flip(at);
        }
        large.flip_range(700..1_900);
        small.flip_range(700..1_900);
        large.clear(1_000..20_000);
        small.clear(1_000..20_000);
        let mut bytes = Vec::new();
        large.save(&mut bytes);
        let back = Bits::load(&mut bytes.as_slice()).expect("well formed");
        for mask in [0, !0] {
            let of = |bits: &Bits| bits.ones(0..1 << 16, mask).collect::<Vec<_>>();
            assert_eq!((of(&large), of(&back)), (of(&small), of(&small)));
        }
        assert!((0..1 << 20).all(|at| large.get(at) == small.get(at) && back.get(at) == small.get(at)));
    }

    #[test]
    fn survives_a_snapshot() {
        let mut table = Table::new(1 << 20, 100);
        table.set(777_777, 42);
        let mut bytes = Vec::new();
        table.save(&mut bytes);
        let back = Table::load(&mut bytes.as_slice()).expect("well formed");
        assert_eq!((back.get(777_777), back.get(3), back.len()), (Some(42), None, 1 << 20));
    }
}
