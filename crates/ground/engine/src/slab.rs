//! Records with reused `u32` names, and prefetch hints.

/// Table of records. A freed place is reused first, so that the hot records stay in the cache.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
    /// Flags of free places, to detect double frees.
    #[cfg(debug_assertions)]
    is_free: Vec<bool>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            items: Vec::new(),
            free: Vec::new(),
            #[cfg(debug_assertions)]
            is_free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Stores a record and returns its name.
    ///
    /// # Panics
    /// If 2^32 - 1 records are live.
    #[inline]
    pub fn insert(&mut self, item: T) -> u32 {
        if let Some(name) = self.free.pop() {
            self.items[name as usize] = item;
            #[cfg(debug_assertions)]
            (self.is_free[name as usize] = false);
            name
        } else {
            let name = u32::try_from(self.items.len()).ok().filter(|n| *n != u32::MAX).expect("slab is full");
            self.items.push(item);
            #[cfg(debug_assertions)]
            self.is_free.push(false);
            name
        }
    }

    /// Prefetches the place of the next record: with thousands of live records it has long left the caches.
    #[inline]
    pub fn fetch_next(&self) {
        if let Some(next) = self.free.last() {
            prefetch(&self.items[*next as usize]);
        }
    }

    /// Frees a name. The record stays readable until its place is reused.
    #[inline]
    pub fn remove(&mut self, name: u32) {
        #[cfg(debug_assertions)]
        assert!(!std::mem::replace(&mut self.is_free[name as usize], true), "freed twice: {name}");
        self.free.push(name);
    }

    /// Returns the number of live records.
    pub fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }

    /// Returns whether no record is live.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the live records with their names, in the order of names. Sorts the free names: for reports, not
    /// for every event.
    pub fn live(&self) -> impl Iterator<Item = (u32, &T)> {
        let mut free = self.free.clone();
        free.sort_unstable();
        let named = self.items.iter().enumerate().map(|(name, item)| (name as u32, item));
        named.filter(move |(name, _)| free.binary_search(name).is_err())
    }

    /// Returns the number of places ever used: every name is below it.
    pub fn places(&self) -> usize {
        self.items.len()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, name: u32) -> &T {
        &self.items[name as usize]
    }
}
impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, name: u32) -> &mut T {
        &mut self.items[name as usize]
    }
}

// Prefetch hints.

/// Prefetches a value into the processor's caches. Does nothing else, and nothing on an architecture without a known
/// instruction.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction belongs to SSE, which every x86_64 processor has. It neither reads nor writes memory
        // as the program sees it, and faults at no address; this one comes from a reference, so it is valid besides.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_reused_and_never_shared() {
        let mut slab = Slab::default();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        slab.remove(a);
        let c = slab.insert('c');
        assert_eq!(c, a);
        assert_eq!((slab[b], slab[c], slab.len()), ('b', 'c', 2));
        slab.remove(b);
        let d = slab.insert('d');
        slab.insert('e');
        slab.remove(c);
        assert_eq!(slab.live().collect::<Vec<_>>(), [(d, &'d'), (2, &'e')]);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "freed twice: 0")]
    fn a_name_is_given_back_once() {
        let mut slab = Slab::default();
        let a = slab.insert('a');
        slab.remove(a);
        let a = slab.insert('b');
        slab.remove(a);
        slab.remove(a);
    }

    /// Small enough for `cargo miri test -p nandscape-engine slab`.
    #[test]
    fn values_of_any_size_stay_as_they_are() {
        let (byte, words) = (7u8, vec![1u64, 2, 3]);
        prefetch(&byte);
        prefetch(&words[2]);
        prefetch(&words);
        prefetch(&());
        assert_eq!((byte, words), (7, vec![1, 2, 3]));
    }
}
