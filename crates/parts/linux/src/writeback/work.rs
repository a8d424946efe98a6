//! What a flusher does (`struct wb_writeback_work`), and the steps that it is cut into.

use super::clock::Jiffies;
use crate::Inode;
use engine::Time;

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
