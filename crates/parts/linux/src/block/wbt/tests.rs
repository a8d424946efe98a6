//! Write-back throttling, by block/blk-wbt.c and block/blk-rq-qos.c.

use super::{Depth, Wbt};
use crate::block::tests::{Bench, DEVICE, KIB, read, spec, write};
use crate::block::{Bio, BioFlags, BlockSpec, Device, Queue, SchedulerPolicy, Submitted};
use config::units::Duration;
use engine::Time;

/// `rq_depth_calc_max_depth`: 16 at first; 1 + 15 >> step; 1 + 15 << -step, at most three quarters of the queue.
#[test]
fn depths_by_step() {
    let mut depth = Depth::new(256);
    assert_eq!(depth.max, 16);
    for max in [8, 4, 2, 1] {
        assert!(depth.scale_down(true));
        assert_eq!(depth.max, max);
    }
    assert!(!depth.scale_down(true));
    for max in [2, 4, 8, 16, 31, 61, 121, 192] {
        assert!(depth.scale_up());
        assert_eq!(depth.max, max);
    }
    assert!(!depth.scale_up());
    assert!(depth.scale_down(false));
    assert_eq!(depth.max, 121);
    // Gains are given up at once when reads are slow.
    assert!(depth.scale_down(true));
    assert_eq!((depth.step, depth.max), (0, 16));
    let mut single = Depth::new(1);
    assert_eq!(single.max, 2);
    assert!(single.scale_down(true));
    assert_eq!(single.max, 1);
}

/// `calc_wb_limits`: half and a quarter, rounded up.
#[test]
fn limits_by_depth() {
    let mut wbt = Wbt::new(Time::from_ms(2), 256, true);
    for (normal, background) in [(8, 4), (4, 2), (2, 1), (2, 1), (1, 1)] {
        assert_eq!((wbt.normal, wbt.background), (normal, background));
        wbt.scale_down(true);
    }
}

fn bench(write_cache: bool) -> Bench {
    let spec = BlockSpec { wbt_lat: Duration::new(Time::from_ms(2)), ..spec(SchedulerPolicy::none) };
    let mut bench = Bench::new(&spec, Device { write_cache, ..DEVICE }, 1);
    bench.now = Time::from_s(10);
    bench
}

fn with(flags: BioFlags, number: u64) -> Bio {
    Bio { flags, ..write(number * 64 * KIB, 4 * KIB, number as u32) }
}

/// Number of writes at the drive before one has to wait.
fn room(bench: &mut Bench, flags: BioFlags) -> u64 {
    (0..100).take_while(|number| bench.submit(with(flags, *number)) == Submitted::Queued).count() as u64
}

/// `get_limit`: 4 in the background or close to other I/O, 8 otherwise, 16 if a task waits; no limit for direct writes.
#[test]
fn writes_have_limits_by_class() {
    let none = BioFlags::default();
    let background = BioFlags { background: true, ..none };
    assert_eq!(room(&mut bench(true), background), 4);
    assert_eq!(room(&mut bench(true), none), 8);
    assert_eq!(room(&mut bench(true), BioFlags { sync: true, ..none }), 16);
    assert_eq!(room(&mut bench(true), BioFlags { meta: true, ..none }), 16);
    assert_eq!(room(&mut bench(true), BioFlags { sync: true, idle: true, ..none }), 100);
    let mut close = bench(true);
    assert_eq!(close.submit(read(0, 4 * KIB, 0)), Submitted::Queued);
    assert_eq!(room(&mut close, none), 4);
    let mut paused = bench(true);
    paused.queue.writer_paused(paused.now);
    assert_eq!(room(&mut paused, background), 16);
}

/// `wbt_rqw_done`: with a volatile cache, waiters are woken when all writes have completed; without one, when half a
/// background batch has room. A woken task has permission, and the others wait on.
#[test]
fn who_waits_is_woken_with_leave() {
    for write_cache in [true, false] {
        let mut bench = bench(write_cache);
        let background = BioFlags { background: true, ..BioFlags::default() };
        assert_eq!(room(&mut bench, background), 4);
        for number in 10..15 {
            assert!(matches!(bench.submit(with(background, number)), Submitted::MustWait(_)));
        }
        bench.complete(bench.issued[0]);
        assert_eq!(bench.woken.len(), usize::from(!write_cache));
        for number in 1..4 {
            bench.complete(bench.issued[number]);
        }
        // The write that was refused first, and three of the five behind it.
        assert_eq!(bench.woken.iter().map(|woken| woken.task).collect::<Vec<_>>(), [4, 10, 11, 12]);
        bench.now += Time::from_ms(7);
        for woken in std::mem::take(&mut bench.woken) {
            let now = bench.now;
            let again = bench.queue.resume(woken.stalled, 0, None, now, &mut bench.effects);
            assert_eq!(again, Submitted::Queued);
            bench.settle();
        }
        assert_eq!(bench.issued.len(), 8);
        let waits = bench.queue.stats().throttle_waits;
        assert_eq!((waits.count, waits.time), (6, Time::from_ms(28)));
    }
}

/// `latency_exceeded`, `wb_timer_fn`: three writes and reads of 3 ms in a window of 100 ms halve the depth; the next
/// window is 100 ms * 16 / isqrt(2 * 256) = 72.727272 ms. Fast reads double it again.
#[test]
fn slow_reads_throttle_writes() {
    let mut bench = bench(true);
    let mut window = |latency: u64| {
        let first = bench.issued.len();
        for number in 0..3 {
            let sync = BioFlags { sync: true, ..BioFlags::default() };
            assert_eq!(bench.submit(with(sync, number)), Submitted::Queued);
            assert_eq!(bench.submit(read(number * 64 * KIB, 4 * KIB, 0)), Submitted::Queued);
        }
        let began = bench.now;
        bench.now += Time::from_us(latency);
        for number in first..bench.issued.len() {
            bench.complete(bench.issued[number]);
        }
        let end = bench.queue.next_timer().expect("a window is open");
        bench.now = end;
        bench.queue.timer(end, &mut bench.effects);
        let wbt = bench.queue.stats().wbt;
        (end - began, wbt.scaled_down, wbt.scaled_up, wbt.exceeded)
    };
    assert_eq!(window(3_000), (Time::from_ms(100), 1, 0, 1));
    assert_eq!(window(2_001), (Time::from_ns(72_727_272), 2, 0, 2));
    // 100 ms * 16 / isqrt(3 * 256 = 768) = 1600 / 27.
    assert_eq!(window(2_000), (Time::from_ns(59_259_259), 2, 1, 2));
}

/// A read that does not complete counts as slow (`rwb_sync_issue_lat`), and writes alone raise the depth
/// (`LAT_UNKNOWN_WRITES`).
#[test]
fn a_read_under_way_counts() {
    for with_read in [true, false] {
        let mut bench = bench(true);
        if with_read {
            assert_eq!(bench.submit(read(0, 4 * KIB, 0)), Submitted::Queued);
        }
        assert_eq!(bench.submit(with(BioFlags::default(), 1)), Submitted::Queued);
        bench.now = bench.queue.next_timer().expect("a window is open");
        bench.queue.timer(bench.now, &mut bench.effects);
        let wbt = bench.queue.stats().wbt;
        assert_eq!((wbt.exceeded, wbt.scaled_up), (u64::from(with_read), u64::from(!with_read)));
    }
}

/// `LAT_UNKNOWN` five times in a row: back to the middle, a step at a time.
#[test]
fn an_idle_drive_returns_to_the_middle() {
    let mut wbt = Wbt::new(Time::from_ms(2), 256, true);
    wbt.scale_down(true);
    wbt.arm(Time::ZERO);
    let mut windows = 0;
    while let Some(end) = wbt.next_timer() {
        wbt.timer(end, &mut |_| ());
        windows += 1;
    }
    assert_eq!((windows, wbt.depth.step), (5, 0));
}

/// `wbt_init` reads `nr_requests` of the initial scheduler of a queue: `mq-deadline`, 2 * 32, for a drive of one queue;
/// none, 1,023, for a drive of more. Later changes have no effect. At its maximum the depth is three quarters of that.
#[test]
fn the_depth_is_that_of_the_first_scheduler() {
    let device = |queues, queue_depth| Device {
        max_transfer: 0,
        block: 512,
        queues,
        queue_depth,
        write_cache: true,
        fua: true,
    };
    for scheduler in SchedulerPolicy::all_defaults() {
        for (device, most) in [(device(1, 32), 48), (device(2, 1023), 767)] {
            let spec = BlockSpec { scheduler: scheduler.clone(), ..BlockSpec::default() };
            let mut queue = Queue::new(&spec, device, 2).expect("the spec is valid");
            let depth = &mut queue.wbt.as_mut().expect("it throttles").depth;
            while depth.scale_up() {}
            assert_eq!(depth.max, most);
        }
    }
}
