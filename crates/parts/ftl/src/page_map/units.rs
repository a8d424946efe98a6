//! Reclaim units, and the index over closed ones that all victim policies share.
//!
//! Per group: buckets by valid count (each a list, longest unchanged first), the closed units as an array (for random
//! draws), and a list in closing order. Every update is O(1).

/// No reclaim unit.
pub(crate) const NONE: u32 = u32::MAX;
/// Maximum number of buckets per group. Reclaim units with more map units than this share buckets, to within one part
/// in 1,024.
const MAX_BUCKETS: u32 = 1024;

/// Neighbours in a list, or its first and last unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Links {
    pub(crate) prev: u32,
    pub(crate) next: u32,
}
engine::snapshot!(Links { prev, next });

/// Returns the number of units of a list that is sound: it runs from its first to its last unit, and `of` returns links
/// for each, given its index, as a member of the list. `None` otherwise.
pub(crate) fn chain(ends: Links, of: &dyn Fn(u32) -> Option<Links>) -> Option<usize> {
    let (mut at, mut last, mut count) = (ends.prev, NONE, 0);
    while at != NONE {
        // A unit that names another before it, as the first of a cycle would, ends the walk.
        let links = of(at).filter(|links| links.prev == last)?;
        (last, at, count) = (at, links.next, count + 1);
    }
    (ends.next == last).then_some(count)
}

/// Index entry of one reclaim unit.
#[derive(Clone, Debug)]
struct Entry {
    bucket: Links,
    age: Links,
    place: u32,
    /// Bucket of the unit.
    class: u32,
}
engine::snapshot!(Entry { bucket, age, place, class });

/// Returns the number of valid counts that share a bucket.
pub fn buckets_width(units_per_ru: u32) -> u32 {
    (units_per_ru + 1).div_ceil(MAX_BUCKETS)
}

/// Index of one group. Reclaim units are named by their number in the group.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    /// Entries up to the highest number that was ever closed.
    entries: Vec<Entry>,
    /// First and last unit of each bucket.
    buckets: Vec<Links>,
    occupied: Vec<u64>,
    closed: Vec<u32>,
    /// Oldest and youngest unit.
    ends: Links,
    units_per_bucket: u32,
    /// Number of reclaim units of the group.
    count: u32,
}
engine::snapshot!(Index { entries, buckets, occupied, closed, ends, units_per_bucket, count });

impl Index {
    pub(crate) fn new(count: u32, units_per_ru: u32) -> Index {
        let units_per_bucket = buckets_width(units_per_ru);
        let buckets = units_per_ru / units_per_bucket + 1;
        let empty = Links { prev: NONE, next: NONE };
        Index {
            entries: Vec::new(),
            buckets: vec![empty; buckets as usize],
            occupied: vec![0; (buckets as usize).div_ceil(64)],
            closed: Vec::new(),
            ends: empty,
            units_per_bucket,
            count,
        }
    }

    /// Returns whether this index, of a group that has opened `opened` units, can replace a built one.
    pub(crate) fn fits(&self, built: &Index, opened: u32) -> bool {
        self.entries.len() <= self.count as usize
            && self.closed.iter().all(|ru| *ru < opened && (*ru as usize) < self.entries.len())
            && (self.count, self.units_per_bucket) == (built.count, built.units_per_bucket)
            && (self.buckets.len(), self.occupied.len()) == (built.buckets.len(), built.occupied.len())
    }

    /// Returns whether every list of an index that fits holds exactly closed units, each once and in its bucket;
    /// `valid_of` returns the valid units of a closed one.
    pub(crate) fn is_sound(&self, valid_of: &dyn Fn(u32) -> Option<u32>) -> bool {
        let listed = |ru: u32| {
            let entry = self.entries.get(ru as usize)?;
            (self.closed.get(entry.place as usize) == Some(&ru)).then_some(entry)
        };
        let in_place = |(place, ru): (usize, &u32)| {
            valid_of(*ru).is_some() && self.entries[*ru as usize].place as usize == place
        };
        let in_bucket = |class: usize| {
            chain(self.buckets[class], &|ru| {
                let entry = listed(ru).filter(|entry| entry.class as usize == class)?;
                (self.class(valid_of(ru)?) == entry.class).then_some(entry.bucket)
            })
        };
        let is_marked = |class: usize| self.occupied[class / 64] >> (class % 64) & 1 == 1;
        let in_buckets = (0..self.buckets.len())
            .map(|class| in_bucket(class).filter(|count| is_marked(class) == (*count > 0)))
            .sum::<Option<usize>>();
        let beyond = self.buckets.len() % 64;
        let is_clear = beyond == 0 || self.occupied.last().is_none_or(|word| word >> beyond == 0);
        self.closed.iter().enumerate().all(in_place)
            && is_clear
            && in_buckets == Some(self.closed.len())
            && chain(self.ends, &|ru| listed(ru).map(|entry| entry.age)) == Some(self.closed.len())
    }

    /// Returns the number of closed reclaim units.
    pub(crate) fn len(&self) -> usize {
        self.closed.len()
    }

    /// Returns the closed unit at a position of an arbitrary order.
    pub(crate) fn nth(&self, place: usize) -> u32 {
        self.closed[place]
    }

    /// Iterates over closed units, oldest first.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.ends.prev;
        std::iter::from_fn(move || {
            let ru = Some(at).filter(|r| *r != NONE)?;
            at = self.entries[ru as usize].age.next;
            Some(ru)
        })
    }

    /// Iterates over the heads of the occupied buckets, fewest valid units first: within a bucket, the one unchanged
    /// for longest.
    pub(crate) fn by_valid(&self) -> impl Iterator<Item = u32> + '_ {
        self.occupied.iter().enumerate().flat_map(move |(word, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(self.buckets[word * 64 + bit as usize].prev)
            })
        })
    }

    /// Returns the unit with the fewest valid units that has been unchanged for longest.
    pub(crate) fn emptiest(&self) -> Option<u32> {
        let (word, bits) = self.occupied.iter().enumerate().find(|(_, bits)| **bits != 0)?;
        Some(self.buckets[word * 64 + bits.trailing_zeros() as usize].prev)
    }

    #[inline]
    fn class(&self, valid: u32) -> u32 {
        if self.units_per_bucket == 1 { valid } else { valid / self.units_per_bucket }
    }

    pub(crate) fn insert(&mut self, ru: u32, valid: u32) {
        if self.entries.is_empty() {
            // Reserve the final size: a group in use will be used whole, and memory that is not written to costs
            // nothing.
            self.entries.reserve_exact(self.count as usize);
            self.closed.reserve_exact(self.count as usize);
        }
        if ru as usize >= self.entries.len() {
            let empty = Links { prev: NONE, next: NONE };
            let unknown = Entry { bucket: empty, age: empty, place: NONE, class: 0 };
            self.entries.resize(ru as usize + 1, unknown);
        }
        self.entries[ru as usize].place = self.closed.len() as u32;
        self.closed.push(ru);
        let youngest = self.ends.next;
        self.entries[ru as usize].age = Links { prev: youngest, next: NONE };
        match youngest {
            NONE => self.ends.prev = ru,
            y => self.entries[y as usize].age.next = ru,
        }
        self.ends.next = ru;
        self.link(ru, self.class(valid));
    }

    pub(crate) fn remove(&mut self, ru: u32) {
        let Entry { age, place, .. } = self.entries[ru as usize];
        self.closed.swap_remove(place as usize);
        if let Some(moved) = self.closed.get(place as usize) {
            self.entries[*moved as usize].place = place;
        }
        match age.prev {
            NONE => self.ends.prev = age.next,
            p => self.entries[p as usize].age.next = age.next,
        }
        match age.next {
            NONE => self.ends.next = age.prev,
            n => self.entries[n as usize].age.prev = age.prev,
        }
        self.unlink(ru);
    }

    /// Prefetches the entry of a reclaim unit, if it has one.
    #[inline]
    pub(crate) fn prefetch(&self, ru: u32) {
        if let Some(entry) = self.entries.get(ru as usize) {
            engine::prefetch(entry);
        }
    }

    /// Prefetches the entries on both sides of a reclaim unit in its bucket.
    #[inline]
    pub(crate) fn prefetch_beside(&self, ru: u32) {
        if let Some(Entry { bucket: Links { prev, next }, .. }) = self.entries.get(ru as usize) {
            self.prefetch(*prev);
            self.prefetch(*next);
        }
    }

    /// Updates the valid count of a closed unit.
    #[inline]
    pub(crate) fn revalue(&mut self, ru: u32, valid: u32) {
        let class = self.class(valid);
        if class != self.entries[ru as usize].class {
            self.unlink(ru);
            self.link(ru, class);
        }
    }

    /// Returns the number of bytes allocated.
    pub(crate) fn bytes(&self) -> u64 {
        let lists = self.entries.capacity() * size_of::<Entry>() + self.closed.capacity() * size_of::<u32>();
        (lists + size_of_val(&*self.buckets) + size_of_val(&*self.occupied)) as u64
    }

    #[inline]
    fn link(&mut self, ru: u32, class: u32) {
        let last = self.buckets[class as usize].next;
        let entry = &mut self.entries[ru as usize];
        entry.class = class;
        entry.bucket = Links { prev: last, next: NONE };
        match last {
            NONE => {
                self.buckets[class as usize].prev = ru;
                self.occupied[class as usize / 64] |= 1 << (class % 64);
            }
            l => self.entries[l as usize].bucket.next = ru,
        }
        self.buckets[class as usize].next = ru;
    }

    #[inline]
    fn unlink(&mut self, ru: u32) {
        let Entry { bucket: Links { prev, next }, class, .. } = self.entries[ru as usize];
        match prev {
            NONE => self.buckets[class as usize].prev = next,
            p => self.entries[p as usize].bucket.next = next,
        }
        match next {
            NONE => self.buckets[class as usize].next = prev,
            n => self.entries[n as usize].bucket.prev = prev,
        }
        if self.buckets[class as usize].prev == NONE {
            self.occupied[class as usize / 64] &= !(1 << (class % 64));
        }
    }
}

/// State of a reclaim unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuState {
    /// Erased, on a free list.
    Free,
    /// Frontier: takes program units.
    Open,
    /// All program units allocated, some not yet programmed.
    Full,
    /// All programmed; a candidate for reclaiming.
    Closed,
    /// Being reclaimed.
    Collecting,
    /// Out of use.
    Bad,
    /// Completely programmed as SLC; a candidate for folding.
    Cached,
}

impl engine::Snapshot for RuState {
    fn save(&self, out: &mut Vec<u8>) {
        (*self as u8).save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        use RuState::*;
        [Free, Open, Full, Closed, Collecting, Bad, Cached].get(u8::load(input)? as usize).copied()
    }
}

/// Reclaim unit in the FTL: hot data, 16 bytes.
#[derive(Clone, Debug)]
pub struct Ru {
    /// Number of valid map units.
    pub valid: u32,
    /// Reads in flight: the unit must not be erased before they end.
    pub readers: u32,
    /// Program units allocated and not yet programmed.
    pub inflight: u32,
    /// State of the unit.
    pub state: RuState,
    /// True if unwritten table entries of the unit follow the implicit base.
    pub follows_base: bool,
    /// True if the unit was closed before it was full, by a power cut.
    pub short: bool,
    /// Placement of its data; if garbage collection has mixed placements, the first.
    pub placement: u8,
}

engine::snapshot!(Ru { valid, readers, inflight, state, follows_base, short, placement });

/// Reclaim unit that was never opened.
pub(super) const FRESH: Ru = Ru {
    valid: 0,
    readers: 0,
    inflight: 0,
    state: RuState::Free,
    follows_base: false,
    short: false,
    placement: 0,
};
