//! `domain_dirty_limits`, `update_dirty_limit`, `__wb_calc_thresh`.

use crate::writeback::fprop::{FRAC_BASE, Local};
use crate::writeback::limits::{Domain, Ratios};
use crate::writeback::{Bound, DirtyBounds, DirtyLimits};

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
    // 64 and 256 TiB: limits are 32-bit numbers of pages; ten per cent of the latter, 6.9e9 pages, are more.
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
    // Memory is gone: 32000 - (32000 - 16000) / 32 = 31500, then 31500 - 484 (484.4), then 31016 - 469 (469.25).
    for (at, expected) in [(1100, 31_500), (1149, 31_500), (1150, 31_016), (1200, 30_547)] {
        domain.update_dirty_limit(16_000, 20, at);
        assert_eq!(domain.dirty_limit, expected, "at {at}");
    }
    // What is dirty already is not cut off: 30547 - (30547 - 30500) / 32 = 30546.
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
    // Of 4001: one event is nobody's. 400000 * 3000 / 4001 = 299925.02; 400000 * 1000 / 4001 = 99975.006.
    assert_eq!(domain.wb_thresh(&fast, ALL, 400_000), 299_925);
    assert_eq!(domain.wb_thresh(&slow, ALL, 400_000), 99_975);
    assert_eq!(domain.wb_thresh(&Local::default(), ALL, 400_000), 0);
}

#[test]
fn a_device_has_its_least_and_its_most_part() {
    // Two devices with 10 % each: what is shared is 80 %.
    let ratios = |min, max| Ratios { min, max };
    let mut domain = Domain::new(250, 20, 0);
    let (mut all, none) = (Local::default(), Local::default());
    domain.written(&mut all, FRAC_BASE, 999, 0);
    // 320000 * 999 / 1000 + 40000 = 359680.
    assert_eq!(domain.wb_thresh(&all, ratios(10, 100), 400_000), 359_680);
    assert_eq!(domain.wb_thresh(&none, ratios(10, 100), 400_000), 40_000);
    assert_eq!(domain.wb_thresh(&all, ratios(10, 30), 400_000), 120_000);
}
