//! Work of a flusher, inode by inode (`wb_writeback`, `writeback_sb_inodes`, `fs/fs-writeback.c`).

use super::inodes::{DirtyFlags, On};
use super::{Jiffies, Writeback};
use crate::{Inode, PAGE};
use engine::Time;

/// `MIN_WRITEBACK_PAGES`: 4 MiB.
const MIN_WRITEBACK_PAGES: u64 = (4 << 20) / PAGE;
/// `DIRTY_SCOPE`.
const DIRTY_SCOPE: u64 = 8;

/// Iteration of the loop of `wb_writeback`: inodes of one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    since: Jiffies,
    /// Pages and inodes that have been written.
    progress: u64,
    /// True when the thresholds are due for another check.
    over: bool,
}

impl Writeback {
    /// Completes the current step of a device. Returns whether the inode itself is to be written too: the file system's
    /// `write_inode` (`__writeback_single_inode`, `writeback_sb_inodes`).
    ///
    /// # Panics
    /// If no step is in progress.
    pub fn wrote(&mut self, drive: u16, wrote: Wrote, now: Time) -> bool {
        self.end_writepages(drive, now);
        let jiffies = self.clock.jiffies(now);
        let flusher = &mut self.wbs[usize::from(drive)].flusher;
        let (inode, chunk) = flusher.writing.take().expect("a step is in progress");
        let work = flusher.work.as_mut().expect("a step belongs to a work");
        work.pages += wrote.pages;
        let Work { reason, .. } = *work;
        self.flushers[usize::from(drive)].count(reason, wrote.pages.saturating_sub(wrote.skipped));
        self.inodes.of_drive(inode, drive).writeback_index = wrote.next;
        self.inode_done(drive, inode, chunk, wrote, jiffies)
    }

    /// Begins an iteration of the loop of `wb_writeback`.
    pub(super) fn next_batch(
        &mut self,
        drive: u16,
        mut work: Work,
        avail: u64,
        now: Jiffies,
    ) -> Option<Step> {
        let over = self.over_bg_thresh(drive, avail);
        let wb = &mut self.wbs[usize::from(drive)];
        if work.nr_pages <= 0
            || work.yields() && !wb.flusher.works.is_empty()
            || work.kind == Kind::Background && !over
        {
            return self.finish(drive);
        }
        match work.kind {
            Kind::Kupdate => work.dirtied_before = now - self.dirty_expire,
            Kind::Background => work.dirtied_before = now,
            Kind::StartAll | Kind::Waited(_) => {}
        }
        wb.flusher.work = Some(work);
        if wb.lists.io_is_empty() {
            self.inodes.queue_io(&mut wb.lists, work.dirtied_before);
        }
        wb.flusher.batch = Some(Batch { since: now, progress: 0, over: false });
        None
    }

    /// Returns the next inode of an iteration (`writeback_sb_inodes`), or its end.
    pub(super) fn step_of_batch(&mut self, drive: u16, batch: Batch, now: Time) -> Option<Step> {
        let wb = &mut self.wbs[usize::from(drive)];
        let next = wb.lists.next_io().filter(|_| !batch.over);
        let Some(inode) = next else {
            wb.flusher.batch = None;
            // Inodes that have had their slice get another turn even if nothing was written in this one.
            return if batch.progress == 0 && wb.lists.more_io_is_empty() {
                self.finish(drive)
            } else {
                None
            };
        };
        let work = wb.flusher.work.as_mut().expect("a batch belongs to a work");
        let record = self.inodes.of_drive(inode, drive);
        if record.dirty == 0 && !record.flags.has_any(DirtyFlags::INODE) {
            self.inode_done(drive, inode, 0, Wrote::default(), self.clock.jiffies(now));
            return None;
        }
        work.stepped = true;
        let (mode, reason) = (work.mode(), work.reason);
        let pages = match mode {
            SyncMode::All => ALL_PAGES as u64,
            SyncMode::None => {
                let nr_pages = work.nr_pages.max(0) as u64;
                chunk_size(wb.bandwidth.avg_write_bandwidth, self.domain.dirty_limit, nr_pages)
            }
        };
        wb.flusher.writing = Some((inode, pages));
        let from = if mode == SyncMode::All { 0 } else { record.writeback_index };
        self.begin_writepages(drive, now);
        Some(Step::Write(WriteInode { inode, pages, from, mode, reason }))
    }

    /// Requeues an inode after its turn (`requeue_inode`). Returns whether the inode itself was dirty.
    fn inode_done(&mut self, drive: u16, inode: Inode, chunk: u64, wrote: Wrote, now: Jiffies) -> bool {
        let was = self.take_flags(inode);
        let wb = &mut self.wbs[usize::from(drive)];
        let work = wb.flusher.work.as_mut().expect("an inode is written for a work");
        work.nr_pages = work.nr_pages.saturating_sub(wrote.pages as i64);
        let (all, spent) = (work.mode() == SyncMode::All, work.nr_pages <= 0);
        let record = self.inodes.get_mut(inode).expect("the inode has just been written");
        let (dirty, clean) = (record.dirty > 0, record.flags == DirtyFlags::CLEAN);
        if !clean && all {
            record.dirtied_when = now;
        }
        let lists = &mut wb.lists;
        if clean {
            self.inodes.move_to(lists, inode, On::None);
        } else if dirty && wrote.skipped == 0 && wrote.pages >= chunk {
            self.inodes.move_to(lists, inode, On::MoreIo);
        } else {
            self.inodes.redirty_tail(lists, inode, now);
        }
        let batch = wb.flusher.batch.as_mut().expect("an inode is written in a batch");
        batch.progress += wrote.pages.saturating_sub(wrote.skipped) + u64::from(clean);
        batch.over = batch.progress > 0 && (now > batch.since + self.clock.hz() / 10 || spent);
        was.has_any(DirtyFlags::INODE)
    }

    fn finish(&mut self, drive: u16) -> Option<Step> {
        let flusher = &mut self.wbs[usize::from(drive)].flusher;
        let work = flusher.work.take().expect("a work is in progress");
        let waited = match work.kind {
            Kind::Waited(id) => Some(id),
            Kind::StartAll => {
                flusher.start_all = None;
                None
            }
            Kind::Background | Kind::Kupdate => None,
        };
        let Work { reason, pages, stepped, .. } = work;
        (stepped || waited.is_some()).then_some(Step::Finished { reason, pages, work: waited })
    }

    /// Returns whether background work goes on (`wb_over_bg_thresh`), by all dirty pages or those of the device.
    pub(super) fn over_bg_thresh(&self, drive: u16, avail: u64) -> bool {
        let wb = &self.wbs[usize::from(drive)];
        let bg_thresh = self.bounds.limits(avail).bg_thresh;
        self.domain.dirty > bg_thresh
            || wb.reclaimable > self.domain.wb_thresh(&wb.completions, wb.ratios, bg_thresh)
    }
}

/// `writeback_chunk_size`: half a second's writes of the device, at most an eighth of the limit, in multiples of 4 MiB.
pub(super) fn chunk_size(avg_write_bandwidth: u64, dirty_limit: u64, nr_pages: u64) -> u64 {
    let pages = (avg_write_bandwidth / 2).min(dirty_limit / DIRTY_SCOPE).min(nr_pages);
    (pages + MIN_WRITEBACK_PAGES) / MIN_WRITEBACK_PAGES * MIN_WRITEBACK_PAGES
}

// Work of a flusher (`struct wb_writeback_work`), and its steps.

/// Reason for a flusher's work (`enum wb_reason`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Dirty memory above the background threshold.
    Background,
    /// Reclaim that found only dirty pages.
    Vmscan,
    /// `sync`.
    Sync,
    /// Data dirty for too long.
    Periodic,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 4] = [Reason::Background, Reason::Vmscan, Reason::Sync, Reason::Periodic];
}

/// Handling of pages already under write-back (`enum writeback_sync_modes`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncMode {
    /// Skipped.
    None,
    /// Waited for: every page that was dirty when the step began is under write-back when it ends.
    All,
}

/// Work with a waiting caller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WorkId(pub u32);

/// Effect of a call on the flusher of its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub enum Wake {
    /// No new effect.
    #[default]
    Nothing,
    /// Run now: its thread calls [`super::Writeback::start`] as soon as it has a core.
    Now,
    /// Run at that time, unless woken earlier.
    At(Time),
}

/// Order to write pages of an inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteInode {
    /// Inode.
    pub inode: Inode,
    /// Maximum number of dirty pages; clean or skipped ones do not count (`nr_to_write`).
    pub pages: u64,
    /// First page of a cyclic scan (`writeback_index`); zero for a work with a waiting caller.
    pub from: u64,
    /// Handling of pages already under write-back.
    pub mode: SyncMode,
    /// Reason.
    pub reason: Reason,
}

/// Result of a [`WriteInode`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wrote {
    /// Pages submitted.
    pub pages: u64,
    /// Submitted pages that could not be written and are dirty again (`pages_skipped`).
    pub skipped: u64,
    /// Start of the next one: the page after the last, zero if the end of the file was reached.
    pub next: u64,
}

/// Next action of a flusher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Write pages, then report to [`super::Writeback::wrote`].
    Write(WriteInode),
    /// End of a work: flush the plug.
    Finished {
        /// Reason of the work.
        reason: Reason,
        /// Pages submitted.
        pages: u64,
        /// Work whose caller waits, if any; the caller goes on.
        work: Option<WorkId>,
    },
    /// Sleep for lack of work.
    Idle {
        /// Next run; `None` if nothing is dirty. [`Wake`] may wake it earlier.
        again_at: Option<Time>,
    },
}

/// Page count of an unbounded work: `LONG_MAX`.
pub(super) const ALL_PAGES: i64 = i64::MAX;

/// Kind of a work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Write until dirty memory is below the background threshold.
    Background,
    /// Write old data.
    Kupdate,
    /// Write all pages dirty now, once.
    StartAll,
    /// Write all pages dirty now, for a waiting caller.
    Waited(WorkId),
}

/// Work of a flusher.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) kind: Kind,
    pub(super) reason: Reason,
    /// Remaining pages.
    pub(super) nr_pages: i64,
    /// Time after which dirtied inodes are left out.
    pub(super) dirtied_before: Jiffies,
    /// Pages submitted.
    pub(super) pages: u64,
    /// True once the work has had a step.
    pub(super) stepped: bool,
}

impl Work {
    pub(super) fn new(kind: Kind, reason: Reason, nr_pages: i64) -> Work {
        Work { kind, reason, nr_pages, dirtied_before: 0, pages: 0, stepped: false }
    }

    pub(super) fn mode(&self) -> SyncMode {
        if matches!(self.kind, Kind::Waited(_)) { SyncMode::All } else { SyncMode::None }
    }

    /// Returns whether it stops for other works, and is restarted later.
    pub(super) fn yields(&self) -> bool {
        matches!(self.kind, Kind::Background | Kind::Kupdate)
    }
}
