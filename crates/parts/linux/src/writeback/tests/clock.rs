//! `INITIAL_JIFFIES`, `calc_wheel_index`.

use crate::writeback::clock::{Clock, interval};
use engine::Time;

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
