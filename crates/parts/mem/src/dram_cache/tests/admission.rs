//! Which missing pages are kept.

use super::admit::second_touch::Params;
use super::*;
use config::units::Share;
use proptest::prelude::*;
use proto::memory::Stage;

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

/// Of accesses that want a page to be kept: before it is asked for, while it is on its way, and just as it has come.
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
