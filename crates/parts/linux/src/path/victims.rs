//! Exchange between a host and its drive about page victimizations: FastDrain (Zhang et al., 2020), sections 3.2 and
//! 3.3.
//!
//! *Detection.* Before a flusher writes, the host knows the number of dirty pages of the inodes on its lists; before
//! `fsync`, the number of its inode. These are announced with the next command (`Command::announced`). The paper counts
//! `fsync` as foreground victimization; monitoring flushers alone misses it.
//!
//! *Adaptive ratios.* While a drive reports a full buffer, other dirty ratios apply to the host. They apply from the
//! completion that reports the state, so they do not change while no command is in flight. `dirty_ratio` is the host's:
//! one full drive slows the writers of all drives.

use super::{Event, Host, Out};
use crate::Inode;
use crate::tasks::Task;
use crate::writeback::DirtyBounds;
use config::SpecError;
use config::units::Share;
use engine::{Cx, Mutant, planted_nth};
use proto::BufferState;
use proto::file::Program;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Announcement of page victimizations to drives, and the reaction to their answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VictimizationSpec {
    /// Whether the host announces how many pages it is about to write.
    pub announce: bool,
    /// Dirty ratios while a drive's buffer is full; if omitted, a full buffer has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<RatiosSpec>,
}

/// Dirty ratios, as shares of the memory that may hold dirty pages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatiosSpec {
    /// Share of dirty memory above which flushers write in the background.
    pub dirty_background_ratio: Share,
    /// Share of dirty memory that writers must not exceed.
    pub dirty_ratio: Share,
}

/// State of the exchange with drives.
#[derive(Debug)]
pub(super) struct Victims {
    announces: bool,
    /// Bounds while all drives have room, and while one is full.
    room: DirtyBounds,
    full: Option<DirtyBounds>,
    /// Per disk: whether it has reported a full buffer, and pages that its flusher has announced but not submitted.
    is_full: Vec<bool>,
    left: Vec<u64>,
}

impl Victims {
    /// # Errors
    /// A ratio that is not a whole number of per cent.
    pub(super) fn new(
        spec: Option<&VictimizationSpec>,
        room: DirtyBounds,
        disks: usize,
    ) -> Result<Victims, SpecError> {
        let full = spec
            .and_then(|spec| spec.full)
            .map(|full| DirtyBounds::of_ratios(full.dirty_background_ratio, full.dirty_ratio))
            .transpose()
            .map_err(|error| error.within("victimization.full"))?;
        let announces = spec.is_some_and(|spec| spec.announce);
        Ok(Victims { announces, room, full, is_full: vec![false; disks], left: vec![0; disks] })
    }
}

impl<P: Program> Host<P> {
    /// Announces, with a flusher's next command, the pages on its lists not announced before.
    pub(super) fn announce_flush(&mut self, task: Task, disk: u16) {
        if !self.victims.announces {
            return;
        }
        let queued = self.writeback.queued_pages(disk);
        let left = &mut self.victims.left[usize::from(disk)];
        let more = queued.saturating_sub(*left);
        *left = (*left).max(queued);
        self.announce(task, more);
    }

    /// Accounts for pages that a flusher has submitted.
    pub(super) fn announced_come(&mut self, disk: u16, pages: u64) {
        let left = &mut self.victims.left[usize::from(disk)];
        *left = left.saturating_sub(pages);
    }

    /// Announces the dirty pages that `fsync` of an inode is about to write.
    pub(super) fn announce_sync(&mut self, task: Task, inode: Inode) {
        if self.victims.announces {
            let pages = self.cache.dirty_pages(inode);
            self.announce(task, pages);
        }
    }

    fn announce(&mut self, task: Task, pages: u64) {
        let announced = &mut self.thread(task).announced;
        *announced = announced.saturating_add(pages.min(u64::from(u32::MAX)) as u32);
        self.stats.announced += pages;
    }

    /// Returns whether the dirty ratios match the reported buffer states.
    #[cfg(any(test, feature = "soak"))]
    pub(super) fn ratios_follow(&self) -> bool {
        let full = self.victims.full.filter(|_| self.victims.is_full.contains(&true));
        self.writeback.bounds() == full.unwrap_or(self.victims.room)
    }

    /// Handles the buffer state reported in a drive's completion.
    pub(super) fn buffer_says(&mut self, disk: u16, buffer: BufferState, cx: &mut impl Cx<Event, Out>) {
        let buffer = match buffer {
            BufferState::Room if planted_nth(Mutant::CorruptedHead, 16) => BufferState::Full,
            BufferState::Full if planted_nth(Mutant::CorruptedHead, 16) => BufferState::Room,
            buffer => buffer,
        };
        self.shadow_heard(buffer);
        let Some(full) = self.victims.full else { return };
        let is_full = match buffer {
            BufferState::Unknown => return,
            BufferState::Room => false,
            BufferState::Full => true,
        };
        let was = self.victims.is_full.contains(&true);
        self.victims.is_full[usize::from(disk)] = is_full;
        let is = self.victims.is_full.contains(&true);
        if is == was {
            return;
        }
        self.stats.ratio_changes += 1;
        let avail = self.dirtyable();
        self.writeback.set_bounds(if is { full } else { self.victims.room }, avail);
        if !is {
            // Pages held back are written at the flusher's next run.
            self.flusher_due(disk, cx);
        }
    }
}
