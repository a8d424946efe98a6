//! What a host and its drive tell each other of page victimizations: FastDrain (Zhang et al., 2020), sections 3.2 and 3.3.
//!
//! *Detection.* Before a flusher writes, it is known how many dirty pages the inodes have that are on its lists; before `fsync` does, how many its inode
//! has. They are announced with the next command (`Command::announced`). The paper counts `fsync` as foreground victimization; who watches flushers alone misses it.
//!
//! *Adaptive ratios.* While a drive says that its buffer is full, other dirty ratios hold for the host. They hold from the completion that says so, so that nothing
//! changes while none is under way. `dirty_ratio` is the host's: one full drive slows the writers of all.

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

/// What a host tells its drives of the pages that it will write, and does about what they answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VictimizationSpec {
    /// Whether the host announces how many pages it is about to write.
    pub announce: bool,
    /// Dirty ratios while a drive's buffer is full; left out, a full buffer changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<RatiosSpec>,
}

/// Dirty ratios, each of the memory that may hold dirty pages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatiosSpec {
    /// Dirty memory from which flushers write in the background.
    pub dirty_background_ratio: Share,
    /// Dirty memory that writers must not exceed.
    pub dirty_ratio: Share,
}

/// The two sides of a conversation with drives.
#[derive(Debug)]
pub(super) struct Victims {
    announces: bool,
    /// The bounds while all drives have room, and while one is full.
    room: DirtyBounds,
    full: Option<DirtyBounds>,
    /// By disk: whether it has said that it is full, and pages that its flusher has announced and not submitted.
    is_full: Vec<bool>,
    left: Vec<u64>,
}

impl Victims {
    /// # Errors
    /// A ratio that is no whole number of per cent.
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
    /// A flusher is about to write: what its lists hold beyond what it has announced goes with the next command.
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

    /// A flusher has submitted pages.
    pub(super) fn announced_come(&mut self, disk: u16, pages: u64) {
        let left = &mut self.victims.left[usize::from(disk)];
        *left = left.saturating_sub(pages);
    }

    /// `fsync` is about to write the dirty pages of an inode.
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

    /// Whether the dirty ratios are those of what drives have said.
    #[cfg(any(test, feature = "soak"))]
    pub(super) fn ratios_follow(&self) -> bool {
        let full = self.victims.full.filter(|_| self.victims.is_full.contains(&true));
        self.writeback.bounds() == full.unwrap_or(self.victims.room)
    }

    /// What a drive says of its buffer in a completion.
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
            // What was held back is written now, as soon as a flusher looks.
            self.flusher_due(disk, cx);
        }
    }
}
