//! Static wear levelling: which closed reclaim unit gives up its data so that it is worn too.
//!
//! Data that is never rewritten keeps its unit from being erased. When a free unit of a group has been erased `gap`
//! times more than its least worn closed one, the data of that one moves into the free one, and stays there; the
//! vacated unit takes data that is written more often (Chang, "On efficient wear leveling for large-scale flash-memory
//! storage systems", SAC 2007: cold data goes to the most worn blocks, and rests there). So a unit that comes back from
//! its `gap`th erase beyond the least worn one is put to rest before it is used again, and erase counts of a group
//! differ by at most `gap` plus [`SLACK`].
//!
//! The moved data has a separate frontier, which opens the most worn free unit. A unit is moved once in about `gap`
//! erases of each unit of its group; that bounds the cost.
//!
//! Garbage collection skips resting units: if a victim policy chooses one, it takes the emptiest non-resting unit
//! instead, if one is among the emptiest few.
//!
//! An unused frontier is not a closed unit, and could lag for ever: it is closed before it is full.

pub use super::closed::WearRule;

use super::Ftl;
use super::closed::VictimView;
use super::space::{Group, Stream};
use super::units::NONE;

/// Erases by which a frontier may lag behind `gap` until it is closed early; a frontier in use never is.
pub const SLACK: u32 = 2;

/// Number of lists of equal valid counts that are examined for a non-resting unit.
const LOOKS: usize = 16;

/// Returns the replacement for a victim that was erased `rest` times or more: a unit with at most `most` valid map
/// units.
pub(super) fn unrested(view: &VictimView<'_>, victim: u32, rest: u32, most: u32) -> u32 {
    if view.erases(victim) < rest {
        return victim;
    }
    let fits = |ru: &u32| view.erases(*ru) < rest && view.valid(*ru) <= most;
    view.by_valid().take(LOOKS).find(fits).unwrap_or(victim)
}

impl Group {
    /// Returns the erase count from which on a unit rests: one more erase, and it is further than `gap` from the least
    /// worn.
    pub(super) fn rest(&mut self, gap: u32) -> Option<u32> {
        let by_wear = self.by_wear.as_mut()?;
        let least = by_wear.least()?;
        Some(by_wear.erases(least).saturating_add(gap))
    }

    /// Returns the least worn closed unit, if it lags behind the most worn free one and moving it leaves `keep` units
    /// free.
    fn unworn(&mut self, gap: u32, keep: u32, clock: u64) -> Option<u32> {
        let limit = self.most_worn_free()?.checked_sub(gap)?;
        self.close_lagging(limit, clock);
        let by_wear = self.by_wear.as_mut()?;
        let least = by_wear.least()?;
        (by_wear.erases(least) <= limit && self.free() > keep).then_some(least)
    }

    /// Closes frontiers that lag and are not in use.
    fn close_lagging(&mut self, limit: u32, clock: u64) {
        for stream in 0..self.frontiers.len() {
            let slack = if Stream::levels_wear(stream) { 0 } else { SLACK };
            let ru = self.frontiers[stream].ru;
            if ru != NONE && self.rus[ru as usize].inflight == 0 && self.erases(ru) + slack <= limit {
                self.close_early(stream, clock);
            }
        }
    }
}

impl Ftl {
    /// Returns the unit of a group that gives its data to [`Stream::Wear`] next, for static wear levelling once a unit
    /// has been erased; it is removed from the index. While space is short, `levelled` (the last unit was taken for
    /// wear) yields to garbage collection, so that neither blocks the other.
    pub fn pick_unworn(&mut self, group: u32, levelled: bool) -> Option<u64> {
        let gap = self.wear.gap?;
        if levelled && self.free(group) < self.thresholds.stop {
            return None;
        }
        let g = &mut self.groups[group as usize];
        let number = g.unworn(gap, self.thresholds.hard, self.clock)?;
        g.collect(number);
        Some(self.join(group, number))
    }
}

#[cfg(test)]
mod tests {
    // Index against a scan, and the distance of erase counts under random workloads.
    use super::*;
    use crate::page_map::Thresholds;
    use crate::page_map::closed::ByWear;
    use crate::page_map::functional::{FunctionalWriter, Placement};
    use crate::page_map::gc::{VictimContext, VictimPolicy};
    use crate::page_map::testing::{check, small};
    use crate::page_map::units::RuState;
    use engine::Rng;
    use nand::geometry::{Geometry, Reclaim, Shape};
    use proptest::prelude::*;
    use proto::Lpn;

    const GROUPS: [Reclaim; 3] = [Reclaim::Block, Reclaim::PlaneSet, Reclaim::Superblock];

    /// Creates a full FTL, with the minimum over-provisioning that the spec requires.
    fn ftl(reclaim: Reclaim, victim: &VictimPolicy, wear: WearRule) -> Ftl {
        let geo = Geometry::new(Shape { channels: 2, ways: 1, dies: 1, blocks: 40, ..small(reclaim) });
        let logical = geo.slots / 100 * 70;
        let context = VictimContext { seed: 1, device: "flash".into() };
        let thresholds = Thresholds { start: 2, stop: 3, hard: 1 };
        let mut ftl = Ftl::new(geo, (logical, 0), 1, wear, thresholds, victim.build(&context));
        ftl.assume_sequential(logical);
        ftl
    }

    /// Returns the largest difference of erase counts in a group, from the array's own counts.
    fn spread(ftl: &Ftl) -> u32 {
        let of = |group: &[u32]| group.iter().max().zip(group.iter().min()).map_or(0, |(a, b)| a - b);
        let planes = ftl.array.all_erases().chunks(ftl.geo.shape.blocks as usize).collect::<Vec<_>>();
        planes.chunks(ftl.geo.lanes as usize).map(|planes| of(&planes.concat())).max().unwrap_or(0)
    }

    /// Workload: shares of writes and of addresses of the hot data, and how often the hot data changes.
    #[derive(Clone, Copy, Debug)]
    struct Skew {
        writes: u64,
        addresses: u64,
        turns: u64,
    }

    /// Writes `laps` times the device's capacity; returns the greatest spread seen.
    fn write(ftl: &mut Ftl, skew: Skew, laps: u64, seed: u64) -> u32 {
        let mut writer = FunctionalWriter::new(ftl, Placement::Striped);
        let mut rng = Rng::stream(seed, "wear");
        let (units, mut worst) = (ftl.logical(), 0);
        let all = laps * units;
        for n in 0..all {
            let hot = units * skew.addresses / 100;
            let from = n * skew.turns / all * hot;
            let at = if rng.below(100) < skew.writes { rng.below(hot) } else { rng.below(units) };
            writer.write(ftl, Lpn((from + at) % units)).expect("over-provisioning leaves room");
            if n % 64 == 0 {
                worst = worst.max(spread(ftl));
            }
        }
        worst
    }

    #[test]
    fn the_last_and_the_first_of_each_list_are_found() {
        // Worked by hand: erase counts 3, 1, 1 and 2.
        let mut wear = ByWear::new(4);
        [3, 1, 1, 2].iter().enumerate().for_each(|(ru, n)| wear.erased(ru as u32, *n));
        (0..4).for_each(|ru| wear.insert(ru));
        assert_eq!(wear.least(), Some(1));
        wear.remove(1);
        assert_eq!(wear.least(), Some(2));
        wear.remove(2);
        assert_eq!(wear.least(), Some(3));
        wear.erased(1, 2);
        wear.insert(1);
        assert_eq!(wear.least(), Some(3), "the one closed first");
        // One below all listed counts.
        wear.insert(2);
        assert_eq!(wear.least(), Some(2));
        [2, 3, 1, 0].iter().for_each(|ru| wear.remove(*ru));
        assert_eq!(wear.least(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// Holds for any hot data, any victim policy, and from the first erase on.
        #[test]
        fn erase_counts_stay_together(
            which in 0usize..3,
            victim in 0usize..VictimPolicy::all_defaults().len(),
            least_worn: bool,
            gap in 1u32..9,
            (writes, addresses, turns) in (50u64..101, 1u64..60, 1u64..5),
            seed: u64,
        ) {
            let victim = VictimPolicy::all_defaults().swap_remove(victim);
            let mut ftl = ftl(GROUPS[which], &victim, WearRule { least_worn, gap: Some(gap) });
            let worst = write(&mut ftl, Skew { writes, addresses, turns }, 12, seed);
            prop_assert!(worst <= gap + SLACK, "{worst} apart under {} with gap {gap}", victim.name());
            check(&ftl, &vec![true; ftl.logical() as usize]);
            prop_assert!(ftl.array.all_erases().iter().max() > Some(&3));
        }

        /// The reference examines every unit.
        #[test]
        fn the_index_finds_what_a_scan_finds(least_worn: bool, gap in 1u32..6, laps in 1u64..6, seed: u64) {
            let mut ftl = ftl(Reclaim::PlaneSet, &VictimPolicy::greedy, WearRule { least_worn, gap: Some(gap) });
            write(&mut ftl, Skew { writes: 90, addresses: 10, turns: 1 }, laps, seed);
            for group in 0..ftl.geo.groups {
                let first = u64::from(group) * u64::from(ftl.geo.shape.blocks);
                let erases = |n: u32| ftl.array.erases(ftl.geo.block_of_ru(first + u64::from(n), 0));
                let g = &ftl.groups[group as usize];
                let of = |state| (0..g.rus.len() as u32).filter(move |n| g.ru(*n).state == state).map(erases);
                let (least, most) = (of(RuState::Closed).min(), of(RuState::Free).max());
                let mut copy = g.clone();
                prop_assert_eq!(copy.most_worn_free(), most);
                let found = copy.by_wear.as_mut().and_then(ByWear::least);
                prop_assert_eq!(found.map(erases), least);
                prop_assert!((0..g.rus.len() as u32).all(|n| g.erases(n) == erases(n)));
            }
        }
    }

    /// Spread without levelling, and cost of levelling: a closed unit gives up its data at most once in `gap` erases of
    /// the others, so at most one erase in `gap` is for wear, and each moves at most a unit.
    #[test]
    fn levelling_costs_one_erase_in_gap_at_most() {
        let skew = Skew { writes: 100, addresses: 10, turns: 1 };
        let run = |gap| {
            let mut ftl = ftl(Reclaim::Block, &VictimPolicy::greedy, WearRule { least_worn: true, gap });
            (write(&mut ftl, skew, 20, 3), ftl)
        };
        let (apart, plain) = run(None);
        assert!(apart > 50, "{apart} apart");
        for gap in [2, 4, 8, 16] {
            let (apart, ftl) = run(Some(gap));
            assert!(apart <= gap + SLACK, "gap {gap}: {apart} apart");
            let for_wear = ftl.counters.erases - plain.counters.erases;
            let most = ftl.counters.erases / u64::from(gap) + ftl.geo.ru_count;
            assert!(for_wear <= most, "gap {gap}: {for_wear} erases more, of {}", ftl.counters.erases);
        }
    }

    /// An abandoned frontier holds nothing back.
    #[test]
    fn a_frontier_that_nobody_writes_on_is_closed() {
        let mut ftl = ftl(Reclaim::Block, &VictimPolicy::greedy, WearRule { least_worn: true, gap: Some(3) });
        // Translation pages that are never rewritten.
        let stale: Vec<u64> = (0..ftl.geo.groups)
            .map(|group| {
                let slot = ftl.reserve(group, Stream::Map).expect("units are free");
                (0..u64::from(ftl.geo.units_per_program))
                    .for_each(|n| ftl.fill(proto::Slot(slot.0 + n), None));
                ftl.program(slot);
                ftl.programmed(slot);
                ftl.geo.ru_of_slot(slot)
            })
            .collect();
        let worst = write(&mut ftl, Skew { writes: 100, addresses: 10, turns: 1 }, 12, 5);
        assert!(worst <= 3 + SLACK, "{worst} apart");
        assert!(stale.iter().all(|ru| ftl.array.erases(ftl.geo.block_of_ru(*ru, 0)) > 0));
    }
}
