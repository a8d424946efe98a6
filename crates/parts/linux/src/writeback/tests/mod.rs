//! Each formula against numbers worked out by hand from the kernel's function, then the machines: alone, in a loop with
//! writers and devices, and under random actions of a host.

mod balance;
mod flusher;
mod hosts;

use super::{
    Clock, Dirtier, FRAC_BASE, Global, Local, MinPause, Rates, Reason, Step, Writeback, WritebackSpec, Wrote,
    dirty_poll_interval, interval, wb_max_pause, wb_min_pause,
};
use crate::{
    Inode,
    writeback::{
        Bound, DirtyBounds, DirtyLimits,
        spec::{Domain, Ratios},
    },
};
use config::units::{Bytes, Share};
use engine::Time;

/// Linux's defaults, four cores.
fn writeback(drives: u16, avail: u64) -> Writeback {
    Writeback::new(&WritebackSpec::default(), 250, drives, 4, avail).expect("defaults can be built")
}

/// Like [`writeback`], but one drive has received all earlier writes, so that it has the whole limit.
fn busy(avail: u64) -> Writeback {
    let mut writeback = writeback(1, avail);
    let inode = Inode(9);
    let _ = writeback.dirtied(inode, 0, 1_000, &mut Dirtier::default(), 0, Time::ZERO);
    let _ = writeback.start_all(0, Reason::Vmscan);
    assert!(writeback.start(0, Time::ZERO));
    while !matches!(writeback.next(0, avail, Time::ZERO), Step::Idle { .. }) {
        let pages = writeback.dirty_of(inode);
        if pages > 0 {
            writeback.started(inode, pages);
            writeback.ended(inode, pages, Time::ZERO);
            writeback.wrote(0, Wrote { pages, skipped: 0, next: 0 }, Time::ZERO);
        }
    }
    writeback.reset_stats();
    writeback
}

// `INITIAL_JIFFIES`, `calc_wheel_index`.

/// 2^32 - 300 * 250.
const BOOT: u64 = 4_294_892_296;

#[test]
fn ticks_are_4_ms_and_begin_five_minutes_before_the_counter_wraps() {
    let clock = Clock::new(250);
    let at = |us| clock.jiffies(Time::from_us(us)) - BOOT;
    assert_eq!([at(0), at(3_999), at(4_000), at(1_000_000)], [0, 0, 1, 250]);
    assert_eq!(clock.time(BOOT + 3), Time::from_ms(12));
    assert_eq!(clock.span(Time::from_us(1)), 1, "rounded up");
    assert_eq!(clock.span(Time::from_s(30)), 7_500);
    assert_eq!([100, 250, 1000].map(interval), [20, 50, 200], "200 ms");
}

#[test]
fn timers_fire_late_by_the_grain_of_their_wheel() {
    let clock = Clock::new(250);
    // The first wheel has single ticks, up to 62.
    assert_eq!(clock.expiry(1_000, 0), 1_001);
    assert_eq!(clock.expiry(1_000, 62), 1_063);
    // The second has eights, up to 503: 1063 / 8 = 132.9.
    assert_eq!(clock.expiry(1_000, 63), 133 * 8);
    assert_eq!(clock.expiry(1_000, 503), 188 * 8, "1503 / 8 = 187.9");
    // The third has 64, up to 4031. Five seconds are 1250 ticks: 2250 / 64 = 35.2.
    assert_eq!(clock.expiry(1_000, 504), 24 * 64, "1504 / 64 = 23.5");
    assert_eq!(clock.expiry(1_000, 1_250), 36 * 64);
    assert_eq!(clock.expiry(1_000, 4_031), 79 * 64, "5031 / 64 = 78.6");
    assert_eq!(clock.expiry(1_000, 4_032), 10 * 512, "5032 / 512 = 9.8");
}

// `dirty_poll_interval`, `wb_max_pause`, `wb_min_pause`.

const HZ: u64 = 250;

#[test]
fn how_often_writers_are_looked_at() {
    // ilog2(838656) = 19: 2^9. ilog2(4) = 2: 2.
    assert_eq!(dirty_poll_interval(0, 838_656), 512);
    assert_eq!(dirty_poll_interval(96, 100), 2);
    assert_eq!(dirty_poll_interval(99, 100), 1);
    assert_eq!([dirty_poll_interval(100, 100), dirty_poll_interval(500, 100)], [1, 1]);
}

#[test]
fn the_longest_pause_leaves_the_device_work() {
    // 1 + 250 / 8 = 32 ticks are the eighth: 25600 / 32 + 1 = 801 pages for each tick of pause.
    assert_eq!(wb_max_pause(HZ, 25_600, 8_010), 11);
    assert_eq!(wb_max_pause(HZ, 25_600, 8_009), 10);
    assert_eq!(wb_max_pause(HZ, 25_600, 0), 1);
    assert_eq!(wb_max_pause(HZ, 25_600, 1_000_000), 50, "200 ms");
    // 1 + 100 / 8 = 13, rounded up to 16: 25600 / 16 + 1 = 1601.
    assert_eq!(wb_max_pause(100, 25_600, 16_010), 11);
}

fn min_pause(max_pause: u64, dirty_ratelimit: u64, task_ratelimit: u64) -> (u64, u64) {
    let rates = Rates { write_bandwidth: 25_600, dirty_ratelimit, task_ratelimit };
    let MinPause { pause, nr_dirtied_pause } = wb_min_pause(HZ, max_pause, &rates);
    (pause, nr_dirtied_pause)
}

#[test]
fn one_writer_is_looked_at_every_two_ticks() {
    // 250 / 100 = 2 ticks: 25600 * 2 / 256 = 200 pages. Half of the ticks, and at least one.
    assert_eq!(min_pause(50, 25_600, 25_600), (2, 200));
}

#[test]
fn eight_writers_pause_for_longer() {
    // ilog2(25600) - ilog2(3200) = 3: 2 + 3 * 2500 / 1024 = 9 ticks; 3200 * 9 / 256 = 112 pages; 1 + 9 / 2.
    assert_eq!(min_pause(50, 3_200, 3_200), (5, 112));
    // Half of the maximum pause, at most 5, and one: 3200 * 5 / 256 = 62; 1 + 5 / 2.
    assert_eq!(min_pause(9, 3_200, 3_200), (3, 62));
}

#[test]
fn slow_writers_dirty_32_pages_if_the_longest_pause_allows_it() {
    // 2 + 8 * 2500 / 1024 = 21 ticks would be 8 pages; 50 ticks: 100 * 50 / 256 = 19. The whole pause is the minimum.
    assert_eq!(min_pause(50, 100, 100), (50, 19));
    // 200 * 50 / 256 = 39: 32 pages in 250 * 32 / 200 = 40 ticks; 1 + 40 / 2.
    assert_eq!(min_pause(50, 200, 200), (21, 32));
}

#[test]
fn far_above_the_set_point_fewer_pages_are_dirtied() {
    // 112 pages at 320 a second are 250 * 112 / 321 = 87 ticks: 320 * 50 / 256 = 62 pages; 1 + 50 / 2.
    assert_eq!(min_pause(50, 3_200, 320), (26, 62));
}

// Limits of the spec.

fn spec() -> WritebackSpec {
    WritebackSpec::default()
}

#[test]
fn without_a_word_linux_defaults_hold() {
    let bounds = spec().bounds().expect("good");
    assert_eq!(bounds, DirtyBounds { background: Bound::Percent(10), limit: Bound::Percent(20) });
    assert_eq!(spec().check(4), Ok(()));
    assert_eq!(spec().warning(), None);
}

#[test]
fn a_bound_in_bytes_is_one_in_place_of_the_ratio() {
    let spec = WritebackSpec { dirty_bytes: Some(Bytes::from_kib(64)), ..spec() };
    let bounds = spec.bounds().expect("good");
    assert_eq!(bounds, DirtyBounds { background: Bound::Percent(10), limit: Bound::Bytes(65_536) });
    assert_eq!(spec.warning(), None, "they are not comparable");
}

#[test]
fn a_bound_given_twice_is_an_error() {
    let twice = WritebackSpec {
        dirty_ratio: Some(Share::percent(20)),
        dirty_bytes: Some(Bytes::from_kib(64)),
        ..spec()
    };
    let error = twice.check(1).expect_err("twice");
    assert_eq!(error.key, "dirty_bytes");
    assert_eq!(error.what, "`dirty_ratio` and `dirty_bytes` are both given, but set the same limit");
    let twice = WritebackSpec {
        dirty_background_ratio: Some(Share::percent(20)),
        dirty_background_bytes: Some(Bytes::from_kib(64)),
        ..spec()
    };
    assert_eq!(Writeback::new(&twice, 250, 1, 1, 1_000).expect_err("twice").key, "dirty_background_bytes");
}

#[test]
fn every_whole_per_cent_is_one() {
    for percent in 0..=100_u8 {
        let spec = WritebackSpec { dirty_ratio: Some(Share::percent(percent)), ..spec() };
        assert_eq!(spec.bounds().expect("good").limit, Bound::Percent(percent.into()));
    }
    let odd = WritebackSpec { dirty_ratio: Some(Share::new(0.125).expect("a share")), ..spec() };
    assert_eq!(odd.check(1).expect_err("12.5 %").key, "dirty_ratio");
}

#[test]
fn drives_leave_something_to_share() {
    let with =
        |min, max| WritebackSpec { min_ratio: Share::percent(min), max_ratio: Share::percent(max), ..spec() };
    assert_eq!(with(49, 100).check(2), Ok(()));
    assert_eq!(with(50, 100).check(2).expect_err("100 %").key, "min_ratio");
    assert_eq!(with(30, 20).check(1).expect_err("more than the most").key, "min_ratio");
}

#[test]
fn a_background_that_counts_as_half_is_told() {
    let with = |background, limit| WritebackSpec {
        dirty_background_ratio: Some(Share::percent(background)),
        dirty_ratio: Some(Share::percent(limit)),
        ..spec()
    };
    assert_eq!(with(5, 10).warning(), None);
    let expected = "background write-back starts at 10 %, not below the limit of 10 %; as in Linux, half of the limit is used instead";
    assert_eq!(with(10, 10).warning().as_deref(), Some(expected));
    let expected = "background write-back starts at 10 %, not below the limit of 3 %; as in Linux, half of the limit is used instead";
    let low = WritebackSpec { dirty_ratio: Some(Share::percent(3)), ..spec() };
    assert_eq!(low.warning().as_deref(), Some(expected));
}

// `lib/flex_proportions.c`.

#[test]
fn three_to_one() {
    let (mut global, mut a, mut b) = (Global::default(), Local::default(), Local::default());
    for _ in 0..1_000 {
        a.add(&mut global, FRAC_BASE, 3);
        b.add(&mut global, FRAC_BASE, 1);
    }
    assert_eq!((a.fraction(&global), b.fraction(&global)), ((3_000, 4_001), (1_000, 4_001)));
    // A period ends: 4001 / 2 = 2000, 3000 / 2, 1000 / 2.
    assert!(global.new_period());
    assert_eq!((a.fraction(&global), b.fraction(&global)), ((1_500, 2_000), (500, 2_000)));
    // The reverse for a period: (1500 + 1000) of 6000, (500 + 3000) of 6000.
    a.add(&mut global, FRAC_BASE, 1_000);
    b.add(&mut global, FRAC_BASE, 3_000);
    assert_eq!((a.fraction(&global), b.fraction(&global)), ((2_500, 6_000), (3_500, 6_000)));
}

#[test]
fn who_does_nothing_fades_until_one_event_is_left() {
    let (mut global, mut a, mut b) = (Global::default(), Local::default(), Local::default());
    assert!(!global.new_period(), "nothing has happened");
    a.add(&mut global, FRAC_BASE, 1_024);
    assert!((0..3).all(|_| global.new_period()));
    b.add(&mut global, FRAC_BASE, 1_024);
    // 1025 / 8 + 1024 = 1152, 1024 / 8 = 128.
    assert_eq!((a.fraction(&global), b.fraction(&global)), ((128, 1_152), (1_024, 1_152)));
    // 1152 / 1024 = 1: one event, of b, and it stays.
    assert!((0..10).all(|_| global.new_period()));
    assert!(!global.new_period());
    assert_eq!((a.fraction(&global), b.fraction(&global)), ((0, 1), (1, 1)));
}

#[test]
fn what_was_long_ago_is_nothing() {
    let (mut global, mut a, mut b) = (Global::default(), Local::default(), Local::default());
    a.add(&mut global, FRAC_BASE, 1 << 40);
    for _ in 0..70 {
        b.add(&mut global, FRAC_BASE, 10);
        assert!(global.new_period());
    }
    assert_eq!(a.fraction(&global).0, 0);
}

#[test]
fn a_kind_with_a_most_part_stops_there() {
    let (mut global, mut a, mut b) = (Global::default(), Local::default(), Local::default());
    let quarter = FRAC_BASE / 4;
    // 1 * 256 - 0 parts are free, and each event takes 768: one is added, and takes it above.
    a.add(&mut global, quarter, 100);
    assert_eq!(a.fraction(&global), (1, 2));
    a.add(&mut global, quarter, 100);
    assert_eq!(a.fraction(&global), (1, 2), "2 * 256 < 1 * 1024");
    b.add(&mut global, FRAC_BASE, 398);
    // 400 * 256 - 1 * 1024 = 101376 = 132 * 768.
    a.add(&mut global, quarter, 131);
    assert_eq!(a.fraction(&global), (132, 531));
    a.add(&mut global, quarter, 100);
    assert_eq!(a.fraction(&global), (133, 532), "exactly a quarter");
}

#[test]
fn periods_are_three_seconds_from_the_first_write_on() {
    let all = Ratios { min: 0, max: 100 };
    let mut domain = Domain::new(250, 0, 0);
    let (mut a, mut b) = (Local::default(), Local::default());
    domain.written(&mut a, FRAC_BASE, 1_000, 100);
    domain.age(849);
    assert_eq!(domain.wb_thresh(&a, all, 1_001_000), 1_000_000, "1000 of 1001");
    // At 850: 500 of 500. Then 1500 of the other: a quarter.
    domain.written(&mut b, FRAC_BASE, 1_500, 850);
    assert_eq!(domain.wb_thresh(&a, all, 1_000_000), 250_000);
    // At 1600, 2350 and 3100 all halves: nothing changes but what is lost by rounding (62 of 250).
    domain.age(3_100);
    assert_eq!(domain.wb_thresh(&a, all, 1_000_000), 248_000);
    // After seven more, one page is left, and it is the other's: 1500 / 1024. No further period ends.
    domain.age(100_000);
    assert_eq!([&a, &b].map(|local| domain.wb_thresh(local, all, 1_000_000)), [0, 1_000_000]);
    // The next write begins one: 64 of 65, and a tick before its end 64 of 129.
    domain.written(&mut a, FRAC_BASE, 64, 101_000);
    assert_eq!(domain.wb_thresh(&a, all, 65_000), 64_000);
    domain.written(&mut b, FRAC_BASE, 64, 101_749);
    assert_eq!(domain.wb_thresh(&a, all, 129_000), 64_000);
    domain.written(&mut b, FRAC_BASE, 64, 101_750);
    assert_eq!(domain.wb_thresh(&a, all, 1_000_000), 250_000, "32 of 128");
}

// `domain_dirty_limits`, `update_dirty_limit`, `__wb_calc_thresh`.

/// Pages of 16 GiB.
const AVAIL: u64 = 4_194_304;

const ALL: Ratios = Ratios { min: 0, max: 100 };

#[test]
fn sixteen_gib_with_linux_defaults() {
    // 20 % are 20 * 4096 / 100 = 819 parts of 4096, 10 % are 409; 4194304 / 4096 = 1024.
    let limits = DirtyBounds::default().limits(AVAIL);
    assert_eq!(limits, DirtyLimits { bg_thresh: 409 * 1024, thresh: 819 * 1024 });
    assert_eq!(limits, DirtyLimits { bg_thresh: 418_816, thresh: 838_656 });
    assert_eq!(limits.freerun(), 628_736, "(838656 + 418816) / 2");
}

#[test]
fn a_background_that_is_not_below_the_limit_is_half_of_it() {
    let limits = |background, limit| DirtyBounds { background, limit }.limits(AVAIL);
    let half = DirtyLimits { bg_thresh: 419_328, thresh: 838_656 };
    assert_eq!(limits(Bound::Percent(20), Bound::Percent(20)), half);
    assert_eq!(limits(Bound::Percent(90), Bound::Percent(20)), half);
    let below = limits(Bound::Percent(19), Bound::Percent(20));
    assert_eq!(below, DirtyLimits { bg_thresh: 778 * 1024, thresh: 838_656 });
}

#[test]
fn bytes_are_rounded_up_to_pages_and_ask_for_no_memory() {
    let bounds = DirtyBounds { background: Bound::Bytes(1), limit: Bound::Bytes(100_000_000) };
    // 100,000,000 / 4096 = 24414.06.
    let expected = DirtyLimits { bg_thresh: 1, thresh: 24_415 };
    assert_eq!((bounds.limits(0), bounds.limits(AVAIL)), (expected, expected));
    let vast = DirtyBounds { background: Bound::Percent(10), limit: Bound::Percent(100) };
    // 64 and 256 TiB: limits are 32-bit numbers of pages; ten per cent of the second, 6.9e9 pages, exceed them.
    let expected = DirtyLimits { bg_thresh: u64::from(u32::MAX) / 2, thresh: u32::MAX.into() };
    assert_eq!(vast.limits(1 << 34).thresh, expected.thresh);
    assert_eq!(vast.limits(1 << 36), expected);
}

#[test]
fn the_limit_rises_at_once_and_falls_by_a_32nd_of_what_is_too_much() {
    let mut domain = Domain::new(250, 0, 1000);
    domain.update_dirty_limit(32_000, 0, 1049);
    assert_eq!(domain.dirty_limit, 0, "200 ms are 50 ticks");
    domain.update_dirty_limit(32_000, 0, 1050);
    assert_eq!(domain.dirty_limit, 32_000);
    // Memory has shrunk: 32000 - (32000 - 16000) / 32 = 31500, then 31500 - 484 (484.4), then 31016 - 469 (469.25).
    for (at, expected) in [(1100, 31_500), (1149, 31_500), (1150, 31_016), (1200, 30_547)] {
        domain.update_dirty_limit(16_000, 20, at);
        assert_eq!(domain.dirty_limit, expected, "at {at}");
    }
    // The limit stays above the dirty pages: 30547 - (30547 - 30500) / 32 = 30546.
    domain.update_dirty_limit(16_000, 30_500, 1250);
    assert_eq!(domain.dirty_limit, 30_546);
    assert_eq!((domain.hard_limit(16_000), domain.hard_limit(31_000)), (30_546, 31_000));
}

#[test]
fn the_limit_has_fallen_to_half_of_the_way_after_22_updates() {
    // (31/32)^22 = 0.497: 4.4 s.
    let mut domain = Domain::new(250, 0, 0);
    domain.update_dirty_limit(3_200_000, 0, 50);
    let below = |domain: &Domain| domain.dirty_limit < 3_200_000 / 2;
    let updates = (1..).find(|number| {
        domain.update_dirty_limit(0, 0, 50 + 50 * number);
        below(&domain)
    });
    assert_eq!(updates, Some(22));
}

#[test]
fn devices_have_parts_of_the_limit_as_they_have_written() {
    let mut domain = Domain::new(250, 0, 0);
    let (mut fast, mut slow) = (Local::default(), Local::default());
    domain.written(&mut fast, FRAC_BASE, 3_000, 0);
    domain.written(&mut slow, FRAC_BASE, 1_000, 0);
    // Of 4001: one event is of no kind. 400000 * 3000 / 4001 = 299925.02; 400000 * 1000 / 4001 = 99975.006.
    assert_eq!(domain.wb_thresh(&fast, ALL, 400_000), 299_925);
    assert_eq!(domain.wb_thresh(&slow, ALL, 400_000), 99_975);
    assert_eq!(domain.wb_thresh(&Local::default(), ALL, 400_000), 0);
}

#[test]
fn a_device_has_its_least_and_its_most_part() {
    // Two devices with 10 % each: 80 % is shared.
    let ratios = |min, max| Ratios { min, max };
    let mut domain = Domain::new(250, 20, 0);
    let (mut all, none) = (Local::default(), Local::default());
    domain.written(&mut all, FRAC_BASE, 999, 0);
    // 320000 * 999 / 1000 + 40000 = 359680.
    assert_eq!(domain.wb_thresh(&all, ratios(10, 100), 400_000), 359_680);
    assert_eq!(domain.wb_thresh(&none, ratios(10, 100), 400_000), 40_000);
    assert_eq!(domain.wb_thresh(&all, ratios(10, 30), 400_000), 120_000);
}
