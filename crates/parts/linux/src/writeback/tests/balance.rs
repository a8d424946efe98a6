//! `balance_dirty_pages_ratelimited`, `balance_dirty_pages`.

use super::super::Rates;
use super::writeback;
use crate::Inode;
use crate::writeback::{Balance, Bound, Dirtier, DirtyBounds, Wake, Writeback};
use engine::Time;

/// Pages of 1 GiB: the background is 409 * 64 = 26176, the limit 819 * 64 = 52416, half way 39296.
const AVAIL: u64 = 262_144;
const FILE: Inode = Inode(7);

/// A writer on core 0.
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
    // x = 6060 * 1024 / 6561 = 945; 945 * 945 / 1024 = 872; 872 * 945 / 1024 = 804: 1828, and a quarter of it as the device has no
    // part yet, 457. 25600 * 457 / 1024 = 11425 pages a second: 250 * 500 / 11425 = 10 ticks.
    assert_eq!(writer.write(500, Time::ZERO).pause, Some(Time::from_ms(4 * 11)));
}

#[test]
fn a_first_pause_at_the_set_point() {
    let mut writer = Writer::new();
    // (39296 + 52416) / 2 pages. The device has written nothing: an eighth of 6560 pages is its part, its line is at a quarter, and
    // 25600 pages a second become 6400. 250 * 45856 / 6400 = 1791 ticks are more than the longest pause, 50. The timer of 50 ticks
    // fires at the 51st.
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
    // Its pages are charged again, and every pause is the longest.
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
    // The longest pause is an eighth of the time that the device needs: 30128 / 801 + 1 = 38 ticks.
    assert_eq!(writer.write(128, Time::ZERO).pause, Some(Time::from_ms(4 * 39)));
    writer.writeback.set_bounds(DirtyBounds::default(), AVAIL);
    let resumed = writer.writeback.resume(0, &mut writer.task, AVAIL, Time::from_ms(156));
    assert_eq!(resumed.pause, None);
}

/// 200 pages before it is looked at, and pauses of two ticks at least (`wb_min_pause`); 400 pages are worth 3 ticks.
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
    // 3 - 1000 ticks: more than a second of something else. It begins anew.
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
    // 250 * 500 / 1000 = 125 ticks, of which 50 are paused and 50 more remembered. 25600 * 2 / 256 = 200 pages are 49 ticks.
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
