//! Queue with scheduler and tags: `mq-deadline` by `__dd_dispatch_request`; `kyber` by `kyber_dispatch_request`,
//! `kyber_limit_depth`, `kyber_timer_fn`.

use super::*;
use crate::block::sched::{kyber, mq_deadline};

fn deadline(params: mq_deadline::Params, queue_depth: u32) -> Bench {
    let spec = BlockSpec { nr_requests: Some(256), ..spec(SchedulerPolicy::mq_deadline(params)) };
    Bench::new(&spec, Device { queue_depth, ..DEVICE }, 1)
}

/// Submits bios without dispatching any.
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

/// A batch of 16 reads, a second one, then the waiting write, then the reads continue.
#[test]
fn a_write_waits_for_two_batches_of_reads() {
    let mut bench = deadline(mq_deadline::Params::default(), 1023);
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

/// `writes_starved` of zero: waiting writes go first. `fifo_batch` bounds them in turn.
#[test]
fn batches_take_turns_as_the_parameters_say() {
    let mut bench = deadline(
        mq_deadline::Params { writes_starved: 0, fifo_batch: 4, ..mq_deadline::Params::default() },
        1023,
    );
    let writes = (0..8).map(|number| write((9000 + number * 8) * KIB, 4 * KIB, 100));
    gather(&mut bench, reads(6).chain(writes));
    bench.settle();
    let kinds: String = bench.issued.iter().map(|i| if i.op == IoOp::Read { 'r' } else { 'w' }).collect();
    // While both wait, `starved` is one and more than zero at each new batch.
    assert_eq!(kinds, "wwwwwwwwrrrrrr");
}

/// The drive has the read at 100 KiB; the one at 200 KiB has been chosen and waits for its tag. After it lies 300 KiB.
/// The oldest, at 50 KiB, goes first when 500 ms have passed, and not a picosecond earlier.
#[test]
fn a_request_past_its_deadline_goes_first() {
    for (late, next) in [(Time::from_ms(500) - Time::from_ps(1), 300), (Time::from_ms(500), 50)] {
        let mut bench = deadline(mq_deadline::Params { fifo_batch: 1, ..mq_deadline::Params::default() }, 1);
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

/// A bio that closes a gap joins two requests into one (`attempt_back_merge`), with the age of the older one
/// (`dd_merged_requests`); the tag of the younger one is free.
#[test]
fn a_bio_between_two_requests_makes_them_one() {
    let mut bench = deadline(mq_deadline::Params::default(), 1);
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

/// A bio in front of a request joins it (`dd_request_merge`), and a request that ends there takes up both; not with
/// `front_merges` off.
#[test]
fn a_bio_joins_in_front() {
    for front_merges in [true, false] {
        let mut bench = deadline(mq_deadline::Params { front_merges, ..mq_deadline::Params::default() }, 1);
        assert_eq!(bench.submit(read(9000 * KIB, 4 * KIB, 0)), Submitted::Queued);
        gather(&mut bench, [write(8 * KIB, 4 * KIB, 1)]);
        assert_eq!(bench.submit(write(4 * KIB, 4 * KIB, 2)), Submitted::Queued);
        let merges = bench.queue.stats().front_merges;
        assert_eq!((merges, bench.queue.stats().queued.value()), (u64::from(front_merges), 3 - merges));
        bench.drain();
        assert!(bench.queue.is_idle());
    }
}

/// A request from a plug joins a waiting one (`elv_attempt_insert_merge`).
#[test]
fn a_request_joins_one_that_waits() {
    let mut bench = deadline(mq_deadline::Params::default(), 1);
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

/// `dd_limit_depth`: a limit on each word. Three quarters of 256 requests, 192, exceed the bits of a word, so the limit
/// has no effect (a bug of this kernel, fixed in later ones).
#[test]
fn asynchronous_requests_have_their_depth() {
    for (async_depth, most) in [(None, 256), (Some(16), 64)] {
        let mut bench = deadline(mq_deadline::Params { async_depth, ..mq_deadline::Params::default() }, 1);
        let queued =
            (0..300).take_while(|n| bench.submit(write(n * 64 * KIB, 4 * KIB, 0)) == Submitted::Queued);
        assert_eq!(queued.count(), most);
        let reads_go_on = bench.submit(read(0, 4 * KIB, 1)) == Submitted::Queued;
        assert_eq!(reads_go_on, most < 256);
    }
}

// Plugs and merges.

/// `blk_attempt_plug_merge`: 32 consecutive bios of 4 KiB are one request of 128 KiB. The next one elsewhere shows it
/// to the driver (`blk_add_rq_to_plug`, `BLK_PLUG_FLUSH_SIZE`).
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

/// `BLK_MAX_REQUEST_COUNT`: the 33rd request shows 32 others. Without a scheduler the latest goes first (`rq_list_add`,
/// `nvme_queue_rqs`).
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

/// A task that falls asleep leaves its requests in the software queues of their cores, in order
/// (`blk_mq_dispatch_plug_list`); a worker runs the hardware queues. Until then, bios merge into them
/// (`blk_bio_list_merge`), at front and back.
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
    // A core checks only its own software queue.
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

/// Merge conditions: `rq_mergeable`, `bio_mergeable`, `ll_back_merge_fn`, `req_gap_back_merge`.
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
        // Only the last page may be partial.
        (write(0, 512, 0), write(512, 4 * KIB, 1), false),
        (write(4 * KIB, 512, 0), write(0, 4 * KIB, 1), true),
        (write(512, 4 * KIB, 0), write(0, 512, 1), false),
        // At most 508 KiB, and no split bio.
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

/// A request that has met its limit accepts no further bio, however small (`req_set_nomerge`).
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

// `kyber` in a queue, by `kyber_dispatch_request`, `kyber_limit_depth`, `kyber_timer_fn`.

fn kyber_bench() -> Bench {
    Bench::new(&spec(SchedulerPolicy::kyber(kyber::Params::default())), DEVICE, 1)
}

fn writes(bench: &mut Bench, count: u64) -> usize {
    (0..count).take_while(|n| bench.submit(write(n * 64 * KIB, 4 * KIB, 0)) == Submitted::Queued).count()
}

/// 128 writes are at the drive; further ones wait, reads do not. Eight completions release eight
/// (`sbq_calc_wake_batch`).
#[test]
fn tokens_bound_each_domain() {
    let mut bench = kyber_bench();
    assert_eq!(writes(&mut bench, 150), 150);
    assert_eq!(bench.issued.len(), 128);
    assert_eq!(bench.submit(read(0, 4 * KIB, 1)), Submitted::Queued);
    assert_eq!(bench.issued.len(), 129);
    for number in 0..7 {
        bench.complete(bench.issued[number]);
    }
    assert_eq!(bench.issued.len(), 129);
    bench.complete(bench.issued[7]);
    assert_eq!(bench.issued.len(), 137);
    // It waits again, and is woken again.
    for number in 8..16 {
        bench.complete(bench.issued[number]);
    }
    assert_eq!(bench.issued.len(), 145);
    assert!(bench.queue.stats().scheduler.throttled[1] > 0);
}

/// A queue whose scheduler declines is run again 3 ms later (`BLK_MQ_BUDGET_DELAY`), with the tokens returned until
/// then.
#[test]
fn a_queue_that_was_declined_is_run_again() {
    let mut bench = kyber_bench();
    let began = bench.now;
    assert_eq!(writes(&mut bench, 150), 150);
    bench.now += Time::from_ms(1);
    for number in 0..3 {
        bench.complete(bench.issued[number]);
    }
    assert_eq!(bench.queue.next_timer(), Some(began + Time::from_ms(3)));
    bench.now = began + Time::from_ms(3);
    bench.queue.timer(bench.now, &mut bench.effects);
    bench.settle();
    assert_eq!(bench.issued.len(), 131);
}

/// 256 requests in words of 64: asynchronous writes have 48 of each, 192 in all; the rest is for synchronous ones.
#[test]
fn asynchronous_writes_have_three_quarters_of_the_tags() {
    let mut bench = kyber_bench();
    assert_eq!(writes(&mut bench, 300), 192);
    for owner in 0..64 {
        let sync = BioFlags { sync: true, ..BioFlags::default() };
        let bio = Bio { flags: sync, ..write((1000 + u64::from(owner)) * 64 * KIB, 4 * KIB, owner) };
        assert_eq!(bench.submit(bio), Submitted::Queued, "{owner}");
    }
    assert!(matches!(bench.submit(read(0, 4 * KIB, 0)), Submitted::MustWait(_)));
    assert_eq!(bench.issued.len(), 128);
}

/// Batches of 16 reads and 8 writes in turn (`kyber_batch_size`).
#[test]
fn domains_take_turns() {
    let mut bench = kyber_bench();
    let mut plug = Plug::default();
    for number in 0..20 {
        bench.gather(&mut plug, write((9000 + number * 8) * KIB, 4 * KIB, 0), 0);
    }
    for number in 0..40 {
        bench.gather(&mut plug, read(number * 8 * KIB, 4 * KIB, 0), 0);
    }
    bench.flush(&mut plug, true);
    bench.settle();
    let kinds: String = bench.issued.iter().map(|i| if i.op == IoOp::Read { 'r' } else { 'w' }).collect();
    let turn = |reads: usize, writes: usize| "r".repeat(reads) + &"w".repeat(writes);
    assert_eq!(kinds, turn(16, 8) + &turn(16, 8) + &turn(8, 4));
    // Each domain in order of position, whatever the order of arrival.
    let offsets: Vec<_> = bench.issued.iter().filter(|i| i.op == IoOp::Read).map(|i| i.offset).collect();
    assert!(offsets.is_sorted());
}

/// Requests that wait for their core's turn still accept bios (`kyber_bio_merge`).
#[test]
fn waiting_requests_take_up_bios() {
    let mut bench = kyber_bench();
    assert_eq!(writes(&mut bench, 129), 129);
    assert_eq!(bench.submit(write(128 * 64 * KIB + 4 * KIB, 4 * KIB, 1)), Submitted::Queued);
    assert_eq!(bench.queue.stats().back_merges, 1);
}

/// Submits requests of one kind with equal latency.
fn load(bench: &mut Bench, op: IoOp, count: u64, latency: Time) {
    let mut left = count;
    while left > 0 {
        let now = left.min(100);
        for number in 0..now {
            assert_eq!(bench.submit(bio(op, number * 64 * KIB, 4 * KIB, 0)), Submitted::Queued);
        }
        bench.now += latency;
        bench.drain();
        left -= now;
    }
}

/// 500 reads of 4 ms are beyond 1 3/4 of their 2 ms, in the last of eight buckets: the drive is congested. 500 writes
/// of 2 ms are within a quarter of their 10 ms, in the first bucket: their depth becomes 128 * 1 / 4 = 32. That of
/// reads would become 256 * 8 / 4 and stays 256.
#[test]
fn fast_writes_give_way_to_slow_reads() {
    let mut bench = kyber_bench();
    let began = bench.now;
    load(&mut bench, IoOp::Read, 500, Time::from_ms(4));
    load(&mut bench, IoOp::Write, 500, Time::from_ms(2));
    assert_eq!(bench.queue.next_timer(), Some(began + Time::from_ms(104)));
    bench.now = bench.now.max(began + Time::from_ms(104));
    bench.queue.timer(bench.now, &mut bench.effects);
    bench.settle();
    let scheduler = bench.queue.stats().scheduler;
    assert_eq!((scheduler.depth.map(|depth| depth.value()), scheduler.resizes), ([256, 32, 64], [0, 1, 0]));
    assert_eq!((scheduler.congested, bench.queue.next_timer()), (1, None));
    assert_eq!(writes(&mut bench, 100), 100);
    assert_eq!(bench.issued.len(), 32);
    bench.drain();
    // Slow writes regain depth, without causing congestion themselves: 32 * 8 / 4 = 64.
    load(&mut bench, IoOp::Write, 600, Time::from_ms(20));
    bench.now += Time::from_ms(100);
    bench.queue.timer(bench.now, &mut bench.effects);
    assert_eq!(bench.queue.stats().scheduler.depth.map(|depth| depth.value()), [256, 64, 64]);
}

// Tags of a queue, and the tasks that wait for them.

/// Four tags: four commands at the drive, the others wait and are woken one by one, in order of arrival.
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

/// A woken task may find that another one was faster, and waits again.
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

/// With a scheduler, requests that find no tag stay where they can be sorted and merged, and the queue is run again
/// when one of its requests is freed (`blk_mq_sched_restart`).
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

/// `nr_requests` of `none` cannot exceed the drive's tags (`queue_requests_store`).
#[test]
fn more_requests_than_tags_are_refused() {
    let spec = BlockSpec { nr_requests: Some(2000), ..spec(SchedulerPolicy::none) };
    let refused = Queue::new(&spec, DEVICE, 1).err().expect("refused");
    assert_eq!(refused.key, "nr_requests");
}
