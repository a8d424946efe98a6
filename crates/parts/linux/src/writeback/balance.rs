//! Throttling of tasks that dirty pages (`balance_dirty_pages` and related functions, `mm/page-writeback.c`).

use super::spec::DirtyLimits;
use super::{
    DIRTY_POLL_THRESH, Jiffies, MinPause, Rates, Wake, Writeback, dirty_poll_interval, interval,
    wb_max_pause, wb_min_pause,
};
use crate::PAGE;
use engine::Time;

/// Pages after which a task is checked while a device exceeds its share (`32 >> (PAGE_SHIFT - 10)`).
const EXCEEDED_POLL: u64 = 8;

/// Task that dirties pages (fields of `struct task_struct`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dirtier {
    /// Pages dirtied since its last check.
    pub nr_dirtied: u64,
    /// Dirtied pages at which it is checked.
    pub nr_dirtied_pause: u64,
    /// End of its last pause, or the time at which it would have ended; zero before the first one.
    pub(super) dirty_paused_when: Jiffies,
    /// Pages that it pauses for again, because no page may be dirtied for its device.
    pub(super) stuck: Option<u64>,
}

impl Default for Dirtier {
    /// Creates the state of a new task (`copy_process`, `kernel/fork.c`).
    fn default() -> Dirtier {
        Dirtier { nr_dirtied: 0, nr_dirtied_pause: DIRTY_POLL_THRESH, dirty_paused_when: 0, stuck: None }
    }
}

/// Decision for a task that has dirtied pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Balance {
    /// End of its pause, after which it calls [`Writeback::resume`]; `None` if it goes on at once.
    pub pause: Option<Time>,
    /// True if the flusher of the device is to run.
    pub wake: Wake,
}

impl Dirtier {
    fn restart(&mut self, now: Jiffies) {
        (self.dirty_paused_when, self.nr_dirtied) = (now, 0);
    }

    /// Computes the pause for pages, if it is long enough. Time that the task has spent elsewhere since its last pause
    /// counts; skipped pauses are owed.
    pub(super) fn throttle(
        &mut self,
        hz: u64,
        max_pause: Jiffies,
        rates: &Rates,
        pages: u64,
        now: Jiffies,
    ) -> Option<Jiffies> {
        let MinPause { pause: min_pause, nr_dirtied_pause } = wb_min_pause(hz, max_pause, rates);
        let (mut paused_from, mut pause) = (now, max_pause);
        // At a rate of zero, the pause is the maximum.
        if let Some(period) = (hz * pages).checked_div(rates.task_ratelimit) {
            let mut owed = period as i64;
            if self.dirty_paused_when != 0 {
                owed -= now as i64 - self.dirty_paused_when as i64;
            }
            if owed < min_pause as i64 {
                self.owe(owed, period, pages, hz, now);
                return None;
            }
            pause = owed as u64;
            if pause > max_pause {
                paused_from += (pause - max_pause).min(max_pause);
                pause = max_pause;
            }
        }
        self.restart(paused_from + pause);
        self.nr_dirtied_pause = nr_dirtied_pause;
        Some(pause)
    }

    fn owe(&mut self, owed: i64, period: Jiffies, pages: u64, hz: u64, now: Jiffies) {
        if owed < -(hz as i64) {
            self.restart(now);
        } else if period != 0 {
            self.restart(self.dirty_paused_when + period);
        } else if self.nr_dirtied_pause <= pages {
            self.nr_dirtied_pause += pages;
        }
    }
}

impl Writeback {
    /// Checks a task that has dirtied pages for a device, on a core, for a pause (`balance_dirty_pages_ratelimited`).
    /// To be called after every one or few pages; `avail` is the number of memory pages that may be dirty.
    #[inline]
    pub fn balance(&mut self, drive: u16, task: &mut Dirtier, core: u16, avail: u64, now: Time) -> Balance {
        let mut ratelimit = task.nr_dirtied_pause;
        if self.wbs[usize::from(drive)].dirty_exceeded {
            ratelimit = ratelimit.min(EXCEEDED_POLL);
        }
        let core = &mut self.cores[usize::from(core)];
        if task.nr_dirtied >= ratelimit {
            core.ratelimit = 0;
        } else if core.ratelimit >= self.ratelimit_pages {
            core.ratelimit = 0;
            ratelimit = 0;
        }
        if core.leaks > 0 && task.nr_dirtied < ratelimit {
            let leaked = core.leaks.min(ratelimit - task.nr_dirtied);
            core.leaks -= leaked;
            task.nr_dirtied += leaked;
        }
        if task.nr_dirtied < ratelimit {
            return Balance::default();
        }
        self.balance_dirty_pages(drive, task, task.nr_dirtied, avail, now)
    }

    /// Checks a task that has slept as [`Balance`] requested for a further pause.
    pub fn resume(&mut self, drive: u16, task: &mut Dirtier, avail: u64, now: Time) -> Balance {
        match task.stuck.take() {
            Some(pages) => self.balance_dirty_pages(drive, task, pages, avail, now),
            None => Balance::default(),
        }
    }

    /// Ends a task on a core: others pause for the pages that it has not paused for (`do_exit`, `kernel/exit.c`).
    pub fn exit(&mut self, task: &Dirtier, core: u16) {
        self.cores[usize::from(core)].leaks += task.nr_dirtied;
    }

    /// Runs an iteration of the loop of `balance_dirty_pages`.
    fn balance_dirty_pages(
        &mut self,
        drive: u16,
        task: &mut Dirtier,
        pages: u64,
        avail: u64,
        now: Time,
    ) -> Balance {
        self.settle(drive, now);
        let jiffies = self.clock.jiffies(now);
        self.domain.age(jiffies);
        self.stats.balances += 1;
        let limits = self.bounds.limits(avail);
        let dirty = self.domain.dirty + self.domain.writeback;
        let free = dirty <= limits.freerun();
        let wb = &mut self.wbs[usize::from(drive)];
        let mut wake = Wake::Nothing;
        if (self.domain.dirty > limits.bg_thresh || !free) && !wb.flusher.is_running() {
            wake = wb.flusher.wake();
        }
        if free {
            task.restart(jiffies);
            task.nr_dirtied_pause = dirty_poll_interval(dirty, limits.thresh);
            return Balance { pause: None, wake };
        }
        let wb_dirty = wb.dirty();
        let rates = self.control(drive, limits, jiffies);
        let hz = self.clock.hz();
        let max_pause = wb_max_pause(hz, rates.write_bandwidth, wb_dirty);
        let Some(pause) = task.throttle(hz, max_pause, &rates, pages, jiffies) else {
            return Balance { pause: None, wake };
        };
        if rates.task_ratelimit == 0 && wb_dirty > self.stat_error() {
            task.stuck = Some(pages);
        }
        let until = self.clock.time(self.clock.expiry(jiffies, pause));
        self.stats.pause(until - now);
        Balance { pause: Some(until), wake }
    }

    /// Computes the rates that follow from the position of dirty pages.
    fn control(&mut self, drive: u16, limits: DirtyLimits, now: Jiffies) -> Rates {
        let wb = &mut self.wbs[usize::from(drive)];
        let wb_thresh = self.domain.wb_thresh(&wb.completions, wb.ratios, limits.thresh);
        let position = Position {
            dirty: self.domain.dirty + self.domain.writeback,
            freerun: limits.freerun(),
            thresh: limits.thresh,
            limit: self.domain.hard_limit(limits.thresh),
            wb_dirty: wb.dirty(),
            wb_thresh,
            write_bw: wb.bandwidth.avg_write_bandwidth,
        };
        wb.dirty_exceeded = position.wb_dirty > wb_thresh && position.dirty > limits.thresh;
        let pos_ratio = position.ratio();
        if wb.bandwidth.is_due(now) {
            // The limit moves first, and the set point with it.
            self.domain.update_dirty_limit(limits.thresh, position.dirty, now);
            let limit = self.domain.hard_limit(limits.thresh);
            let setpoint = Position { limit, ..position }.setpoint();
            let target = Target { dirty: position.dirty, setpoint, pos_ratio };
            wb.bandwidth.update(wb.dirtied, wb.written, Some(target), now);
        }
        let dirty_ratelimit = wb.bandwidth.dirty_ratelimit;
        Rates {
            write_bandwidth: wb.bandwidth.avg_write_bandwidth,
            dirty_ratelimit,
            task_ratelimit: (dirty_ratelimit * pos_ratio) >> RATELIMIT_CALC_SHIFT,
        }
    }
}

// Position of dirty pages relative to their target, as a factor for the rate of writers (`mm/page-writeback.c`). Left
// out: `strictlimit`, which is for file systems in user mode.

/// Fixed-point shift: a factor of one is `1 << RATELIMIT_CALC_SHIFT`.
pub(super) const RATELIMIT_CALC_SHIFT: u32 = 10;

/// Inputs of the factor, in pages; the bandwidth in pages a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// Pages dirty or under write-back.
    pub(super) dirty: u64,
    pub(super) freerun: u64,
    pub(super) thresh: u64,
    /// Limit that falls gradually.
    pub(super) limit: u64,
    /// Pages of the device, dirty or under write-back.
    pub(super) wb_dirty: u64,
    pub(super) wb_thresh: u64,
    /// Bandwidth of the device: `avg_write_bandwidth`.
    pub(super) write_bw: u64,
}

impl Position {
    /// Target of dirty pages.
    pub(super) fn setpoint(&self) -> u64 {
        (self.freerun + self.limit) / 2
    }

    /// `wb_position_ratio`.
    pub(super) fn ratio(&self) -> u64 {
        if self.dirty >= self.limit {
            return 0;
        }
        let setpoint = self.setpoint();
        let global = polynom(setpoint, self.dirty, self.limit);
        // A device that has been idle has no share of the limit, and gets some of the remainder.
        let wb_thresh = self.wb_thresh.min(self.thresh).max((self.limit - self.dirty) / 8);
        self.reserve(self.line(global, setpoint, wb_thresh), wb_thresh)
    }

    /// Control line of the device: one at its set point, a quarter from three quarters of the span on.
    fn line(&self, ratio: u64, setpoint: u64, wb_thresh: u64) -> u64 {
        let part = (wb_thresh << 16) / (self.thresh | 1);
        let wb_setpoint = (setpoint * part) >> 16;
        // The limit may exceed the threshold for a while: the difference then wraps in the kernel, and back with the
        // sum.
        let span =
            (self.thresh.wrapping_sub(wb_thresh).wrapping_add(8 * self.write_bw)).wrapping_mul(part) >> 16;
        let x_intercept = wb_setpoint + span;
        if self.wb_dirty < x_intercept - span / 4 {
            ratio * (x_intercept - self.wb_dirty) / ((x_intercept - wb_setpoint) | 1)
        } else {
            ratio / 4
        }
    }

    /// Raises the factor below half of the device's share, so that the device does not run out of work.
    fn reserve(&self, ratio: u64, wb_thresh: u64) -> u64 {
        let reserve = wb_thresh / 2;
        if self.wb_dirty >= reserve {
            ratio
        } else if self.wb_dirty > reserve / 8 {
            ratio * reserve / self.wb_dirty
        } else {
            ratio * 8
        }
    }
}

/// `pos_ratio_polynom`: two up to the end of the free run, one at the set point, zero at the limit, a cubic between.
pub(super) fn polynom(setpoint: u64, dirty: u64, limit: u64) -> u64 {
    let x = ((setpoint as i64 - dirty as i64) << RATELIMIT_CALC_SHIFT) / ((limit - setpoint) | 1) as i64;
    let cube = (((x * x) >> RATELIMIT_CALC_SHIFT) * x) >> RATELIMIT_CALC_SHIFT;
    (cube + (1 << RATELIMIT_CALC_SHIFT)).clamp(0, 2 << RATELIMIT_CALC_SHIFT) as u64
}

// Write bandwidth of a device, and dirtying rate of its writers (`mm/page-writeback.c`), in pages a second.

/// `INIT_BW`: 100 MiB/s (`mm/backing-dev.c`).
pub(super) const INIT_BW: u64 = (100 << 20) / PAGE;

/// Estimates of a device (fields of `struct bdi_writeback`).
#[derive(Clone, Debug)]
pub(super) struct Bandwidth {
    hz: u64,
    /// Time of the last update.
    pub(super) stamp: Jiffies,
    dirtied_stamp: u64,
    written_stamp: u64,
    pub(super) write_bandwidth: u64,
    /// Write bandwidth, smoothed once more.
    pub(super) avg_write_bandwidth: u64,
    /// Dirtying rate of each writer when dirty pages are at their target.
    pub(super) dirty_ratelimit: u64,
    balanced_dirty_ratelimit: u64,
}

/// Position of dirty pages, for [`Bandwidth::update_dirty_ratelimit`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) dirty: u64,
    pub(super) setpoint: u64,
    pub(super) pos_ratio: u64,
}

impl Bandwidth {
    pub(super) fn new(hz: u64, now: Jiffies) -> Bandwidth {
        Bandwidth {
            hz,
            stamp: now,
            dirtied_stamp: 0,
            written_stamp: 0,
            write_bandwidth: INIT_BW,
            avg_write_bandwidth: INIT_BW,
            dirty_ratelimit: INIT_BW,
            balanced_dirty_ratelimit: INIT_BW,
        }
    }

    /// Returns whether more than 200 ms have passed since the last update.
    pub(super) fn is_due(&self, now: Jiffies) -> bool {
        now > self.stamp + interval(self.hz)
    }

    /// `__wb_update_bandwidth`: updates the bandwidth from the pages that the device has dirtied and written since it
    /// began. Also updates the rate of writers, if they are about to pause.
    pub(super) fn update(&mut self, dirtied: u64, written: u64, target: Option<Target>, now: Jiffies) {
        let elapsed = now.saturating_sub(self.stamp).max(1);
        if let Some(target) = target {
            self.update_dirty_ratelimit(target, dirtied.saturating_sub(self.dirtied_stamp), elapsed);
        }
        self.update_write_bandwidth(written.saturating_sub(self.written_stamp), elapsed);
        self.restart(dirtied, written, now);
    }

    /// `wb_bandwidth_estimate_start`: after an idle second, earlier time does not count.
    pub(super) fn start(&mut self, dirtied: u64, written: u64, writing: bool, now: Jiffies) {
        if now - self.stamp > self.hz && !writing {
            self.restart(dirtied, written, now);
        }
    }

    fn restart(&mut self, dirtied: u64, written: u64, now: Jiffies) {
        (self.dirtied_stamp, self.written_stamp, self.stamp) = (dirtied, written, now);
    }

    /// `wb_update_write_bandwidth`: a mean over about three seconds, and one that follows it only where both agree.
    fn update_write_bandwidth(&mut self, written: u64, elapsed: Jiffies) {
        let period = (3 * self.hz).next_power_of_two();
        let (mut avg, old) = (self.avg_write_bandwidth, self.write_bandwidth);
        let mut bw = written * self.hz;
        if elapsed > period {
            bw /= elapsed;
            avg = bw;
        } else {
            bw = (bw + old * (period - elapsed)) >> period.ilog2();
            if avg > old && old >= bw {
                avg -= (avg - old) >> 3;
            }
            if avg < old && old <= bw {
                avg += (old - avg) >> 3;
            }
        }
        self.write_bandwidth = bw;
        self.avg_write_bandwidth = avg.max(1);
    }

    /// `wb_update_dirty_ratelimit`: moves towards the rate at which all writers together dirty what the device writes,
    /// in steps, and only while dirty pages stay on the same side of their target.
    fn update_dirty_ratelimit(&mut self, target: Target, dirtied: u64, elapsed: Jiffies) {
        let (write_bw, rate) = (self.avg_write_bandwidth, self.dirty_ratelimit);
        let dirty_rate = dirtied * self.hz / elapsed;
        let task_ratelimit = ((rate * target.pos_ratio) >> RATELIMIT_CALC_SHIFT) + 1;
        let balanced = (task_ratelimit * write_bw / (dirty_rate | 1)).min(write_bw);
        let before = self.balanced_dirty_ratelimit;
        let distance = if target.dirty < target.setpoint {
            before.min(balanced).min(task_ratelimit).saturating_sub(rate)
        } else {
            rate.saturating_sub(before.max(balanced).max(task_ratelimit))
        };
        // Smaller steps near the target, which fluctuates.
        let shift = rate / (2 * distance + 1);
        let step = if shift < 64 { (distance >> shift).div_ceil(8) } else { 0 };
        let rate = if rate < balanced { rate + step } else { rate.saturating_sub(step) };
        self.dirty_ratelimit = rate.max(1);
        self.balanced_dirty_ratelimit = balanced;
    }
}
