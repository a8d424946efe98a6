//! How long a writer pauses, and how many pages it may dirty before it is looked at again (`mm/page-writeback.c`).

use super::clock::{Jiffies, interval};

/// `DIRTY_POLL_THRESH`: pauses are made longer rather than that a writer is looked at more often than every so many pages.
pub(super) const DIRTY_POLL_THRESH: u64 = 32;

/// `dirty_poll_interval`: pages that a writer may dirty while nobody has to pause, about the root of what is left.
pub(super) fn dirty_poll_interval(dirty: u64, thresh: u64) -> u64 {
    if thresh > dirty { 1 << ((thresh - dirty).ilog2() >> 1) } else { 1 }
}

/// `wb_max_pause`: the longest pause, in which the device writes an eighth of what is dirty for it.
pub(super) fn wb_max_pause(hz: u64, avg_write_bandwidth: u64, wb_dirty: u64) -> Jiffies {
    let eighth = (1 + hz / 8).next_power_of_two();
    (wb_dirty / (1 + avg_write_bandwidth / eighth) + 1).min(interval(hz))
}

/// Rates of a writer, in pages a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// Of the device (`avg_write_bandwidth`).
    pub(super) write_bandwidth: u64,
    /// Of each of its writers.
    pub(super) dirty_ratelimit: u64,
    /// The same times the position ratio.
    pub(super) task_ratelimit: u64,
}

/// The shortest pause that is taken, and the pages that a writer dirties before its next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MinPause {
    pub(super) pause: Jiffies,
    pub(super) nr_dirtied_pause: u64,
}

/// `wb_min_pause`: about 10 ms for one writer, and 10 ms more whenever there are twice as many.
pub(super) fn wb_min_pause(hz: u64, max_pause: Jiffies, rates: &Rates) -> MinPause {
    let ticks = hz.next_power_of_two();
    let (hi, lo) = (rates.write_bandwidth.ilog2(), rates.dirty_ratelimit.ilog2());
    let more = u64::from(hi.saturating_sub(lo)) * (10 * hz) / 1024;
    let mut target = ((hz / 100).max(1) + more).min(1 + max_pause / 2);
    let mut pages = rates.dirty_ratelimit * target / ticks;
    if pages < DIRTY_POLL_THRESH {
        target = max_pause;
        pages = rates.dirty_ratelimit * target / ticks;
        if pages > DIRTY_POLL_THRESH {
            pages = DIRTY_POLL_THRESH;
            target = hz * DIRTY_POLL_THRESH / rates.dirty_ratelimit;
        }
    }
    if hz * pages / (rates.task_ratelimit + 1) > max_pause {
        target = max_pause;
        pages = rates.task_ratelimit * target / ticks;
    }
    let pause = if pages >= DIRTY_POLL_THRESH { 1 + target / 2 } else { target };
    MinPause { pause, nr_dirtied_pause: pages }
}
