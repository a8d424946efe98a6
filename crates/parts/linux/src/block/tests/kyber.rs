//! `kyber` in a queue, by `kyber_dispatch_request`, `kyber_limit_depth`, `kyber_timer_fn`.

use super::*;
use crate::block::sched::kyber::Params;

fn kyber() -> Bench {
    Bench::new(&spec(SchedulerPolicy::kyber(Params::default())), DEVICE, 1)
}

fn writes(bench: &mut Bench, count: u64) -> usize {
    (0..count).take_while(|n| bench.submit(write(n * 64 * KIB, 4 * KIB, 0)) == Submitted::Queued).count()
}

/// 128 writes at the drive; the next wait, reads do not. Eight that have ended let eight go (`sbq_calc_wake_batch`).
#[test]
fn tokens_bound_each_domain() {
    let mut bench = kyber();
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

/// A queue whose scheduler declines is run again 3 ms later (`BLK_MQ_BUDGET_DELAY`), with the tokens that have come back until then.
#[test]
fn a_queue_that_was_declined_is_run_again() {
    let mut bench = kyber();
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

/// 256 requests in words of 64: writes that nobody waits for have 48 of each, 192 in all; the rest is for those that somebody waits for.
#[test]
fn asynchronous_writes_have_three_quarters_of_the_tags() {
    let mut bench = kyber();
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
    let mut bench = kyber();
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
    // Each domain in order, whoever came first.
    let offsets: Vec<_> = bench.issued.iter().filter(|i| i.op == IoOp::Read).map(|i| i.offset).collect();
    assert!(offsets.is_sorted());
}

/// What waits for its core's turn still takes up bios (`kyber_bio_merge`).
#[test]
fn waiting_requests_take_up_bios() {
    let mut bench = kyber();
    assert_eq!(writes(&mut bench, 129), 129);
    assert_eq!(bench.submit(write(128 * 64 * KIB + 4 * KIB, 4 * KIB, 1)), Submitted::Queued);
    assert_eq!(bench.queue.stats().back_merges, 1);
}

/// Requests of one kind that all take as long.
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

/// 500 reads of 4 ms are beyond 1 3/4 of their 2 ms, in the last of eight buckets: the drive is congested. 500 writes of 2 ms are within a
/// quarter of their 10 ms, in the first bucket: their depth becomes 128 * 1 / 4 = 32. That of reads would become 256 * 8 / 4 and stays 256.
#[test]
fn fast_writes_give_way_to_slow_reads() {
    let mut bench = kyber();
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
    // Slow writes get depth again, without congestion of their own making being needed: 32 * 8 / 4 = 64.
    load(&mut bench, IoOp::Write, 600, Time::from_ms(20));
    bench.now += Time::from_ms(100);
    bench.queue.timer(bench.now, &mut bench.effects);
    assert_eq!(bench.queue.stats().scheduler.depth.map(|depth| depth.value()), [256, 64, 64]);
}
