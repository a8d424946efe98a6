//! `wb_update_write_bandwidth`, `wb_update_dirty_ratelimit`, `wb_bandwidth_estimate_start`.

use super::writeback;
use crate::Inode;
use crate::writeback::Dirtier;
use crate::writeback::balance::{Bandwidth, INIT_BW, Target};
use engine::Time;

const BELOW: Target = Target { dirty: 500, setpoint: 1_000, pos_ratio: 2_048 };
const ABOVE: Target = Target { dirty: 1_500, setpoint: 1_000, pos_ratio: 512 };

#[test]
fn it_begins_with_100_mib_a_second() {
    assert_eq!(INIT_BW, 25_600);
}

#[test]
fn the_mean_is_over_1024_ticks_and_a_second_one_follows_it() {
    let mut bandwidth = Bandwidth::new(250, 0);
    assert!(!bandwidth.is_due(50) && bandwidth.is_due(51));
    // 10240 pages in 50 ticks, 51200 a second: (10240 * 250 + 25600 * 974) / 1024 = 26850. The second mean waits for the first.
    bandwidth.update(0, 10_240, None, 50);
    assert_eq!((bandwidth.write_bandwidth, bandwidth.avg_write_bandwidth), (26_850, 25_600));
    // (2560000 + 26850 * 974) / 1024 = 28038.9; 25600 + (26850 - 25600) / 8 = 25756.
    bandwidth.update(0, 20_480, None, 100);
    assert_eq!((bandwidth.write_bandwidth, bandwidth.avg_write_bandwidth), (28_038, 25_756));
    // Nothing for 50 ticks: 28038 * 974 / 1024 = 26668.9. The first has turned: the second, below it, stays.
    bandwidth.update(0, 20_480, None, 150);
    assert_eq!((bandwidth.write_bandwidth, bandwidth.avg_write_bandwidth), (26_668, 25_756));
}

#[test]
fn the_second_mean_falls_only_while_the_first_does() {
    let mut bandwidth = Bandwidth::new(250, 0);
    let mut written = 0;
    let mut after = |pages, at| {
        written += pages;
        bandwidth.update(0, written, None, at);
        (bandwidth.write_bandwidth, bandwidth.avg_write_bandwidth)
    };
    // 25600 * 974 / 1024 = 24350, and then 23161.0: 25600 - (25600 - 24350) / 8 = 25444.
    assert_eq!(after(0, 50), (24_350, 25_600));
    assert_eq!(after(0, 100), (23_161, 25_444));
    // (2560000 + 23161 * 974) / 1024 = 24530.1: the first rises, and the second is above it still.
    assert_eq!(after(10_240, 150), (24_530, 25_444));
    // 24530 * 974 / 1024 = 23332.2: 25444 - (25444 - 24530) / 8 = 25330.
    assert_eq!(after(0, 200), (23_332, 25_330));
}

#[test]
fn after_a_long_time_only_what_was_written_in_it_counts() {
    let mut bandwidth = Bandwidth::new(250, 0);
    // 102500 pages in 1025 ticks: 25000 a second.
    bandwidth.update(0, 102_500, None, 1_025);
    assert_eq!((bandwidth.write_bandwidth, bandwidth.avg_write_bandwidth), (25_000, 25_000));
    bandwidth.update(0, 102_500, None, 5_000);
    assert_eq!((bandwidth.write_bandwidth, bandwidth.avg_write_bandwidth), (0, 1), "never nothing");
}

#[test]
fn idle_time_does_not_count() {
    let mut bandwidth = Bandwidth::new(250, 0);
    bandwidth.start(0, 0, false, 250);
    assert_eq!(bandwidth.stamp, 0, "a second at most");
    bandwidth.start(0, 0, true, 10_000);
    assert_eq!(bandwidth.stamp, 0, "something is being written");
    bandwidth.start(0, 0, false, 10_000);
    assert_eq!(bandwidth.stamp, 10_000);
    bandwidth.update(0, 10_240, None, 10_050);
    assert_eq!(bandwidth.write_bandwidth, 26_850, "as after 50 ticks");
}

#[test]
fn the_rate_of_writers_stays_where_rate_and_position_disagree() {
    let mut bandwidth = Bandwidth::new(250, 0);
    // Much room, and dirtied at half of the device's speed: the balanced rate, 51201 * 25600 / 12801, is at most the device's. That is
    // where the rate is.
    bandwidth.update(2_560, 5_120, Some(BELOW), 50);
    assert_eq!(bandwidth.dirty_ratelimit, 25_600);
    // Too much, and dirtied at twice the speed: 12801 * 25600 / 51201 = 6400. The rate waits for a second such balanced rate.
    let mut bandwidth = Bandwidth::new(250, 0);
    bandwidth.update(10_240, 5_120, Some(ABOVE), 50);
    assert_eq!(bandwidth.dirty_ratelimit, 25_600);
    // The least of all changes is down to the rate at this position, 12801: 12799 below. 25600 / (2 * 12799 + 1) = 1;
    // half of it, and of that an eighth, rounded up: 800.
    bandwidth.update(20_480, 10_240, Some(ABOVE), 100);
    assert_eq!(bandwidth.dirty_ratelimit, 24_800);
}

#[test]
fn the_rate_falls_and_climbs_in_steps() {
    let mut bandwidth = Bandwidth::new(250, 0);
    let mut dirtied = 0;
    let mut at = 0;
    for _ in 0..40 {
        (at, dirtied) = (at + 50, dirtied + 10_240);
        bandwidth.update(dirtied, dirtied / 2, Some(ABOVE), at);
    }
    let low = bandwidth.dirty_ratelimit;
    // Half of the rate is too much; of that, half, and of that an eighth goes each time but the first: 25600 * (31 / 32)^39 = 7421, less
    // what is rounded.
    assert!((7_400..7_421).contains(&low), "{low}");
    // What was balanced before is much less than the rate: it waits for a second one.
    (at, dirtied) = (at + 50, dirtied + low * 50 / 250);
    bandwidth.update(dirtied, at * 25_600 / 250, Some(BELOW), at);
    assert_eq!(bandwidth.dirty_ratelimit, low);
    let mut before = low;
    for _ in 0..200 {
        (at, dirtied) = (at + 50, dirtied + low * 50 / 250);
        bandwidth.update(dirtied, at * 25_600 / 250, Some(BELOW), at);
        let rate = bandwidth.dirty_ratelimit;
        // An eighth of what is missing to twice the rate at most.
        assert!(rate >= before && rate - before <= before / 8 + 1, "{before} {rate}");
        before = rate;
    }
    assert!(before > 20_000, "{before}: towards what the device writes");
}

#[test]
fn what_fsync_writes_is_measured_as_well() {
    let mut writeback = writeback(1, 262_144);
    let file = Inode(0);
    let _ = writeback.dirtied(file, 0, 20_480, &mut Dirtier::default(), 0, Time::ZERO);
    writeback.begin_writepages(0, Time::ZERO);
    writeback.started(file, 20_480);
    // After 51 ticks: (10240 * 250 + 25600 * 973) / 1024.
    writeback.ended(file, 10_240, Time::from_ms(204));
    writeback.end_writepages(0, Time::from_ms(204));
    assert_eq!(writeback.wbs[0].bandwidth.write_bandwidth, 26_825);
    // The last page at tick 101 sets a timer that fires at 152. Whoever looks next sees what it did, in 101 ticks:
    // (10240 * 250 + 26825 * 923) / 1024 = 26679.2.
    writeback.ended(file, 10_240, Time::from_ms(404));
    writeback.end_writepages(0, Time::from_ms(404));
    assert_eq!(writeback.wbs[0].bandwidth.write_bandwidth, 26_825);
    writeback.begin_writepages(0, Time::from_s(100));
    assert_eq!(writeback.wbs[0].bandwidth.write_bandwidth, 26_679);
    // All has been quiet since: the next estimate begins now.
    assert_eq!(writeback.wbs[0].bandwidth.stamp, writeback.clock.jiffies(Time::from_s(100)));
}
