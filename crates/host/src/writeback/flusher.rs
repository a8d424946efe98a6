//! The flusher of a device (`fs/fs-writeback.c`): a machine of steps that its thread takes.
//!
//! Decisions:
//!
//! * One file system on a device: `writeback_sb_inodes` never leaves its super block.
//! * An inode of which nothing is left to write costs no step.
//! * Dirty inodes count as inodes (`get_nr_dirty_pages`); the kernel takes all that are in use.
//! * Left out: the emergency worker, laptop mode, `lazytime`.

use super::Writeback;
use super::clock::Jiffies;
use super::inodes::{DirtyFlags, On};
use super::work::{ALL_PAGES, Kind, Reason, Step, SyncMode, Wake, Work, WorkId, WriteInode, Wrote};
use crate::{Inode, PAGE};
use kernel::Time;
use std::collections::VecDeque;

/// `MIN_WRITEBACK_PAGES`: 4 MiB.
const MIN_WRITEBACK_PAGES: u64 = (4 << 20) / PAGE;
/// `DIRTY_SCOPE`.
const DIRTY_SCOPE: u64 = 8;

/// Where a flusher is in its round (`wb_workfn`, `wb_do_writeback`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Asleep,
    Works,
    StartAll,
    Old,
    Background,
    End,
}

/// A turn of the loop of `wb_writeback`: inodes of one round.
#[derive(Clone, Copy, Debug)]
struct Batch {
    since: Jiffies,
    /// Pages and inodes that have been written.
    progress: u64,
    /// Time to look at the thresholds again.
    over: bool,
}

/// A flusher.
#[derive(Clone, Debug)]
pub(super) struct Flusher {
    phase: Phase,
    /// When it runs by itself.
    timer: Option<Jiffies>,
    /// It runs, or runs again.
    queued: bool,
    works: VecDeque<Work>,
    start_all: Option<Reason>,
    last_old_flush: Jiffies,
    work: Option<Work>,
    batch: Option<Batch>,
    /// The inode of the step under way (`I_SYNC`), and its pages.
    writing: Option<(Inode, u64)>,
}

impl Flusher {
    pub(super) fn new(now: Jiffies) -> Flusher {
        Flusher {
            phase: Phase::Asleep,
            timer: None,
            queued: false,
            works: VecDeque::new(),
            start_all: None,
            last_old_flush: now,
            work: None,
            batch: None,
            writing: None,
        }
    }

    /// `writeback_in_progress`.
    pub(super) fn is_running(&self) -> bool {
        self.phase != Phase::Asleep
    }

    pub(super) fn writing(&self) -> Option<Inode> {
        self.writing.map(|(inode, _)| inode)
    }

    /// It runs as soon as it can, and if it does so already, again (`wb_wakeup`).
    pub(super) fn wake(&mut self) -> Wake {
        self.timer = None;
        if std::mem::replace(&mut self.queued, true) || self.is_running() { Wake::Nothing } else { Wake::Now }
    }

    /// Whether it is time to run.
    fn is_due(&self, now: Jiffies) -> bool {
        self.queued || self.timer.is_some_and(|timer| timer <= now)
    }

    fn begin(&mut self, mut work: Work, now: Jiffies) {
        work.dirtied_before = now;
        self.work = Some(work);
    }
}

impl Writeback {
    /// Reclaim, or somebody else, wants all that is dirty on a device to be written (`wakeup_flusher_threads`). While such a work
    /// is under way, another one is none.
    pub fn start_all(&mut self, drive: u16, reason: Reason) -> Wake {
        let wb = &mut self.wbs[usize::from(drive)];
        if wb.lists.inodes() == 0 || wb.flusher.start_all.is_some() {
            return Wake::Nothing;
        }
        wb.flusher.start_all = Some(reason);
        wb.flusher.wake()
    }

    /// `sync` wants all that is dirty on a device to be written, and waits (`sync_inodes_sb`): until the work is
    /// [finished](Step::Finished), and then for the pages of [`Writeback::being_written`].
    pub fn sync(&mut self, drive: u16) -> (WorkId, Wake) {
        let id = WorkId(self.next_work);
        self.next_work += 1;
        let flusher = &mut self.wbs[usize::from(drive)].flusher;
        flusher.works.push_back(Work::new(Kind::Waited(id), Reason::Sync, ALL_PAGES));
        (id, flusher.wake())
    }

    /// The flusher of a device runs, if somebody has woken it or it is time. Then its thread calls [`Writeback::next`].
    pub fn start(&mut self, drive: u16, now: Time) -> bool {
        let now = self.clock.jiffies(now);
        let flusher = &mut self.wbs[usize::from(drive)].flusher;
        if flusher.is_running() || !flusher.is_due(now) {
            return false;
        }
        self.begin_round(drive);
        true
    }

    /// What the running flusher of a device does next; `avail` are the pages of memory that may hold dirty ones.
    ///
    /// # Panics
    /// If it does not run, or the step before has not been reported.
    pub fn next(&mut self, drive: u16, avail: u64, now: Time) -> Step {
        self.settle(drive, now);
        let jiffies = self.clock.jiffies(now);
        self.domain.age(jiffies);
        let flusher = &self.wbs[usize::from(drive)].flusher;
        assert!(
            flusher.is_running() && flusher.writing.is_none(),
            "the flusher of drive {drive} sleeps or writes"
        );
        loop {
            let flusher = &mut self.wbs[usize::from(drive)].flusher;
            let step = match (flusher.batch, flusher.work) {
                (Some(batch), _) => self.step_of_batch(drive, batch, now),
                (None, Some(work)) => self.next_batch(drive, work, avail, jiffies),
                (None, None) => self.next_work(drive, avail, jiffies),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

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

    /// Dirty pages of inodes that the flusher of a device is about to write: those of its present round, and of inodes that have
    /// had their slice.
    pub fn queued_pages(&self, drive: u16) -> u64 {
        self.wbs[usize::from(drive)].lists.queued_pages()
    }

    /// Whether the flusher of a device runs (`writeback_in_progress`).
    pub fn is_running(&self, drive: u16) -> bool {
        self.wbs[usize::from(drive)].flusher.is_running()
    }

    /// The first dirty inode of a device sets the timer, if none is set (`wb_wakeup_delayed`).
    pub(super) fn wake_delayed(&mut self, drive: u16, now: Jiffies) -> Wake {
        let flusher = &mut self.wbs[usize::from(drive)].flusher;
        if flusher.queued || flusher.timer.is_some() {
            return Wake::Nothing;
        }
        if self.dirty_writeback == 0 {
            return flusher.wake();
        }
        let timer = self.clock.expiry(now, self.dirty_writeback);
        flusher.timer = Some(timer);
        Wake::At(self.clock.time(timer))
    }

    fn begin_round(&mut self, drive: u16) {
        let flusher = &mut self.wbs[usize::from(drive)].flusher;
        (flusher.queued, flusher.timer, flusher.phase) = (false, None, Phase::Works);
        self.flushers[usize::from(drive)].runs += 1;
    }

    /// The order of works: `wb_do_writeback`, `wb_workfn`.
    fn next_work(&mut self, drive: u16, avail: u64, now: Jiffies) -> Option<Step> {
        let over = self.over_bg_thresh(drive, avail);
        let dirty = (self.domain.dirty + self.wbs.iter().map(|wb| wb.lists.inodes()).sum::<u64>()) as i64;
        let interval = self.dirty_writeback;
        let flusher = &mut self.wbs[usize::from(drive)].flusher;
        match flusher.phase {
            Phase::Works => match flusher.works.pop_front() {
                Some(work) => flusher.begin(work, now),
                None => flusher.phase = Phase::StartAll,
            },
            Phase::StartAll => {
                flusher.phase = Phase::Old;
                match flusher.start_all {
                    Some(reason) if dirty > 0 => flusher.begin(Work::new(Kind::StartAll, reason, dirty), now),
                    _ => flusher.start_all = None,
                }
            }
            Phase::Old => {
                flusher.phase = Phase::Background;
                if interval > 0 && now >= flusher.last_old_flush + interval {
                    flusher.last_old_flush = now;
                    if dirty > 0 {
                        flusher.begin(Work::new(Kind::Kupdate, Reason::Periodic, dirty), now);
                    }
                }
            }
            Phase::Background => {
                flusher.phase = Phase::End;
                if over {
                    flusher.begin(Work::new(Kind::Background, Reason::Background, ALL_PAGES), now);
                }
            }
            Phase::End => return self.end_round(drive, now),
            Phase::Asleep => unreachable!("checked at the beginning of a step"),
        }
        None
    }

    fn end_round(&mut self, drive: u16, now: Jiffies) -> Option<Step> {
        let wb = &mut self.wbs[usize::from(drive)];
        if !wb.flusher.works.is_empty() {
            wb.flusher.phase = Phase::Works;
            return None;
        }
        if wb.lists.inodes() > 0 && self.dirty_writeback > 0 {
            let _ = self.wake_delayed(drive, now);
        }
        let flusher = &mut self.wbs[usize::from(drive)].flusher;
        if flusher.is_due(now) {
            self.begin_round(drive);
            return None;
        }
        flusher.phase = Phase::Asleep;
        Some(Step::Idle { again_at: flusher.timer.map(|timer| self.clock.time(timer)) })
    }

    /// The beginning of a turn of the loop of `wb_writeback`.
    fn next_batch(&mut self, drive: u16, mut work: Work, avail: u64, now: Jiffies) -> Option<Step> {
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
    fn step_of_batch(&mut self, drive: u16, batch: Batch, now: Time) -> Option<Step> {
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
                let nr_pages = work.nr_pages as u64;
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
        let (freeing, writeback) = (record.freeing, record.writeback);
        if !clean && all {
            record.dirtied_when = now;
        }
        let lists = &mut wb.lists;
        if clean || freeing {
            self.inodes.move_to(lists, inode, On::None);
        } else if dirty && wrote.skipped == 0 && wrote.pages >= chunk {
            self.inodes.move_to(lists, inode, On::MoreIo);
        } else {
            self.inodes.redirty_tail(lists, inode, now);
        }
        if freeing && writeback == 0 {
            self.inodes.forget(inode);
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
    fn over_bg_thresh(&self, drive: u16, avail: u64) -> bool {
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
