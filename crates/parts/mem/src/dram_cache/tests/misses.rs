//! Misses: the choice of pages to keep, and cases with full structures, work under way, and evictions.

use super::{admit::second_touch::Params, *};
use config::units::Share;
use proptest::prelude::*;
use proto::memory::Stage;

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

// Choice of missing pages to keep.

/// Remembers as many misses as the cache has pages.
fn second_touch() -> PageAdmission {
    PageAdmission::second_touch(Params { window: Share::ONE })
}

fn bench(sets: u32, ways: u32) -> Bench {
    Bench::new(&DramCacheSpec { admission: second_touch(), ..small(sets, ways) })
}

#[test]
fn a_spec_that_does_not_say_it_keeps_every_page() {
    let params = config::schema::params(&config::schema::of::<DramCacheSpec>(), "admission").expect("a key");
    assert_eq!(params[0].default.as_deref(), Some("\"always\""));
    assert_eq!(table_1().admission, PageAdmission::default());
}

/// A page is kept if it has missed, without having been kept, within the latest misses.
#[test]
fn a_worked_example() {
    let mut admission = second_touch().build(&3);
    // 1 has its second miss three misses later; its next is a first again. 2 has missed four misses ago, 4 just before.
    let misses = [1, 2, 3, 1, 2, 1, 4, 4, 3, 1, 5, 6, 7, 5];
    let kept: Vec<u64> = misses.into_iter().filter(|page| admission.admits(*page)).collect();
    assert_eq!(kept, [1, 2, 4, 5]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_second_miss_is_what_a_list_of_misses_says(
        window in 1usize..12,
        misses in prop::collection::vec(0u64..12, 1..200),
    ) {
        let mut admission = second_touch().build(&(window as u64));
        let mut list: Vec<(u64, bool)> = Vec::new();
        for page in misses {
            let first = list.len().saturating_sub(window);
            let latest = list[first..].iter().rev().find(|(other, _)| *other == page);
            let expected = latest.is_some_and(|(_, kept)| !kept);
            prop_assert_eq!(admission.admits(page), expected);
            list.push((page, expected));
        }
    }
}

#[test]
fn the_first_miss_is_answered_from_the_controller_and_the_second_puts_the_page_there() {
    let mut bench = bench(16, 4);
    let us = Time::from_us;
    [0, 100, 200].into_iter().for_each(|at| bench.at(us(at), read(5)));
    let ends = bench.ends();
    // The page comes 50 us after it was asked for; the backside controller takes 3 cycles of 2 GHz to end the miss, the frontside
    // controller one to answer. No column of DRAM is read for that.
    let come = bench.outside.submitted[0].0 + us(50);
    assert_eq!(ends[0], come + Time::from_ps(4 * 500));
    let stats = &bench.cache.stats;
    assert_eq!((stats.misses, stats.bypasses, stats.installs, stats.passes, stats.hits), (2, 1, 1, 1, 2));
    assert_eq!((bench.outside.submitted.len(), bench.outside.arrived.len()), (2, 1));
    assert!(ends[1] > us(150) && ends[2] < us(201) && bench.cache.is_cached(5 * PAGE), "{ends:?}");
    super::replay(&bench);
}

#[test]
fn the_time_of_a_page_that_passes_has_names() {
    let mut bench = bench(16, 4);
    bench.at(Time::ZERO, read(5));
    let end = bench.ends()[0];
    // Two commands, half a RAS and a column until the tags are known; one command for the answer.
    let tags = Time::from_ps(2 * 500 + 13_750 + 24 * 500);
    let waited = bench.cache.tally.reads();
    let of = |stage: Stage| Time::from_ps(waited[stage as usize] as u64);
    assert_eq!(of(Stage::Refill), end - Time::from_ps(500) - tags);
    assert_eq!((of(Stage::Memory), of(Stage::Controller)), (Time::ZERO, Time::from_ps(3 * 500)));
}

#[test]
fn misses_that_share_a_fetch_are_one_touch() {
    let mut bench = bench(16, 4);
    [0, 1, 2].into_iter().for_each(|at| bench.at(Time::from_us(at), read(5)));
    bench.run();
    let stats = &bench.cache.stats;
    assert_eq!((stats.misses, stats.merged, stats.bypasses, stats.passes), (3, 2, 1, 3));
    assert!(!bench.cache.is_cached(5 * PAGE));
    super::replay(&bench);
}

/// Accesses that demand that a page is kept: before it is requested, while it is in flight, and just as it arrives.
#[test]
fn a_page_is_kept_for_a_write_and_for_who_comes_again() {
    for other in [write(5), signal(5)] {
        for at in [Time::ZERO, Time::from_us(20)] {
            let mut bench = bench(16, 4);
            bench.at(Time::ZERO, read(5));
            bench.at(at, other);
            bench.run();
            let stats = &bench.cache.stats;
            assert_eq!((stats.installs, stats.bypasses, stats.passes), (1, 0, 0), "{other:?} at {at}");
            assert!(bench.cache.is_cached(5 * PAGE));
            super::replay(&bench);
        }
    }
    // The time of the answer, and a little before: whichever way it goes, nothing is lost.
    let (mut kept, mut passed) = (0, 0);
    for early in 0..200 {
        let mut bench = bench(16, 4);
        bench.at(Time::ZERO, read(5));
        bench.at(Time::from_ns(50_000 + early), write(5));
        bench.run();
        super::replay(&bench);
        kept += bench.cache.stats.hits - 1;
        passed += bench.cache.stats.bypasses;
    }
    assert_eq!(kept + passed, 200);
    assert!(kept > 0 && passed > 0, "{kept} {passed}");
}

/// Pages used over and over stay while others pass by once: four pages of one set, and a scan.
#[test]
fn a_scan_pushes_nothing_out() {
    let misses = |admission: PageAdmission| {
        let mut bench = Bench::new(&DramCacheSpec { admission, ..small(1, 4) });
        (0..4).for_each(|page| bench.cache.warm(page * PAGE, false));
        for n in 0..200 {
            let page = if n % 5 == 4 { 100 + n } else { n % 5 };
            bench.at(Time::from_us(100 * n), read(page));
        }
        bench.run();
        super::replay(&bench);
        (bench.cache.stats.misses, bench.cache.stats.bypasses)
    };
    assert_eq!(misses(second_touch()), (40, 40), "the scan alone");
    // Least recently used makes room: one set of five pages in turn never hits.
    assert_eq!(misses(PageAdmission::always).1, 0);
    assert!(misses(PageAdmission::always).0 > 150);
}

/// A changed page that is just leaving passes from the evict buffer, and is written all the same.
#[test]
fn a_page_may_pass_from_the_evict_buffer() {
    let mut bench = bench(1, 1);
    bench.cache.warm(0, true);
    bench.outside.latencies = [50, 500, 50].map(Time::from_us).into();
    bench.at(Time::ZERO, write(1));
    bench.at(Time::from_us(100), read(0));
    let ends = bench.ends();
    let stats = &bench.cache.stats;
    assert_eq!((stats.reclaims, stats.bypasses, stats.write_backs, stats.fetches), (1, 1, 1, 1));
    assert!(ends[1] < Time::from_us(101) && !bench.cache.is_cached(0), "{ends:?}");
    super::replay(&bench);
}
