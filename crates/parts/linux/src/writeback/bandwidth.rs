//! How fast a device writes, and how fast a writer may dirty pages for it (`mm/page-writeback.c`). All in pages a second.

use super::clock::{Jiffies, interval};
use super::position::RATELIMIT_CALC_SHIFT;
use crate::PAGE;

/// `INIT_BW`: 100 MiB/s (`mm/backing-dev.c`).
pub(super) const INIT_BW: u64 = (100 << 20) / PAGE;

/// A device's estimates (fields of `struct bdi_writeback`).
#[derive(Clone, Debug)]
pub(super) struct Bandwidth {
    hz: u64,
    /// When it was updated.
    pub(super) stamp: Jiffies,
    dirtied_stamp: u64,
    written_stamp: u64,
    pub(super) write_bandwidth: u64,
    /// The same, smoothed once more.
    pub(super) avg_write_bandwidth: u64,
    /// What each writer may dirty when dirty pages are where they should be.
    pub(super) dirty_ratelimit: u64,
    balanced_dirty_ratelimit: u64,
}

/// Where dirty pages are, as [`Bandwidth::update_dirty_ratelimit`] needs it.
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

    /// Whether more than 200 ms have passed since the last update.
    pub(super) fn is_due(&self, now: Jiffies) -> bool {
        now > self.stamp + interval(self.hz)
    }

    /// `__wb_update_bandwidth`: with what the device has dirtied and written since it began. The rate of writers too, if they are about
    /// to pause.
    pub(super) fn update(&mut self, dirtied: u64, written: u64, target: Option<Target>, now: Jiffies) {
        let elapsed = now.saturating_sub(self.stamp).max(1);
        if let Some(target) = target {
            self.update_dirty_ratelimit(target, dirtied.saturating_sub(self.dirtied_stamp), elapsed);
        }
        self.update_write_bandwidth(written.saturating_sub(self.written_stamp), elapsed);
        self.restart(dirtied, written, now);
    }

    /// `wb_bandwidth_estimate_start`: after a second without anything, the time before does not count.
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

    /// `wb_update_dirty_ratelimit`: towards the rate at which all writers together dirty what the device writes, but only where dirty
    /// pages are on the same side of where they should be, and in steps.
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
        // The nearer, the smaller the part of the way: the target itself is never still.
        let shift = rate / (2 * distance + 1);
        let step = if shift < 64 { (distance >> shift).div_ceil(8) } else { 0 };
        let rate = if rate < balanced { rate + step } else { rate.saturating_sub(step) };
        self.dirty_ratelimit = rate.max(1);
        self.balanced_dirty_ratelimit = balanced;
    }
}
