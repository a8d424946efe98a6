//! Demand-cached mapping table (DFTL: Gupta, Kim and Urgaonkar, ASPLOS 2009), without time.
//!
//! The whole map is on flash in translation pages, each as large as a map unit; the controller's memory caches part of
//! it. This state machine tracks which part is cached, what must be read, and what must be written back. Translation
//! pages are logical units after the host's, so that the same map, allocation and garbage collection serve them.

use engine::Snapshot;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// End of a list.
const NONE: u32 = u32::MAX;

/// Content of one cache place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Granularity {
    /// One map entry, as in DFTL and MQSim.
    Entry,
    /// A whole translation page.
    Page,
}

/// Place of the cache.
#[derive(Clone, Copy, Debug)]
struct Place {
    key: u64,
    dirty: bool,
    /// True for a page that has not been read: only its changed entries are cached.
    partial: bool,
    prev: u32,
    next: u32,
}
engine::snapshot!(Place { key, dirty, partial, prev, next });

/// Translation page that must be written back, because a dirty part of it was evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteBack {
    /// Translation page.
    pub page: u64,
    /// True if the rest of the page must be read first.
    pub needs_read: bool,
}

/// Counters, in look-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapCacheCounters {
    /// Hits.
    pub hits: u64,
    /// Misses.
    pub misses: u64,
    /// Misses of entries already being fetched.
    pub joined: u64,
    /// Translation pages written back.
    pub write_backs: u64,
}

engine::snapshot!(MapCacheCounters { hits, misses, joined, write_backs });

/// Map cache with LRU eviction: the part of the map in the controller's memory.
#[derive(Clone, Debug)]
pub struct MapCache {
    granularity_is_page: bool,
    entries_per_page: u64,
    capacity: u32,
    places: Vec<Place>,
    free: Vec<u32>,
    index: FxHashMap<u64, u32>,
    /// Most and least recently used place.
    ends: (u32, u32),
    /// Dirty entries in the order of their pages.
    dirty: BTreeSet<u64>,
    /// Counters.
    pub counters: MapCacheCounters,
}

impl MapCache {
    /// Creates an empty cache of `capacity` places over pages of `entries_per_page` entries.
    ///
    /// # Panics
    /// If either is zero.
    pub fn new(granularity: Granularity, entries_per_page: u64, capacity: u32) -> MapCache {
        assert!(capacity > 0 && entries_per_page > 0, "a map cache needs a place and an entry per page");
        MapCache {
            granularity_is_page: granularity == Granularity::Page,
            entries_per_page,
            capacity,
            places: Vec::new(),
            free: Vec::new(),
            index: FxHashMap::default(),
            ends: (NONE, NONE),
            dirty: BTreeSet::new(),
            counters: MapCacheCounters::default(),
        }
    }

    /// Returns the translation page with a logical unit's entry.
    #[inline]
    pub fn page_of(&self, lpn: u64) -> u64 {
        lpn / self.entries_per_page
    }

    #[inline]
    fn key(&self, lpn: u64) -> u64 {
        if self.granularity_is_page { self.page_of(lpn) } else { lpn }
    }

    /// Returns whether a logical unit's entry is cached, without changing anything.
    pub fn has(&self, lpn: u64) -> bool {
        self.index.get(&self.key(lpn)).is_some_and(|place| !self.places[*place as usize].partial)
    }

    /// Returns whether a logical unit's entry is cached; if so it becomes the most recently used.
    pub fn look_up(&mut self, lpn: u64) -> bool {
        let key = self.key(lpn);
        let here = self.index.get(&key).copied().filter(|place| !self.places[*place as usize].partial);
        let Some(place) = here else {
            self.counters.misses += 1;
            return false;
        };
        self.unlink(place);
        self.link_first(place);
        self.counters.hits += 1;
        true
    }

    /// Loads a logical unit's entry that has been read from flash. The evicted place may need a write-back.
    pub fn load(&mut self, lpn: u64) -> Option<WriteBack> {
        self.enter(lpn, false)
    }

    /// Registers a changed entry of a logical unit.
    pub fn change(&mut self, lpn: u64) -> Option<WriteBack> {
        self.enter(lpn, true)
    }

    /// Registers a changed entry of a logical unit only if it is cached; returns whether it is.
    pub fn change_if_here(&mut self, lpn: u64) -> bool {
        let key = self.key(lpn);
        let Some(place) = self.index.get(&key).copied() else { return false };
        if !std::mem::replace(&mut self.places[place as usize].dirty, true) {
            self.dirty.insert(key);
        }
        true
    }

    fn enter(&mut self, lpn: u64, dirty: bool) -> Option<WriteBack> {
        let key = self.key(lpn);
        if let Some(place) = self.index.get(&key).copied() {
            let known = &mut self.places[place as usize];
            known.partial &= dirty;
            if dirty && !std::mem::replace(&mut known.dirty, true) {
                self.dirty.insert(key);
            }
            self.unlink(place);
            self.link_first(place);
            return None;
        }
        let written = if self.index.len() as u32 >= self.capacity { self.evict() } else { None };
        let partial = dirty && self.granularity_is_page;
        let fresh = Place { key, dirty, partial, prev: NONE, next: NONE };
        let place = if let Some(place) = self.free.pop() {
            self.places[place as usize] = fresh;
            place
        } else {
            self.places.push(fresh);
            if self.places.len() == self.capacity as usize {
                // Reserve the final size: a half-empty table cleans up in place, and never grows again.
                self.index.reserve(self.capacity as usize);
            }
            (self.places.len() - 1) as u32
        };
        self.index.insert(key, place);
        if dirty {
            self.dirty.insert(key);
        }
        self.link_first(place);
        written
    }

    /// Evicts the least recently used place. If it is dirty, every dirty entry of its page is written with it.
    fn evict(&mut self) -> Option<WriteBack> {
        let last = self.ends.1;
        let Place { key, dirty, partial, .. } = self.places[last as usize];
        self.unlink(last);
        self.index.remove(&key);
        self.free.push(last);
        if !dirty {
            return None;
        }
        self.counters.write_backs += 1;
        if self.granularity_is_page {
            self.dirty.remove(&key);
            return Some(WriteBack { page: key, needs_read: partial });
        }
        let page = self.page_of(key);
        let first = page * self.entries_per_page;
        let together: Vec<u64> = self.dirty.range(first..first + self.entries_per_page).copied().collect();
        for entry in &together {
            self.dirty.remove(entry);
            if let Some(place) = self.index.get(entry) {
                self.places[*place as usize].dirty = false;
            }
        }
        Some(WriteBack { page, needs_read: (together.len() as u64) < self.entries_per_page })
    }

    /// Returns whether a logical unit's entry is cached and newer than on flash.
    pub fn is_dirty(&self, lpn: u64) -> bool {
        self.dirty.contains(&self.key(lpn))
    }

    /// Returns whether a logical unit's entry, or a part of its page, is cached.
    pub fn holds(&self, lpn: u64) -> bool {
        self.index.contains_key(&self.key(lpn))
    }

    /// Returns the entries per translation page.
    pub fn entries_per_page(&self) -> u64 {
        self.entries_per_page
    }

    /// Returns whether the cache's places hold whole pages.
    pub fn holds_pages(&self) -> bool {
        self.granularity_is_page
    }

    /// Appends the state, without sizes.
    pub fn save(&self, out: &mut Vec<u8>) {
        let MapCache {
            granularity_is_page: _,
            entries_per_page: _,
            capacity: _,
            places,
            free,
            index: _,
            ends,
            dirty,
            counters,
        } = self;
        places.save(out);
        free.save(out);
        ends.save(out);
        dirty.save(out);
        counters.save(out);
    }

    /// Restores the state that a cache of the same sizes saved; `None` if it is truncated or malformed.
    pub fn restore(&mut self, input: &mut &[u8]) -> Option<()> {
        self.places = Vec::load(input)?;
        self.free = Vec::load(input)?;
        self.ends = Snapshot::load(input)?;
        self.dirty = BTreeSet::load(input)?;
        self.counters = MapCacheCounters::load(input)?;
        let mut vacant = vec![false; self.places.len()];
        for place in &self.free {
            *vacant.get_mut(*place as usize)? = true;
        }
        let held = (0u32..).zip(&self.places).filter(|(place, _)| !vacant[*place as usize]);
        self.index = held.map(|(place, held)| (held.key, place)).collect();
        let sound = |at: u32| at == NONE || (at as usize) < self.places.len();
        let linked = self.places.iter().all(|p| sound(p.prev) && sound(p.next));
        let fits = self.places.len() <= self.capacity as usize
            && self.index.len() + self.free.len() == self.places.len();
        (linked && fits && sound(self.ends.0) && sound(self.ends.1)).then_some(())
    }

    fn unlink(&mut self, place: u32) {
        let Place { prev, next, .. } = self.places[place as usize];
        match prev {
            NONE => self.ends.0 = next,
            p => self.places[p as usize].next = next,
        }
        match next {
            NONE => self.ends.1 = prev,
            n => self.places[n as usize].prev = prev,
        }
    }

    fn link_first(&mut self, place: u32) {
        let first = std::mem::replace(&mut self.ends.0, place);
        self.places[place as usize].prev = NONE;
        self.places[place as usize].next = first;
        match first {
            NONE => self.ends.1 = place,
            f => self.places[f as usize].prev = place,
        }
    }

    /// Returns the number of cached entries or pages.
    pub fn len(&self) -> usize {
        self.index.len()
    }
    /// Returns whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Naive reference: a list in order of use.
    #[derive(Default)]
    struct Naive {
        /// Entries: key, dirty, partial.
        list: Vec<(u64, bool, bool)>,
    }

    impl Naive {
        fn enter(
            &mut self,
            key: u64,
            dirty: bool,
            capacity: usize,
            per_page: u64,
            by_page: bool,
        ) -> Option<WriteBack> {
            if let Some(at) = self.list.iter().position(|(k, ..)| *k == key) {
                let (_, was, lacks) = self.list.remove(at);
                self.list.push((key, was || dirty, lacks && dirty));
                return None;
            }
            let mut written = None;
            if self.list.len() == capacity {
                let (old, was_dirty, lacks) = self.list.remove(0);
                if was_dirty && by_page {
                    written = Some(WriteBack { page: old, needs_read: lacks });
                } else if was_dirty {
                    let page = old / per_page;
                    let mut together = 1;
                    for (k, d, _) in &mut self.list {
                        if *d && *k / per_page == page {
                            *d = false;
                            together += 1;
                        }
                    }
                    written = Some(WriteBack { page, needs_read: together < per_page });
                }
            }
            self.list.push((key, dirty, dirty && by_page));
            written
        }
    }

    proptest! {
        #[test]
        fn is_a_list_in_order_of_use(by_page: bool, capacity in 1usize..12, steps in prop::collection::vec((0u8..3, 0u64..64), 1..300)) {
            let per_page = 4;
            let granularity = if by_page { Granularity::Page } else { Granularity::Entry };
            let mut cache = MapCache::new(granularity, per_page, capacity as u32);
            let mut naive = Naive::default();
            for (what, lpn) in steps {
                let key = if by_page { lpn / per_page } else { lpn };
                match what {
                    0 => {
                        let at = naive.list.iter().position(|(k, _, lacks)| *k == key && !lacks);
                        prop_assert_eq!(cache.look_up(lpn), at.is_some());
                        if let Some(at) = at {
                            let entry = naive.list.remove(at);
                            naive.list.push(entry);
                        }
                    }
                    1 => prop_assert_eq!(cache.load(lpn), naive.enter(key, false, capacity, per_page, by_page)),
                    _ => prop_assert_eq!(cache.change(lpn), naive.enter(key, true, capacity, per_page, by_page)),
                }
                prop_assert_eq!(cache.len(), naive.list.len());
                // Save, load and go on with the copy.
                let mut bytes = Vec::new();
                cache.save(&mut bytes);
                cache = MapCache::new(granularity, per_page, capacity as u32);
                prop_assert_eq!(cache.restore(&mut bytes.as_slice()), Some(()));
            }
        }
    }
}
