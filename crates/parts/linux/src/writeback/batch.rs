//! A work of a flusher, inode by inode (`wb_writeback`, `writeback_sb_inodes`, `fs/fs-writeback.c`).

use super::inodes::{DirtyFlags, On};
use super::{Jiffies, Writeback};
use crate::{Inode, PAGE};
use engine::Time;

/// `MIN_WRITEBACK_PAGES`: 4 MiB.
const MIN_WRITEBACK_PAGES: u64 = (4 << 20) / PAGE;
/// `DIRTY_SCOPE`.
const DIRTY_SCOPE: u64 = 8;

/// A turn of the loop of `wb_writeback`: inodes of one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    since: Jiffies,
    /// Pages and inodes that have been written.
    progress: u64,
    /// Time to look at the thresholds again.
    over: bool,
}

impl Writeback {
    /// The step under way of a device is done. Returns whether the inode itself is to be written too: the file system's
    /// `write_inode` (`__writeback_single_inode`, `writeback_sb_inodes`).
    ///
    /// # Panics
    /// If none is under way.
    pub fn wrote(&mut self, drive: u16, wrote: Wrote, now: Time) -> bool {
        self.end_writepages(drive, now);
        let jiffies = self.clock.jiffies(now);
        let flusher = &mut self.wbs[usize::from(drive)].flusher;
        let (inode, chunk) = flusher.writing.take().expect("a step is under way");
        let work = flusher.work.as_mut().expect("a step is of a work");
        work.pages += wrote.pages;
        let Work { reason, .. } = *work;
        self.flushers[usize::from(drive)].count(reason, wrote.pages.saturating_sub(wrote.skipped));
        self.inodes.of_drive(inode, drive).writeback_index = wrote.next;
        self.inode_done(drive, inode, chunk, wrote, jiffies)
    }

    /// The beginning of a turn of the loop of `wb_writeback`.
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

    /// The next inode of a turn (`writeback_sb_inodes`), or its end.
    pub(super) fn step_of_batch(&mut self, drive: u16, batch: Batch, now: Time) -> Option<Step> {
        let wb = &mut self.wbs[usize::from(drive)];
        let next = wb.lists.next_io().filter(|_| !batch.over);
        let Some(inode) = next else {
            wb.flusher.batch = None;
            // What has had its slice before gets another turn even if nothing was written in this one.
            return if batch.progress == 0 && wb.lists.more_io_is_empty() {
                self.finish(drive)
            } else {
                None
            };
        };
        let work = wb.flusher.work.as_mut().expect("a batch is of a work");
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

    /// An inode has had its turn: it goes where it belongs (`requeue_inode`). Returns whether the inode itself was dirty.
    fn inode_done(&mut self, drive: u16, inode: Inode, chunk: u64, wrote: Wrote, now: Jiffies) -> bool {
        let was = self.take_flags(inode);
        let wb = &mut self.wbs[usize::from(drive)];
        let work = wb.flusher.work.as_mut().expect("an inode is written for a work");
        work.nr_pages = work.nr_pages.saturating_sub(wrote.pages as i64);
        let (all, spent) = (work.mode() == SyncMode::All, work.nr_pages <= 0);
        let record = self.inodes.get_mut(inode).expect("it has just been written");
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
        let work = flusher.work.take().expect("a work is under way");
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

    /// Whether the background's work goes on (`wb_over_bg_thresh`): by what is dirty in all, or on the device.
    pub(super) fn over_bg_thresh(&self, drive: u16, avail: u64) -> bool {
        let wb = &self.wbs[usize::from(drive)];
        let bg_thresh = self.bounds.limits(avail).bg_thresh;
        self.domain.dirty > bg_thresh
            || wb.reclaimable > self.domain.wb_thresh(&wb.completions, wb.ratios, bg_thresh)
    }
}

/// `writeback_chunk_size`: what the device writes in half a second, within an eighth of the limit, in whole pieces of 4 MiB.
pub(super) fn chunk_size(avg_write_bandwidth: u64, dirty_limit: u64, nr_pages: u64) -> u64 {
    let pages = (avg_write_bandwidth / 2).min(dirty_limit / DIRTY_SCOPE).min(nr_pages);
    (pages + MIN_WRITEBACK_PAGES) / MIN_WRITEBACK_PAGES * MIN_WRITEBACK_PAGES
}

// What a flusher does (`struct wb_writeback_work`), and the steps that it is cut into.

/// Why a flusher writes (`enum wb_reason`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// More is dirty than the background's threshold.
    Background,
    /// Reclaim found dirty pages only.
    Vmscan,
    /// `sync`.
    Sync,
    /// Data has been dirty for too long.
    Periodic,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 4] = [Reason::Background, Reason::Vmscan, Reason::Sync, Reason::Periodic];
}

/// Whether pages that are being written already are waited for, and written again (`enum writeback_sync_modes`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncMode {
    /// They are passed over.
    None,
    /// They are waited for: what was dirty when the step began is under way when it ends.
    All,
}

/// A work that somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WorkId(pub u32);

/// What a call has done to the flusher of its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub enum Wake {
    /// Nothing, or nothing new.
    #[default]
    Nothing,
    /// It runs: its thread is to call [`super::Writeback::start`] as soon as it has a core.
    Now,
    /// It runs at that time, unless it is woken before.
    At(Time),
}

/// Pages of an inode that are to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteInode {
    /// Of this inode.
    pub inode: Inode,
    /// So many dirty pages at most; of those that are clean or passed over none counts (`nr_to_write`).
    pub pages: u64,
    /// From this page on, and round to it again (`writeback_index`); a work that somebody waits for begins at zero.
    pub from: u64,
    /// What to do about pages that are being written.
    pub mode: SyncMode,
    /// Why.
    pub reason: Reason,
}

/// What has become of a [`WriteInode`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wrote {
    /// Pages that were submitted.
    pub pages: u64,
    /// Of them, pages that could not be written and are dirty again (`pages_skipped`).
    pub skipped: u64,
    /// Where the next one goes on: behind the last page of this one, zero if the end of the file was reached.
    pub next: u64,
}

/// What a flusher does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Writes pages, then says so by [`super::Writeback::wrote`].
    Write(WriteInode),
    /// A work is over: what is plugged goes out.
    Finished {
        /// Why it was.
        reason: Reason,
        /// Pages that it has submitted.
        pages: u64,
        /// Who waits for it, if anybody does, goes on.
        work: Option<WorkId>,
    },
    /// There is nothing to do: the flusher sleeps.
    Idle {
        /// Until then; none if nothing is dirty. [`Wake`] may wake it before.
        again_at: Option<Time>,
    },
}

/// Pages of a work without a bound: `LONG_MAX`.
pub(super) const ALL_PAGES: i64 = i64::MAX;

/// What kind of work it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Until less is dirty than the background's threshold.
    Background,
    /// Old data.
    Kupdate,
    /// All that is dirty now, once.
    StartAll,
    /// All that is dirty now, for somebody who waits.
    Waited(WorkId),
}

/// A piece of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) kind: Kind,
    pub(super) reason: Reason,
    /// Pages that are left of it.
    pub(super) nr_pages: i64,
    /// Inodes dirtied later are left out.
    pub(super) dirtied_before: Jiffies,
    /// Pages submitted.
    pub(super) pages: u64,
    /// Whether there has been a step of it.
    pub(super) stepped: bool,
}

impl Work {
    pub(super) fn new(kind: Kind, reason: Reason, nr_pages: i64) -> Work {
        Work { kind, reason, nr_pages, dirtied_before: 0, pages: 0, stepped: false }
    }

    pub(super) fn mode(&self) -> SyncMode {
        if matches!(self.kind, Kind::Waited(_)) { SyncMode::All } else { SyncMode::None }
    }

    /// It stops for other works, and comes again.
    pub(super) fn yields(&self) -> bool {
        matches!(self.kind, Kind::Background | Kind::Kupdate)
    }
}
