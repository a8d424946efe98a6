//! The closed reclaim units of a group by the placement of their data, for victim policies that weigh placements.
//!
//! Kept only where garbage collection keeps placements apart and the policy asks for it
//! ([`Victim::weighs_pools`](super::gc::Victim::weighs_pools)); elsewhere it costs one branch.

use super::index::Index;

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
