//! `pos_ratio_polynom`, `wb_position_ratio`.

use crate::writeback::balance::{Position, polynom};
use proptest::prelude::*;

#[test]
fn two_at_the_free_run_one_at_the_set_point_nothing_at_the_limit() {
    // limit - setpoint is 1001, an odd number: x is 1024 * (2000 - dirty) / 1001.
    assert_eq!(polynom(2_000, 999, 3_001), 2_048, "x = 1024");
    assert_eq!(polynom(2_000, 2_000, 3_001), 1_024, "x = 0");
    assert_eq!(polynom(2_000, 3_001, 3_001), 0, "x = -1024");
    assert_eq!(polynom(2_000, 0, 3_001), 2_048, "never more");
    assert_eq!(polynom(2_000, 9_000, 3_001), 0, "never less");
}

#[test]
fn divisions_round_to_zero_and_shifts_down() {
    // limit - setpoint is 1022, and counts as 1023. 341 pages above: x = -(341 * 1024) / 1023 = -341.33 = -341;
    // 341 * 341 / 1024 = 113.6 = 113; 113 * -341 / 1024 = -37.6 = -38.
    assert_eq!(polynom(2_000, 2_341, 3_022), 1_024 - 38);
    // As many below: 37.6 = 37.
    assert_eq!(polynom(2_000, 1_659, 3_022), 1_024 + 37);
}

/// 16 GiB, 10 and 20 %, at the set point: (628736 + 838656) / 2.
const AT_SETPOINT: Position = Position {
    dirty: 733_696,
    freerun: 628_736,
    thresh: 838_656,
    limit: 838_656,
    wb_dirty: 733_696,
    wb_thresh: 838_656,
    write_bw: 25_600,
};

#[test]
fn one_device_at_its_set_point() {
    assert_eq!(AT_SETPOINT.setpoint(), 733_696);
    // part = 838656 * 65536 / 838657 = 65535; wb_setpoint = 733696 * 65535 / 65536 = 733684; span = 8 * 25600 * 65535 / 65536 = 204796;
    // x_intercept = 938480; 1024 * (938480 - 733696) / 204797 = 1023.9.
    assert_eq!(AT_SETPOINT.ratio(), 1_023);
}

#[test]
fn nothing_may_be_dirtied_at_the_limit() {
    assert_eq!(Position { dirty: 838_656, ..AT_SETPOINT }.ratio(), 0);
    // The limit that falls gradually holds, not the threshold.
    let position = Position { thresh: 700_000, ..AT_SETPOINT };
    assert!(position.ratio() > 0, "{position:?}");
}

#[test]
fn fast_where_little_is_dirty() {
    // x = 1024 * 93696 / 104961 = 914; 914 * 914 / 1024 = 815; 815 * 914 / 1024 = 727: 1751. Of the device:
    // 1751 * (938480 - 640000) / 204797 = 2551.97.
    assert_eq!(Position { dirty: 640_000, wb_dirty: 640_000, ..AT_SETPOINT }.ratio(), 2_551);
}

#[test]
fn a_device_with_a_quarter_of_the_limit_has_its_own_line() {
    // part = 209664 * 65536 / 838657 = 16383; wb_setpoint = 733696 * 16383 / 65536 = 183412;
    // span = (838656 - 209664 + 8 * 6400) * 16383 / 65536 = 170037; x_intercept = 353449.
    let quarter = Position { wb_thresh: 209_664, write_bw: 6_400, ..AT_SETPOINT };
    let ratio = |wb_dirty| Position { wb_dirty, ..quarter }.ratio();
    // 1024 * (353449 - 183424) / 170037 = 1023.9.
    assert_eq!(ratio(183_424), 1_023);
    // 1024 * (353449 - 309664) / 170037 = 263.7.
    assert_eq!(ratio(309_664), 263);
    // From 353449 - 170037 / 4 = 310940 on, a quarter.
    assert_eq!([ratio(310_939), ratio(310_940), ratio(800_000)], [256, 256, 256]);
}

#[test]
fn a_device_that_was_idle_gets_an_eighth_of_what_is_left() {
    // (838656 - 733696) / 8 = 13120; part = 1025; wb_setpoint = 11475; span = (838656 - 13120 + 204800) * 1025 / 65536 = 16114;
    // x_intercept = 27589. It has no work: 1024 * 27589 / 16115 = 1753, times eight.
    let idle = Position { wb_thresh: 0, wb_dirty: 0, ..AT_SETPOINT };
    assert_eq!(idle.ratio(), 14_024);
    // Below half of its part, 6560: 1024 * (27589 - 5000) / 16115 = 1435; 1435 * 6560 / 5000 = 1882.7.
    assert_eq!(Position { wb_dirty: 5_000, ..idle }.ratio(), 1_882);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// The formulas of the kernel's comments, in real numbers.
    #[test]
    fn as_the_comments_have_it(
        freerun in 10_000..1_000_000_u64,
        scope in 10_000..1_000_000_u64,
        dirty in 0.0..1.0,
        part in 0.2..1.0,
        wb_dirty in 0.5..1.2,
        write_bw in 5_000..100_000_u64,
    ) {
        let thresh = freerun + scope;
        let of = |share: f64, whole: u64| (share * whole as f64) as u64;
        let wb_thresh = of(part, thresh);
        let position = Position {
            dirty: freerun + of(dirty, scope),
            freerun,
            thresh,
            limit: thresh,
            wb_dirty: of(wb_dirty, wb_thresh).max(wb_thresh / 2 + 1),
            wb_thresh,
            write_bw,
        };
        let (setpoint, limit) = ((freerun + thresh) as f64 / 2.0, thresh as f64);
        let x = (setpoint - position.dirty as f64) / (limit - setpoint);
        let (wb, of_thresh) = (wb_thresh as f64, wb_thresh as f64 / limit);
        let span = of_thresh * 8.0 * write_bw as f64 + (1.0 - of_thresh) * wb;
        let line = 1.0 - (position.wb_dirty as f64 - setpoint * of_thresh) / span;
        let expected = (1.0 + x * x * x) * line.max(0.25);
        // At three quarters of the span the line breaks; rounding may put a position on either side.
        prop_assume!((line - 0.25).abs() > 0.01);
        let found = position.ratio() as f64 / 1024.0;
        prop_assert!((found - expected).abs() < 0.02 + 0.01 * expected, "{found} and not {expected}: {position:?}");
    }
}
