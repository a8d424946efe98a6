//! Memory of sparse tables: leaves for tables accessed here and there, chunks for those that fit in memory whole.
//!
//! Leaves have a few entries each, stored in the order of their first write. So an entry that was never written takes
//! no memory, not even the rest of a page.
//!
//! Above the leaves is a radix tree of three levels: a root as large as the table needs, and two levels of nodes that
//! are created, like leaves, with the first write below them. An isolated entry thus costs a leaf and at most two nodes
//! of 256 B, whatever the size of the table; in a full table the tree is a sixty-fourth of the leaves.

use bytemuck::Pod;
use engine::Snapshot;
use memmap2::MmapMut;
use std::{fmt, marker::PhantomData};

/// Branches of a node, as a power of two: 256 B, four cache lines.
const NODE_BITS: u32 = 6;
const NODE: usize = 1 << NODE_BITS;
/// Leaves below an entry of the root, as a power of two.
const ROOT_BITS: u32 = 2 * NODE_BITS;

/// Entries, all zero at first; `2^BITS` per leaf.
#[derive(Clone, Debug)]
pub(super) struct Leaves<T: Pod + Default, const BITS: u32> {
    len: u64,
    /// Number of each upper node plus one; zero if it does not exist.
    root: Vec<u32>,
    /// Nodes of both levels: number of each node or leaf below, plus one; zero if it does not exist.
    nodes: Vec<u32>,
    entries: Vec<T>,
}

/// Returns the number of a node or leaf: its position plus one.
fn number(place: usize) -> u32 {
    u32::try_from(place + 1).expect("a table that this machine can hold")
}

/// Returns the node that a word names, creating it if it does not exist.
#[inline]
fn descend(word: u32, nodes: &mut Vec<u32>) -> u32 {
    if word != 0 {
        return word;
    }
    let made = number(nodes.len() >> NODE_BITS);
    nodes.resize(nodes.len() + NODE, 0);
    made
}

/// Returns the position of a branch among all nodes.
#[inline]
fn branch(node: u32, leaf: u64) -> usize {
    (node as usize - 1) << NODE_BITS | (leaf as usize & (NODE - 1))
}

impl<T: Pod + Default, const BITS: u32> Leaves<T, BITS> {
    const LEAF: usize = 1 << BITS;

    pub(super) fn new(len: u64) -> Leaves<T, BITS> {
        let root =
            usize::try_from(len.div_ceil(1 << (BITS + ROOT_BITS))).expect("a table that can be addressed");
        Leaves { len, root: vec![0; root], nodes: Vec::new(), entries: Vec::new() }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    fn place(leaf: u32, index: u64) -> usize {
        (leaf as usize - 1) << BITS | (index as usize & (Self::LEAF - 1))
    }

    /// Returns the position of a leaf's number among the nodes, if its node exists.
    #[inline]
    fn find(&self, leaf: u64) -> Option<usize> {
        let upper = self.root[(leaf >> ROOT_BITS) as usize];
        if upper == 0 {
            return None;
        }
        match self.nodes[branch(upper, leaf >> NODE_BITS)] {
            0 => None,
            lower => Some(branch(lower, leaf)),
        }
    }

    #[inline]
    pub(super) fn get(&self, index: u64) -> T {
        debug_assert!(index < self.len);
        match self.find(index >> BITS).map_or(0, |at| self.nodes[at]) {
            0 => T::default(),
            leaf => self.entries[Self::place(leaf, index)],
        }
    }

    #[inline]
    pub(super) fn slot(&mut self, index: u64) -> &mut T {
        debug_assert!(index < self.len);
        let leaf = match self.find(index >> BITS).map_or(0, |at| self.nodes[at]) {
            0 => self.make(index >> BITS),
            leaf => leaf,
        };
        &mut self.entries[Self::place(leaf, index)]
    }

    /// Creates a missing leaf, and the nodes above it.
    #[cold]
    fn make(&mut self, leaf: u64) -> u32 {
        let at = (leaf >> ROOT_BITS) as usize;
        let upper = descend(self.root[at], &mut self.nodes);
        self.root[at] = upper;
        let at = branch(upper, leaf >> NODE_BITS);
        let lower = descend(self.nodes[at], &mut self.nodes);
        self.nodes[at] = lower;
        let made = number(self.entries.len() >> BITS);
        self.nodes[branch(lower, leaf)] = made;
        self.entries.resize(self.entries.len() + Self::LEAF, T::default());
        made
    }

    /// Prefetches the path to the entry that [`Leaves::get`] will read.
    #[inline]
    pub(super) fn prefetch(&self, index: u64) {
        if let Some(at) = self.find(index >> BITS) {
            engine::prefetch(&self.nodes[at]);
        }
    }

    /// Iterates over the indices of the entries that differ from their initial value, in ascending order.
    pub(super) fn written(&self) -> impl Iterator<Item = u64> + '_
    where
        T: PartialEq,
    {
        self.all().flat_map(|(at, leaf)| {
            let first = Self::place(leaf, 0);
            let entries = (at << BITS..).zip(&self.entries[first..first + Self::LEAF]);
            entries.filter(|(_, entry)| **entry != T::default()).map(|(index, _)| index)
        })
    }

    /// Returns whether no leaf with an entry of a range exists.
    pub(super) fn is_untouched(&self, range: std::ops::Range<u64>) -> bool {
        let mut leaves = range.start >> BITS..((range.end - 1) >> BITS) + 1;
        leaves.all(|leaf| self.find(leaf).is_none_or(|at| self.nodes[at] == 0))
    }

    /// Returns the number of bytes allocated.
    pub(super) fn bytes(&self) -> u64 {
        let tree = size_of_val(&*self.root) + size_of_val(&*self.nodes);
        (tree + size_of_val(&*self.entries)) as u64
    }

    /// Iterates over the existing leaves in the order of their entries: the leaf, and its number.
    fn all(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let below = |node: u32, above: u64| {
            let words = &self.nodes[branch(node, 0)..][..NODE];
            let named = move |(at, word): (usize, &u32)| (above << NODE_BITS | at as u64, *word);
            words.iter().enumerate().map(named).filter(|(_, word)| *word != 0)
        };
        let upper = self.root.iter().enumerate().filter(|(_, word)| **word != 0);
        upper.flat_map(move |(at, node)| below(*node, at as u64)).flat_map(move |(at, node)| below(node, at))
    }
}

impl<T: Pod + Default + Snapshot, const BITS: u32> Snapshot for Leaves<T, BITS> {
    fn save(&self, out: &mut Vec<u8>) {
        self.len.save(out);
        for (at, leaf) in self.all() {
            at.save(out);
            let first = Self::place(leaf, 0);
            self.entries[first..first + Self::LEAF].iter().for_each(|entry| entry.save(out));
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
            if at >= new.len.div_ceil(Self::LEAF as u64) {
                return None;
            }
            if new.find(at).is_some_and(|known| new.nodes[known] != 0) {
                return None;
            }
            let first = Self::place(new.make(at), 0);
            for entry in &mut new.entries[first..first + Self::LEAF] {
                *entry = T::load(input)?;
            }
        }
    }
}

// Entries in large chunks that are allocated when first written, and come zeroed from the operating system.

#[derive(Clone, Debug)]
pub(super) struct Chunks<T: Pod + Default> {
    chunks: Vec<Option<Zeroed<T>>>,
    pub(super) len: u64,
    /// Entries per chunk, as a power of two.
    bits: u32,
}

impl<T: Pod + Default> Chunks<T> {
    pub(super) fn new(len: u64, bits: u32) -> Chunks<T> {
        let count = usize::try_from(len.div_ceil(1 << bits)).expect("a table that this machine can address");
        Chunks { chunks: std::iter::repeat_with(|| None).take(count).collect(), len, bits }
    }
    #[inline]
    pub(super) fn get(&self, index: u64) -> T {
        debug_assert!(index < self.len);
        match &self.chunks[(index >> self.bits) as usize] {
            Some(chunk) => chunk.all()[index as usize & ((1 << self.bits) - 1)],
            None => T::default(),
        }
    }
    #[inline]
    pub(super) fn slot(&mut self, index: u64) -> &mut T {
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
    pub(super) fn allocate(&mut self, at: usize) {
        self.chunks[at] = Some(Zeroed::new(entries(self.len, self.bits, at)));
    }
    /// Prefetches what [`Chunks::get`] will read.
    #[inline]
    pub(super) fn prefetch(&self, index: u64) {
        if let Some(chunk) = &self.chunks[(index >> self.bits) as usize] {
            engine::prefetch(&chunk.all()[index as usize & ((1 << self.bits) - 1)]);
        }
    }
    /// Iterates over the entries that differ from their initial value, with their indices, in ascending order.
    pub(super) fn written(&self) -> impl Iterator<Item = (u64, T)> + '_
    where
        T: PartialEq,
    {
        let chunks = self.chunks.iter().enumerate().filter_map(|(at, chunk)| Some((at, chunk.as_ref()?)));
        chunks.flat_map(|(at, chunk)| {
            let first = (at as u64) << self.bits;
            (first..).zip(chunk.all().iter().copied()).filter(|(_, entry)| *entry != T::default())
        })
    }
    /// Returns whether no chunk with an entry of a range has been allocated.
    pub(super) fn is_untouched(&self, range: std::ops::Range<u64>) -> bool {
        let (first, last) = (range.start >> self.bits, range.end.saturating_sub(1) >> self.bits);
        self.chunks[first as usize..=last as usize].iter().all(Option::is_none)
    }
    /// Returns the number of bytes allocated: the directory, and the chunks that were written to.
    pub(super) fn bytes(&self) -> u64 {
        let entries: usize = self.chunks.iter().flatten().map(|c| c.all().len()).sum();
        (size_of_val(self.chunks.as_slice()) + entries * size_of::<T>()) as u64
    }
}

/// Returns the number of entries of the chunk at a position of the directory: the last one is shorter.
fn entries(len: u64, bits: u32, at: usize) -> usize {
    (len - ((at as u64) << bits)).min(1 << bits) as usize
}

impl<T: Pod + Default + PartialEq + Snapshot> Chunks<T> {
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        (self.len, self.bits).save(out);
        for (at, chunk) in self.chunks.iter().enumerate() {
            if let Some(chunk) = chunk {
                (at as u64).save(out);
                chunk.all().iter().for_each(|x| x.save(out));
            }
        }
        u64::MAX.save(out);
    }

    /// Loads saved chunks of this size; each at most once, in ascending order.
    pub(super) fn load_of(input: &mut &[u8], bits: u32) -> Option<Chunks<T>> {
        let (len, saved) = <(u64, u32)>::load(input)?;
        if saved != bits {
            return None;
        }
        let mut new = Chunks::new(len, bits);
        let mut next = 0;
        loop {
            let at = u64::load(input)?;
            if at == u64::MAX {
                return Some(new);
            }
            let chunk = new.chunks.get_mut(usize::try_from(at).ok()?).filter(|_| at >= next)?;
            next = at + 1;
            let count = entries(len, bits, at as usize);
            let mut items = Zeroed::new(count);
            for item in items.all_mut() {
                let read = T::load(input)?;
                // Entries that were never written stay untouched, and take no memory.
                if read != T::default() {
                    *item = read;
                }
            }
            *chunk = Some(items);
        }
    }
}

// Memory that comes zeroed from the operating system when it is first touched; on huge pages, if available, so that a
// look-up in a cold table misses one cache and not the page tables too.

/// Bytes of a huge page: smaller memory is left to the allocator.
const HUGE: usize = 2 << 20;

/// Fixed number of items, all zero at first.
pub(super) struct Zeroed<T> {
    memory: Memory<T>,
}

enum Memory<T> {
    Heap(Box<[T]>),
    Mapped(MmapMut, PhantomData<T>),
}

impl<T: Pod + Default> Zeroed<T> {
    pub(super) fn new(len: usize) -> Zeroed<T> {
        let bytes = len * size_of::<T>();
        let mapped = if bytes < HUGE { None } else { MmapMut::map_anon(bytes).ok() };
        let memory = match mapped {
            Some(map) => {
                prefer_huge_pages(&map);
                Memory::Mapped(map, PhantomData)
            }
            None => Memory::Heap(vec![T::default(); len].into_boxed_slice()),
        };
        Zeroed { memory }
    }

    #[inline]
    pub(super) fn all(&self) -> &[T] {
        match &self.memory {
            Memory::Heap(items) => items,
            Memory::Mapped(map, _) => bytemuck::cast_slice(map),
        }
    }

    #[inline]
    pub(super) fn all_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Heap(items) => items,
            Memory::Mapped(map, _) => bytemuck::cast_slice_mut(map),
        }
    }
}

/// Requests huge pages. Without them everything works, only slower.
fn prefer_huge_pages(map: &MmapMut) {
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    #[cfg(not(target_os = "linux"))]
    let _ = map;
}

impl<T: Pod + Default> Clone for Zeroed<T> {
    fn clone(&self) -> Zeroed<T> {
        let mut copy = Zeroed::new(self.all().len());
        copy.all_mut().copy_from_slice(self.all());
        copy
    }
}

impl<T: Pod + Default> fmt::Debug for Zeroed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} items", self.all().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn is_a_map<const BITS: u32>(len: u64, writes: &[(u64, u64)]) {
        let mut leaves = Leaves::<u64, BITS>::new(len);
        let mut naive = BTreeMap::new();
        for (at, word) in writes {
            *leaves.slot(at % len) = *word;
            naive.insert(at % len, *word);
        }
        let mut bytes = Vec::new();
        leaves.save(&mut bytes);
        let back = Leaves::<u64, BITS>::load(&mut bytes.as_slice()).expect("well formed");
        for at in naive.keys().copied().chain((0..len).step_by(4099)) {
            let expected = naive.get(&at).copied().unwrap_or(0);
            assert_eq!((leaves.get(at), back.get(at)), (expected, expected));
        }
        assert_eq!(leaves.written().collect::<Vec<u64>>(), naive.keys().copied().collect::<Vec<u64>>());
        let touched: BTreeSet<u64> = naive.keys().map(|at| at >> BITS).collect();
        assert_eq!(leaves.entries.len(), touched.len() << BITS);
        assert_eq!(
            leaves.all().map(|(at, _)| at).collect::<Vec<_>>(),
            touched.into_iter().collect::<Vec<_>>()
        );
    }

    proptest! {
        #[test]
        fn is_a_map_that_survives_a_snapshot(
            len in (1u64 << 20)..(1 << 22),
            writes in prop::collection::vec((0u64..1 << 22, 1u64..1 << 40), 0..60),
        ) {
            is_a_map::<6>(len, &writes);
            is_a_map::<3>(len, &writes);
        }
    }

    /// The memory of an isolated entry does not grow with the table: its leaf and two nodes.
    #[test]
    fn a_lonely_entry_is_a_leaf_and_two_nodes_in_a_table_of_any_size() {
        for bits in [20, 30, 34] {
            let mut leaves = Leaves::<u64, 6>::new(1 << bits);
            let empty = leaves.bytes();
            let far = (0..16u64).map(|n| n << (bits - 4));
            far.for_each(|at| *leaves.slot(at) = 1);
            let upper = 16.min(1 << (bits - 18));
            assert_eq!(leaves.bytes() - empty, 16 * (64 * 8 + 256) + upper * 256, "{bits}");
        }
    }

    #[test]
    fn small_and_mapped_memory_are_zero_and_keep_what_is_written() {
        for len in [1, 1000, HUGE / 8, HUGE / 8 + 1] {
            let mut items = Zeroed::<u64>::new(len);
            assert!(items.all().len() == len && items.all().iter().all(|item| *item == 0), "{len}");
            items.all_mut()[len - 1] = 7;
            let copy = items.clone();
            items.all_mut()[len - 1] = 8;
            assert_eq!((copy.all()[len - 1], items.all()[len - 1]), (7, 8));
        }
    }
}
