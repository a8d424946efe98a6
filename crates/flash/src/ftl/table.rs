//! Sparse tables: a slot of memory is touched only when an entry is written.
//!
//! Entries are `None` ("inherit": ask the implicit base), or `Some(word)`. Chunks are allocated when first written
//! and come zeroed from the operating system, so that untouched pages of a chunk cost nothing: a 64 TiB drive costs
//! what is written to it.
//!
//! Tables that fit in memory whole have large chunks, which huge pages can back. The larger ones are touched in few
//! places, a few blocks of each plane: theirs are small, so that what is touched is bounded by what is allocated
//! whatever the page size.

use super::zeroed::Zeroed;
use bytemuck::Pod;
use kernel::Snapshot;
use std::ops::Range;

/// Entries a chunk: one huge page of narrow entries, two of wide ones.
const CHUNK_BITS: u32 = 19;
/// Tables of this many entries and more are sparse: map units of 4 TiB in 4 KiB units.
const SPARSE: u64 = 1 << 30;
/// Tables of up to this many entries lie on huge pages: the map of 128 GiB in 4 KiB units. Larger ones are touched here
/// and there, and would take a huge page for each place.
const DENSE: u64 = 1 << 25;
/// Entries a chunk of a sparse table: 32 KiB.
const SPARSE_CHUNK_BITS: u32 = 12;
/// Words a chunk of a sparse set of flags: 4 KiB, the flags of 128 MiB in 4 KiB units.
const SPARSE_FLAGS_BITS: u32 = 9;

/// A table of words below some bound, packed into 32 or 64 bits.
#[derive(Clone, Debug)]
pub struct Table {
    store: Store,
}

#[derive(Clone, Debug)]
enum Store {
    Narrow(Chunks<u32>),
    Wide(Chunks<u64>),
}

#[derive(Clone, Debug)]
struct Chunks<T: Pod + Default> {
    chunks: Vec<Option<Zeroed<T>>>,
    len: u64,
    /// Entries a chunk, as a power of two.
    bits: u32,
}

impl<T: Pod + Default> Chunks<T> {
    fn new(len: u64, bits: u32) -> Chunks<T> {
        let count = usize::try_from(len.div_ceil(1 << bits)).expect("a table that this machine can address");
        Chunks { chunks: std::iter::repeat_with(|| None).take(count).collect(), len, bits }
    }
    #[inline]
    fn get(&self, index: u64) -> T {
        debug_assert!(index < self.len);
        match &self.chunks[(index >> self.bits) as usize] {
            Some(chunk) => chunk.all()[index as usize & ((1 << self.bits) - 1)],
            None => T::default(),
        }
    }
    #[inline]
    fn slot(&mut self, index: u64) -> &mut T {
        debug_assert!(index < self.len);
        let at = (index >> self.bits) as usize;
        if self.chunks[at].is_none() {
            self.allocate(at);
        }
        let chunk = self.chunks[at].as_mut().expect("it has just been allocated");
        &mut chunk.all_mut()[index as usize & ((1 << self.bits) - 1)]
    }
    #[cold]
    #[inline(never)]
    fn allocate(&mut self, at: usize) {
        self.chunks[at] = Some(Zeroed::new(entries(self.len, self.bits, at), self.len <= DENSE));
    }
    /// Has the processor fetch what [`Chunks::get`] will read.
    #[inline]
    fn prefetch(&self, index: u64) {
        if let Some(chunk) = &self.chunks[(index >> self.bits) as usize] {
            kernel::prefetch(&chunk.all()[index as usize & ((1 << self.bits) - 1)]);
        }
    }
    /// Bytes allocated: the directory, and the chunks that were written to.
    fn bytes(&self) -> u64 {
        let entries: usize = self.chunks.iter().flatten().map(|c| c.all().len()).sum();
        (size_of_val(self.chunks.as_slice()) + entries * size_of::<T>()) as u64
    }
}

/// Entries of the chunk at a place of the directory: the last one is cut short.
fn entries(len: u64, bits: u32, at: usize) -> usize {
    (len - ((at as u64) << bits)).min(1 << bits) as usize
}

impl Table {
    /// `len` inherited entries; words will be below `bound`.
    pub fn new(len: u64, bound: u64) -> Table {
        let narrow = bound < u64::from(u32::MAX);
        let bits = if len < SPARSE { CHUNK_BITS } else { SPARSE_CHUNK_BITS };
        let store =
            if narrow { Store::Narrow(Chunks::new(len, bits)) } else { Store::Wide(Chunks::new(len, bits)) };
        Table { store }
    }
    /// The word at `index`, or `None` if it was never written.
    #[inline]
    pub fn get(&self, index: u64) -> Option<u64> {
        let word = match &self.store {
            Store::Narrow(c) => u64::from(c.get(index)),
            Store::Wide(c) => c.get(index),
        };
        word.checked_sub(1)
    }
    /// Has the processor fetch the word at `index`, which will be read soon.
    #[inline]
    pub fn prefetch(&self, index: u64) {
        match &self.store {
            Store::Narrow(c) => c.prefetch(index),
            Store::Wide(c) => c.prefetch(index),
        }
    }
    /// Writes a word.
    #[inline]
    pub fn set(&mut self, index: u64, word: u64) {
        match &mut self.store {
            Store::Narrow(c) => *c.slot(index) = word as u32 + 1,
            Store::Wide(c) => *c.slot(index) = word + 1,
        }
    }
    /// Entries.
    pub fn len(&self) -> u64 {
        match &self.store {
            Store::Narrow(c) => c.len,
            Store::Wide(c) => c.len,
        }
    }
    /// Bytes allocated.
    pub fn bytes(&self) -> u64 {
        match &self.store {
            Store::Narrow(c) => c.bytes(),
            Store::Wide(c) => c.bytes(),
        }
    }
    /// Whether the table has no entries at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

macro_rules! chunks_snapshot {
    ($t:ty) => {
        impl Snapshot for Chunks<$t> {
            fn save(&self, out: &mut Vec<u8>) {
                (self.len, self.bits).save(out);
                for (at, chunk) in self.chunks.iter().enumerate() {
                    if let Some(chunk) = chunk {
                        (at as u64).save(out);
                        chunk.all().iter().for_each(|x| x.save(out));
                    }
                }
                u64::MAX.save(out);
            }
            fn load(input: &mut &[u8]) -> Option<Self> {
                let (len, bits) = <(u64, u32)>::load(input)?;
                if !(1..32).contains(&bits) {
                    return None;
                }
                let mut new = Chunks::new(len, bits);
                loop {
                    let at = u64::load(input)?;
                    if at == u64::MAX {
                        return Some(new);
                    }
                    let chunk = new.chunks.get_mut(usize::try_from(at).ok()?)?;
                    let count = entries(len, bits, at as usize);
                    let mut items = Zeroed::new(count, len <= DENSE);
                    for item in items.all_mut() {
                        *item = <$t>::load(input)?;
                    }
                    *chunk = Some(items);
                }
            }
        }
    };
}
chunks_snapshot!(u32);
chunks_snapshot!(u64);

impl Snapshot for Table {
    fn save(&self, out: &mut Vec<u8>) {
        match &self.store {
            Store::Narrow(c) => {
                0u8.save(out);
                c.save(out);
            }
            Store::Wide(c) => {
                1u8.save(out);
                c.save(out);
            }
        }
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        let store = match u8::load(input)? {
            0 => Store::Narrow(Chunks::load(input)?),
            1 => Store::Wide(Chunks::load(input)?),
            _ => return None,
        };
        Some(Table { store })
    }
}

/// A sparse set of flags, all clear at first.
#[derive(Clone, Debug)]
pub struct Bits {
    words: Chunks<u64>,
}

kernel::snapshot!(Bits { words });

impl Bits {
    /// `len` clear flags.
    pub fn new(len: u64) -> Bits {
        let bits = if len < SPARSE { CHUNK_BITS } else { SPARSE_FLAGS_BITS };
        Bits { words: Chunks::new(len.div_ceil(64), bits) }
    }
    /// Reads a flag.
    #[inline]
    pub fn get(&self, index: u64) -> bool {
        self.words.get(index >> 6) >> (index & 63) & 1 == 1
    }
    /// Turns a flag over.
    #[inline]
    pub fn flip(&mut self, index: u64) {
        *self.words.slot(index >> 6) ^= 1 << (index & 63);
    }
    /// Turns the flags of a range over.
    #[inline]
    pub fn flip_range(&mut self, range: Range<u64>) {
        range.for_each(|index| self.flip(index));
    }
    /// The flags of a range that are set once `mask` has been added to each word, in order.
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
            // The word is the one before `at`, which lies at its end.
            Some(((at - 1) & !63) + u64::from(bit))
        })
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
    /// Bytes allocated.
    pub fn bytes(&self) -> u64 {
        self.words.bytes()
    }
    /// Has the processor fetch the word of a flag that will be read soon.
    #[inline]
    pub fn prefetch(&self, index: u64) {
        self.words.prefetch(index >> 6);
    }
    /// The 64 flags from `64 * word`.
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
