//! Flusher of a device (`fs/fs-writeback.c`): its timing and the order of its works. Module `batch` has the steps of a
//! work.
//!
//! Decisions:
//!
//! * One file system per device: `writeback_sb_inodes` never leaves its super block.
//! * An inode with nothing left to write costs no step.
//! * Only dirty inodes count (`get_nr_dirty_pages`); the kernel counts all inodes in use.
//! * Left out: the emergency worker, laptop mode, `lazytime`.

use super::batch::{ALL_PAGES, Batch, Kind, Reason, Step, Wake, Work, WorkId};
use super::{Jiffies, Writeback};
use crate::Inode;
use engine::Time;
use std::collections::VecDeque;

/// Phase of a flusher's round (`wb_workfn`, `wb_do_writeback`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Asleep,
    Works,
    StartAll,
    Old,
    Background,
    End,
}

/// Flusher of a device.
#[derive(Clone, Debug)]
pub(super) struct Flusher {
    phase: Phase,
    /// Time of its next periodic run.
    timer: Option<Jiffies>,
    /// True while the flusher runs, or is to run again.
    queued: bool,
    pub(super) works: VecDeque<Work>,
    pub(super) start_all: Option<Reason>,
    last_old_flush: Jiffies,
    pub(super) work: Option<Work>,
    pub(super) batch: Option<Batch>,
    /// Inode of the current step (`I_SYNC`), and its pages.
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

    /// Wakes the flusher, which runs as soon as it can, and once more if it is running (`wb_wakeup`).
    pub(super) fn wake(&mut self) -> Wake {
        self.timer = None;
        if std::mem::replace(&mut self.queued, true) || self.is_running() { Wake::Nothing } else { Wake::Now }
    }

    /// Returns whether it is time to run.
    fn is_due(&self, now: Jiffies) -> bool {
        self.queued || self.timer.is_some_and(|timer| timer <= now)
    }

    fn begin(&mut self, mut work: Work, now: Jiffies) {
        work.dirtied_before = now;
        self.work = Some(work);
    }
}

impl Writeback {
    /// Starts the write of all dirty pages of a device, for reclaim or others (`wakeup_flusher_threads`). Ignored while
    /// such a work is in progress.
    pub fn start_all(&mut self, drive: u16, reason: Reason) -> Wake {
        let wb = &mut self.wbs[usize::from(drive)];
        if wb.lists.inodes() == 0 || wb.flusher.start_all.is_some() {
            return Wake::Nothing;
        }
        wb.flusher.start_all = Some(reason);
        wb.flusher.wake()
    }

    /// Starts the write of all dirty pages of a device for `sync`, which waits (`sync_inodes_sb`) until the work is
    /// [finished](Step::Finished), and then for the pages of [`Writeback::being_written`].
    pub fn sync(&mut self, drive: u16) -> (WorkId, Wake) {
        let id = WorkId(self.next_work);
        self.next_work += 1;
        let flusher = &mut self.wbs[usize::from(drive)].flusher;
        flusher.works.push_back(Work::new(Kind::Waited(id), Reason::Sync, ALL_PAGES));
        (id, flusher.wake())
    }

    /// Runs the flusher of a device, if it was woken or is due; its thread then calls [`Writeback::next`].
    pub fn start(&mut self, drive: u16, now: Time) -> bool {
        let now = self.clock.jiffies(now);
        let flusher = &mut self.wbs[usize::from(drive)].flusher;
        if flusher.is_running() || !flusher.is_due(now) {
            return false;
        }
        self.begin_round(drive);
        true
    }

    /// Returns the next step of a device's running flusher; `avail` is the number of memory pages that may be dirty.
    ///
    /// # Panics
    /// If it does not run, or the last step has not been reported.
    pub fn next(&mut self, drive: u16, avail: u64, now: Time) -> Step {
        self.settle(drive, now);
        let jiffies = self.clock.jiffies(now);
        self.domain.age(jiffies);
        let flusher = &self.wbs[usize::from(drive)].flusher;
        assert!(
            flusher.is_running() && flusher.writing.is_none(),
            "the flusher of drive {drive} is asleep or has not reported its last step"
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

    /// Dirty pages of inodes that the flusher of a device is about to write: those of its current round, and those of
    /// inodes that have had their slice.
    pub fn queued_pages(&self, drive: u16) -> u64 {
        self.wbs[usize::from(drive)].lists.queued_pages()
    }

    /// Returns whether the flusher of a device runs (`writeback_in_progress`).
    pub fn is_running(&self, drive: u16) -> bool {
        self.wbs[usize::from(drive)].flusher.is_running()
    }

    /// Sets the timer for the first dirty inode of a device, if it is not set (`wb_wakeup_delayed`).
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

    /// Selects the next work: `wb_do_writeback`, `wb_workfn`.
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
