//! Storengine: core time, reclaim that writers wait for, dumps.

use crate::page_groups::testing::{Rig, groups, prototype, small};
use engine::Time;
use ftl::page_groups::translation::GroupTranslation;
use nand::dies::op::Class;
use proto::groups::{Ask, Tell, Work};

/// Data fills the flash: what is written again waits for reclaim, and reclaim for its core.
#[test]
fn a_write_waits_until_reclaim_has_made_room() {
    let mut rig = Rig::new(&small(GroupTranslation::literal), 0);
    let last = rig.flash.capacity() - 1;
    rig.time(Ask::Write { tag: 0, groups: groups(0, last) });
    rig.run();
    rig.works_at_once = false;
    rig.ask(Ask::Write { tag: 1, groups: groups(0, 40) });
    rig.ask(Ask::Write { tag: 2, groups: groups(50, 50) });
    while rig.step() {}
    // Nothing happens without the core.
    let done = |rig: &Rig, tag| rig.when(Tell::Done { tag, failed: 0 });
    assert_eq!((done(&rig, 1), done(&rig, 2)), (None, None));
    assert!(!rig.flash.is_idle() && !rig.works.is_empty());
    rig.check();
    rig.works_at_once = true;
    while !rig.works.is_empty() {
        rig.work(0);
    }
    rig.run();
    assert!(rig.flash.is_idle());
    assert!(done(&rig, 1).is_some() && done(&rig, 2).is_some());
    let stats = &rig.flash.stats;
    assert_eq!(stats.space_wait.count(), 2);
    let counters = rig.flash.counters();
    assert!(counters.erases > 0 && counters.moves > 0, "{counters:?}");
    // A read, a program of each move; two groups of metadata read and written.
    assert!(stats.steps >= 2 * counters.moves + 5 * counters.erases);
    rig.time(Ask::Read { tag: 3, groups: groups(0, last) });
    rig.check();
}

/// A literal block of the prototype: 382 groups of data, whose entries two groups of metadata hold, 191 each.
#[test]
fn a_full_block_gets_its_metadata() {
    let mut rig = Rig::new(&prototype(GroupTranslation::literal), 0);
    rig.works_at_once = false;
    rig.time(Ask::Write { tag: 0, groups: groups(0, 381) });
    let work: Vec<Work> = rig.works.iter().map(|(_, work)| *work).collect();
    assert_eq!(work, [Work { entries: 191, operations: 1 }; 2]);
    assert_eq!(rig.flash.counters().metadata, 0);
    rig.works_at_once = true;
    (0..2).for_each(|_| rig.work(0));
    rig.run();
    assert_eq!(rig.flash.counters().metadata, 2);
}

/// Entries have changed in the first and the fourth group of the map, of 128 entries each: each is copied and programmed at the next
/// multiple of 100 ms; then there is nothing to dump.
#[test]
fn a_dump_writes_what_has_changed() {
    let mut rig = Rig::new(&small(GroupTranslation::literal), 0);
    rig.works_at_once = false;
    rig.time(Ask::Write { tag: 0, groups: groups(5, 5) });
    rig.time(Ask::Write { tag: 0, groups: groups(400, 400) });
    let mut works = Vec::new();
    loop {
        while let Some((_, work)) = rig.works.first().copied() {
            works.push((rig.now(), work));
            rig.work(0);
        }
        if !rig.step() {
            break;
        }
    }
    let (copy, program) = (Work { entries: 128, operations: 0 }, Work { entries: 1, operations: 1 });
    let what: Vec<Work> = works.iter().map(|(_, work)| *work).collect();
    assert_eq!(what, [copy, program, copy, program]);
    assert_eq!(works[0].0, Time::from_ms(100));
    let counters = rig.flash.counters();
    assert_eq!((counters.dumps, counters.dumped), (1, 2));
    assert_eq!(rig.flash.media().done[Class::MapProgram as usize], 2);
    rig.check();
    // What has not changed is not dumped: the next one has the entries of one group.
    rig.works_at_once = true;
    rig.time(Ask::Write { tag: 0, groups: groups(6, 6) });
    rig.run();
    assert_eq!((rig.flash.counters().dumps, rig.flash.counters().dumped), (2, 3));
}

/// While a block is moved, a kernel's reads go first: one of them waits for an operation under way at most, not for the moves.
#[test]
fn reads_of_kernels_go_before_those_of_storengine() {
    let mut rig = Rig::new(&small(GroupTranslation::literal), 0);
    let last = rig.flash.capacity() - 1;
    rig.time(Ask::Write { tag: 0, groups: groups(0, last) });
    rig.run();
    rig.ask(Ask::Write { tag: 1, groups: groups(0, 40) });
    let (mut worst, mut tag) = (Time::ZERO, 10);
    while !rig.flash.is_idle() {
        assert!(rig.step(), "somebody waits for ever");
        if tag < 300 {
            tag += 1;
            worst = worst.max(rig.time(Ask::Read { tag, groups: groups(600, 600) }));
        }
    }
    rig.run();
    assert!(rig.flash.counters().erases > 0);
    // A program of 5,001 us may be under way, and the read-first rule may let one more go that has waited for 5 ms.
    assert!(worst <= Time::from_us(2 * 5_001 + 500), "{worst:?}");
}

#[test]
fn a_window_forgets_what_was_before() {
    let mut rig = Rig::new(&small(GroupTranslation::striped), 300);
    rig.time(Ask::Write { tag: 0, groups: groups(0, 100) });
    rig.run();
    let now = rig.now();
    rig.flash.reset_stats(now);
    let stats = &rig.flash.stats;
    assert_eq!((stats.since, stats.groups_written, stats.write.count(), stats.steps), (now, 0, 0, 0));
    assert_eq!(rig.flash.counters(), Default::default());
    assert_eq!(rig.flash.media(), Default::default());
    assert_eq!(rig.flash.busy(now), Default::default());
    rig.time(Ask::Read { tag: 1, groups: groups(0, 9) });
    assert_eq!((rig.flash.stats.groups_read, rig.flash.media().reads_queued), (10, 10));
    rig.check();
}
