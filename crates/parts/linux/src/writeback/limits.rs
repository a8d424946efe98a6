//! How much memory may be dirty (`mm/page-writeback.c`).
//!
//! Left out: the quarter that real-time tasks may have more, memory control groups, nodes, `strictlimit`.

use super::{Global, Jiffies, Local, interval};
use crate::PAGE;

/// A bound of dirty memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// In per cent of the memory that may hold dirty pages.
    Percent(u32),
    /// In bytes.
    Bytes(u64),
}

/// The bounds of dirty memory, `vm.dirty_*`. They may be changed at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirtyBounds {
    /// From here on flushers write.
    pub background: Bound,
    /// Writers must not exceed it.
    pub limit: Bound,
}

impl Default for DirtyBounds {
    /// Linux's: 10 and 20 %.
    fn default() -> DirtyBounds {
        DirtyBounds { background: Bound::Percent(10), limit: Bound::Percent(20) }
    }
}

/// The same in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirtyLimits {
    /// Of the background.
    pub bg_thresh: u64,
    /// Of all.
    pub thresh: u64,
}

impl Bound {
    fn pages(self, avail: u64) -> u64 {
        match self {
            // Linux's ratios are parts of 4096, rounded down.
            Bound::Percent(percent) => (u64::from(percent) * PAGE / 100) * avail / PAGE,
            Bound::Bytes(bytes) => bytes.div_ceil(PAGE),
        }
    }
}

impl DirtyBounds {
    /// The limits with `avail` pages of memory that may hold dirty ones (`domain_dirty_limits`).
    pub fn limits(&self, avail: u64) -> DirtyLimits {
        let thresh = self.limit.pages(avail).min(u32::MAX.into());
        let bg_thresh = self.background.pages(avail);
        DirtyLimits { thresh, bg_thresh: if bg_thresh >= thresh { thresh / 2 } else { bg_thresh } }
    }
}

impl DirtyLimits {
    /// Up to here nobody pauses (`dirty_freerun_ceiling`).
    pub fn freerun(&self) -> u64 {
        (self.thresh + self.bg_thresh) / 2
    }
}

/// A device's part of the limits, whatever its speed (`min_ratio`, `max_ratio` of a bdi), in per cent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ratios {
    pub(super) min: u32,
    pub(super) max: u32,
}

/// All devices together (`struct wb_domain`).
#[derive(Clone, Debug)]
pub(super) struct Domain {
    /// Dirty pages (`NR_FILE_DIRTY`).
    pub(super) dirty: u64,
    /// Pages being written (`NR_WRITEBACK`).
    pub(super) writeback: u64,
    /// The limit as it was: it lies above what is dirty even when memory has suddenly become less.
    pub(super) dirty_limit: u64,
    dirty_limit_stamp: Jiffies,
    completions: Global,
    /// When the period ends; zero if nothing has been written for so long that nothing counts.
    period_time: Jiffies,
    /// Of all devices together, in per cent (`bdi_min_ratio`).
    min_ratio: u64,
    hz: u64,
}

impl Domain {
    pub(super) fn new(hz: u64, min_ratio: u32, now: Jiffies) -> Domain {
        Domain {
            dirty: 0,
            writeback: 0,
            dirty_limit: 0,
            dirty_limit_stamp: now,
            completions: Global::default(),
            period_time: 0,
            min_ratio: min_ratio.into(),
            hz,
        }
    }

    /// `VM_COMPLETIONS_PERIOD_LEN`: three seconds.
    fn period(&self) -> Jiffies {
        3 * self.hz
    }

    /// Ends the periods that have passed (`writeout_period`). The kernel's timer may be late while a processor sleeps; here it is not.
    pub(super) fn age(&mut self, now: Jiffies) {
        while self.period_time != 0 && self.period_time <= now {
            let more = self.completions.new_period();
            self.period_time = if more { self.period_time + self.period() } else { 0 };
        }
    }

    /// A device has written pages (`wb_domain_writeout_add`).
    pub(super) fn written(&mut self, completions: &mut Local, max_frac: u64, pages: u64, now: Jiffies) {
        self.age(now);
        completions.add(&mut self.completions, max_frac, pages);
        if self.period_time == 0 {
            self.period_time = now + self.period();
        }
    }

    /// A device's part of a limit: by the pages that it has written (`__wb_calc_thresh`).
    pub(super) fn wb_thresh(&self, completions: &Local, ratios: Ratios, thresh: u64) -> u64 {
        let (numerator, denominator) = completions.fraction(&self.completions);
        let shared = u128::from(thresh * (100 - self.min_ratio) / 100);
        let own = (shared * u128::from(numerator) / u128::from(denominator)) as u64;
        (own + thresh * u64::from(ratios.min) / 100).min(thresh * u64::from(ratios.max) / 100)
    }

    /// `hard_dirty_limit`.
    pub(super) fn hard_limit(&self, thresh: u64) -> u64 {
        thresh.max(self.dirty_limit)
    }

    /// The limit follows, at most every 200 ms (`domain_update_dirty_limit`, `update_dirty_limit`): up at once, down by a 32nd of the
    /// difference.
    pub(super) fn update_dirty_limit(&mut self, thresh: u64, dirty: u64, now: Jiffies) {
        if now < self.dirty_limit_stamp + interval(self.hz) {
            return;
        }
        self.dirty_limit_stamp = now;
        if self.dirty_limit < thresh {
            self.dirty_limit = thresh;
            return;
        }
        let floor = thresh.max(dirty);
        self.dirty_limit -= self.dirty_limit.saturating_sub(floor) >> 5;
    }
}
