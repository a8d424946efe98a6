//! `lib/flex_proportions.c`.

use crate::writeback::fprop::{FRAC_BASE, Global, Local};
use crate::writeback::limits::{Domain, Ratios};

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
    // The other way round for a period: (1500 + 1000) of 6000, (500 + 3000) of 6000.
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
    // At 850: 500 of 500. Then 1500 of another: a quarter.
    domain.written(&mut b, FRAC_BASE, 1_500, 850);
    assert_eq!(domain.wb_thresh(&a, all, 1_000_000), 250_000);
    // At 1600, 2350 and 3100 all halves: nothing changes but what is lost by rounding (62 of 250).
    domain.age(3_100);
    assert_eq!(domain.wb_thresh(&a, all, 1_000_000), 248_000);
    // After seven more, one page is left, and it is the other's: 1500 / 1024. No period ends any more.
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
