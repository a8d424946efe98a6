//! Entries in large pieces that are allocated when first written, and come zeroed from the operating system.

use bytemuck::Pod;
use engine::Snapshot;
use memmap2::MmapMut;
use std::{fmt, marker::PhantomData};

#[derive(Clone, Debug)]
pub(super) struct Chunks<T: Pod + Default> {
    chunks: Vec<Option<Zeroed<T>>>,
    pub(super) len: u64,
    /// Entries a chunk, as a power of two.
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
    /// Has the processor fetch what [`Chunks::get`] will read.
    #[inline]
    pub(super) fn prefetch(&self, index: u64) {
        if let Some(chunk) = &self.chunks[(index >> self.bits) as usize] {
            engine::prefetch(&chunk.all()[index as usize & ((1 << self.bits) - 1)]);
        }
    }
    /// Entries that are not as they were at first, with their indices, in ascending order.
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
    /// Whether no chunk with an entry of a range has been allocated.
    pub(super) fn is_untouched(&self, range: std::ops::Range<u64>) -> bool {
        let (first, last) = (range.start >> self.bits, range.end.saturating_sub(1) >> self.bits);
        self.chunks[first as usize..=last as usize].iter().all(Option::is_none)
    }
    /// Bytes allocated: the directory, and the chunks that were written to.
    pub(super) fn bytes(&self) -> u64 {
        let entries: usize = self.chunks.iter().flatten().map(|c| c.all().len()).sum();
        (size_of_val(self.chunks.as_slice()) + entries * size_of::<T>()) as u64
    }
}

/// Entries of the chunk at a place of the directory: the last one is cut short.
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

    /// What was saved of chunks of this size; each at most once, in ascending order.
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
                // What was never written stays untouched, and takes no memory.
                if read != T::default() {
                    *item = read;
                }
            }
            *chunk = Some(items);
        }
    }
}

// Memory that comes zeroed from the operating system when it is first touched; on huge pages, where there are such, so
// that a look-up in a cold table misses one cache and not the page tables too.

/// Bytes of a huge page: pieces of memory below this size are left to the allocator.
const HUGE: usize = 2 << 20;

/// A fixed number of items, all zero at first.
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

/// A wish: without huge pages everything works, only slower.
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
