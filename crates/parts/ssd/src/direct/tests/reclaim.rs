//! Log blocks and merges in time.

use super::{ALL, Rig, small};
use crate::direct::spec::DirectSpec;
use crate::direct::{DirectHelper, Out};
use engine::Time;
use proto::memory::{Absent, MemCommand, PAGE, Stage};

/// 16 pages of (3.01 + 100) us, three erases of 1 ms.
const MERGE: Time = Time::from_ns(16 * 103_010 + 3 * 1_000_000);

/// Rig whose log blocks have one free page left, and whose plane 0 is programming that page, for application 1.
fn about_to_merge() -> (Rig, Vec<u64>) {
    about_to_merge_with(None)
}

/// Same rig with a helper thread.
fn about_to_merge_with(helper: Option<DirectHelper>) -> (Rig, Vec<u64>) {
    let mut rig = Rig::new(&DirectSpec { helper, ..small() });
    let all = rig.direct.capacity();
    rig.direct.fill_logs(0..all, 1);
    let pages: Vec<u64> = (0..8).map(|n| rig.page(0, 0, n)).collect();
    for page in &pages[..3] {
        rig.send(true, *page, ALL, 1);
    }
    (rig, pages)
}

fn reclaims(rig: &Rig) -> Vec<(Time, bool)> {
    let all = rig.cx.sent.iter();
    all.filter_map(|(time, out)| match out {
        Out::Reclaim { app, begins } => {
            assert_eq!(*app, 1);
            Some((*time, *begins))
        }
        _ => None,
    })
    .collect()
}

/// A write waits for a program; that fills the log block, and the merge takes its pages and its erases.
#[test]
fn a_full_log_block_is_merged() {
    let (mut rig, _) = about_to_merge();
    rig.rest();
    let [(began, true), (ended, false)] = reclaims(&rig)[..] else { panic!("{:?}", reclaims(&rig)) };
    assert_eq!(ended - began, MERGE);
    let stats = &rig.direct.stats;
    assert_eq!((stats.gc_runs, stats.gc_time), (1, MERGE));
    // Both planes of the set move their pages, at the same time.
    let done = (stats.gc_reads, stats.gc_programs, stats.erases, stats.eviction_programs);
    assert_eq!(done, (2 * 16, 2 * 16, 2 * 3, 1));
    // What was in the log block is in a data block again.
    let page = rig.page(0, 1, 3);
    rig.latency(false, page, 1);
    assert_eq!(rig.direct.stats.log_reads, 0);
}

/// A log block of 8 pages filled to a share is full after the programs for which it has room: then the merge begins.
/// Three pages fill the plane's two registers, so that every further page has one programmed.
#[test]
fn a_log_block_merges_after_the_programs_that_it_has_room_for() {
    for (share, programs) in [("25%", 6), ("50%", 4), ("75%", 2), ("87.5%", 1)] {
        let mut spec = small();
        spec.mapping.log_filled = vec![share.parse().expect("a share")];
        let mut rig = Rig::new(&spec);
        let (all, left) = (rig.direct.capacity(), spec.log_room(1));
        assert_eq!(left, programs, "8 pages less {share}");
        rig.direct.fill_logs(0..all, left);
        for n in 0..2 + programs - 1 {
            let page = rig.page(0, n % 2, n / 2);
            rig.send(true, page, ALL, 1);
            rig.rest();
        }
        assert_eq!(rig.direct.stats.eviction_programs, u64::from(programs - 1));
        assert_eq!((rig.direct.stats.gc_runs, rig.direct.stats.gc_begun), (0, None), "{share}");
        let page = rig.page(0, 0, 7);
        rig.send(true, page, ALL, 1);
        while rig.direct.stats.gc_begun.is_none() {
            assert!(rig.step(), "{share}: no merge");
        }
        assert_eq!(rig.direct.stats.eviction_programs, u64::from(programs), "{share}");
        assert_eq!(rig.direct.merging(), 1);
        rig.rest();
        let stats = &rig.direct.stats;
        assert_eq!((stats.gc_runs, rig.direct.merging()), (1, 0), "{share}");
        let [(began, true), (ended, false)] = reclaims(&rig)[..] else { panic!("{:?}", reclaims(&rig)) };
        assert_eq!((stats.gc_begun, stats.gc_ended), (Some(began), Some(ended)));
    }
}

/// The owner's commands wait for the end of the merge; others wait for at most one page operation, or one erase.
#[test]
fn a_merge_blocks_its_owner_alone() {
    let (mut rig, pages) = about_to_merge();
    while reclaims(&rig).is_empty() {
        assert!(rig.step());
    }
    let began = reclaims(&rig)[0].0;
    rig.run_until(began + Time::from_us(10));
    let elsewhere = rig.page(3, 0, 0);
    let (owner, other) = (rig.send(false, elsewhere, 1, 1), rig.send(false, elsewhere, 2, 2));
    let same_plane = rig.send(false, pages[7], 1, 2);
    rig.rest();
    let at = |rig: &Rig, tag| rig.done(tag).expect("answered") - began;
    let read = Time::from_ps(3_662_250);
    assert_eq!(at(&rig, other), Time::from_us(10) + read);
    // It is sensed after the page operation that began with the merge.
    assert_eq!(at(&rig, same_plane), Time::from_ns(103_010 + 3_010) + Time::from_ps(642_500));
    // One read came between, and its page had to leave the data register.
    let longer = Time::from_ns(3_010 + 640);
    assert_eq!(reclaims(&rig)[1].0 - began, MERGE + longer);
    assert_eq!(at(&rig, owner), MERGE + longer + read);
    let blocked = rig.direct.tally.reads()[Stage::Reclaim as usize];
    assert_eq!(blocked, u128::from((MERGE + longer - Time::from_us(10)).ps()));
    assert_eq!(rig.direct.stats.blocked, 1);
}

/// Write-backs of the owner pass, except behind one of its commands to the same page.
#[test]
fn write_backs_pass_the_block() {
    let (mut rig, _) = about_to_merge();
    while reclaims(&rig).is_empty() {
        assert!(rig.step());
    }
    let began = rig.now();
    let pages = [rig.page(1, 0, 0), rig.page(1, 0, 1)];
    let blocked = rig.send(true, pages[0], 1, 1);
    for (tag, page) in [(100, pages[0]), (101, pages[1])] {
        let command = MemCommand {
            from: proto::Port::default(),
            tag,
            page,
            lines: 1,
            write: true,
            demand: false,
            app: 1,
            port: 0,
            pc: 0,
            absent: Absent::Wait,
            since: began,
        };
        rig.direct.command(command, &mut rig.cx);
    }
    rig.rest();
    assert!(rig.done(101).expect("answered") < began + Time::from_us(1));
    let order = [rig.done(blocked), rig.done(100)].map(|time| time.expect("answered") - began);
    assert!(order[0] > MERGE && order[1] > order[0], "{order:?}");
}

/// Programs for a log block that is being merged wait; a page for another log block of the plane goes on, and another
/// page leaves its register instead.
#[test]
fn programs_wait_for_the_merge_of_their_log_block_alone() {
    let mut spec = small();
    spec.registers.count = 4;
    let mut rig = Rig::new(&spec);
    let one = rig.page(0, 0, 0);
    rig.direct.fill_logs(one..one + PAGE, 0);
    // Data blocks 0 and 1 share the full log block; 2 has another.
    let full = rig.page(0, 1, 1);
    let other: Vec<u64> = (0..4).map(|n| rig.page(0, 2, n)).collect();
    rig.latency(true, full, ALL);
    rig.latency(true, other[0], ALL);
    rig.latency(true, other[1], ALL);
    let began = rig.now();
    let tag = rig.send(true, other[2], 1, 2);
    rig.rest();
    // The page for the full log block was to go first: the merge has begun with a page operation, then the next page has
    // been programmed.
    let waited = rig.done(tag).expect("answered") - began;
    assert_eq!(waited, Time::from_ps(29_750) + Time::from_ns(103_010 + 100_000));
    assert_eq!((rig.direct.stats.gc_runs, rig.direct.stats.evictions), (1, 2));
    assert_eq!(rig.direct.stats.eviction_programs, 2);
    assert_eq!(rig.direct.registers.lines(full / PAGE), 0, "programmed after the merge");
}

/// Answers the helper thread `delay` after each of its messages; returns the instructions of each.
fn help(rig: &mut Rig, delay: Time) -> Vec<u32> {
    let (mut seen, mut instructions) = (0, Vec::new());
    loop {
        match rig.cx.sent.get(seen).copied() {
            Some((asked, Out::Help(help))) => {
                assert_eq!(help.thread, 0, "one merge, one thread");
                rig.run_until((asked + delay).max(rig.now()));
                instructions.push(help.instructions);
                rig.direct.helped(help.tag, &mut rig.cx);
            }
            Some(_) => {}
            None if rig.step() => continue,
            None => return instructions,
        }
        seen += 1;
    }
}

/// Each of the 19 steps of a plane waits for the instructions of the helper thread; both planes do so at once.
#[test]
fn each_step_waits_for_the_helper() {
    for delay in [Time::ZERO, Time::from_us(2)] {
        let (mut rig, _) = about_to_merge_with(Some(DirectHelper { page: 28, block: 56 }));
        let instructions = help(&mut rig, delay);
        let count = |n| instructions.iter().filter(|one| **one == n).count();
        assert_eq!((count(28), count(56), instructions.len()), (2 * 16, 2 * 3, 2 * 19));
        assert_eq!((rig.direct.stats.gc_runs, rig.direct.stats.gc_time), (1, MERGE + delay.times(19)));
        rig.check();
    }
}

/// A plane whose merge waits for the helper thread serves other applications.
#[test]
fn what_waits_for_the_helper_holds_no_plane() {
    let (mut rig, pages) = about_to_merge_with(Some(DirectHelper { page: 28, block: 0 }));
    while rig.step() {}
    assert_eq!((rig.direct.merging(), rig.direct.stats.gc_reads), (1, 0));
    let read = rig.send(false, pages[7], 1, 2);
    while rig.step() {}
    assert!(rig.done(read).is_some());
    assert_eq!(help(&mut rig, Time::ZERO), [28; 2 * 16], "blocks are erased at once");
    rig.rest();
    assert_eq!(rig.direct.stats.gc_runs, 1);
}

/// Without instructions, no message is sent.
#[test]
fn no_instructions_are_no_help() {
    let (mut rig, _) = about_to_merge_with(Some(DirectHelper { page: 0, block: 0 }));
    rig.rest();
    assert!(!rig.cx.sent.iter().any(|(_, out)| matches!(out, Out::Help(_))));
    assert_eq!(rig.direct.stats.gc_time, MERGE);
}
