//! `mq-deadline`, by `__dd_dispatch_request`.

use super::*;
use crate::block::sched::mq_deadline::Params;

fn deadline(params: Params, queue_depth: u32) -> Bench {
    let spec = BlockSpec { nr_requests: Some(256), ..spec(SchedulerPolicy::mq_deadline(params)) };
    Bench::new(&spec, Device { queue_depth, ..DEVICE }, 1)
}

/// Bios that come while nothing is dispatched.
fn gather(bench: &mut Bench, bios: impl IntoIterator<Item = Bio>) {
    let mut plug = Plug::default();
    for bio in bios {
        bench.gather(&mut plug, bio, 0);
    }
    bench.flush(&mut plug, true);
}

/// Reads of 4 KiB every 8 KiB.
fn reads(count: u32) -> impl Iterator<Item = Bio> {
    (0..count).map(|number| read(u64::from(number) * 8 * KIB, 4 * KIB, number))
}

/// A batch of 16 reads, another one, then the write that waited, then the reads go on where they were.
#[test]
fn a_write_waits_for_two_batches_of_reads() {
    let mut bench = deadline(Params::default(), 1023);
    gather(&mut bench, std::iter::once(write(9000 * KIB, 4 * KIB, 100)).chain(reads(40)));
    bench.settle();
    let mut expected: Vec<_> = (0..40).map(|number| (IoOp::Read, number * 8, 4)).collect();
    expected.insert(32, (IoOp::Write, 9000, 4));
    assert_eq!(bench.commands(), expected);
    let scheduler = bench.queue.stats().scheduler;
    assert_eq!((scheduler.read_batches, scheduler.write_batches, scheduler.starved), (3, 1, 1));
    bench.drain();
    assert!(bench.queue.is_idle());
}

/// `writes_starved` of zero: writes that wait go first. `fifo_batch` bounds them in turn.
#[test]
fn batches_take_turns_as_the_parameters_say() {
    let mut bench = deadline(Params { writes_starved: 0, fifo_batch: 4, ..Params::default() }, 1023);
    let writes = (0..8).map(|number| write((9000 + number * 8) * KIB, 4 * KIB, 100));
    gather(&mut bench, reads(6).chain(writes));
    bench.settle();
    let kinds: String = bench.issued.iter().map(|i| if i.op == IoOp::Read { 'r' } else { 'w' }).collect();
    // While both wait, `starved` is one and more than zero at each new batch.
    assert_eq!(kinds, "wwwwwwwwrrrrrr");
}

/// The drive has the read at 100 KiB, and the one at 200 KiB has been chosen and waits for its tag. Behind it lies 300 KiB; the oldest, at 50
/// KiB, goes first when 500 ms have passed, and not a picosecond before.
#[test]
fn a_request_past_its_deadline_goes_first() {
    for (late, next) in [(Time::from_ms(500) - Time::from_ps(1), 300), (Time::from_ms(500), 50)] {
        let mut bench = deadline(Params { fifo_batch: 1, ..Params::default() }, 1);
        gather(&mut bench, [100, 50, 200, 300].map(|kib| read(kib * KIB, 4 * KIB, kib as u32)));
        bench.settle();
        assert_eq!(bench.commands(), [(IoOp::Read, 100, 4)]);
        bench.now += late;
        bench.complete(bench.issued[0]);
        bench.complete(bench.issued[1]);
        assert_eq!(bench.commands()[1..], [(IoOp::Read, 200, 4), (IoOp::Read, next, 4)]);
        assert_eq!(bench.queue.stats().scheduler.expired > 0, next == 50);
    }
}

/// A bio that closes a gap makes one request of two (`attempt_back_merge`), whose place in the order of age is that of the older one
/// (`dd_merged_requests`); the tag of the other one is free.
#[test]
fn a_bio_between_two_requests_makes_them_one() {
    let mut bench = deadline(Params::default(), 1);
    for (owner, kib) in [(0, 9000), (5, 9100)] {
        // The drive has the first, and the second waits for its tag.
        assert_eq!(bench.submit(read(kib * KIB, 4 * KIB, owner)), Submitted::Queued);
    }
    gather(&mut bench, [read(8 * KIB, 4 * KIB, 1), read(500 * KIB, 4 * KIB, 2)]);
    bench.now += Time::from_ms(1);
    gather(&mut bench, [read(0, 4 * KIB, 3)]);
    assert_eq!(bench.queue.stats().queued.value(), 5);
    assert_eq!(bench.submit(read(4 * KIB, 4 * KIB, 4)), Submitted::Queued);
    let stats = bench.queue.stats();
    assert_eq!((stats.back_merges, stats.request_merges, stats.queued.value()), (1, 1, 4));
    // The older of the two came 500 ms ago, the other one 499 ms.
    bench.now += Time::from_ms(499);
    bench.complete(bench.issued[0]);
    assert_eq!(bench.queue.stats().scheduler.expired, 1);
    bench.issued.remove(0);
    bench.drain();
    assert_eq!(bench.done, [0, 5, 3, 4, 1, 2]);
    assert!(bench.queue.is_idle());
}

/// A bio in front of a request joins it (`dd_request_merge`), and what ends there takes up both; not with `front_merges` off.
#[test]
fn a_bio_joins_in_front() {
    for front_merges in [true, false] {
        let mut bench = deadline(Params { front_merges, ..Params::default() }, 1);
        assert_eq!(bench.submit(read(9000 * KIB, 4 * KIB, 0)), Submitted::Queued);
        gather(&mut bench, [write(8 * KIB, 4 * KIB, 1)]);
        assert_eq!(bench.submit(write(4 * KIB, 4 * KIB, 2)), Submitted::Queued);
        let merges = bench.queue.stats().front_merges;
        assert_eq!((merges, bench.queue.stats().queued.value()), (u64::from(front_merges), 3 - merges));
        bench.drain();
        assert!(bench.queue.is_idle());
    }
}

/// A request from a plug joins one that waits (`elv_attempt_insert_merge`).
#[test]
fn a_request_joins_one_that_waits() {
    let mut bench = deadline(Params::default(), 1);
    assert_eq!(bench.submit(read(9000 * KIB, 4 * KIB, 0)), Submitted::Queued);
    let (mut first, mut second) = (Plug::default(), Plug::default());
    bench.gather(&mut first, write(0, 4 * KIB, 1), 0);
    bench.gather(&mut second, write(4 * KIB, 4 * KIB, 2), 0);
    bench.flush(&mut first, true);
    bench.flush(&mut second, true);
    assert_eq!((bench.queue.stats().request_merges, bench.queue.stats().queued.value()), (1, 2));
    bench.settle();
    bench.drain();
    assert_eq!(bench.done, [0, 1, 2]);
}

/// `dd_limit_depth`: of each word so many. Three quarters of 256 requests, 192, are more than a word has, so that nobody is held back (a fault of
/// this kernel, which later ones have mended).
#[test]
fn asynchronous_requests_have_their_depth() {
    for (async_depth, most) in [(None, 256), (Some(16), 64)] {
        let mut bench = deadline(Params { async_depth, ..Params::default() }, 1);
        let queued =
            (0..300).take_while(|n| bench.submit(write(n * 64 * KIB, 4 * KIB, 0)) == Submitted::Queued);
        assert_eq!(queued.count(), most);
        let reads_go_on = bench.submit(read(0, 4 * KIB, 1)) == Submitted::Queued;
        assert_eq!(reads_go_on, most < 256);
    }
}

// Plugs and merges.

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
