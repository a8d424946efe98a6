//! Reclaim and dumps: worked examples, and the amount moved.

use super::rig::Rig;
use crate::page_groups::locks::{Access, GroupRange};
use crate::page_groups::spec::DumpExtent;
use crate::page_groups::testing::small;
use crate::page_groups::translation::GroupTranslation;
use crate::page_groups::victim::GroupVictim;
use crate::page_groups::{Flashvisor, Logical, Physical, Step, Storengine};
use engine::Rng;

/// 60 of 64 blocks filled in order, then every second group of the first four rewritten into two more blocks: two are
/// left. Fewer than three are free, and 28 groups can be gained, 14 per block.
fn aged() -> Rig {
    let mut rig = Rig::new(small(GroupTranslation::literal), 60 * 14);
    (0..28).for_each(|n| {
        assert!(rig.begin_write(Logical(2 * n)));
        rig.end_write(0);
    });
    rig
}

/// The first victim is the first block by address: its metadata is read, its valid groups move into a new block, and
/// then it is erased. The next victim follows, because only two blocks are free again; after it three are.
#[test]
fn a_victim_is_read_moved_and_erased() {
    let mut rig = aged();
    assert_eq!(rig.visor.free_blocks(), 2);
    let mut seen = Vec::new();
    while rig.visor.counters.erases < 1 {
        rig.pull();
        seen.push(rig.steps[0].1);
        rig.perform(0);
    }
    // The two blocks that have just been filled, and the victim's own.
    let write = |group| Step::WriteMeta { group: Physical(group), entries: 7 };
    let read = |group| Step::ReadMeta { group: Physical(group) };
    assert_eq!(seen[..6], [write(960), write(961), write(976), write(977), read(0), read(1)]);
    // Four are moved at once: reads come first.
    let mut moves: Vec<Step> = seen[6..seen.len() - 1].to_vec();
    moves.sort_by_key(|step| match step {
        Step::Read { logical, .. } => (*logical, 0),
        Step::Program { logical, .. } => (*logical, 1),
        step => unreachable!("{step:?}"),
    });
    for (n, pair) in (0..).zip(moves.chunks(2)) {
        let logical = Some(Logical(2 * n + 1));
        let read = Step::Read { group: Physical(2 + 2 * n + 1), logical };
        let program = Step::Program { group: Physical(62 * 16 + 2 + n), logical };
        assert_eq!(pair, [read, program]);
    }
    assert_eq!((moves.len(), seen.last()), (14, Some(&Step::Erase { block: 0 })));
    rig.check();
    assert_eq!(rig.visor.free_blocks(), 2);
    rig.drain();
    let counters = rig.visor.counters;
    assert_eq!((rig.visor.free_blocks(), counters.erases, counters.moves), (3, 2, 14));
    // Every data group of both was examined, and no counts of valid groups: the policy is round robin.
    assert_eq!((counters.examined, counters.weighed), (28, 0));
}

/// A kernel writes a group that is being moved: before its program the move is abandoned, after that its copy is not
/// used.
#[test]
fn what_a_kernel_writes_meanwhile_counts() {
    let mut rig = aged();
    while !rig.steps.iter().any(|(_, step)| matches!(step, Step::Read { .. })) {
        assert!(rig.step());
        rig.pull();
    }
    let is_read = |step: &Step| matches!(step, Step::Read { .. });
    let write = |rig: &mut Rig, logical| {
        assert!(rig.begin_write(logical));
        rig.end_write(rig.writes.len() - 1);
    };
    let reads: Vec<Logical> = rig
        .steps
        .iter()
        .filter_map(|(_, step)| if let Step::Read { logical, .. } = step { *logical } else { None })
        .collect();
    assert_eq!(reads.len(), 4);
    write(&mut rig, reads[0]);
    while let Some(at) = rig.steps.iter().position(|(_, step)| is_read(step)) {
        rig.perform(at);
    }
    rig.pull();
    assert_eq!(rig.visor.counters.overwritten, 1);
    let programs = rig.steps.iter().filter(|(_, step)| matches!(step, Step::Program { .. })).count();
    assert_eq!(programs, 3);
    write(&mut rig, reads[1]);
    rig.drain();
    assert_eq!(rig.visor.counters.overwritten, 2);
}

/// A block is erased when the reads of it in flight have ended.
#[test]
fn an_erase_waits_for_reads() {
    let mut rig = aged();
    rig.begin_read(Logical(1));
    while rig.step() {}
    assert_eq!((rig.visor.counters.moves, rig.visor.counters.erases), (7, 0));
    rig.end_read(0);
    rig.pull();
    assert_eq!(rig.steps.iter().map(|(_, step)| *step).collect::<Vec<_>>(), [Step::Erase { block: 0 }]);
}

/// A kernel may hold the very ranges of a victim, and wait for free space: reclaim does not wait for the kernel.
#[test]
fn reclaim_goes_on_under_locks() {
    for access in [Access::Read, Access::Write] {
        let mut rig = Rig::new(small(GroupTranslation::literal), 0);
        let capacity = rig.visor.capacity();
        (0..capacity).for_each(|n| rig.write(Logical(n)));
        rig.map(GroupRange { first: 0, last: capacity - 1 }, access);
        assert!(rig.storengine.begin_dump());
        (0..2_000).for_each(|n| rig.write(Logical(n % 3)));
        // A kernel waits for the other, and the dump for neither.
        rig.map(GroupRange { first: 3, last: 3 }, Access::Write);
        assert_eq!(rig.visor.locks.counts().1, 1);
        rig.drain();
        assert_eq!(rig.visor.counters.dumps, 1);
    }
}

/// A dump writes the groups of the map in which something has changed, or all eight.
#[test]
fn a_dump_writes_what_has_changed() {
    for (extent, dumped) in [(DumpExtent::changed, [8, 9, 11]), (DumpExtent::whole, [8, 16, 24])] {
        let mut spec = small(GroupTranslation::literal);
        spec.dump.extent = extent;
        let mut rig = Rig::new(spec, 0);
        // 128 entries per group of the map.
        for n in (0..1_024).step_by(128) {
            rig.write(Logical(n));
        }
        for (touched, dumped) in [vec![], vec![5], vec![200, 201, 999]].into_iter().zip(dumped) {
            touched.into_iter().for_each(|n| rig.write(Logical(n)));
            assert!(rig.storengine.begin_dump() && !rig.storengine.begin_dump());
            rig.drain();
            assert_eq!(rig.visor.counters.dumped, dumped);
        }
        assert_eq!(rig.visor.counters.dumps, 3);
        assert_eq!(rig.visor.locks.counts(), (0, 0));
    }
}

/// Returns the groups moved per write when groups are written at random, in the steady state.
fn moved_a_write(victim: GroupVictim, data: u32) -> f64 {
    let mut spec = small(GroupTranslation::literal);
    (spec.geometry.blocks, spec.geometry.pages) = (32, 66);
    (spec.reclaim.victim, spec.reclaim.below) = (victim, 1);
    let mut visor = Flashvisor::new(&spec).expect("it can be built");
    visor.assume_written(data).expect("it fits");
    let mut storengine = Storengine::new(&spec);
    let (mut rng, mut granted) = (Rng::stream(7, "groups"), Vec::new());
    let mut write = |visor: &mut Flashvisor, count: u32| {
        for _ in 0..count {
            let logical = Logical(rng.below(data.into()) as u32);
            let write = loop {
                if let Some(write) = visor.write(logical).expect("it fits") {
                    break write;
                }
                let (task, _) = storengine.next(visor, &mut granted).expect("something can be reclaimed");
                storengine.done(task, visor, &mut granted);
            };
            visor.written(write);
        }
    };
    write(&mut visor, 8 * data);
    let before = visor.counters;
    write(&mut visor, 12 * data);
    let after = visor.counters;
    (after.moves - before.moves) as f64 / (after.writes - before.writes) as f64
}

/// Blocks in turn, written uniformly at random: a share v of a block's groups is still valid when its turn comes again,
/// with v = exp(-(1 - v) / u) at utilisation u (Menon and Stockmeyer, 1998; Desnoyers, SYSTOR 2012), so v / (1 - v) are
/// moved per write. One of the blocks is kept free, and two are half full on average. Fewest valid first moves less.
#[test]
fn blocks_in_turn_move_as_much_as_theory_says() {
    let (blocks, groups) = (128.0 - 2.0, 64.0);
    for u in [0.6, 0.8] {
        let data = (u * blocks * groups) as u32;
        let mut v: f64 = 0.5;
        (0..200).for_each(|_| v = libm::exp(-(1.0 - v) / u));
        let expected = v / (1.0 - v);
        let in_turn = moved_a_write(GroupVictim::round_robin, data);
        assert!((in_turn / expected - 1.0).abs() < 0.03, "{in_turn} against {expected} at {u}");
        let greedy = moved_a_write(GroupVictim::greedy, data);
        assert!(greedy < in_turn, "{greedy} against {in_turn} at {u}");
    }
}
