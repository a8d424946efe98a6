//! Closed reclaim units of a group: by placement, by erase count, and as seen by a victim policy.
//!
//! Pools by placement are for victim policies that weigh placements. They are kept only if garbage collection keeps
//! placements apart and the policy requests it ([`Victim::weighs_pools`](super::gc::Victim::weighs_pools)); elsewhere
//! they cost one branch.

use super::units::{Index, Links, NONE, Ru, chain};
use std::collections::VecDeque;

/// Pools of a group, one per placement.
#[derive(Clone, Debug)]
pub(crate) struct Pools {
    pools: Vec<Pool>,
    /// Number of reclaim units of the group.
    count: u32,
}

/// Closed reclaim units with the data of one placement.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) index: Index,
    /// Number of valid map units in them.
    pub(crate) valid: u64,
    /// Number of reclaim units that the host has recently opened for the placement.
    pub(crate) opened: u32,
}

engine::snapshot!(Pool { index, valid, opened });
engine::snapshot!(Pools { pools, count });

impl Pools {
    /// Creates empty pools for groups of `count` reclaim units.
    pub(crate) fn new(placements: u8, count: u32, units_per_ru: u32) -> Pools {
        let pool = Pool { index: Index::new(count, units_per_ru), valid: 0, opened: 0 };
        Pools { pools: vec![pool; usize::from(placements)], count }
    }

    /// Returns whether these pools can replace built ones.
    pub(crate) fn fits(&self, built: &Pools) -> bool {
        let fits = |(pool, built): (&Pool, &Pool)| {
            pool.index.fits(&built.index, self.count) && pool.opened <= 2 * self.count
        };
        (self.count, self.pools.len()) == (built.count, built.pools.len())
            && self.pools.iter().zip(&built.pools).all(fits)
    }

    /// Returns whether each pool holds exactly the closed units of its placement; `closed` returns valid units and
    /// placement of a closed one.
    pub(crate) fn are_sound(&self, closed: &dyn Fn(u32) -> Option<(u32, u8)>) -> bool {
        (0u8..=u8::MAX).zip(&self.pools).all(|(placement, pool)| {
            let of = |ru: u32| closed(ru).filter(|(_, own)| *own == placement).map(|(valid, _)| valid);
            let sum = || pool.index.by_age().map(|ru| u64::from(of(ru).unwrap_or(0))).sum::<u64>();
            pool.index.is_sound(&of) && pool.valid == sum()
        })
    }

    /// Returns pools of the same shape without any reclaim unit.
    pub(crate) fn emptied(&self, units_per_ru: u32) -> Pools {
        Pools::new(self.pools.len() as u8, self.count, units_per_ru)
    }

    /// Returns the pools in the order of their placements.
    pub(crate) fn all(&self) -> &[Pool] {
        &self.pools
    }

    /// Registers a reclaim unit that the host has opened for a placement. Older ones count less: once the host has
    /// opened twice as many as the group has, all counts are halved.
    pub(crate) fn opened(&mut self, placement: u8) {
        self.pools[usize::from(placement)].opened += 1;
        if self.pools.iter().map(|pool| pool.opened).sum::<u32>() >= 2 * self.count {
            self.pools.iter_mut().for_each(|pool| pool.opened /= 2);
        }
    }

    /// Adds a closed reclaim unit.
    pub(crate) fn insert(&mut self, placement: u8, ru: u32, valid: u32) {
        let pool = &mut self.pools[usize::from(placement)];
        pool.index.insert(ru, valid);
        pool.valid += u64::from(valid);
    }

    /// Removes a closed unit that is being collected.
    pub(crate) fn remove(&mut self, placement: u8, ru: u32, valid: u32) {
        let pool = &mut self.pools[usize::from(placement)];
        pool.index.remove(ru);
        pool.valid -= u64::from(valid);
    }

    /// Registers that a closed unit has lost a valid unit, and has `valid` left.
    #[inline]
    pub(crate) fn invalidated(&mut self, placement: u8, ru: u32, valid: u32) {
        let pool = &mut self.pools[usize::from(placement)];
        pool.index.revalue(ru, valid);
        pool.valid -= 1;
    }

    /// Returns the number of bytes allocated.
    pub(crate) fn bytes(&self) -> u64 {
        self.pools.iter().map(|pool| size_of::<Pool>() as u64 + pool.index.bytes()).sum()
    }
}

/// View of a victim policy: the closed reclaim units of one group. Units are named by number in the group.
pub struct VictimView<'a> {
    pub(crate) index: &'a Index,
    pub(crate) rus: &'a [Ru],
    pub(crate) closed_at: &'a [u64],
    pub(crate) erases: &'a dyn Fn(u32) -> u32,
    pub(crate) pools: Option<&'a Pools>,
    /// Map units written to flash so far: the clock by which ages are measured.
    pub now: u64,
    /// Map units per reclaim unit.
    pub units_per_ru: u32,
    /// Map units per program unit.
    pub units_per_program: u32,
}

/// View of a placement for a victim policy: its closed reclaim units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolView {
    /// Unit with the fewest valid map units.
    pub emptiest: u32,
    /// Number of map units that moving its data takes, in whole program units.
    pub moved: u32,
    /// Number of valid map units in all of them.
    pub valid: u64,
    /// Number of reclaim units that the host has recently opened for the placement: within the last one to two times
    /// that it has written the capacity of the group.
    pub opened: u32,
}

impl VictimView<'_> {
    /// Iterates over the placements that have closed units, in order. Empty unless garbage collection keeps placements
    /// apart and the policy weighs them.
    pub fn pools(&self) -> impl Iterator<Item = PoolView> + '_ {
        self.pools.iter().flat_map(|pools| pools.all()).filter_map(|pool| {
            let emptiest = pool.index.emptiest()?;
            let moved = self.valid(emptiest).next_multiple_of(self.units_per_program);
            Some(PoolView { emptiest, moved, valid: pool.valid, opened: pool.opened })
        })
    }
    /// Returns the number of closed reclaim units.
    pub fn len(&self) -> usize {
        self.index.len()
    }
    /// Returns whether no unit is closed.
    pub fn is_empty(&self) -> bool {
        self.index.len() == 0
    }
    /// Returns the closed unit at a position of an arbitrary order, for random draws.
    pub fn nth(&self, place: usize) -> u32 {
        self.index.nth(place)
    }
    /// Returns the number of valid map units.
    pub fn valid(&self, ru: u32) -> u32 {
        self.rus[ru as usize].valid
    }
    /// Returns the number of map units written to flash since the unit was closed.
    pub fn age(&self, ru: u32) -> u64 {
        self.now - self.closed_at[ru as usize]
    }
    /// Returns the erase count of the most worn block of the unit.
    pub fn erases(&self, ru: u32) -> u32 {
        (self.erases)(ru)
    }
    /// Iterates over closed units, oldest first.
    pub fn by_age(&self) -> impl Iterator<Item = u32> + '_ {
        self.index.by_age()
    }
    /// Iterates over the heads of the occupied buckets, fewest valid units first: within a bucket, the one unchanged
    /// for longest.
    pub fn by_valid(&self) -> impl Iterator<Item = u32> + '_ {
        self.index.by_valid()
    }
}

// Closed reclaim units of a group by erase count, for static wear levelling.

/// Wear levelling of a translation layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WearRule {
    /// True to open the least erased free unit next (dynamic wear levelling), false for the one freed first.
    pub least_worn: bool,
    /// Maximum difference in erases between a free unit and a closed one of its group; `None`: unlimited.
    pub gap: Option<u32>,
}

/// Wear state of one reclaim unit.
#[derive(Clone, Debug)]
struct Entry {
    erases: u32,
    list: Links,
}

engine::snapshot!(Entry { erases, list });

const EMPTY: Links = Links { prev: NONE, next: NONE };

/// Closed reclaim units of a group by erase count: a list for each count, longest closed first. Every update is O(1); a
/// search for the least worn passes each empty list once.
#[derive(Clone, Debug)]
pub(crate) struct ByWear {
    /// Entries up to the highest number that was ever closed or erased; the others have never been erased.
    entries: Vec<Entry>,
    /// First and last of each list, from the erase count `first` on.
    lists: VecDeque<Links>,
    first: u32,
    /// Number of reclaim units of the group.
    count: u32,
}

engine::snapshot!(ByWear { entries, lists, first, count });

impl ByWear {
    pub(crate) fn new(count: u32) -> ByWear {
        ByWear { entries: Vec::new(), lists: VecDeque::new(), first: 0, count }
    }

    /// Returns the erase count of a reclaim unit.
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

    /// Registers the erase of a unit that is not closed.
    pub(crate) fn erased(&mut self, ru: u32, erases: u32) {
        self.entry(ru).erases = erases;
    }

    /// Adds a closed unit.
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

    /// Removes a unit that was closed.
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

    /// Returns the closed unit that was erased least often; among equals, the one closed first.
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

    /// Returns whether this can replace a built one.
    pub(crate) fn fits(&self, built: &ByWear) -> bool {
        self.count == built.count && self.entries.len() <= self.count as usize
    }

    /// Returns whether the lists hold `count` units, each of them closed and in the list of its erases; `erases_of`
    /// returns the array's erase counts.
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

    /// Returns the number of bytes allocated.
    pub(crate) fn bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<Entry>() + self.lists.capacity() * size_of::<Links>()) as u64
    }
}
