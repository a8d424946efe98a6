//! Rounds of reclaim, by `kswapd` and by tasks short of memory.

use super::{DEF_PRIORITY, MAX_RECLAIM_RETRIES, SWAP_CLUSTER_MAX, Tally};
use crate::pagecache::{Folio, PageCache};

/// Reclaim in progress (`struct scan_control`), kept by the reclaimer from round to round.
#[derive(Clone, Debug)]
pub struct ScanControl {
    /// True if `kswapd` reclaims.
    pub(in crate::pagecache) kswapd: bool,
    /// Priority: a round scans 1/2^priority of a list.
    pub(in crate::pagecache) priority: i8,
    pub(in crate::pagecache) nr_to_reclaim: u64,
    /// Pages scanned in this round.
    pub(in crate::pagecache) nr_scanned: u64,
    /// Pages freed since the first round, and before this one.
    pub(in crate::pagecache) nr_reclaimed: u64,
    pub(in crate::pagecache) last_reclaimed: u64,
    /// Deactivation of an active list that is not too long: allowed, and skipped.
    pub(in crate::pagecache) force_deactivate: bool,
    pub(in crate::pagecache) skipped_deactivate: bool,
    /// `memcgs_need_aging`.
    pub(in crate::pagecache) needs_aging: bool,
}

/// Reason for which a reclaimer has to sleep (`enum vmscan_throttle_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Throttle {
    /// `VMSCAN_THROTTLE_WRITEBACK`: `kswapd` meets pages under write-back a second time. A tenth of a second, or until
    /// more than 32 pages per sleeper were written.
    Writeback,
    /// `VMSCAN_THROTTLE_CONGESTED`: all dirty pages wait for the drive. One tick.
    Congested,
    /// `VMSCAN_THROTTLE_NOPROGRESS`: almost everything was scanned and nothing freed. One tick.
    NoProgress,
}

/// Continuation of a reclaim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Another round with the same control.
    Again,
    /// Ended with success: enough pages are free for `kswapd`, or the task has its pages.
    Done,
    /// Ended without success. `kswapd` starts over, unless it [has failed too often](PageCache::is_hopeless). A task
    /// retries its allocation, and gives up after 16 attempts without a page.
    Failed,
}

/// Result of a round, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reclaimed {
    /// Pages scanned: the measure of the core time spent.
    pub scanned: u64,
    /// Pages moved from one list to another in addition.
    pub refilled: u64,
    /// Pages freed, all of them clean.
    pub freed: u64,
    /// Scanned pages that are dirty or under write-back.
    pub dirty: u64,
    /// Dirty pages not under write-back.
    pub unqueued_dirty: u64,
    /// Pages under write-back, marked for reclaim in this round.
    pub writeback: u64,
    /// Pages under write-back, marked for reclaim before.
    pub congested: u64,
    /// True if the flushers are to be woken (`wakeup_flusher_threads`).
    pub wakes_flushers: bool,
    /// Sleep of the reclaimer before it goes on.
    pub throttle: Option<Throttle>,
    /// Continuation.
    pub next: Next,
}

impl ScanControl {
    fn new(kswapd: bool) -> ScanControl {
        ScanControl {
            kswapd,
            priority: DEF_PRIORITY,
            nr_to_reclaim: SWAP_CLUSTER_MAX,
            nr_scanned: 0,
            nr_reclaimed: 0,
            last_reclaimed: 0,
            force_deactivate: false,
            skipped_deactivate: false,
            needs_aging: false,
        }
    }

    /// Starts a reclaim of `kswapd` (`balance_pgdat`).
    pub fn kswapd() -> ScanControl {
        ScanControl::new(true)
    }

    /// Starts a reclaim of a task (`try_to_free_pages`), which wants 32 pages.
    pub fn direct() -> ScanControl {
        ScanControl::new(false)
    }

    /// Pages freed since the reclaim began.
    pub fn reclaimed(&self) -> u64 {
        self.nr_reclaimed
    }
}

impl PageCache {
    /// Runs a round of a reclaim that has not ended: one iteration of the loop in `balance_pgdat` or
    /// `do_try_to_free_pages`, with `shrink_node`. Pages that `kswapd` chose to write itself wait in
    /// [`pageouts`](PageCache::pageouts).
    pub fn reclaim(&mut self, control: &mut ScanControl) -> Reclaimed {
        let mut tally = Tally::default();
        control.nr_scanned = 0;
        if control.kswapd {
            if self.is_balanced() {
                self.reclaim.end();
                return reclaimed(&tally, None, Next::Done);
            }
            control.nr_to_reclaim = self.core.watermarks.high.max(SWAP_CLUSTER_MAX);
            control.last_reclaimed = control.nr_reclaimed;
            self.reclaim.age(&mut self.core, control);
        }
        self.reclaim.shrink(&mut self.core, control, &mut tally);
        control.nr_reclaimed += tally.freed;
        let throttle = self.note_node(control, &tally);
        let next = if control.kswapd {
            self.next_of_kswapd(control, tally.freed)
        } else {
            self.next_of_direct(control)
        };
        let throttle = throttle.or_else(|| self.throttle_noprogress(control));
        if !control.kswapd && next == Next::Again {
            control.priority -= 1;
        }
        self.count(control, &tally);
        reclaimed(&tally, throttle, next)
    }

    /// Returns whether enough pages are free for `kswapd` (`pgdat_balanced`); if so, clears the congestion state
    /// (`clear_pgdat_congested`).
    fn is_balanced(&mut self) -> bool {
        let balanced = self.core.free() > self.core.watermarks.high;
        if balanced {
            let node = &mut self.core.node;
            (node.dirty, node.writeback, node.congested) = (false, false, false);
        }
        balanced
    }

    /// Runs the end of `shrink_node`: records the state of the lists, and returns a sleep if one is due.
    fn note_node(&mut self, control: &ScanControl, tally: &Tally) -> Option<Throttle> {
        if tally.freed > 0 {
            self.core.node.kswapd_failures = 0;
        }
        let node = &mut self.core.node;
        if control.kswapd {
            node.writeback |= tally.writeback > 0 && tally.writeback == tally.taken;
            node.dirty |= tally.unqueued_dirty == tally.taken;
            node.congested |= tally.dirty > 0 && tally.dirty == tally.congested;
            return (tally.immediate > 0).then_some(Throttle::Writeback);
        }
        (node.congested && !self.skips_throttle()).then_some(Throttle::Congested)
    }

    /// `skip_throttle_noprogress`: a sleep is useless unless half of the reclaimable pages are dirty.
    fn skips_throttle(&self) -> bool {
        self.is_hopeless() || 2 * (self.core.nr_dirty + self.core.nr_writeback) <= self.core.folios.len()
    }

    /// `consider_reclaim_throttle`.
    fn throttle_noprogress(&self, control: &ScanControl) -> Option<Throttle> {
        let stuck = !control.kswapd && control.priority == 1 && control.nr_reclaimed == 0;
        (stuck && !self.skips_throttle()).then_some(Throttle::NoProgress)
    }

    fn next_of_kswapd(&mut self, control: &mut ScanControl, freed: u64) -> Next {
        if control.nr_scanned < control.nr_to_reclaim || freed == 0 {
            control.priority -= 1;
        }
        if control.priority >= 1 {
            return Next::Again;
        }
        if control.nr_reclaimed == 0 {
            self.core.node.kswapd_failures += 1;
        }
        self.reclaim.end();
        if self.is_balanced() { Next::Done } else { Next::Failed }
    }

    fn next_of_direct(&mut self, control: &mut ScanControl) -> Next {
        let enough = control.nr_reclaimed >= control.nr_to_reclaim;
        if !enough && control.priority > 0 {
            return Next::Again;
        }
        self.reclaim.end();
        if control.nr_reclaimed > 0 {
            return Next::Done;
        }
        if control.skipped_deactivate {
            // Retries with the active list included.
            (control.skipped_deactivate, control.force_deactivate) = (false, true);
            control.priority = DEF_PRIORITY + 1;
            return Next::Again;
        }
        Next::Failed
    }

    fn count(&mut self, control: &ScanControl, tally: &Tally) {
        let stats = &mut self.core.stats;
        stats.scanned += tally.taken;
        stats.evicted += tally.freed;
        stats.activated += tally.activated;
        if !control.kswapd {
            stats.scanned_direct += tally.taken;
            stats.evicted_direct += tally.freed;
        }
    }

    /// Returns whether `kswapd` has failed so often that it stays asleep until a page is freed (`kswapd_failures`).
    pub fn is_hopeless(&self) -> bool {
        self.core.node.kswapd_failures >= MAX_RECLAIM_RETRIES
    }

    /// Returns whether a task may reclaim at all. With half of the min watermark or less left, it first waits for
    /// `kswapd`, at most a second (`allow_direct_reclaim`, `throttle_direct_reclaim`).
    pub fn allows_direct_reclaim(&self) -> bool {
        self.is_hopeless() || self.core.free() > self.core.watermarks.min / 2
    }

    /// Moves to `out` the dirty folios that `kswapd` chose to write itself, since reclaim found only dirty ones
    /// (`pageout`). Each is to be written at once, as by the flusher, or left dirty if it cannot be (`ext4_writepage`
    /// leaves delayed allocations).
    pub fn pageouts(&mut self, out: &mut Vec<Folio>) {
        out.append(&mut self.core.pageout);
    }
}

fn reclaimed(tally: &Tally, throttle: Option<Throttle>, next: Next) -> Reclaimed {
    Reclaimed {
        scanned: tally.taken,
        refilled: tally.refilled,
        freed: tally.freed,
        dirty: tally.dirty,
        unqueued_dirty: tally.unqueued_dirty,
        writeback: tally.writeback,
        congested: tally.congested,
        wakes_flushers: tally.wakes_flushers,
        throttle,
        next,
    }
}
