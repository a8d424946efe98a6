//! `dirty_poll_interval`, `wb_max_pause`, `wb_min_pause`.

use crate::writeback::pause::{MinPause, Rates, dirty_poll_interval, wb_max_pause, wb_min_pause};

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
    // 250 / 100 = 2 ticks: 25600 * 2 / 256 = 200 pages. Half of the ticks and one at least.
    assert_eq!(min_pause(50, 25_600, 25_600), (2, 200));
}

#[test]
fn eight_writers_pause_for_longer() {
    // ilog2(25600) - ilog2(3200) = 3: 2 + 3 * 2500 / 1024 = 9 ticks; 3200 * 9 / 256 = 112 pages; 1 + 9 / 2.
    assert_eq!(min_pause(50, 3_200, 3_200), (5, 112));
    // Half of the longest pause and one at most, 5: 3200 * 5 / 256 = 62; 1 + 5 / 2.
    assert_eq!(min_pause(9, 3_200, 3_200), (3, 62));
}

#[test]
fn slow_writers_dirty_32_pages_if_the_longest_pause_allows_it() {
    // 2 + 8 * 2500 / 1024 = 21 ticks would be 8 pages; 50 ticks: 100 * 50 / 256 = 19. The whole pause is the least one.
    assert_eq!(min_pause(50, 100, 100), (50, 19));
    // 200 * 50 / 256 = 39: 32 pages in 250 * 32 / 200 = 40 ticks; 1 + 40 / 2.
    assert_eq!(min_pause(50, 200, 200), (21, 32));
}

#[test]
fn far_above_the_set_point_fewer_pages_are_dirtied() {
    // 112 pages at 320 a second are 250 * 112 / 321 = 87 ticks: 320 * 50 / 256 = 62 pages; 1 + 50 / 2.
    assert_eq!(min_pause(50, 3_200, 320), (26, 62));
}
