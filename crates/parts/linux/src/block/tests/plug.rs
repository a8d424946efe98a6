//! Plugs and merges.

use super::*;

/// `blk_attempt_plug_merge`: 32 bios of 4 KiB in a row are one request of 128 KiB. The next one elsewhere shows it to the driver
/// (`blk_add_rq_to_plug`, `BLK_PLUG_FLUSH_SIZE`).
#[test]
fn a_plug_merges_what_is_in_a_row() {
    let mut bench = Bench::new(&spec(SchedulerPolicy::none), DEVICE, 1);
    let mut plug = Plug::default();
    for page in 0..32 {
        bench.gather(&mut plug, write(page * 4 * KIB, 4 * KIB, page as u32), 0);
    }
    assert_eq!((plug.len(), bench.issued.len()), (1, 0));
    bench.gather(&mut plug, write(1024 * KIB, 4 * KIB, 32), 0);
    assert_eq!(bench.commands(), [(IoOp::Write, 0, 128)]);
    bench.flush(&mut plug, false);
    bench.settle();
    assert_eq!(bench.commands(), [(IoOp::Write, 0, 128), (IoOp::Write, 1024, 4)]);
    let stats = bench.queue.stats();
    assert_eq!((stats.plug_merges, stats.back_merges, stats.front_merges), (31, 31, 0));
    assert_eq!(stats.mean_bytes(IoOp::Write), 66.0 * 1024.0);
    bench.drain();
    assert_eq!(bench.done, (0..33).collect::<Vec<_>>());
}

/// `BLK_MAX_REQUEST_COUNT`: the 33rd request shows 32 others. Without a scheduler the latest goes first (`rq_list_add`, `nvme_queue_rqs`).
#[test]
fn a_full_plug_is_shown_the_latest_first() {
    let mut bench = Bench::new(&spec(SchedulerPolicy::none), DEVICE, 1);
    let mut plug = Plug::default();
    for number in 0..33 {
        bench.gather(&mut plug, read(number * 8 * KIB, 4 * KIB, number as u32), 0);
    }
    assert_eq!(bench.commands(), (0..32).rev().map(|n| (IoOp::Read, n * 8, 4)).collect::<Vec<_>>());
    assert_eq!(plug.len(), 1);
}

/// A task that falls asleep leaves its requests in the software queues of their cores, in order (`blk_mq_dispatch_plug_list`); a worker runs
/// the hardware queues. Until then they take up more (`blk_bio_list_merge`), in front and behind.
#[test]
fn what_a_sleeper_leaves_can_be_merged() {
    let mut bench = Bench::new(&spec(SchedulerPolicy::none), DEVICE, 2);
    let mut plug = Plug::default();
    bench.gather(&mut plug, read(100 * KIB, 4 * KIB, 0), 0);
    bench.gather(&mut plug, read(200 * KIB, 4 * KIB, 1), 0);
    bench.gather(&mut plug, read(300 * KIB, 4 * KIB, 2), 1);
    bench.flush(&mut plug, true);
    bench.collect();
    assert!(bench.issued.is_empty() && plug.is_empty());
    let runs: Vec<_> = bench.effects.runs.iter().map(|run| (run.hctx, run.later)).collect();
    assert_eq!(runs, [(1, true), (0, true)]);
    let mut later = Plug::default();
    bench.gather(&mut later, read(104 * KIB, 4 * KIB, 3), 0);
    bench.gather(&mut later, read(196 * KIB, 4 * KIB, 4), 0);
    // A core asks its own software queue alone.
    bench.gather(&mut later, read(304 * KIB, 4 * KIB, 5), 0);
    assert_eq!(later.len(), 1);
    bench.settle();
    assert_eq!(bench.commands(), [(IoOp::Read, 300, 4), (IoOp::Read, 100, 8), (IoOp::Read, 196, 8)]);
    let stats = bench.queue.stats();
    assert_eq!((stats.plug_merges, stats.back_merges, stats.front_merges), (0, 1, 1));
    bench.flush(&mut later, false);
    bench.settle();
    bench.drain();
    assert_eq!(bench.done, [2, 0, 3, 4, 1, 5]);
}

/// What is merged: `rq_mergeable`, `bio_mergeable`, `ll_back_merge_fn`, `req_gap_back_merge`.
#[test]
fn what_does_not_belong_together_stays_apart() {
    let fua = |bio: Bio| Bio { flags: BioFlags { fua: true, ..bio.flags }, ..bio };
    let pairs = [
        (write(0, 4 * KIB, 0), read(4 * KIB, 4 * KIB, 1), false),
        (write(0, 4 * KIB, 0), write(4 * KIB, 4 * KIB, 1), true),
        (write(4 * KIB, 4 * KIB, 0), write(0, 4 * KIB, 1), true),
        (write(0, 4 * KIB, 0), fua(write(4 * KIB, 4 * KIB, 1)), false),
        (bio(IoOp::WriteZeroes, 0, 4 * KIB, 0), bio(IoOp::WriteZeroes, 4 * KIB, 4 * KIB, 1), false),
        (bio(IoOp::Trim, 0, 512, 0), bio(IoOp::Trim, 512, 4 * KIB, 1), true),
        // A page that is not full can only be the last.
        (write(0, 512, 0), write(512, 4 * KIB, 1), false),
        (write(4 * KIB, 512, 0), write(0, 4 * KIB, 1), true),
        (write(512, 4 * KIB, 0), write(0, 512, 1), false),
        // 508 KiB at most, and none that was split off in front.
        (write(0, 504 * KIB, 0), write(504 * KIB, 4 * KIB, 1), true),
        (write(0, 504 * KIB, 0), write(504 * KIB, 8 * KIB, 1), false),
    ];
    for (first, second, merged) in pairs {
        for merges in [false, true] {
            let mut bench = Bench::new(&BlockSpec { merges, ..spec(SchedulerPolicy::none) }, DEVICE, 1);
            let mut plug = Plug::default();
            bench.gather(&mut plug, first, 0);
            bench.gather(&mut plug, second, 0);
            let merged = u64::from(merged && merges);
            assert_eq!(bench.queue.stats().plug_merges, merged, "{first:?} {second:?}");
            bench.flush(&mut plug, false);
            bench.settle();
            bench.drain();
            assert!(bench.queue.is_idle());
        }
    }
}

/// A request that has met its limit takes up nothing more, however little (`req_set_nomerge`).
#[test]
fn a_request_at_its_limit_is_closed() {
    let mut bench = Bench::new(&spec(SchedulerPolicy::none), DEVICE, 1);
    let mut plug = Plug::default();
    bench.gather(&mut plug, write(100 * KIB, 504 * KIB, 0), 0);
    bench.gather(&mut plug, write(604 * KIB, 8 * KIB, 1), 0);
    // The first request has been shown, since it is longer than 128 KiB.
    assert_eq!(bench.commands(), [(IoOp::Write, 100, 504)]);
    bench.flush(&mut plug, true);
    bench.settle();
    let mut bench = Bench::new(&spec(SchedulerPolicy::none), Device { max_transfer: 8 * KIB, ..DEVICE }, 1);
    let mut plug = Plug::default();
    bench.gather(&mut plug, write(100 * KIB, 4 * KIB, 0), 0);
    bench.flush(&mut plug, true);
    bench.collect();
    for (offset, owner) in [(104, 1), (92, 2), (108, 3)] {
        bench.gather(&mut plug, write(offset * KIB, 4 * KIB, owner), 0);
    }
    // 104 joins 100; 92 is apart; 108 finds it full, which closes it for 96.
    bench.gather(&mut plug, write(96 * KIB, 4 * KIB, 4), 0);
    assert_eq!(plug.len(), 3);
    bench.flush(&mut plug, false);
    bench.settle();
    bench.drain();
}
