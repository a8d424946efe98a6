//! The flusher of a device (`fs/fs-writeback.c`): when it runs, and its works in their order. The steps of a work are those of `batch`.
//!
//! Decisions:
//!
//! * One file system on a device: `writeback_sb_inodes` never leaves its super block.
//! * An inode of which nothing is left to write costs no step.
//! * Dirty inodes count as inodes (`get_nr_dirty_pages`); the kernel takes all that are in use.
//! * Left out: the emergency worker, laptop mode, `lazytime`.

use super::batch::{ALL_PAGES, Batch, Kind, Reason, Step, Wake, Work, WorkId};
use super::{Jiffies, Writeback};
use crate::Inode;
use engine::Time;
use std::collections::VecDeque;

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

/// A flusher.
#[derive(Clone, Debug)]
pub(super) struct Flusher {
    phase: Phase,
    /// When it runs by itself.
    timer: Option<Jiffies>,
    /// It runs, or runs again.
    queued: bool,
    pub(super) works: VecDeque<Work>,
    pub(super) start_all: Option<Reason>,
    last_old_flush: Jiffies,
    pub(super) work: Option<Work>,
    pub(super) batch: Option<Batch>,
    /// The inode of the step under way (`I_SYNC`), and its pages.
    pub(super) writing: Option<(Inode, u64)>,
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
}
