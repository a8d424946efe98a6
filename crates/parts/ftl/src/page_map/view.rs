//! What a victim policy may look at.

use super::index::Index;
use super::pools::Pools;
use super::unit::Ru;

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
pub struct Pool {
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
    pub fn pools(&self) -> impl Iterator<Item = Pool> + '_ {
        self.pools.iter().flat_map(|pools| pools.all()).filter_map(|pool| {
            let emptiest = pool.index.emptiest()?;
            let moved = self.valid(emptiest).next_multiple_of(self.units_per_program);
            Some(Pool { emptiest, moved, valid: pool.valid, opened: pool.opened })
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
