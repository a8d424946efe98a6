//! Counting what the FTL and the array hold, for the checks at the end of a run.

use super::Ftl;
use super::unit::RuState;

/// What was found. Counts of reclaim units unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// By state: free, open, full, closed, collecting, bad, closed in a cache.
    pub states: [u64; 7],
    /// On free lists.
    pub listed_free: u64,
    /// Counted as bad.
    pub listed_bad: u64,
    /// Frontiers.
    pub frontiers: u64,
    /// In the index that victims come from.
    pub listed_closed: u64,
    /// In the list that folding takes from.
    pub listed_cached: u64,
    /// Groups that hold another number of valid units than they say.
    pub miscounted: u64,
    /// Valid map units.
    pub valid: u64,
    /// Reads under way.
    pub readers: u64,
    /// Program units given out and not programmed yet.
    pub inflight: u64,
    /// Of which the array holds another number of program units than was given out, or more than there are.
    pub misprogrammed: u64,
}

impl Ftl {
    /// Fewest free reclaim units that any group has had.
    pub fn free_min(&self) -> u32 {
        self.groups.iter().map(|g| g.free_min).min().unwrap_or(0)
    }

    /// Valid counts of all closed reclaim units, with the number of units that have each.
    pub fn valid_histogram(&self) -> Vec<u64> {
        let mut histogram = vec![0; self.geo.units_per_ru as usize + 1];
        for ru in self.groups.iter().flat_map(|g| &g.rus).filter(|r| r.state == RuState::Closed) {
            histogram[ru.valid as usize] += 1;
        }
        histogram
    }

    /// Looks at every reclaim unit and block once.
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        for (g, group) in self.groups.iter().enumerate() {
            let held: u64 = group.rus.iter().map(|ru| u64::from(ru.valid)).sum();
            census.valid += held;
            census.miscounted += u64::from(held != group.valid);
            census.listed_free += u64::from(group.free());
            // Units behind the last record have never been opened.
            census.states[RuState::Free as usize] += u64::from(group.usable()) - group.rus.len() as u64;
            // Those behind the usable ones never worked.
            let unusable = u64::from(self.geo.shape.blocks - group.usable());
            census.states[RuState::Bad as usize] += unusable;
            census.listed_bad += unusable + u64::from(group.retired);
            let chosen = || self.pages.iter().flat_map(move |pages| pages.open_units(g));
            census.frontiers += (group.open_units().count() + chosen().count()) as u64;
            census.listed_closed += group.index.len() as u64;
            let (written, cached) = self.slc.as_ref().map_or((0, 0), |slc| slc.listed(g));
            census.frontiers += written;
            census.listed_cached += cached;
            let mut given: Vec<u32> = group
                .rus
                .iter()
                .map(|ru| if ru.state == RuState::Free { 0 } else { self.geo.programs_per_ru })
                .collect();
            group.open_units().chain(chosen()).for_each(|(number, taken)| given[number as usize] = taken);
            if let Some(slc) = &self.slc {
                let of_slc = |number: usize| slc.given(g, number as u32);
                let cached = given.iter_mut().enumerate();
                cached.for_each(|(number, given)| *given = of_slc(number).unwrap_or(*given));
            }
            for (number, ru) in group.rus.iter().enumerate() {
                census.states[ru.state as usize] += 1;
                census.readers += u64::from(ru.readers);
                census.inflight += u64::from(ru.inflight);
                let programmed = self.programs_of(self.join(g as u32, number as u32));
                let expected = given[number].checked_sub(ru.inflight);
                let given = ru.short || programmed == expected;
                let wrong = ru.state != RuState::Bad && (programmed.is_none() || !given);
                census.misprogrammed += u64::from(wrong);
            }
        }
        census
    }

    /// Program units that the array holds in a reclaim unit, or that were skipped in it; `None` if a block has more than there is room for.
    pub fn programs_of(&self, ru: u64) -> Option<u32> {
        let blocks = (0..self.geo.lanes).map(|lane| self.array.programs(self.geo.block_of_ru(ru, lane)));
        let used: Option<u32> = blocks.map(|n| (n <= self.geo.programs_per_block).then_some(n)).sum();
        let pending =
            (0..self.geo.lanes).map(|lane| self.array.pending_skips(self.geo.block_of_ru(ru, lane)));
        used.map(|used| used + pending.sum::<u32>())
    }

    /// Whether each reclaim unit has as many valid slots as it says. The first that has not. O(slots touched, and reclaim
    /// units).
    pub fn recount_valid(&self) -> Result<u64, u64> {
        let mut all = 0;
        for ru in 0..self.geo.ru_count {
            let found = self.untouched_valid(ru).unwrap_or_else(|| {
                let mut cursor = 0;
                std::iter::from_fn(|| self.next_valid(ru, &mut cursor)).map(|_| 1).sum()
            });
            if found != self.valid_units(ru) {
                return Err(ru);
            }
            all += u64::from(found);
        }
        Ok(all)
    }

    /// Valid slots of a reclaim unit that nothing has touched: what the base says.
    pub fn untouched_valid(&self, ru: u64) -> Option<u32> {
        let mask = self.base_mask(ru)?;
        let per_block = u64::from(self.geo.units_per_block);
        let mut blocks =
            (0..self.geo.lanes).map(|lane| self.geo.first_slot(self.geo.block_of_ru(ru, lane)).0);
        let untouched = blocks.all(|first| self.valid.is_untouched(&(first..first + per_block)));
        untouched.then_some(if mask == 0 { 0 } else { self.geo.units_per_ru })
    }
}
