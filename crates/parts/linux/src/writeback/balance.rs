//! Who dirties pages, and when it pauses (`balance_dirty_pages` and around, `mm/page-writeback.c`).

use super::bandwidth::Target;
use super::clock::Jiffies;
use super::limits::DirtyLimits;
use super::pause::{DIRTY_POLL_THRESH, MinPause, Rates, dirty_poll_interval, wb_max_pause, wb_min_pause};
use super::position::{Position, RATELIMIT_CALC_SHIFT};
use super::{Wake, Writeback};
use engine::Time;

/// Pages after which a task is looked at while a device has more than its part (`32 >> (PAGE_SHIFT - 10)`).
const EXCEEDED_POLL: u64 = 8;

/// A task that dirties pages (fields of `struct task_struct`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dirtier {
    /// Pages dirtied since it was looked at.
    pub nr_dirtied: u64,
    /// It is looked at when it has dirtied so many.
    pub nr_dirtied_pause: u64,
    /// When its last pause ended, or would have; zero before the first time.
    pub(super) dirty_paused_when: Jiffies,
    /// Pages that it pauses for again, because nothing may be dirtied for its device.
    pub(super) stuck: Option<u64>,
}

impl Default for Dirtier {
    /// A new task (`copy_process`, `kernel/fork.c`).
    fn default() -> Dirtier {
        Dirtier { nr_dirtied: 0, nr_dirtied_pause: DIRTY_POLL_THRESH, dirty_paused_when: 0, stuck: None }
    }
}

/// What a task that has dirtied pages does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Balance {
    /// It sleeps until then, and calls [`Writeback::resume`] when it wakes; none if it goes on at once.
    pub pause: Option<Time>,
    /// Whether the flusher of the device is to run.
    pub wake: Wake,
}

impl Dirtier {
    fn restart(&mut self, now: Jiffies) {
        (self.dirty_paused_when, self.nr_dirtied) = (now, 0);
    }

    /// The pause for pages, if it is worth one. The time that the task has spent on something else since its last pause counts; what
    /// is not paused is owed.
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
        // With no rate at all, the pause is the longest.
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
    /// A task has dirtied pages for a device, on a core: whether it pauses (`balance_dirty_pages_ratelimited`). To be called after every
    /// page or few; `avail` are the pages of memory that may hold dirty ones.
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

    /// A task has slept as [`Balance`] said: whether it pauses again.
    pub fn resume(&mut self, drive: u16, task: &mut Dirtier, avail: u64, now: Time) -> Balance {
        match task.stuck.take() {
            Some(pages) => self.balance_dirty_pages(drive, task, pages, avail, now),
            None => Balance::default(),
        }
    }

    /// A task ends on a core: what it has dirtied and not paused for, others pause for (`do_exit`, `kernel/exit.c`).
    pub fn exit(&mut self, task: &Dirtier, core: u16) {
        self.cores[usize::from(core)].leaks += task.nr_dirtied;
    }

    /// A turn of the loop of `balance_dirty_pages`.
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

    /// Where dirty pages are, and the rates that follow from it.
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
