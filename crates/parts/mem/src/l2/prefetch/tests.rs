//! Worked examples: the predictor, the access monitor, the judgement.

use super::monitor::Monitor;
use super::predictor::{HIGHEST, Predictor};
use super::*;
use config::units::Share;
use proto::memory::LINE;

const CONTEXT: PrefetchContext = PrefetchContext { line: LINE };

fn reading(pc: u32, warp: u16, page: u64) -> Reading {
    Reading { pc, app: 0, warp, page, line: 0 }
}

/// Reads, and answers the count after each.
fn counts(predictor: &mut Predictor, readings: &[Reading]) -> Vec<u8> {
    let mut stats = PrefetchStats::default();
    let mut count = |r: &Reading| {
        predictor.read(r, &mut stats);
        predictor.count(r)
    };
    readings.iter().map(&mut count).collect()
}

#[test]
fn predictor_example_of_the_paper() {
    // Section IV-B: warp 0 at PC 0 reads the page it read before: plus one; another page: minus one, and it is recorded.
    let mut predictor = Predictor::new(512, 12);
    let at = |page| reading(0, 0, page);
    let got = counts(&mut predictor, &[at(7), at(7), at(7), at(9), at(9), at(7)]);
    assert_eq!(got, [0, 1, 2, 1, 2, 1]);
}

#[test]
fn the_count_has_four_bits_and_is_tested_against_twelve() {
    let mut predictor = Predictor::new(512, 12);
    let mut stats = PrefetchStats::default();
    let mut yes = Vec::new();
    for _ in 0..20 {
        predictor.read(&reading(4, 1, 5), &mut stats);
        yes.push(predictor.test(&reading(4, 1, 5), &mut stats));
    }
    // The first read records, the n-th makes the count n - 1: the 14th is the first above 12.
    assert_eq!(yes.iter().position(|y| *y), Some(13));
    assert_eq!(predictor.count(&reading(4, 1, 5)), HIGHEST);
    for n in 0..20 {
        predictor.read(&reading(4, 1, 100 + n), &mut stats);
    }
    assert_eq!(predictor.count(&reading(4, 1, 5)), 0);
}

#[test]
fn an_entry_follows_the_first_five_warps() {
    let mut predictor = Predictor::new(512, 12);
    let first: Vec<Reading> = (0..6).map(|warp| reading(0, warp, u64::from(warp))).collect();
    assert_eq!(counts(&mut predictor, &first), [0; 6]);
    // Warps do not disturb each other; the sixth is not followed.
    assert_eq!(counts(&mut predictor, &first), [1, 2, 3, 4, 5, 5]);
    // Warp 1 reads the page that warp 2 has read last, then one that nobody has.
    assert_eq!(counts(&mut predictor, &[reading(0, 1, 2), reading(0, 1, 9)]), [6, 5]);
}

#[test]
fn warps_that_read_a_stream_side_by_side_are_continuous() {
    // 80 warps take turns at the lines of a stream, 32 to a page: each reads another page every time it comes.
    let mut predictor = Predictor::new(512, 12);
    let stream: Vec<Reading> = (0..400).map(|n| reading(0, n % 80, u64::from(n / 32))).collect();
    let counts = counts(&mut predictor, &stream);
    // Of the five that are followed the first begins a page, once without a count and then at a cost of one, and the other
    // four find it recorded: 4, then 3 more a round, up to 15.
    let rounds: Vec<u8> = counts.iter().skip(4).step_by(80).copied().collect();
    assert_eq!(rounds, [4, 7, 10, 13, HIGHEST]);
}

#[test]
fn instructions_that_share_an_entry_share_its_count() {
    let mut predictor = Predictor::new(8, 12);
    counts(&mut predictor, &[reading(1, 0, 3), reading(1, 0, 3)]);
    assert_eq!(predictor.count(&reading(2, 0, 3)), 0);
    // 8 folds into 8 ^ 1 = 9, place 1.
    assert_eq!(predictor.count(&reading(8, 0, 3)), 1);
    // Another application's program lies an eighth of the table further on.
    assert_eq!(predictor.count(&Reading { app: 1, ..reading(1, 0, 3) }), 0);
    assert_eq!(predictor.count(&Reading { app: 1, ..reading(0, 0, 3) }), 1);
}

fn monitor() -> Monitor {
    let (high, low) = (Share::percent(30), Share::percent(5));
    Monitor { high, low, window: 20, least: 2, most: 32, step: 8, granularity: 32, evicted: 0, wasted: 0 }
}

/// The granularity, in bytes, after 20 lines have been evicted, `wasted` of them prefetched for nobody.
fn after(monitor: &mut Monitor, wasted: u32) -> u64 {
    let mut stats = PrefetchStats::default();
    for n in 0..20 {
        monitor.evicted(n < wasted, &mut stats);
    }
    assert_eq!(stats.evaluations, 1);
    u64::from(monitor.granularity) * LINE
}

#[test]
fn the_monitor_halves_and_adds_a_kib() {
    // Section IV-B: above 0.3 half of it, below 0.05 1 KB more; the bounds themselves are neither.
    let mut monitor = monitor();
    assert_eq!(after(&mut monitor, 7), 2048);
    assert_eq!(after(&mut monitor, 20), 1024);
    assert_eq!(after(&mut monitor, 6), 1024);
    assert_eq!(after(&mut monitor, 1), 1024);
    assert_eq!(after(&mut monitor, 0), 2048);
    assert_eq!(after(&mut monitor, 0), 3072);
    assert_eq!(after(&mut monitor, 0), 4096);
    assert_eq!(after(&mut monitor, 0), 4096);
    let down: Vec<u64> = (0..5).map(|_| after(&mut monitor, 20)).collect();
    assert_eq!(down, [2048, 1024, 512, 256, 256]);
    // 1.25 KiB is a multiple of lines too.
    assert_eq!(after(&mut monitor, 0), 1280);
}

#[test]
fn a_dynamic_prefetcher_follows_its_monitor() {
    let params = dynamic::Params { cutoff: 0, window: 1, ..dynamic::Params::default() };
    let mut dynamic = dynamic::Dynamic::new(&params, &CONTEXT);
    let mut stats = PrefetchStats::default();
    let mut chunk = |dynamic: &mut dynamic::Dynamic, wasted: Option<bool>| {
        if let Some(wasted) = wasted {
            dynamic.evicted(wasted, &mut stats);
        }
        dynamic.read(&reading(0, 0, 1), &mut stats);
        dynamic.chunk(&reading(0, 0, 1), &mut stats)
    };
    assert_eq!(chunk(&mut dynamic, None), 1, "the first read only records its page");
    assert_eq!(chunk(&mut dynamic, None), 32);
    assert_eq!(chunk(&mut dynamic, Some(true)), 16);
    assert_eq!(chunk(&mut dynamic, Some(false)), 24);
    assert_eq!((stats.prefetches, stats.chunk_lines), (3, 32 + 16 + 24));
    assert_eq!((stats.halvings, stats.raises, stats.evaluations), (1, 1, 2));
}

#[test]
fn a_page_is_cut_into_chunks_from_its_beginning() {
    assert_eq!(chunk_around(5, 1, 32), 1 << 5);
    assert_eq!(chunk_around(5, 8, 32), 0xff);
    assert_eq!(chunk_around(31, 32, 32), u64::from(u32::MAX));
    assert_eq!(chunk_around(63, 64, 64), u64::MAX);
    assert_eq!(chunk_around(40, 8, 64), 0xff << 40);
    // 1.25 KiB: lines 0 to 9, ..., 30 and 31.
    assert_eq!(chunk_around(12, 10, 32), 0x3ff << 10);
    assert_eq!(chunk_around(30, 10, 32), 0b11 << 30);
}

#[test]
fn verdicts_are_judged_by_what_the_warp_reads_next() {
    let params = predicted::Params { entries: 8, cutoff: 0, ..predicted::Params::default() };
    let mut predicted = predicted::Predicted::new(&params, &CONTEXT);
    let mut stats = PrefetchStats::default();
    let mut read = |warp: u16, page: u64, line: u32, miss: bool| {
        let reading = Reading { pc: 0, app: 0, warp, page, line };
        predicted.read(&reading, &mut stats);
        if miss {
            predicted.chunk(&reading, &mut stats);
        }
        stats
    };
    // No for page 1, in which the warp goes on: wrong.
    assert_eq!(read(0, 1, 0, true).judged, 0);
    let stats = read(0, 1, 3, true);
    assert_eq!((stats.judged, stats.right, stats.judged_yes), (1, 0, 0));
    // That read counted up: yes for page 1, and what another warp reads says nothing of it. The warp goes on there: right.
    assert_eq!(read(1, 2, 0, false).judged, 1);
    let stats = read(0, 1, 4, false);
    assert_eq!((stats.judged, stats.right, stats.judged_yes), (2, 1, 1));
    // It had hit: there was no test, and nothing to be judged.
    assert_eq!(read(0, 1, 5, true).judged, 2);
    // Yes again, but the warp leaves the page: wrong.
    let stats = read(0, 7, 0, false);
    assert_eq!((stats.judged, stats.right, stats.judged_yes), (3, 1, 2));
    // It wanders until the count is zero: no, and it leaves again: right.
    (10..18).for_each(|page| {
        read(0, page, 0, false);
    });
    read(0, 20, 0, true);
    let stats = read(0, 21, 0, false);
    assert_eq!((stats.judged, stats.right, stats.tests), (4, 2, 4));
    assert_eq!(stats.accuracy(), Some(0.5));
}

#[test]
fn parameters_that_do_not_fit_are_named() {
    let key = |policy: Prefetching| policy.check(LINE).map_err(|e| e.key);
    for policy in Prefetching::all_defaults() {
        assert_eq!(key(policy), Ok(()));
    }
    let dynamic = dynamic::Params::default();
    let with = |p| key(Prefetching::dynamic(p));
    let bytes = Bytes::new;
    assert_eq!(
        with(dynamic::Params { entries: 500, ..dynamic.clone() }),
        Err("prefetch.dynamic.entries".into())
    );
    assert_eq!(
        with(dynamic::Params { cutoff: 15, ..dynamic.clone() }),
        Err("prefetch.dynamic.cutoff".into())
    );
    assert_eq!(
        with(dynamic::Params { least: bytes(128), ..dynamic.clone() }),
        Err("prefetch.dynamic.least".into())
    );
    assert_eq!(
        with(dynamic::Params { most: bytes(8192), ..dynamic.clone() }),
        Err("prefetch.dynamic.most".into())
    );
    assert_eq!(
        with(dynamic::Params { most: bytes(256), least: bytes(512), ..dynamic.clone() }),
        Err("prefetch.dynamic.least".into())
    );
    assert_eq!(
        with(dynamic::Params { low: Share::percent(50), ..dynamic.clone() }),
        Err("prefetch.dynamic.low".into())
    );
    assert_eq!(with(dynamic::Params { window: 0, ..dynamic }), Err("prefetch.dynamic.window".into()));
    let predicted = predicted::Params { chunk: bytes(100), ..predicted::Params::default() };
    assert_eq!(key(Prefetching::predicted(predicted)), Err("prefetch.predicted.chunk".into()));
}
