//! What happens when things are full, under way, or on their way out.

use super::*;

#[test]
fn misses_of_a_page_share_its_fetch() {
    let mut bench = Bench::new(&small(16, 4));
    let us = Time::from_us;
    for (at, command) in [(us(0), signal(5)), (us(1), read(5)), (us(2), signal(5)), (us(3), write(5))] {
        bench.at(at, command);
    }
    bench.at(us(100), signal(5));
    let answers: Vec<Absent> = bench.run().into_iter().map(|(_, c)| c.absent).collect();
    let (wait, signal, signalled) = (Absent::Wait, Absent::Signal, Absent::Signalled);
    assert_eq!(answers, [signalled, wait, signalled, wait, signal]);
    let stats = &bench.cache.stats;
    assert_eq!((bench.outside.submitted.len(), stats.misses, stats.merged, stats.hits), (1, 4, 3, 3));
    assert_eq!(bench.outside.arrived.len(), 1);
}

#[test]
fn a_full_set_of_the_miss_status_row_holds_up_those_behind() {
    let mut spec = small(16, 4);
    spec.misses = MissSpec { sets: 2, ways: 1 };
    let mut bench = Bench::new(&spec);
    // 0 and 2 share a set; 1 has one of its own but comes behind them.
    for (number, page) in [0, 2, 1].into_iter().enumerate() {
        bench.at(Time::from_ns(200 * number as u64), signal(page));
    }
    let ends = bench.ends();
    assert!(ends.iter().all(|end| *end < Time::from_us(1)), "the answers do not wait for that");
    let asked: Vec<(Time, u64)> =
        bench.outside.submitted.iter().map(|(at, command)| (*at, command.offset / PAGE)).collect();
    let first = bench.outside.arrived[0].0;
    assert_eq!(asked.iter().map(|(_, page)| *page).collect::<Vec<_>>(), [0, 2, 1]);
    assert!(asked[0].0 < Time::from_us(1) && asked[1].0 > first && asked[2].0 > asked[1].0);
    assert_eq!(bench.cache.stats.full_misses, 1);

    // With two entries a set nothing waits.
    spec.misses.ways = 2;
    let mut bench = Bench::new(&spec);
    for (number, page) in [0, 2, 1].into_iter().enumerate() {
        bench.at(Time::from_ns(200 * number as u64), signal(page));
    }
    bench.run();
    assert!(bench.outside.submitted.iter().all(|(at, _)| *at < Time::from_us(1)));
    assert_eq!(bench.cache.stats.full_misses, 0);
}

#[test]
fn a_full_queue_stalls_the_frontside_controller() {
    let mut spec = small(16, 4);
    spec.misses = MissSpec { sets: 1, ways: 1 };
    spec.frontside.queue = 1;
    let mut bench = Bench::new(&spec);
    bench.cache.warm(9 * PAGE, false);
    // One is under way, one waits for the entry, one is in the queue, one stalls, and the hit is behind it.
    for (number, page) in [0, 1, 2, 3, 9].into_iter().enumerate() {
        bench.at(Time::from_ns(500 * number as u64), signal(page));
    }
    let ends = bench.ends();
    let first = bench.outside.arrived[0].0;
    assert!(ends[2] < Time::from_us(2), "{ends:?}");
    assert!(ends[3] > first && ends[4] > first, "{ends:?}");
    assert_eq!(bench.cache.stats.stalls, 1);
    assert_eq!((bench.cache.stats.hits, bench.cache.stats.installs), (1, 4));
}

#[test]
fn a_full_evict_buffer_holds_up_the_victims() {
    let spec = DramCacheSpec { evict_buffer: 1, ..small(2, 1) };
    let mut bench = Bench::new(&spec);
    (0..2).for_each(|page| bench.cache.warm(page * PAGE, true));
    bench.outside.latencies = vec![Time::from_us(50), Time::from_us(50), Time::from_us(200)];
    bench.at(Time::ZERO, read(2));
    bench.at(Time::from_ns(100), read(3));
    let ends = bench.ends();
    let submitted: Vec<_> = bench.outside.submitted.iter().map(|(_, c)| (c.op, c.offset / PAGE)).collect();
    assert_eq!(submitted, [(IoOp::Read, 2), (IoOp::Read, 3), (IoOp::Write, 0), (IoOp::Write, 1)]);
    let written = bench.outside.submitted[2].0 + Time::from_us(200);
    assert!(ends[0] < Time::from_us(60) && ends[1] > written);
    assert_eq!(bench.cache.stats.buffer_waits, 1);
    assert_eq!((bench.cache.stats.dirty_evictions, bench.cache.stats.write_backs), (2, 2));
}

#[test]
fn a_page_that_is_coming_is_no_victim() {
    let mut bench = Bench::new(&small(1, 2));
    for (number, page) in [0, 1, 2].into_iter().enumerate() {
        bench.at(Time::from_ns(500 * number as u64), read(page));
    }
    let ends = bench.ends();
    assert_eq!(bench.cache.stats.way_waits, 1);
    assert_eq!(bench.cache.stats.clean_evictions, 1);
    // Flash has read the third page by then, and its victim is copied only now.
    assert!(ends[2] > bench.outside.arrived[0].0 + Time::from_us(1));
    assert!(ends[2] < Time::from_us(60));
    assert!(!bench.cache.is_cached(0) && bench.cache.is_cached(PAGE) && bench.cache.is_cached(2 * PAGE));
}

#[test]
fn a_page_in_the_evict_buffer_comes_back_without_flash() {
    let mut bench = Bench::new(&small(1, 1));
    bench.cache.warm(0, true);
    // The write of the changed page takes long; the page is wanted again meanwhile, and then another.
    bench.outside.latencies = vec![Time::from_us(50), Time::from_us(500), Time::from_us(50)];
    let us = Time::from_us;
    bench.at(us(0), read(1));
    bench.at(us(100), read(0));
    bench.at(us(150), write(0));
    bench.at(us(200), read(1));
    let ends = bench.ends();
    let ops: Vec<_> = bench.outside.submitted.iter().map(|(_, c)| (c.op, c.offset / PAGE)).collect();
    assert_eq!(ops, [(IoOp::Read, 1), (IoOp::Write, 0), (IoOp::Read, 1), (IoOp::Write, 0)]);
    assert_eq!(bench.cache.stats.reclaims, 1);
    assert!(ends[1] < us(105), "no flash: {}", ends[1]);
    // It is not written a second time before the first write has ended.
    let first = bench.outside.submitted[1].0 + us(500);
    assert!(bench.outside.submitted[3].0 > first && ends[3] > first);
    assert_eq!(bench.cache.stats.way_waits, 1);
    super::replay(&bench);
}

#[test]
fn a_page_that_is_still_being_copied_comes_back_too() {
    for dirty in [false, true] {
        let mut bench = Bench::new(&small(1, 2));
        bench.cache.warm(0, dirty);
        bench.cache.warm(PAGE, false);
        bench.at(Time::ZERO, read(2));
        bench.at(Time::from_ns(400), read(0));
        bench.run();
        assert_eq!((bench.cache.stats.reclaims, bench.cache.stats.fetches), (1, 1), "dirty: {dirty}");
        assert_eq!(bench.cache.stats.write_backs, u64::from(dirty));
        assert!(bench.cache.is_cached(0));
    }
}

#[test]
fn a_write_brings_its_page_and_the_page_goes_back_to_flash() {
    let mut bench = Bench::new(&small(1, 1));
    bench.at(Time::ZERO, line(0, true, Absent::Signal));
    bench.at(Time::from_us(100), read(1));
    bench.at(Time::from_us(300), read(2));
    let done = bench.run();
    assert!(done[0].0 > Time::from_us(50) && done[0].1.absent == Absent::Signal);
    let ops: Vec<_> = bench.outside.submitted.iter().map(|(_, c)| (c.op, c.offset / PAGE)).collect();
    assert_eq!(ops, [(IoOp::Read, 0), (IoOp::Read, 1), (IoOp::Write, 0), (IoOp::Read, 2)]);
    assert_eq!((bench.cache.stats.dirty_evictions, bench.cache.stats.clean_evictions), (1, 1));
    super::replay(&bench);
}

#[test]
fn what_flash_fails_is_counted() {
    let mut bench = Bench::new(&small(1, 1));
    bench.at(Time::ZERO, signal(0));
    let Bench { cache, outside } = &mut bench;
    outside.latencies = vec![Time::from_s(1)];
    while outside.submitted.is_empty() {
        match outside.queue.pop().expect("something happens") {
            Ev::Cache(event) => cache.handle(event, outside),
            Ev::Arrive(number) => cache.command(outside.commands[number as usize], outside),
            Ev::Flash(_) | Ev::Backed(_) => unreachable!("flash takes a second"),
        }
    }
    let tag = outside.submitted[0].1.tag;
    cache.completed(
        Completion {
            tag,
            to: proto::Port::default(),
            status: Status::UnrecoveredRead,
            errors: 1,
            buffer: proto::BufferState::Unknown,
        },
        outside,
    );
    assert_eq!(cache.stats.errors, 1);
}
