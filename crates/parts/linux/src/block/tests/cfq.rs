//! `cfq`, by `cfq_may_dispatch` and `cfq_scaled_cfqq_slice`.

use super::*;
use crate::block::sched::cfq::Params;
use std::collections::BTreeMap;

/// A drive that takes 32 commands behind the scheduler, as SATA does.
fn cfq() -> Bench {
    let spec = BlockSpec { nr_requests: Some(4096), ..spec(SchedulerPolicy::cfq(Params::default())) };
    Bench::new(&spec, Device { queues: 1, queue_depth: 32, ..DEVICE }, 1)
}

/// Threads that keep so many reads in flight each on a drive that takes 4 commands a millisecond: how many commands of each thread were at the drive
/// in a row, and the most in flight, after a second in which all have had their turn.
fn turns(threads: u32, depth: u32) -> (Vec<u32>, usize) {
    let mut bench = cfq();
    let mut next = 0u64;
    let mut ask = |bench: &mut Bench, task: u32| {
        next = (next + 7919) % 100_000;
        assert_eq!(bench.submit(read(next * 4 * KIB, 4 * KIB, task)), Submitted::Queued);
    };
    (0..threads).for_each(|task| (0..depth).for_each(|_| ask(&mut bench, task)));
    let (mut runs, mut last, mut most) = (Vec::new(), u32::MAX, 0);
    for done in 0..8000 {
        bench.now += Time::from_us(250);
        let first = bench.issued.remove(0);
        bench.complete(first);
        for task in std::mem::take(&mut bench.done) {
            match runs.last_mut() {
                Some(run) if last == task => *run += 1,
                _ => runs.push(1),
            }
            last = task;
            ask(&mut bench, task);
        }
        if done > 4000 {
            most = most.max(bench.issued.len());
        }
    }
    (runs, most)
}

/// Two processes that always have something waiting have 100 ms each; four, 75, since all four shall have their turn in 300; eight, 37.5. While
/// others wait a process has 8 requests at the drive, a few of the one before beside them.
#[test]
fn processes_that_keep_the_scheduler_busy_take_turns() {
    for (threads, ms) in [(2, 100.0), (4, 75.0), (8, 37.5)] {
        let (runs, most) = turns(threads, 32);
        let middle = &runs[threads as usize..runs.len() - 1];
        let long: Vec<f64> = middle.iter().map(|run| f64::from(*run) / 4.0).filter(|ms| *ms > 5.0).collect();
        assert!(long.len() >= 6, "{runs:?}");
        for took in long {
            assert!((took / ms - 1.0).abs() < 0.12, "{took} ms of {ms}: {runs:?}");
        }
        assert!((8..=16).contains(&most), "{most}");
    }
}

/// One process alone has as many at the drive as that takes, and so have several that have all their requests there.
#[test]
fn a_process_alone_is_not_held_back() {
    assert_eq!(turns(1, 64).1, 32);
    assert_eq!(turns(16, 2).1, 32);
    let (runs, most) = turns(32, 2);
    assert_eq!(most, 32);
    let mut lengths: BTreeMap<u32, u32> = BTreeMap::new();
    runs.iter().for_each(|run| *lengths.entry(*run).or_default() += 1);
    assert!(lengths.keys().all(|run| *run <= 8), "{lengths:?}");
}

/// Sixty-four threads with one read in flight each, on a drive that takes 32: a thread whose read has ended asks again while nothing waits of the thread
/// before it, and goes first. Thirty-two threads take turns, and the others wait as long as that goes on.
#[test]
fn threads_that_have_just_been_served_go_before_those_that_wait() {
    let mut bench = cfq();
    let mut next = 0;
    let mut ask = |bench: &mut Bench, task: u32| {
        next = (next + 7919) % 100_000;
        assert_eq!(bench.submit(read(next * 4 * KIB, 4 * KIB, task)), Submitted::Queued);
    };
    (0..64).for_each(|task| ask(&mut bench, task));
    let mut served = [0; 64];
    for _ in 0..6400 {
        bench.now += Time::from_us(14);
        let first = bench.issued.remove(0);
        bench.complete(first);
        for task in std::mem::take(&mut bench.done) {
            served[task as usize] += 1;
            ask(&mut bench, task);
        }
    }
    assert_eq!(bench.issued.len(), 32);
    let often = served.iter().filter(|times| **times > 150).count();
    assert!((31..=34).contains(&often), "{served:?}");
}
