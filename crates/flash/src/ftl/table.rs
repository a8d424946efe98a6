//! Sparse tables: a slot of memory is touched only when an entry is written.
//!
//! Entries are `None` ("inherit": ask the implicit base), or `Some(word)`. Chunks are allocated when first written
//! and come zeroed from the operating system, so that untouched pages of a chunk cost nothing: a 64 TiB drive costs
//! what is written to it.

use kernel::Snapshot;

/// Entries a chunk: 2 MiB of narrow entries.
const CHUNK_BITS: u32 = 19;
const CHUNK: usize = 1 << CHUNK_BITS;

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
struct Chunks<T> {
    chunks: Vec<Option<Box<[T]>>>,
    len: u64,
}

impl<T: Copy + Default> Chunks<T> {
    fn new(len: u64) -> Chunks<T> {
        let count =
            usize::try_from(len.div_ceil(CHUNK as u64)).expect("a table that this machine can address");
        Chunks { chunks: std::iter::repeat_with(|| None).take(count).collect(), len }
    }
    #[inline]
    fn get(&self, index: u64) -> T {
        debug_assert!(index < self.len);
        match &self.chunks[(index >> CHUNK_BITS) as usize] {
            Some(chunk) => chunk[index as usize & (CHUNK - 1)],
            None => T::default(),
        }
    }
    #[inline]
    fn slot(&mut self, index: u64) -> &mut T {
        debug_assert!(index < self.len);
        let at = (index >> CHUNK_BITS) as usize;
        let left = (self.len - ((at as u64) << CHUNK_BITS)).min(CHUNK as u64) as usize;
        let chunk = self.chunks[at].get_or_insert_with(|| vec![T::default(); left].into_boxed_slice());
        &mut chunk[index as usize & (CHUNK - 1)]
    }
}

impl Table {
    /// `len` inherited entries; words will be below `bound`.
    pub fn new(len: u64, bound: u64) -> Table {
        let narrow = bound < u64::from(u32::MAX);
        Table { store: if narrow { Store::Narrow(Chunks::new(len)) } else { Store::Wide(Chunks::new(len)) } }
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
    /// Whether the table has no entries at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

macro_rules! chunks_snapshot {
    ($t:ty) => {
        impl Snapshot for Chunks<$t> {
            fn save(&self, out: &mut Vec<u8>) {
                self.len.save(out);
                for (at, chunk) in self.chunks.iter().enumerate() {
                    if let Some(chunk) = chunk {
                        (at as u64).save(out);
                        chunk.iter().for_each(|x| x.save(out));
                    }
                }
                u64::MAX.save(out);
            }
            fn load(input: &mut &[u8]) -> Option<Self> {
                let mut new = Chunks::new(u64::load(input)?);
                loop {
                    let at = u64::load(input)?;
                    if at == u64::MAX {
                        return Some(new);
                    }
                    let left = new.len.checked_sub(at << CHUNK_BITS)?.min(CHUNK as u64);
                    let items: Option<Vec<$t>> = (0..left).map(|_| <$t>::load(input)).collect();
                    *new.chunks.get_mut(at as usize)? = Some(items?.into_boxed_slice());
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
        Bits { words: Chunks::new(len.div_ceil(64)) }
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
    /// Clears the flags of a range.
    pub fn clear(&mut self, range: std::ops::Range<u64>) {
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
