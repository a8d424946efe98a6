//! Memory that comes zeroed from the operating system when it is first touched; on huge pages, where there are such, so
//! that a look-up in a cold table misses one cache and not the page tables too.

use bytemuck::Pod;
use memmap2::MmapMut;
use std::fmt;
use std::marker::PhantomData;

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
