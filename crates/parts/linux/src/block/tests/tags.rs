//! Tags, and the tasks that wait for them.

use super::*;
use crate::block::tags::Tags;

/// `sbitmap_calculate_shift`, `sbq_calc_wake_batch`.
#[test]
fn words_and_batches_are_the_kernel_s() {
    // Depth, bits of a word: four words at least, of 64 bits at most.
    for (depth, word) in [(1023, 64), (256, 64), (128, 32), (64, 16), (16, 4), (4, 1)] {
        assert_eq!(Tags::new(depth).word(), word, "{depth}");
    }
    // 256: 256 / 8 = 32, at most 8. 31: 31 / 8 = 3. Limited to one bit of each of four words: 4 / 8, at least 1.
    let woken = |depth: u32, shallow: u32| {
        let mut tags = Tags::new(depth);
        tags.set_shallow(shallow);
        let lent: Vec<_> = std::iter::from_fn(|| tags.get(u32::MAX)).collect();
        assert_eq!(lent.len(), depth as usize);
        (0..20).for_each(|who| tags.wait(who));
        let mut woken = Vec::new();
        lent.iter()
            .map_while(|tag| {
                tags.put(*tag, |who| woken.push(who));
                woken.is_empty().then_some(())
            })
            .count()
            + 1
    };
    assert_eq!((woken(256, u32::MAX), woken(31, u32::MAX), woken(16, 1)), (8, 3, 1));
}

/// Two wait for 32 tags: one of list 0, one of list 1 (`sbq_wait_ptr`). Four that come back (32 / 8) wake list 0 alone, although there is one for each. Who
/// takes all four and waits again is in list 2: the next four wake list 1 before him.
#[test]
fn lists_of_those_who_wait_take_turns() {
    let mut tags = Tags::new(32);
    let mut lent: Vec<_> = std::iter::from_fn(|| tags.get(u32::MAX)).collect();
    let [greedy, other] = [7, 8];
    tags.wait(greedy);
    tags.wait(other);
    let mut woken = Vec::new();
    for round in 1..=3 {
        for tag in lent.drain(..4) {
            tags.put(tag, |who| woken.push(who));
        }
        assert_eq!(woken.len(), round);
        lent.extend((0..4).map(|_| tags.get(u32::MAX).expect("four came back")));
        tags.wait(woken[round - 1]);
    }
    assert_eq!(woken, [greedy, other, greedy]);
}

/// `sbitmap_get_shallow`: 48 of 64 bits in each of four words are 192 of 256; the rest is for others.
#[test]
fn a_shallow_depth_leaves_the_end_of_each_word() {
    let mut tags = Tags::new(256);
    let shallow: Vec<_> = std::iter::from_fn(|| tags.get(48)).collect();
    assert_eq!(shallow.len(), 192);
    assert!(shallow.iter().all(|tag| tag % 64 < 48));
    assert_eq!(std::iter::from_fn(|| tags.get(u32::MAX)).count(), 64);
}

/// `sbitmap_queue_resize`: what is lent beyond the new depth stays lent and is not lent again.
#[test]
fn a_smaller_depth_counts_for_what_is_lent_from_now_on() {
    let mut tags = Tags::new(16);
    let lent: Vec<_> = std::iter::from_fn(|| tags.get(u32::MAX)).collect();
    tags.resize(4);
    lent.iter().for_each(|tag| tags.put(*tag, |_| ()));
    assert_eq!(std::iter::from_fn(|| tags.get(u32::MAX)).count(), 4);
    tags.resize(16);
    assert_eq!(std::iter::from_fn(|| tags.get(u32::MAX)).count(), 12);
}

/// Four tags: four commands at the drive, the others wait and are woken one by one, first come first served.
#[test]
fn tags_bound_what_is_at_the_drive() {
    let mut bench = Bench::new(&spec(SchedulerPolicy::none), Device { queue_depth: 4, ..DEVICE }, 1);
    for owner in 0..4 {
        assert_eq!(bench.submit(read(u64::from(owner) * 64 * KIB, 4 * KIB, owner)), Submitted::Queued);
    }
    for owner in 4..6 {
        let waits = bench.submit(read(u64::from(owner) * 64 * KIB, 4 * KIB, owner));
        assert!(matches!(waits, Submitted::MustWait(_)));
    }
    assert_eq!((bench.issued.len(), bench.queue.stats().in_flight.value()), (4, 4));
    for number in 0..2 {
        bench.now += Time::from_us(10);
        bench.complete(bench.issued[number]);
        let woken = bench.woken.pop().expect("a task is woken");
        assert_eq!((woken.task, bench.woken.len()), (4 + number as u32, 0));
        let now = bench.now;
        assert_eq!(bench.queue.resume(woken.stalled, 0, None, now, &mut bench.effects), Submitted::Queued);
        bench.settle();
        assert_eq!(bench.issued.len(), 5 + number);
    }
    let stats = bench.queue.stats();
    assert_eq!((stats.tag_waits.count, stats.tag_waits.time), (2, Time::from_us(30)));
    assert_eq!(stats.in_flight.max(), 4);
    bench.issued.drain(..2);
    bench.drain();
    assert!(bench.queue.is_idle());
}

/// A task that was woken may find that another one was quicker, and waits again.
#[test]
fn a_task_that_comes_between_takes_the_tag() {
    let mut bench = Bench::new(&spec(SchedulerPolicy::none), Device { queue_depth: 1, ..DEVICE }, 1);
    let _ = bench.submit(read(0, 4 * KIB, 0));
    let _ = bench.submit(read(64 * KIB, 4 * KIB, 1));
    bench.complete(bench.issued[0]);
    assert_eq!(bench.submit(read(128 * KIB, 4 * KIB, 2)), Submitted::Queued);
    let woken = bench.woken.pop().expect("woken");
    let again = bench.queue.resume(woken.stalled, 0, None, bench.now, &mut bench.effects);
    assert!(matches!(again, Submitted::MustWait(_)));
    bench.complete(bench.issued[1]);
    assert_eq!(bench.woken.len(), 1);
}

/// With a scheduler a drive of few tags leaves requests where they can still be sorted and merged, and the queue is run again when one of its
/// requests is no more (`blk_mq_sched_restart`).
#[test]
fn a_queue_without_tags_is_run_again() {
    for scheduler in SchedulerPolicy::all_defaults() {
        let mut bench = Bench::new(
            &BlockSpec { nr_requests: Some(4), ..spec(scheduler) },
            Device { queue_depth: 4, ..DEVICE },
            1,
        );
        let name = bench.queue.scheduler.is_elevator();
        let mut left = Vec::new();
        for owner in 0..8 {
            left.push(bench.submit(read(u64::from(owner) * 64 * KIB, 4 * KIB, owner)));
        }
        while !bench.issued.is_empty() || !bench.woken.is_empty() {
            assert!(bench.queue.stats().in_flight.value() <= 4);
            if let Some(woken) = bench.woken.pop() {
                let now = bench.now;
                let _ = bench.queue.resume(woken.stalled, 0, None, now, &mut bench.effects);
                bench.settle();
            } else {
                let issued = bench.issued.remove(0);
                bench.complete(issued);
            }
        }
        bench.done.sort_unstable();
        assert_eq!(bench.done, (0..8).collect::<Vec<_>>(), "elevator: {name}");
        assert!(bench.queue.is_idle());
    }
}

/// `nr_requests` of `none` cannot be more than the drive's tags (`queue_requests_store`).
#[test]
fn more_requests_than_tags_are_refused() {
    let spec = BlockSpec { nr_requests: Some(2000), ..spec(SchedulerPolicy::none) };
    let refused = Queue::new(&spec, DEVICE, 1).err().expect("refused");
    assert_eq!(refused.key, "nr_requests");
}
