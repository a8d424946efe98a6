//! Counts of the FTL: of its work, and of the units in the FTL and the array, for the checks at the end of a run.

use super::units::RuState;
use super::{Ftl, space::Stream};
use std::collections::BTreeMap;

/// Result of a census. Counts are in reclaim units unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Units by state: free, open, full, closed, collecting, bad, closed in a cache.
    pub states: [u64; 7],
    /// Units on free lists.
    pub listed_free: u64,
    /// Units counted as bad.
    pub listed_bad: u64,
    /// Units that are frontiers.
    pub frontiers: u64,
    /// Units in the index of victims.
    pub listed_closed: u64,
    /// Units in the list for folding.
    pub listed_cached: u64,
    /// Groups whose number of valid units differs from their count.
    pub miscounted: u64,
    /// Valid map units.
    pub valid: u64,
    /// Reads in flight.
    pub readers: u64,
    /// Program units allocated and not programmed yet.
    pub inflight: u64,
    /// Units whose number of program units in the array differs from the number allocated, or exceeds the maximum.
    pub misprogrammed: u64,
}

impl Ftl {
    /// Returns the minimum number of free reclaim units that any group has had.
    pub fn free_min(&self) -> u32 {
        self.groups.iter().map(|g| g.free_min).min().unwrap_or(0)
    }

    /// Returns the number of closed reclaim units by valid count.
    pub fn valid_histogram(&self) -> Vec<u64> {
        let mut histogram = vec![0; self.geo.units_per_ru as usize + 1];
        for ru in self.groups.iter().flat_map(|g| &g.rus).filter(|r| r.state == RuState::Closed) {
            histogram[ru.valid as usize] += 1;
        }
        histogram
    }

    /// Counts every reclaim unit and block once.
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        for (g, group) in self.groups.iter().enumerate() {
            let held: u64 = group.rus.iter().map(|ru| u64::from(ru.valid)).sum();
            census.valid += held;
            census.miscounted += u64::from(held != group.valid);
            census.listed_free += u64::from(group.free());
            // Units after the last record have never been opened.
            census.states[RuState::Free as usize] += u64::from(group.usable()) - group.rus.len() as u64;
            // Units after the usable ones never worked.
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

    /// Returns the number of program units of a reclaim unit that the array holds, or that were skipped; `None` if a
    /// block has more than its capacity.
    pub fn programs_of(&self, ru: u64) -> Option<u32> {
        let blocks = (0..self.geo.lanes).map(|lane| self.array.programs(self.geo.block_of_ru(ru, lane)));
        let used: Option<u32> = blocks.map(|n| (n <= self.geo.programs_per_block).then_some(n)).sum();
        let pending =
            (0..self.geo.lanes).map(|lane| self.array.pending_skips(self.geo.block_of_ru(ru, lane)));
        used.map(|used| used + pending.sum::<u32>())
    }

    /// Checks that each reclaim unit has as many valid slots as its count; the error is the first that has not. O(slots
    /// touched, and reclaim units).
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

    /// Returns the valid slots of an untouched reclaim unit, according to the base.
    pub fn untouched_valid(&self, ru: u64) -> Option<u32> {
        let mask = self.base_mask(ru)?;
        let per_block = u64::from(self.geo.units_per_block);
        let mut blocks =
            (0..self.geo.lanes).map(|lane| self.geo.first_slot(self.geo.block_of_ru(ru, lane)).0);
        let untouched = blocks.all(|first| self.valid.is_untouched(&(first..first + per_block)));
        untouched.then_some(if mask == 0 { 0 } else { self.geo.units_per_ru })
    }
}

// Counters of the FTL.

/// Counters of the FTL, in map units unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlCounters {
    /// Units committed by the host.
    pub host_commits: u64,
    /// Translation pages committed.
    pub map_commits: u64,
    /// Units moved.
    pub moves: u64,
    /// Moves that lost the race against a host write or a trim.
    pub moves_dropped: u64,
    /// Partly written units whose old data was out of date once they had been programmed: they are merged again.
    pub merges_dropped: u64,
    /// Units deallocated.
    pub trims: u64,
    /// Reclaim units erased.
    pub erases: u64,
}

engine::snapshot!(FtlCounters {
    host_commits,
    map_commits,
    moves,
    moves_dropped,
    merges_dropped,
    trims,
    erases
});

impl FtlCounters {
    /// Returns the counts since `origin`.
    pub fn since(&self, origin: &FtlCounters) -> FtlCounters {
        FtlCounters {
            host_commits: self.host_commits - origin.host_commits,
            map_commits: self.map_commits - origin.map_commits,
            moves: self.moves - origin.moves,
            moves_dropped: self.moves_dropped - origin.moves_dropped,
            merges_dropped: self.merges_dropped - origin.merges_dropped,
            trims: self.trims - origin.trims,
            erases: self.erases - origin.erases,
        }
    }
}

// Second account of the free reclaim units, to check that the policy's unit is opened.

/// Free reclaim units that have been erased: time, order and erase count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opened {
    /// Units by group and number.
    freed: BTreeMap<(u32, u32), (u64, u32)>,
    frees: u64,
    opens: u64,
    /// Number of units opened in the place of a different one; a description of the first follows.
    wrong: u64,
    first: Option<String>,
}

impl Opened {
    /// Registers a unit that is free from now on.
    fn frees(&mut self, unit: (u32, u32), erases: u32) {
        self.frees += 1;
        self.freed.insert(unit, (self.frees, erases));
    }

    /// Registers an opened unit, which was erased or never opened before. The due one is the first freed, the least
    /// worn or, for static wear levelling, the most worn.
    fn opens(&mut self, (group, number): (u32, u32), least_worn: bool, most_worn: bool) {
        self.opens += 1;
        if !self.freed.contains_key(&(group, number)) {
            return;
        }
        let here = self.freed.range((group, 0)..=(group, u32::MAX));
        let here = here.map(|((_, number), (order, erases))| (*number, *order, *erases));
        let due = match (most_worn, least_worn) {
            (true, true) => here.max_by_key(|(number, _, erases)| (*erases, *number)),
            (true, false) => here.max_by_key(|(_, order, erases)| (*erases, u64::MAX - order)),
            (false, true) => here.min_by_key(|(number, _, erases)| (*erases, *number)),
            (false, false) => here.min_by_key(|(_, order, _)| *order),
        };
        if let Some((due, ..)) = due.filter(|(due, ..)| *due != number) {
            self.wrong += 1;
            self.first.get_or_insert_with(|| format!("unit {number} of group {group} instead of {due}"));
        }
        self.freed.remove(&(group, number));
    }
}

impl Ftl {
    /// Checks each opened block against the policy from here on, for streams, SLC caches and choices of pages alike.
    pub fn watch_opening(&mut self) {
        let mut opened = Opened::default();
        for (group, of_group) in (0..).zip(&self.groups) {
            for number in of_group.freed() {
                let ru = self.join(group, number);
                let erases =
                    (0..self.geo.lanes).map(|lane| self.array.erases(self.geo.block_of_ru(ru, lane)));
                opened.frees((group, number), erases.max().unwrap_or(0));
            }
        }
        self.opened = Some(Box::new(opened));
    }

    /// Registers an erased unit as free.
    pub(super) fn note_freed(&mut self, group: u32, number: u32, erases: u32) {
        if let Some(opened) = &mut self.opened {
            opened.frees((group, number), erases);
        }
    }

    /// Registers a unit that a stream opens.
    pub(in crate::page_map) fn note_opened(&mut self, group: u32, number: u32, stream: Stream) {
        let most_worn = matches!(stream, Stream::Wear(_)) && self.wear.gap.is_some();
        if let Some(opened) = &mut self.opened {
            opened.opens((group, number), self.wear.least_worn, most_worn);
        }
    }

    /// Returns the number of units opened while watched, the number of wrong ones, and the first of these; `None` if
    /// not watched.
    pub fn opened(&self) -> Option<(u64, u64, &str)> {
        let opened = self.opened.as_ref()?;
        Some((opened.opens, opened.wrong, opened.first.as_deref().unwrap_or_default()))
    }
}

/// Memory of a large drive, as allocated by its tables.
#[cfg(test)]
mod footprint {
    use super::super::gc::{VictimContext, greedy::Greedy};
    use super::super::testing::ftl;
    use super::super::wear::WearRule;
    use super::super::{Ftl, Thresholds};
    use nand::geometry::{Digit, Geometry, Reclaim, Shape};
    use nand::sparse::{Bits, Table};
    use proto::{Lpn, Slot};

    const GIB: u64 = 1 << 30;
    /// 100 GB.
    const TOUCHED: u64 = 100_000_000_000;

    /// 64 TiB: 32 channels of 8 packages of 4 dies of 4 planes, blocks of 18 MiB.
    fn large() -> Geometry {
        Geometry::new(Shape {
            channels: 32,
            ways: 8,
            dies: 4,
            planes: 4,
            blocks: 911,
            pages: 1152,
            page_bytes: 16384,
            unit_bytes: 4096,
            program_pages: 3,
            reclaim: Reclaim::Block,
            stripe: [Digit::Channel, Digit::Way, Digit::Die, Digit::Plane],
            interleave: true,
            parity: None,
        })
    }

    /// Returns bytes per filled reclaim unit: the memory added by filling a small device, over its reclaim units.
    fn record_bytes() -> u64 {
        let of = |units: u64| {
            let mut ftl = ftl(Reclaim::Block, 24 * 16 * 48);
            ftl.assume_sequential(units * 24 * 48);
            ftl.groups.iter().map(|g| g.bytes()).sum::<u64>()
        };
        // The list of freed units is created with the first.
        (of(16) - of(0)).div_ceil(24 * 16) + size_of::<u32>() as u64
    }

    /// Returns the bytes of the map, the flags and the out-of-band words once `bytes` at the beginning of the logical
    /// space have been written over a drive that was filled in order: onto the next units of each group.
    fn touched_bytes(geo: &Geometry, logical: u64, bytes: u64) -> u64 {
        let units = bytes / u64::from(geo.shape.unit_bytes);
        let (mut map, mut oob, mut valid) =
            (Table::new(logical, geo.slots + 2), Table::new(geo.slots, logical + 2), Bits::new(geo.slots));
        // No chunk is smaller than this: every touched chunk is touched here.
        let step = 1 << 12;
        (0..units).step_by(step).chain([units - 1]).for_each(|lpn| map.set(lpn, 0));
        let per_group = units.div_ceil(u64::from(geo.groups));
        for group in 0..u64::from(geo.groups) {
            // The old copies are at the beginning of the group, the new ones after them.
            let first = geo.first_slot(group * u64::from(geo.shape.blocks)).0;
            for unit in (0..2 * per_group).step_by(step).chain([2 * per_group - 1]) {
                if unit < per_group {
                    valid.flip(first + unit);
                } else {
                    oob.set(first + unit, 0);
                    valid.flip(first + unit);
                }
            }
        }
        map.bytes() + oob.bytes() + valid.bytes()
    }

    #[test]
    fn a_64_tib_drive_of_which_100_gb_are_written_fits_in_a_gib() {
        let geo = large();
        assert!(geo.raw_bytes() >= 64 << 40, "{} B", geo.raw_bytes());
        let logical = geo.slots / 100 * 93;
        let tables = touched_bytes(&geo, logical, TOUCHED);
        let records = record_bytes() * geo.ru_count + 8 * geo.block_count;
        // Lists and frontiers of the groups, regardless of writes.
        let group = size_of::<super::super::Group>() as u64 + (1024 / 64 + 1024) * 8;
        let total = tables + records + group * u64::from(geo.groups);
        assert!(total < GIB * 9 / 10, "{total} B leave less than a tenth of 1 GiB for all else");
    }

    #[test]
    fn d16_fits_in_64_mib_whatever_is_written() {
        let geo = Geometry::new(Shape {
            channels: 8,
            ways: 4,
            dies: 1,
            planes: 2,
            blocks: 512,
            pages: 128,
            page_bytes: 4096,
            unit_bytes: 4096,
            program_pages: 1,
            reclaim: Reclaim::Block,
            stripe: [Digit::Channel, Digit::Way, Digit::Die, Digit::Plane],
            interleave: true,
            parity: None,
        });
        let (slots, logical) = (geo.slots, geo.slots / 100 * 88);
        let context = VictimContext { seed: 1, device: "flash".into() };
        let thresholds = Thresholds { start: 25, stop: 26, hard: 2 };
        let mut ftl =
            Ftl::new(geo, (logical, 0), 1, WearRule::default(), thresholds, Box::new(Greedy::new(&context)));
        ftl.assume_sequential(logical);
        // A write in every chunk of every table.
        (0..slots).step_by(4096).for_each(|slot| ftl.fill(Slot(slot), None));
        (0..logical).step_by(4096).for_each(|lpn| assert!(ftl.trim(Lpn(lpn))));
        // One word per unit in the map and out of band, one flag per unit, and records.
        let bytes = ftl.bytes();
        assert!(bytes >= 4 * logical + 4 * slots + slots / 8, "{bytes} B");
        assert!(bytes < 40 << 20, "{bytes} B leave less than 24 MiB for all else");
    }
}
