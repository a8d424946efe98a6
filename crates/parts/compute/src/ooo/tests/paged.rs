//! Pages that come before a job is halted, and a core that the kernel takes.

use super::super::*;
use super::hand::Hand;
use super::{ThreadScheduling, op, spec};
use proto::cpu::OpKind;

/// Page 2 is in flash, page 3 is not: its line comes late, at 60, so that what is younger cannot be halted before.
fn halted_late(kind: OpKind, arrived: Option<u64>) -> Hand {
    let mut spec = spec();
    (spec.threads.count, spec.threads.pending, spec.load.jobs) = (2, 2, 100);
    spec.threads.scheduler = ThreadScheduling::notified;
    let access = |page: u64| op(kind, 1, [0, 0], page * 4096);
    let mut hand = Hand::begun(&spec, vec![vec![access(3), access(2)], vec![access(5)]]);
    hand.signal(20, 128);
    assert_eq!((hand.asked().len(), hand.cores.stats().halts), (2, 0));
    if let Some(page) = arrived {
        hand.arrived(30, page);
    }
    hand.answer(60, 192, AccessKind::Own);
    assert_eq!((hand.cores.stats().halts, hand.cores.cores[0].early.len()), (1, 0));
    hand.until(190);
    hand
}

/// The load before it is there at 60 and retires in that cycle; halted at 61, flushed in 10 cycles, switched in 100: dispatched in
/// 171, its address a cycle later, its look-up two.
#[test]
fn a_page_that_came_before_its_load_was_halted_counts_as_told() {
    let hand = halted_late(OpKind::Load, Some(2));
    assert_eq!(hand.asked()[2..], [(174, 128, AccessKind::Read, Absent::Wait)]);
    assert_eq!(hand.cores.jobs_begun(), 1);
}

/// The store before it is done at 60, when it is halted: dispatched in 170, its result two cycles later; it retires in 172 and goes to
/// the cache in 173.
#[test]
fn a_page_that_came_before_its_store_was_halted_counts_as_told() {
    let hand = halted_late(OpKind::Store, Some(2));
    assert_eq!(hand.asked()[2..], [(175, 128, AccessKind::Own, Absent::Wait)]);
    assert_eq!(hand.cores.jobs_begun(), 1);
}

#[test]
fn a_page_that_the_job_has_not_missed_does_not_count() {
    for arrived in [None, Some(3), Some(7)] {
        for kind in [OpKind::Load, OpKind::Store] {
            let hand = halted_late(kind, arrived);
            // The next job runs.
            assert_eq!((hand.cores.jobs_begun(), hand.asked()[2].1), (2, 320));
            assert!(!hand.cores.cores[0].halted[0].arrived);
        }
    }
}

#[test]
fn a_page_that_comes_while_nothing_runs_wakes_its_job_only() {
    let mut spec = spec();
    (spec.threads.count, spec.threads.pending) = (2, 2);
    spec.threads.scheduler = ThreadScheduling::notified;
    // The second job comes after the end of what is looked at.
    spec.load.arrivals =
        Arrivals::poisson(Poisson { interval: config::units::Duration::new(Time::from_s(1)) });
    spec.load.jobs = 2;
    let mut hand = Hand::new(&spec, vec![vec![op(OpKind::Load, 1, [0, 0], 8192)]]);
    hand.begin();
    let begun = hand.cores.shared.load.next(0).expect("a job comes").ns();
    let came = begun + 10;
    hand.signal(came + 20, 128).arrived(came + 400, 3).until(came + 500);
    assert_eq!((hand.asked().len(), hand.cores.cores[0].early.len()), (1, 0));
    hand.arrived(came + 600, 2).until(came + 800);
    // Switched to in 100 cycles, dispatched, executed in the next, looked up in two.
    assert_eq!(hand.asked()[1..], [(came + 703, 128, AccessKind::Read, Absent::Wait)]);
}

/// A job of 1,000 cycles.
fn long() -> Vec<Vec<proto::cpu::Op>> {
    vec![vec![op(OpKind::Compute, 4, [0, 0], 0); 1000]]
}

#[test]
fn a_core_that_the_kernel_has_begins_later() {
    let end = |kernel: &[u64]| {
        let mut hand = Hand::new(&spec(), long());
        for time in kernel {
            hand.interrupt(0, Time::from_ns(*time));
        }
        hand.begin();
        hand.until(5000);
        let spent = hand.cores.stats().spent[Spent::Kernel as usize];
        (hand.cores.over_at().expect("the job has ended").ns(), spent)
    };
    let (free, nothing) = end(&[]);
    assert_eq!(nothing, 0);
    // Two pieces of the kernel's work follow each other.
    assert_eq!(end(&[300]), (free + 300, 300 * 4));
    assert_eq!(end(&[300, 200]), (free + 500, 500 * 4));
}

#[test]
fn a_running_core_is_held_up_from_where_it_has_got_to() {
    let mut hand = Hand::begun(&spec(), long());
    hand.until(5000);
    let free = hand.cores.over_at().expect("the job has ended").ns();
    let mut hand = Hand::begun(&spec(), long());
    hand.interrupt(500, Time::from_ns(400)).until(5000);
    let end = hand.cores.over_at().expect("the job has ended").ns();
    // It has run ahead: the kernel takes it from there.
    assert_eq!(end, free + 400);
    // The last operation before it retires in its first two cycles; the first one after takes as long to do so.
    let spent = hand.cores.stats().spent[Spent::Kernel as usize];
    assert!((398 * 4..=400 * 4).contains(&spent), "{spent}");
}

/// A window ends within a quantum, the longest operation (a count of 16 bits), and what the kernel has taken in advance at most.
#[test]
fn what_the_kernel_takes_in_advance_bounds_how_far_a_core_is_ahead() {
    let ahead = |lead: u64| (100 + 65_536 + lead) * 4;
    let mut hand = Hand::begun(&spec(), long());
    assert_eq!(hand.cores.ahead(), ahead(0));
    // Nothing has been dispatched at zero.
    hand.interrupt(0, Time::from_ns(10));
    assert_eq!(hand.cores.ahead(), ahead(10));
    // Then from where it has got to.
    hand.until(4);
    let reached = hand.cores.cores[0].dispatch.div_ceil(4);
    assert!(reached > 10);
    hand.interrupt(4, Time::from_ns(5));
    assert_eq!(hand.cores.ahead(), ahead(reached + 1));
    // Begun cycles count whole; the second from the end of the first. The longest stays.
    hand.interrupt(14, Time::from_ps(3200));
    assert_eq!((hand.cores.ahead(), hand.cores.cores[0].kernel), (ahead(reached + 1), reached + 9));
    let two = CpuSpec { cores: 2, ..spec() };
    assert_eq!(Hand::begun(&two, long()).cores.ahead(), 2 * ahead(0));
}
