//! Functional mode against naive references.

use super::*;
use crate::page_map::gc::{VictimContext, fifo::Fifo};
use crate::page_map::testing::{check, ftl, ftl_with};
use engine::Rng;
use nand::geometry::Reclaim;
use proptest::prelude::*;
use std::collections::BTreeMap;

const RECLAIMS: [Reclaim; 3] = [Reclaim::Block, Reclaim::PlaneSet, Reclaim::Superblock];
const PLACEMENTS: [Placement; 2] = [Placement::Striped, Placement::InTurn];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn map_and_valid_counts_survive_anything(which in 0usize..3, how in 0usize..2, base in 0u64..9000, seed: u64) {
        let ftl = &mut ftl(RECLAIMS[which], 9000);
        let mut written = vec![false; 9000];
        ftl.assume_sequential(base);
        written[..base as usize].fill(true);
        check(ftl, &written);
        let mut rng = Rng::stream(seed, "writes");
        let mut writer = FunctionalWriter::new(ftl, PLACEMENTS[how]);
        for n in 0..30_000 {
            let lpn = rng.below(9000);
            if rng.below(20) == 0 {
                prop_assert_eq!(writer.trim(ftl, Lpn(lpn)), written[lpn as usize]);
                written[lpn as usize] = false;
            } else {
                writer.write(ftl, Lpn(lpn)).map_err(|e| TestCaseError::fail(format!("{e:?}")))?;
                written[lpn as usize] = true;
            }
            if n % 10_000 == 9_999 {
                writer.finish(ftl).map_err(|e| TestCaseError::fail(format!("{e:?}")))?;
                prop_assert_eq!(writer.waiting(), 0);
                check(ftl, &written);
            }
        }
    }

    /// The reference is a log: a unit is where its last write was put, however often it was written while it waited for
    /// its program unit to fill up.
    #[test]
    fn the_later_of_two_writes_wins(
        which in 0usize..3,
        how in 0usize..2,
        lpns in prop::collection::vec((0u64..20, 0u64..9000, any::<bool>()), 1..800),
    ) {
        let ftl = &mut ftl(RECLAIMS[which], 9000);
        let per_program = u64::from(ftl.geo.units_per_program);
        let mut writer = FunctionalWriter::new(ftl, PLACEMENTS[how]);
        // Writes so far to each group, or over all groups; and the place of each unit's last one.
        let mut logged = BTreeMap::new();
        let mut last = BTreeMap::new();
        for (near, far, is_near) in lpns {
            // Half of the writes go to few units, which are soon rewritten.
            let lpn = if is_near { near } else { far };
            writer.write(ftl, Lpn(lpn)).expect("no group is short of space");
            let log = if how == 0 { ftl.geo.group_at(lpn / per_program) } else { 0 };
            let count = logged.entry(log).or_insert(0u64);
            last.insert(lpn, (log, *count));
            *count += 1;
        }
        writer.finish(ftl).expect("no group is short of space");
        for (lpn, (log, nth)) in last {
            let (program, unit) = (nth / per_program, nth % per_program);
            let groups = u64::from(ftl.geo.groups);
            let (group, program) =
                if how == 0 { (log, program) } else { (ftl.geo.group_at(program), program / groups) };
            let ru = u64::from(group) * u64::from(ftl.geo.shape.blocks) + program / u64::from(ftl.geo.programs_per_ru);
            let first = ftl.geo.slot_of_program(ru, (program % u64::from(ftl.geo.programs_per_ru)) as u32);
            prop_assert_eq!(ftl.lookup(Lpn(lpn)), Some(Slot(first.0 + unit)));
        }
    }

    /// The reference moves unit by unit, as the timed garbage collector does.
    #[test]
    fn moving_at_once_equals_moving_one_by_one(which in 0usize..3, base in 7000u64..9000, seed: u64) {
        let (mut at_once, mut one_by_one) = (ftl(RECLAIMS[which], 9000), ftl(RECLAIMS[which], 9000));
        let mut rng = Rng::stream(seed, "writes");
        let lpns: Vec<u64> = (0..4000).map(|_| rng.below(base)).collect();
        for ftl in [&mut at_once, &mut one_by_one] {
            ftl.assume_sequential(base);
            let mut writer = FunctionalWriter::new(ftl, Placement::Striped);
            writer.write_all(ftl, lpns.iter().map(|l| Lpn(*l))).expect("over-provisioning leaves room");
            writer.finish(ftl).expect("over-provisioning leaves room");
        }
        for group in 0..at_once.geo.groups {
            let (Some(ru), Some(same)) = (at_once.pick_victim(group), one_by_one.pick_victim(group)) else {
                continue;
            };
            prop_assert_eq!(ru, same);
            at_once.reclaim(ru, false).expect("the hard limit leaves room");
            reclaim_one_by_one(&mut one_by_one, ru);
        }
        prop_assert_eq!(at_once.counters, one_by_one.counters);
        prop_assert_eq!(at_once.clock, one_by_one.clock);
        for lpn in 0..9000 {
            prop_assert_eq!(at_once.lookup(Lpn(lpn)), one_by_one.lookup(Lpn(lpn)));
        }
        for group in 0..at_once.geo.groups as usize {
            let of = |f: &Ftl| {
                let g = &f.groups[group];
                let units: Vec<_> = g.rus.iter().map(|r| (r.valid, r.inflight, r.state)).collect();
                (units, g.closed_at.clone(), g.open(Stream::Gc(0)), g.free())
            };
            prop_assert_eq!(of(&at_once), of(&one_by_one));
        }
        let mut written = vec![false; 9000];
        written[..base as usize].fill(true);
        check(&at_once, &written);
    }
}

fn reclaim_one_by_one(ftl: &mut Ftl, ru: u64) {
    let group = ftl.geo.group_of_ru(ru);
    let mut cursor = 0;
    let mut units = Vec::new();
    while let Some(from) = ftl.next_valid(ru, &mut cursor) {
        units.push((ftl.lpn_at(from).expect("a valid slot names its unit"), from));
    }
    for packed in units.chunks(ftl.geo.units_per_program as usize) {
        let to = ftl.reserve(group, Stream::Gc(0)).expect("the hard limit leaves room");
        for n in 0..ftl.geo.units_per_program as usize {
            ftl.fill(Slot(to.0 + n as u64), packed.get(n).map(|(lpn, _)| *lpn));
        }
        ftl.program(to);
        for (n, (lpn, from)) in packed.iter().enumerate() {
            assert!(ftl.commit_move(*lpn, *from, Slot(to.0 + n as u64)));
        }
        ftl.programmed(to);
    }
    ftl.erased(ru);
}

#[test]
fn the_oldest_unit_travels_while_it_is_wholly_valid() {
    // One stripe position is overwritten, all else is cold: the units closed first contain no invalid data.
    let context = VictimContext { seed: 1, device: "flash".into() };
    let ftl = &mut ftl_with(Reclaim::Block, 9000, Box::new(Fifo::new(&context)));
    ftl.assume_sequential(9000);
    let mut writer = FunctionalWriter::new(ftl, Placement::Striped);
    for n in 0..20_000 {
        writer.write(ftl, Lpn(8900 + n % 100)).expect("over-provisioning leaves room");
    }
    writer.finish(ftl).expect("over-provisioning leaves room");
    check(ftl, &[true; 9000]);
    assert!(ftl.counters.moves > 0);
}

#[test]
fn the_base_does_not_speak_for_what_was_erased() {
    let ftl = &mut ftl(Reclaim::PlaneSet, 9000);
    ftl.assume_sequential(9000);
    let mut writer = FunctionalWriter::new(ftl, Placement::Striped);
    writer.write_all(ftl, (0..12_000).map(|n| Lpn(n * 7919 % 9000))).expect("over-provisioning leaves room");
    let mut erased = 0;
    for slot in (0..ftl.geo.slots).map(Slot) {
        let was_filled = ftl.base.lpn(slot, &ftl.geo).is_some();
        let is_erased =
            ftl.array.erases(ftl.geo.block_of_slot(slot).0) == 1 && !ftl.array.is_programmed(slot, &ftl.geo);
        if was_filled && is_erased {
            erased += 1;
            assert_eq!((ftl.lpn_at(slot), ftl.is_valid(slot)), (None, false), "{slot:?}");
        }
    }
    assert!(erased > 0);
}

#[test]
fn a_device_without_spare_space_says_so() {
    let ftl = &mut ftl(Reclaim::Block, 24 * 16 * 48);
    ftl.assume_sequential(24 * 15 * 48);
    let mut writer = FunctionalWriter::new(ftl, Placement::Striped);
    let refused = writer.write_all(ftl, (0..10_000).map(Lpn));
    // Free: one of 16; the hard limit is one.
    assert_eq!(refused, Err(NoSpace { group: 0, free: 1 }));
}

#[test]
fn a_run_forgets_what_preconditioning_counted() {
    let ftl = &mut ftl(Reclaim::Block, 9000);
    let mut writer = FunctionalWriter::new(ftl, Placement::Striped);
    writer.write_all(ftl, (0..30_000).map(|n| Lpn(n % 9000))).expect("over-provisioning leaves room");
    assert!(ftl.counters.host_commits > 0 && ftl.free_min() < ftl.free(0));
    let wear: u32 = ftl.array.all_erases().iter().sum();
    ftl.reset_counters();
    let erases = ftl.counters.erases;
    assert_eq!(ftl.counters, super::super::FtlCounters { erases, ..Default::default() });
    let free = (0..ftl.geo.groups).map(|g| ftl.free(g)).min();
    assert_eq!(Some(ftl.free_min()), free);
    assert_eq!(ftl.array.all_erases().iter().sum::<u32>(), wear);
}
