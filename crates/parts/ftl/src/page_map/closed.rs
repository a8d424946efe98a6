//! The closed reclaim units of a group: by placement, by erase count, and as a victim policy sees them.
//!
//! Pools by placement are for victim policies that weigh placements. They are kept only where garbage collection keeps
//! placements apart and the policy asks for it ([`Victim::weighs_pools`](super::gc::Victim::weighs_pools)); elsewhere they cost
//! one branch.

use super::units::{Index, Links, NONE, Ru, chain};
use std::collections::VecDeque;

/// The pools of a group, one a placement.
#[derive(Clone, Debug)]
pub(crate) struct Pools {
    pools: Vec<Pool>,
    /// Reclaim units of the group.
    count: u32,
}

/// The closed reclaim units with the data of one placement.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) index: Index,
    /// Valid map units in them.
    pub(crate) valid: u64,
    /// Reclaim units that the host has opened for the placement lately.
    pub(crate) opened: u32,
}

engine::snapshot!(Pool { index, valid, opened });
engine::snapshot!(Pools { pools, count });

impl Pools {
    /// Nothing is closed. For groups of `count` reclaim units.
    pub(crate) fn new(placements: u8, count: u32, units_per_ru: u32) -> Pools {
        let pool = Pool { index: Index::new(count, units_per_ru), valid: 0, opened: 0 };
        Pools { pools: vec![pool; usize::from(placements)], count }
    }

    /// Whether these pools can stand in the place of those that were built.
    pub(crate) fn fits(&self, built: &Pools) -> bool {
        let fits = |(pool, built): (&Pool, &Pool)| {
            pool.index.fits(&built.index, self.count) && pool.opened <= 2 * self.count
        };
        (self.count, self.pools.len()) == (built.count, built.pools.len())
            && self.pools.iter().zip(&built.pools).all(fits)
    }

    /// Whether each pool holds the closed units of its placement alone; `closed` gives valid units and placement of a closed one.
    pub(crate) fn are_sound(&self, closed: &dyn Fn(u32) -> Option<(u32, u8)>) -> bool {
        (0u8..=u8::MAX).zip(&self.pools).all(|(placement, pool)| {
            let of = |ru: u32| closed(ru).filter(|(_, own)| *own == placement).map(|(valid, _)| valid);
            let sum = || pool.index.by_age().map(|ru| u64::from(of(ru).unwrap_or(0))).sum::<u64>();
            pool.index.is_sound(&of) && pool.valid == sum()
        })
    }

    /// The same without any reclaim unit.
    pub(crate) fn emptied(&self, units_per_ru: u32) -> Pools {
        Pools::new(self.pools.len() as u8, self.count, units_per_ru)
    }

    /// The pools in the order of their placements.
    pub(crate) fn all(&self) -> &[Pool] {
        &self.pools
    }

    /// The host has opened a reclaim unit for a placement. Older ones count for less: once the host has opened twice as
    /// many as the group has, all counts are halved.
    pub(crate) fn opened(&mut self, placement: u8) {
        self.pools[usize::from(placement)].opened += 1;
        if self.pools.iter().map(|pool| pool.opened).sum::<u32>() >= 2 * self.count {
            self.pools.iter_mut().for_each(|pool| pool.opened /= 2);
        }
    }

    /// A reclaim unit has been closed.
    pub(crate) fn insert(&mut self, placement: u8, ru: u32, valid: u32) {
        let pool = &mut self.pools[usize::from(placement)];
        pool.index.insert(ru, valid);
        pool.valid += u64::from(valid);
    }

    /// A closed one is being collected.
    pub(crate) fn remove(&mut self, placement: u8, ru: u32, valid: u32) {
        let pool = &mut self.pools[usize::from(placement)];
        pool.index.remove(ru);
        pool.valid -= u64::from(valid);
    }

    /// A closed one has lost a valid unit, and has `valid` left.
    #[inline]
    pub(crate) fn invalidated(&mut self, placement: u8, ru: u32, valid: u32) {
        let pool = &mut self.pools[usize::from(placement)];
        pool.index.revalue(ru, valid);
        pool.valid -= 1;
    }

    /// Bytes allocated.
    pub(crate) fn bytes(&self) -> u64 {
        self.pools.iter().map(|pool| size_of::<Pool>() as u64 + pool.index.bytes()).sum()
    }
}

/// What a victim policy may look at: the closed reclaim units of one group. Units are named by number in the group.
pub struct VictimView<'a> {
    pub(crate) index: &'a Index,
    pub(crate) rus: &'a [Ru],
    pub(crate) closed_at: &'a [u64],
    pub(crate) erases: &'a dyn Fn(u32) -> u32,
    pub(crate) pools: Option<&'a Pools>,
    /// Map units written to flash so far: the clock that ages are measured on.
    pub now: u64,
    /// Map units a reclaim unit.
    pub units_per_ru: u32,
    /// Map units a program unit.
    pub units_per_program: u32,
}

/// What a victim policy may look at of a placement: its closed reclaim units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolView {
    /// The one with the fewest valid map units.
    pub emptiest: u32,
    /// Map units that moving its data takes, in whole program units.
    pub moved: u32,
    /// Valid map units in all of them.
    pub valid: u64,
    /// Reclaim units that the host has opened for the placement lately: within the last one to two times that it has
    /// written as much as the group holds.
    pub opened: u32,
}

impl VictimView<'_> {
    /// The placements that have closed units, in order. None unless garbage collection keeps placements apart and the policy
    /// weighs them.
    pub fn pools(&self) -> impl Iterator<Item = PoolView> + '_ {
        self.pools.iter().flat_map(|pools| pools.all()).filter_map(|pool| {
            let emptiest = pool.index.emptiest()?;
            let moved = self.valid(emptiest).next_multiple_of(self.units_per_program);
            Some(PoolView { emptiest, moved, valid: pool.valid, opened: pool.opened })
        })
    }
    /// Closed reclaim units.
    pub fn len(&self) -> usize {
        self.index.len()
    }
    /// Whether nothing is closed.
    pub fn is_empty(&self) -> bool {
        self.index.len() == 0
    }
    /// The closed unit at a place of an arbitrary order, for random draws.
    pub fn nth(&self, place: usize) -> u32 {
        self.index.nth(place)
    }
    /// Valid map units.
    pub fn valid(&self, ru: u32) -> u32 {
        self.rus[ru as usize].valid
    }
    /// Map units written to flash since the unit was closed.
    pub fn age(&self, ru: u32) -> u64 {
        self.now - self.closed_at[ru as usize]
    }
    /// Erase count of the most worn block of the unit.
    pub fn erases(&self, ru: u32) -> u32 {
        (self.erases)(ru)
    }
    /// Closed units, oldest first.
    pub fn by_age(&self) -> impl Iterator<Item = u32> + '_ {
        self.index.by_age()
    }
    /// The head of each occupied bucket, fewest valid units first: within a bucket, the one unchanged for longest.
    pub fn by_valid(&self) -> impl Iterator<Item = u32> + '_ {
        self.index.by_valid()
    }
}

// The closed reclaim units of a group by erase count, for static wear levelling.

/// How a translation layer levels wear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WearRule {
    /// The least erased free unit is opened next (dynamic wear levelling); without, the one freed first.
    pub least_worn: bool,
    /// Erases that a closed unit may lie behind a free one of its group; `None`: any number.
    pub gap: Option<u32>,
}

/// What is known about one reclaim unit.
#[derive(Clone, Debug)]
struct Entry {
    erases: u32,
    list: Links,
}

engine::snapshot!(Entry { erases, list });

const EMPTY: Links = Links { prev: NONE, next: NONE };

/// The closed reclaim units of a group by erase count: a list for each count, longest closed first. Every update is O(1);
/// a look for the least worn passes each empty list once.
#[derive(Clone, Debug)]
pub(crate) struct ByWear {
    /// Up to the highest number that was ever closed or erased; the others have never been erased.
    entries: Vec<Entry>,
    /// First and last of each list, from the erase count `first` on.
    lists: VecDeque<Links>,
    first: u32,
    /// Reclaim units of the group.
    count: u32,
}

engine::snapshot!(ByWear { entries, lists, first, count });

impl ByWear {
    pub(crate) fn new(count: u32) -> ByWear {
        ByWear { entries: Vec::new(), lists: VecDeque::new(), first: 0, count }
    }

    /// Erase count of a reclaim unit.
    pub(crate) fn erases(&self, ru: u32) -> u32 {
        self.entries.get(ru as usize).map_or(0, |entry| entry.erases)
    }

    fn entry(&mut self, ru: u32) -> &mut Entry {
        if self.entries.is_empty() {
            self.entries.reserve_exact(self.count as usize);
        }
        if ru as usize >= self.entries.len() {
            self.entries.resize(ru as usize + 1, Entry { erases: 0, list: EMPTY });
        }
        &mut self.entries[ru as usize]
    }

    /// A unit that is not closed has been erased.
    pub(crate) fn erased(&mut self, ru: u32, erases: u32) {
        self.entry(ru).erases = erases;
    }

    /// A unit has been closed.
    pub(crate) fn insert(&mut self, ru: u32) {
        let erases = self.entry(ru).erases;
        if self.lists.is_empty() {
            self.first = erases;
        }
        while erases < self.first {
            self.lists.push_front(EMPTY);
            self.first -= 1;
        }
        while self.lists.len() as u32 <= erases - self.first {
            self.lists.push_back(EMPTY);
        }
        let ends = &mut self.lists[(erases - self.first) as usize];
        let last = std::mem::replace(&mut ends.next, ru);
        if last == NONE {
            ends.prev = ru;
        } else {
            self.entries[last as usize].list.next = ru;
        }
        self.entries[ru as usize].list = Links { prev: last, next: NONE };
    }

    /// A unit is closed no longer.
    pub(crate) fn remove(&mut self, ru: u32) {
        let Entry { erases, list: Links { prev, next } } = self.entries[ru as usize];
        let ends = &mut self.lists[(erases - self.first) as usize];
        match prev {
            NONE => ends.prev = next,
            p => self.entries[p as usize].list.next = next,
        }
        match next {
            NONE => ends.next = prev,
            n => self.entries[n as usize].list.prev = prev,
        }
    }

    /// The closed unit that was erased least often, of these the one closed first.
    pub(crate) fn least(&mut self) -> Option<u32> {
        while let Some(ends) = self.lists.front() {
            if ends.prev != NONE {
                return Some(ends.prev);
            }
            self.lists.pop_front();
            self.first += 1;
        }
        None
    }

    /// Whether this can stand in the place of one that was built.
    pub(crate) fn fits(&self, built: &ByWear) -> bool {
        self.count == built.count && self.entries.len() <= self.count as usize
    }

    /// Whether the lists hold `count` units, each one that is closed and in the list of its erases; `erases_of` each as the array has them.
    pub(crate) fn is_sound(
        &self,
        count: usize,
        is_closed: &dyn Fn(u32) -> bool,
        erases_of: &dyn Fn(u32) -> u32,
    ) -> bool {
        let known = (0u32..).zip(&self.entries).all(|(ru, entry)| entry.erases == erases_of(ru));
        let listed = (u64::from(self.first)..).zip(&self.lists).map(|(erases, ends)| {
            chain(*ends, &|ru| {
                let entry = self.entries.get(ru as usize).filter(|_| is_closed(ru))?;
                (u64::from(entry.erases) == erases).then_some(entry.list)
            })
        });
        known && listed.sum::<Option<usize>>() == Some(count)
    }

    /// Bytes allocated.
    pub(crate) fn bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<Entry>() + self.lists.capacity() * size_of::<Links>()) as u64
    }
}
