//! Entries of a table that is touched here and there: leaves of a few entries each, side by side in the order of their
//! first write, so that what was never written takes no memory, not even the rest of a page of it.

use super::chunks::Chunks;
use bytemuck::Pod;
use kernel::Snapshot;

/// Entries a leaf, as a power of two: 256 B of narrow entries, four lines of a cache.
const LEAF_BITS: u32 = 6;
const LEAF: usize = 1 << LEAF_BITS;
/// Leaves that a chunk of the directory names, as a power of two.
const DIRECTORY_BITS: u32 = 12;

/// Entries, all zero at first.
#[derive(Clone, Debug)]
pub(super) struct Leaves<T: Pod + Default> {
    len: u64,
    /// One more than the number of each leaf; zero if there is none.
    directory: Chunks<u32>,
    entries: Vec<T>,
}

impl<T: Pod + Default> Leaves<T> {
    pub(super) fn new(len: u64) -> Leaves<T> {
        let directory = Chunks::new(len.div_ceil(LEAF as u64), DIRECTORY_BITS);
        Leaves { len, directory, entries: Vec::new() }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    fn place(leaf: u32, index: u64) -> usize {
        (leaf as usize - 1) << LEAF_BITS | (index as usize & (LEAF - 1))
    }

    #[inline]
    pub(super) fn get(&self, index: u64) -> T {
        debug_assert!(index < self.len);
        match self.directory.get(index >> LEAF_BITS) {
            0 => T::default(),
            leaf => self.entries[Self::place(leaf, index)],
        }
    }

    #[inline]
    pub(super) fn slot(&mut self, index: u64) -> &mut T {
        debug_assert!(index < self.len);
        let leaf = self.directory.slot(index >> LEAF_BITS);
        if *leaf == 0 {
            let last = self.entries.len() >> LEAF_BITS;
            *leaf = u32::try_from(last + 1).expect("a table that this machine can hold");
            self.entries.resize(self.entries.len() + LEAF, T::default());
        }
        &mut self.entries[Self::place(*leaf, index)]
    }

    /// Has the processor fetch the way to what [`Leaves::get`] will read.
    #[inline]
    pub(super) fn prefetch(&self, index: u64) {
        self.directory.prefetch(index >> LEAF_BITS);
    }

    /// Bytes allocated.
    pub(super) fn bytes(&self) -> u64 {
        self.directory.bytes() + size_of_val(&*self.entries) as u64
    }
}

impl<T: Pod + Default + Snapshot> Snapshot for Leaves<T> {
    fn save(&self, out: &mut Vec<u8>) {
        self.len.save(out);
        for at in 0..self.len.div_ceil(LEAF as u64) {
            let leaf = self.directory.get(at);
            if leaf != 0 {
                at.save(out);
                let first = Self::place(leaf, 0);
                self.entries[first..first + LEAF].iter().for_each(|entry| entry.save(out));
            }
        }
        u64::MAX.save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        let mut new = Leaves::new(u64::load(input)?);
        loop {
            let at = u64::load(input)?;
            if at == u64::MAX {
                return Some(new);
            }
            if at >= new.len.div_ceil(LEAF as u64) {
                return None;
            }
            *new.directory.slot(at) = u32::try_from((new.entries.len() >> LEAF_BITS) + 1).ok()?;
            for _ in 0..LEAF {
                new.entries.push(T::load(input)?);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn is_a_map_that_survives_a_snapshot(writes in prop::collection::vec((0u64..1 << 22, 1u64..1 << 40), 0..60)) {
            let mut leaves = Leaves::<u64>::new(1 << 22);
            let mut naive = BTreeMap::new();
            for (at, word) in writes {
                *leaves.slot(at) = word;
                naive.insert(at, word);
            }
            let mut bytes = Vec::new();
            leaves.save(&mut bytes);
            let back = Leaves::<u64>::load(&mut bytes.as_slice()).expect("well formed");
            for at in naive.keys().copied().chain((0..1 << 22).step_by(4099)) {
                let expected = naive.get(&at).copied().unwrap_or(0);
                prop_assert_eq!((leaves.get(at), back.get(at)), (expected, expected));
            }
            let touched: std::collections::BTreeSet<u64> = naive.keys().map(|at| at / LEAF as u64).collect();
            prop_assert_eq!(leaves.entries.len(), touched.len() * LEAF);
        }
    }
}
