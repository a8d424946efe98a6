//! `balance_dirty_pages` and its helpers: bandwidth of a device, position of the dirty pages.

use super::super::Rates;
use super::writeback;
use crate::Inode;
use crate::writeback::{
    Balance, Bound, Dirtier, DirtyBounds, Wake, Writeback,
    balance::{Bandwidth, INIT_BW, Position, Target, polynom},
};
use engine::Time;
use proptest::prelude::*;

/// Pages of 1 GiB: the background is 409 * 64 = 26176, the limit 819 * 64 = 52416, half way 39296.
const AVAIL: u64 = 262_144;
const FILE: Inode = Inode(7);

/// Writer on core 0.
struct Writer {
    writeback: Writeback,
    task: Dirtier,
}

impl Writer {
    fn new() -> Writer {
        Writer { writeback: writeback(1, AVAIL), task: Dirtier::default() }
    }

    fn write(&mut self, pages: u64, now: Time) -> Balance {
        let _ = self.writeback.dirtied(FILE, 0, pages, &mut self.task, 0, now);
        self.writeback.balance(0, &mut self.task, 0, AVAIL, now)
    }

    fn clean(&mut self, pages: u64, now: Time) {
        self.writeback.started(FILE, pages);
        self.writeback.ended(FILE, pages, now);
    }
}

#[test]
fn a_new_task_is_looked_at_after_32_pages() {
    let mut writer = Writer::new();
    assert_eq!(writer.write(31, Time::ZERO), Balance::default());
    assert_eq!((writer.task.nr_dirtied, writer.writeback.stats.balances), (31, 0));
    assert_eq!(writer.write(1, Time::ZERO), Balance::default());
    // ilog2(52416 - 32) = 15: 2^7.
    assert_eq!((writer.task.nr_dirtied, writer.task.nr_dirtied_pause), (0, 128));
    assert_eq!(writer.writeback.stats.balances, 1);
}

#[test]
fn above_the_background_the_flusher_is_woken_once_and_nobody_pauses() {
    let mut writer = Writer::new();
    assert_eq!(writer.write(26_176, Time::ZERO).wake, Wake::Nothing);
    // ilog2(52416 - 26176) = 14: 2^7.
    assert_eq!(writer.write(128, Time::ZERO), Balance { pause: None, wake: Wake::Now });
    assert_eq!(writer.write(128, Time::ZERO), Balance::default());
    assert!(writer.writeback.start(0, Time::ZERO));
    assert_eq!(writer.write(128, Time::ZERO), Balance::default(), "it runs");
}

#[test]
fn half_way_to_the_limit_pauses_begin() {
    let mut writer = Writer::new();
    assert_eq!(writer.write(39_296, Time::ZERO).pause, None);
    // The root of 2^13.
    assert_eq!(writer.task.nr_dirtied_pause, 64);
    // x = 6060 * 1024 / 6561 = 945; 945 * 945 / 1024 = 872; 872 * 945 / 1024 = 804: 1828. A quarter of it, as the
    // device has no share yet: 457. 25600 * 457 / 1024 = 11425 pages a second: 250 * 500 / 11425 = 10 ticks.
    assert_eq!(writer.write(500, Time::ZERO).pause, Some(Time::from_ms(4 * 11)));
}

#[test]
fn a_first_pause_at_the_set_point() {
    let mut writer = Writer::new();
    // (39296 + 52416) / 2 pages. The device has written nothing: an eighth of 6560 pages is its share, its line is at a
    // quarter, and 25600 pages a second become 6400. 250 * 45856 / 6400 = 1791 ticks exceed the maximum pause, 50. The
    // timer of 50 ticks fires at the 51st.
    let balance = writer.write(45_856, Time::ZERO);
    assert_eq!(balance.pause, Some(Time::from_ms(204)));
    // 25600 * 2 / 256.
    assert_eq!((writer.task.nr_dirtied, writer.task.nr_dirtied_pause), (0, 200));
    let resumed = writer.writeback.resume(0, &mut writer.task, AVAIL, Time::from_ms(204));
    assert_eq!(resumed, Balance::default());
    let pauses = &writer.writeback.stats.pauses;
    assert_eq!((pauses.count(), pauses.max()), (1, Some(Time::from_ms(204).ps())));
}

#[test]
fn at_the_limit_a_writer_pauses_until_there_is_room() {
    let mut writer = Writer::new();
    assert_eq!(writer.write(52_416, Time::ZERO).pause, Some(Time::from_ms(204)));
    let at = |ms| Time::from_ms(ms);
    let resume = |writer: &mut Writer, now| writer.writeback.resume(0, &mut writer.task, AVAIL, now).pause;
    // The pages are charged again, and every pause is the maximum.
    assert_eq!(resume(&mut writer, at(204)), Some(at(408)));
    assert_eq!(resume(&mut writer, at(408)), Some(at(612)));
    writer.clean(20_000, at(500));
    assert_eq!(resume(&mut writer, at(612)), None);
    assert_eq!(writer.task.nr_dirtied_pause, 128, "free: ilog2(52416 - 32416) = 14");
}

#[test]
fn on_a_device_with_next_to_nothing_a_writer_goes_on_after_one_pause() {
    let mut writer = Writer { writeback: writeback(2, AVAIL), task: Dirtier::default() };
    let mut other = Dirtier::default();
    let _ = writer.writeback.dirtied(Inode(1), 1, 60_000, &mut other, 1, Time::ZERO);
    // wb_stat_error with four cores: 4 * 8 * (1 + 2).
    assert!(writer.write(96, Time::ZERO).pause.is_some());
    let resumed = writer.writeback.resume(0, &mut writer.task, AVAIL, Time::from_ms(204));
    assert_eq!(resumed, Balance::default());
    assert!(writer.write(200, Time::from_ms(204)).pause.is_some());
    let resumed = writer.writeback.resume(0, &mut writer.task, AVAIL, Time::from_ms(408));
    assert!(resumed.pause.is_some(), "296 pages");
}

#[test]
fn a_device_above_its_part_and_the_limit_is_looked_at_every_8_pages() {
    let mut writer = Writer::new();
    writer.write(60_000, Time::ZERO);
    let before = writer.writeback.stats.balances;
    let mut other = Dirtier::default();
    let mut looked = |writer: &mut Writer, pages| {
        let _ = writer.writeback.dirtied(FILE, 0, pages, &mut other, 1, Time::ZERO);
        writer.writeback.balance(0, &mut other, 1, AVAIL, Time::ZERO);
        writer.writeback.stats.balances - before
    };
    assert_eq!([looked(&mut writer, 7), looked(&mut writer, 1)], [0, 1]);
}

#[test]
fn many_tasks_of_a_core_are_not_overlooked() {
    let mut writer = Writer::new();
    // 52416 / (4 * 32) = 409 pages a core. 13 tasks dirty 403 pages, 14 dirty 434.
    for number in 1..=14 {
        writer.task = Dirtier::default();
        writer.write(31, Time::ZERO);
        assert_eq!(writer.writeback.stats.balances, u64::from(number == 14), "task {number}");
    }
}

#[test]
fn what_a_task_leaves_others_are_charged_for() {
    let mut writer = Writer::new();
    writer.write(20, Time::ZERO);
    writer.writeback.exit(&writer.task, 0);
    writer.task = Dirtier::default();
    writer.write(11, Time::ZERO);
    assert_eq!(writer.task.nr_dirtied, 31);
    writer.write(1, Time::ZERO);
    assert_eq!((writer.task.nr_dirtied, writer.writeback.stats.balances), (0, 1));
    writer.task = Dirtier::default();
    writer.write(11, Time::ZERO);
    assert_eq!(writer.task.nr_dirtied, 11, "once");
}

#[test]
fn new_bounds_hold_at_once() {
    let mut writer = Writer::new();
    assert_eq!(writer.write(30_000, Time::ZERO).pause, None);
    // 5 % are 204 * 64 = 13056 pages.
    let low = DirtyBounds { background: Bound::Percent(3), limit: Bound::Percent(5) };
    writer.writeback.set_bounds(low, AVAIL);
    assert_eq!(writer.writeback.bounds(), low);
    // The maximum pause is an eighth of the time that the device needs: 30128 / 801 + 1 = 38 ticks.
    assert_eq!(writer.write(128, Time::ZERO).pause, Some(Time::from_ms(4 * 39)));
    writer.writeback.set_bounds(DirtyBounds::default(), AVAIL);
    let resumed = writer.writeback.resume(0, &mut writer.task, AVAIL, Time::from_ms(156));
    assert_eq!(resumed.pause, None);
}

/// 200 pages before a check, and pauses of at least two ticks (`wb_min_pause`); 400 pages are worth 3 ticks.
const RATES: Rates = Rates { write_bandwidth: 25_600, dirty_ratelimit: 25_600, task_ratelimit: 25_600 };

#[test]
fn the_time_a_task_spends_on_something_else_counts_as_a_pause() {
    let mut task = Dirtier::default();
    let mut throttle = |pages, now| {
        let pause = task.throttle(250, 50, &RATES, pages, now);
        (pause, task.dirty_paused_when, task.nr_dirtied_pause)
    };
    // 250 * 200 / 25600 = 1 tick is less than two: owed, from the beginning of time.
    assert_eq!(throttle(200, 1_000), (None, 1, 32));
    // 3 - 1000 ticks: more than a second of other work. The count starts over.
    assert_eq!(throttle(400, 1_001), (None, 1_001, 32));
    assert_eq!(throttle(400, 1_002), (Some(2), 1_004, 200), "3 - 1");
    // It wakes a tick later than its pause ends.
    assert_eq!(throttle(400, 1_005), (Some(2), 1_007, 200), "3 - 1");
    // 3 - 93 ticks: 3 of the 93 are used up.
    assert_eq!(throttle(400, 1_100), (None, 1_010, 200));
    // 12800 pages are 125 ticks, less 94.
    assert_eq!(throttle(12_800, 1_104), (Some(31), 1_135, 200));
}

#[test]
fn a_pause_that_would_be_too_long_is_made_up_for_later() {
    let slow = Rates { task_ratelimit: 1_000, ..RATES };
    let mut task = Dirtier::default();
    // 250 * 500 / 1000 = 125 ticks, of which 50 are paused and 50 more remembered. 25600 * 2 / 256 = 200 pages are 49
    // ticks.
    assert_eq!(task.throttle(250, 50, &slow, 500, 1_000), Some(50));
    assert_eq!((task.dirty_paused_when, task.nr_dirtied_pause), (1_100, 200));
    // 50 ticks for 200 pages, and 49 are owed.
    assert_eq!(task.throttle(250, 50, &slow, 200, 1_051), Some(50));
    assert_eq!(task.dirty_paused_when, 1_051 + 49 + 50);
}

#[test]
fn pages_worth_no_tick_are_gathered() {
    let mut task = Dirtier { nr_dirtied: 50, nr_dirtied_pause: 40, ..Dirtier::default() };
    // 250 * 50 / 25600 = 0 ticks.
    assert_eq!(task.throttle(250, 50, &RATES, 50, 1_000), None);
    assert_eq!((task.nr_dirtied, task.nr_dirtied_pause), (50, 90));
    assert_eq!(task.throttle(250, 50, &RATES, 50, 1_000), None);
    assert_eq!(task.nr_dirtied_pause, 90, "it is above them");
}

#[test]
fn without_a_rate_the_pause_is_the_longest() {
    let none = Rates { task_ratelimit: 0, ..RATES };
    let mut task = Dirtier::default();
    assert_eq!(task.throttle(250, 50, &none, 1, 1_000), Some(50));
    // 250 * 200 / 1 ticks are too many: 0 * 50 / 256 pages.
    assert_eq!((task.dirty_paused_when, task.nr_dirtied_pause), (1_050, 0));
}

// `wb_update_write_bandwidth`, `wb_update_dirty_ratelimit`, `wb_bandwidth_estimate_start`.

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
    // 10240 pages in 50 ticks, 51200 a second: (10240 * 250 + 25600 * 974) / 1024 = 26850. The second mean waits for
    // the first.
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
    // Much room, and dirtied at half of the device's speed: the balanced rate, 51201 * 25600 / 12801, is capped at the
    // device's, which is the current rate.
    bandwidth.update(2_560, 5_120, Some(BELOW), 50);
    assert_eq!(bandwidth.dirty_ratelimit, 25_600);
    // Too much, and dirtied at twice the speed: 12801 * 25600 / 51201 = 6400. The rate waits for a second such balanced
    // rate.
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
    // Half of the rate is too much. Each time but the first, an eighth of half of that goes: 25600 * (31 / 32)^39 =
    // 7421, less rounding.
    assert!((7_400..7_421).contains(&low), "{low}");
    // The earlier balanced rate is much less than the current one, which waits for a second.
    (at, dirtied) = (at + 50, dirtied + low * 50 / 250);
    bandwidth.update(dirtied, at * 25_600 / 250, Some(BELOW), at);
    assert_eq!(bandwidth.dirty_ratelimit, low);
    let mut before = low;
    for _ in 0..200 {
        (at, dirtied) = (at + 50, dirtied + low * 50 / 250);
        bandwidth.update(dirtied, at * 25_600 / 250, Some(BELOW), at);
        let rate = bandwidth.dirty_ratelimit;
        // At most an eighth of the difference to twice the rate.
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
    // The last page at tick 101 sets a timer that fires at 152. The next look-up sees its result, in 101 ticks: (10240
    // * 250 + 26825 * 923) / 1024 = 26679.2.
    writeback.ended(file, 10_240, Time::from_ms(404));
    writeback.end_writepages(0, Time::from_ms(404));
    assert_eq!(writeback.wbs[0].bandwidth.write_bandwidth, 26_825);
    writeback.begin_writepages(0, Time::from_s(100));
    assert_eq!(writeback.wbs[0].bandwidth.write_bandwidth, 26_679);
    // The device has been idle since: the next estimate begins now.
    assert_eq!(writeback.wbs[0].bandwidth.stamp, writeback.clock.jiffies(Time::from_s(100)));
}

// `pos_ratio_polynom`, `wb_position_ratio`.

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
    // part = 838656 * 65536 / 838657 = 65535; wb_setpoint = 733696 * 65535 / 65536 = 733684; span = 8 * 25600 * 65535 /
    // 65536 = 204796; x_intercept = 938480; 1024 * (938480 - 733696) / 204797 = 1023.9.
    assert_eq!(AT_SETPOINT.ratio(), 1_023);
}

#[test]
fn nothing_may_be_dirtied_at_the_limit() {
    assert_eq!(Position { dirty: 838_656, ..AT_SETPOINT }.ratio(), 0);
    // The gradually falling limit counts, not the threshold.
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
    // (838656 - 733696) / 8 = 13120; part = 1025; wb_setpoint = 11475; span = (838656 - 13120 + 204800) * 1025 / 65536
    // = 16114; x_intercept = 27589. It has no work: 1024 * 27589 / 16115 = 1753, times eight.
    let idle = Position { wb_thresh: 0, wb_dirty: 0, ..AT_SETPOINT };
    assert_eq!(idle.ratio(), 14_024);
    // Below half of its part, 6560: 1024 * (27589 - 5000) / 16115 = 1435; 1435 * 6560 / 5000 = 1882.7.
    assert_eq!(Position { wb_dirty: 5_000, ..idle }.ratio(), 1_882);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// Formulas of the kernel's comments, in real numbers.
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
