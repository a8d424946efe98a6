//! Journal of a file system, as in `fs/jbd2`: one running transaction, at most one committing transaction, and those
//! whose blocks have not all been written home.
//!
//! Log blocks are *copies* of metadata blocks (or of data, in mode `journal`), identified by their place on the drive.
//! Blocks of the journal are counted from its superblock, which is block 0.
//!
//! Left out: fast commits, asynchronous commits, a journal on a different device, credits of revoke records, abort
//! after an error of the drive.

mod checkpoint;
mod commit;

pub use checkpoint::Checkpoint;
pub use commit::Step;

use super::FsStats;
use super::{
    Tid,
    layout::{BLOCK, blocks_of},
};
use crate::Inode;
use checkpoint::{Buffers, Checkpoints};
use commit::Commit;
use config::{
    SpecError,
    units::{Bytes, Duration},
};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Blocks that the log keeps free beyond the counted ones (`jbd2_log_space_left`).
const SPARE: u32 = 32;

/// Reason for a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitCause {
    /// Request of a waiting caller: `fsync`, `sync`.
    Sync,
    /// End of the commit interval.
    Interval,
    /// Transaction too large, or a checkpoint needs its blocks.
    Space,
}

/// Reason for which a handle cannot be started now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// The running transaction is about to be committed: retry when the commit has begun ([`Step::Began`]).
    Locked,
    /// The log has no room: call [`checkpoint`](super::Ext4::checkpoint), and retry.
    Space,
}

/// Part of an operation whose changes are in one transaction (`handle_t`). It is returned to
/// [`stop`](super::Ext4::stop).
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a transaction with an open handle never commits"]
pub struct Handle {
    pub(super) tid: Tid,
    credits: u32,
}

impl Handle {
    pub(super) fn credits(&self) -> u32 {
        self.credits
    }
}

/// Pages of a file that a commit has to wait for (`jbd2_inode`).
#[derive(Clone, Copy, Debug)]
struct Ordered {
    inode: Inode,
    first: u64,
    /// Page after the last.
    end: u64,
    /// True if the commit writes the dirty ones; otherwise it waits for those being written.
    submit: bool,
}

/// Running transaction, which takes changes.
#[derive(Clone, Debug)]
struct Running {
    tid: Tid,
    since: Time,
    /// True if the transaction refuses new handles, since it is about to be committed.
    locked: bool,
    updates: u32,
    credits: u32,
    requested: Option<CommitCause>,
    /// Blocks changed, including those freed since.
    blocks: Vec<u64>,
    /// Blocks freed, some perhaps reused.
    revoked: Vec<u64>,
    ordered: Vec<Ordered>,
}

/// Journal of a file system.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    barrier: bool,
    interval: Time,
    /// Place of its superblock on the drive.
    place: u64,
    /// Number of its blocks, superblock included; zero without a journal, when changes are written home directly.
    blocks: u32,
    /// Next block to write, number of free blocks, and start of the oldest transaction still needed.
    head: u32,
    free: u32,
    tail: u32,
    tail_tid: Tid,
    /// True if the superblock marks the log as empty: it must be written before the first commit (`JBD2_FLUSHED`).
    empty: bool,
    running: Option<Running>,
    committing: Option<Commit>,
    /// Newest committed transaction, and newest transaction.
    done: Tid,
    newest: Tid,
    buffers: Buffers,
    checkpoints: Checkpoints,
}

impl Journal {
    /// Creates an empty journal of `blocks` blocks, at a place.
    pub(super) fn new(spec: &FsSpec, place: u64, blocks: u64) -> Journal {
        let blocks = u32::try_from(blocks).expect("the spec is checked");
        Journal {
            barrier: spec.barrier,
            interval: spec.commit.time(),
            place,
            blocks,
            head: 1,
            free: blocks.saturating_sub(1),
            tail: 1,
            tail_tid: Tid(1),
            empty: true,
            running: None,
            committing: None,
            done: Tid(0),
            newest: Tid(0),
            buffers: Buffers::default(),
            checkpoints: Checkpoints::default(),
        }
    }

    /// Returns whether there is a journal.
    pub(super) fn is_on(&self) -> bool {
        self.blocks > 0
    }

    /// `jbd2_journal_get_max_txn_bufs`.
    fn most(&self) -> u32 {
        self.blocks / 4
    }

    /// `jbd2_log_space_left`.
    fn space_left(&self) -> u32 {
        let committing = self.committing.as_ref().map_or(0, Commit::unwritten);
        self.free.saturating_sub(SPARE).saturating_sub(committing)
    }

    /// Starts a handle that changes at most `credits` blocks (`start_this_handle`, `add_transaction_credits`).
    pub(super) fn start(&mut self, credits: u32, now: Time) -> Result<Handle, Wait> {
        if self.is_on() {
            if let Some(running) = &mut self.running {
                if running.locked {
                    return Err(Wait::Locked);
                }
                if running.blocks.len() as u32 + running.credits + credits > self.blocks / 4 {
                    running.requested.get_or_insert(CommitCause::Space);
                    return Err(Wait::Locked);
                }
            }
            if self.space_left() < self.most() {
                return Err(Wait::Space);
            }
        }
        Ok(self.join(credits, now))
    }

    /// Starts a handle whose room was reserved with another one; it never waits (`jbd2_journal_start_reserved`).
    pub(super) fn join(&mut self, credits: u32, now: Time) -> Handle {
        if !self.is_on() {
            self.newest.0 += 1;
            return Handle { tid: self.newest, credits };
        }
        let newest = &mut self.newest;
        let running = self.running.get_or_insert_with(|| {
            newest.0 += 1;
            Running {
                tid: *newest,
                since: now,
                locked: false,
                updates: 0,
                credits: 0,
                requested: None,
                blocks: Vec::new(),
                revoked: Vec::new(),
                ordered: Vec::new(),
            }
        });
        running.updates += 1;
        running.credits += credits;
        Handle { tid: running.tid, credits }
    }

    /// Ends a handle.
    pub(super) fn stop(&mut self, handle: Handle) {
        if let Some(running) = self.running.as_mut().filter(|running| running.tid == handle.tid) {
            running.updates -= 1;
            running.credits -= handle.credits;
        }
    }

    /// Blocks that the running transaction has changed so far.
    pub(super) fn changed(&self) -> usize {
        self.running.as_ref().map_or(0, |running| running.blocks.len())
    }

    /// Marks a block as changed (`jbd2_journal_dirty_metadata`); `data`: it is a page of a file.
    pub(super) fn dirty(&mut self, block: u64, data: bool) {
        match &mut self.running {
            Some(running) if self.blocks > 0 => {
                if self.buffers.join(block, data) {
                    running.blocks.push(block);
                }
            }
            _ => self.buffers.dirty(block, self.newest),
        }
    }

    /// Frees a journaled block: its copies must not be replayed any more (`jbd2_journal_revoke`,
    /// `jbd2_journal_forget`).
    pub(super) fn forget(&mut self, block: u64) {
        match &mut self.running {
            Some(running) if self.blocks > 0 => {
                self.buffers.forget(block);
                running.revoked.push(block);
            }
            _ => self.buffers.drop(block),
        }
    }

    /// Orders data made visible by the running transaction (`ext4_jbd2_inode_add_write`, `ext4_jbd2_inode_add_wait`).
    /// As in the kernel there is one range for each file.
    pub(super) fn order(&mut self, inode: Inode, first: u64, end: u64, submit: bool) {
        let Some(running) = &mut self.running else { return };
        match running.ordered.iter_mut().rev().find(|ordered| ordered.inode == inode) {
            Some(ordered) => {
                ordered.first = ordered.first.min(first);
                ordered.end = ordered.end.max(end);
                ordered.submit |= submit;
            }
            None => running.ordered.push(Ordered { inode, first, end, submit }),
        }
    }

    /// Returns whether the current commit still has to wait for pages of a file to reach the drive.
    pub(super) fn is_ordering(&self, inode: Inode) -> bool {
        self.committing.as_ref().is_some_and(|commit| commit.orders(inode))
    }

    /// Returns whether log writes of a commit are in flight.
    pub(super) fn is_logging(&self) -> bool {
        self.committing.as_ref().is_some_and(Commit::is_logging)
    }

    /// Returns whether the commit writes this block as it is (`buffer_shadow`).
    pub(super) fn is_logged(&self, block: u64) -> bool {
        self.is_logging() && self.buffers.get(block).is_shadowed()
    }

    /// Handles the completion of the log writes in flight.
    pub(super) fn log_written(&mut self) {
        self.committing.iter_mut().for_each(Commit::log_written);
    }

    /// Requests a commit of a transaction, if it is the running one (`jbd2_log_start_commit`).
    pub(super) fn request(&mut self, tid: Tid, cause: CommitCause) {
        if let Some(running) = self.running.as_mut().filter(|running| running.tid == tid) {
            running.requested.get_or_insert(cause);
        }
    }

    /// Returns whether a transaction is committed (`j_commit_sequence`).
    pub(super) fn is_done(&self, tid: Tid) -> bool {
        tid <= self.done
    }

    /// Running transaction.
    pub(super) fn running(&self) -> Option<Tid> {
        self.running.as_ref().map(|running| running.tid)
    }

    /// Committing transaction, from the time when it takes no more handles.
    pub(super) fn committing(&self) -> Option<Tid> {
        self.committing.as_ref().map(Commit::tid)
    }

    /// Time at which a commit is due: at once if requested. `None` during a commit.
    pub(super) fn due(&self) -> Option<Time> {
        let running = self.running.as_ref().filter(|running| self.committing.is_none() && !running.locked)?;
        Some(if running.requested.is_some() { Time::ZERO } else { running.since + self.interval })
    }

    /// Returns whether the commit of a transaction will still flush earlier writes
    /// (`jbd2_trans_will_send_data_barrier`).
    pub(super) fn will_flush(&self, tid: Tid) -> bool {
        self.barrier
            && !self.is_done(tid)
            && self.committing.as_ref().is_none_or(|commit| commit.tid() != tid || commit.will_flush())
    }

    /// Metadata blocks that may be written home, from a place on, in order of places.
    pub(super) fn dirty_home(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        self.buffers.home.range(from..).copied()
    }

    /// Number of blocks that may be written home.
    pub(super) fn dirty_count(&self) -> usize {
        self.buffers.home.len()
    }

    /// Returns whether a block may be written home.
    pub(super) fn is_dirty(&self, block: u64) -> bool {
        self.buffers.home.contains(&block)
    }

    /// Begins to write a block home; returns its version.
    pub(super) fn write_home(&mut self, block: u64) -> Option<Tid> {
        self.buffers.write(block)
    }

    /// Returns whether any of some blocks is being written home.
    pub(super) fn is_writing_home(&self, block: u64, blocks: u64) -> bool {
        self.buffers.is_writing(block, blocks)
    }

    /// Handles the completion of a block's write home.
    pub(super) fn home_written(&mut self, block: u64, stats: &mut FsStats) {
        stats.home_blocks += 1;
        if let Some(tid) = self.buffers.written(block) {
            self.checkpoints.leave(tid);
        }
    }

    /// Next block in the log, wrapping at its end.
    pub(super) fn after(&self, at: u32) -> u32 {
        if at + 1 == self.blocks { 1 } else { at + 1 }
    }

    /// Number of log blocks from one up to another.
    fn between(&self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { to + self.blocks - 1 - from }
    }
}

// User-visible configuration of a file system.

config::policies! {
    /// Contents of a file system's journal (mount option `data` of ext4).
    #[derive(Copy, Eq)]
    pub family JournalMode: choice {
        /// Metadata; data that a transaction makes visible reach the drive before it commits.
        default ordered,
        /// Metadata; data reach the drive in any order, so after a power failure a file may show stale block contents.
        writeback,
        /// Metadata and data, without delayed allocation.
        journal,
        /// No journal; a power failure requires a check of the whole file system.
        none,
    }
}

/// ext4 file system as made by `mke2fs` and mounted by Linux 6.1, with the names and defaults of its mount options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FsSpec {
    /// Contents of the journal.
    pub data: JournalMode,
    /// Whether blocks are allocated at write-back instead of at the write to the page cache.
    pub delalloc: bool,
    /// Whether new blocks are marked as unwritten until their data are on the drive. Never without delayed allocation.
    pub dioread_nolock: bool,
    /// Whether a file that was truncated to zero and rewritten is written back when it is closed.
    pub auto_da_alloc: bool,
    /// Maximum time until a transaction commits.
    #[schemars(extend("x-minimum" = "1ms", "x-maximum" = "900s"))]
    pub commit: Duration,
    /// Whether commits and `fsync` flush the drive's cache.
    pub barrier: bool,
    /// Journal size. Default: that of `mke2fs` for a file system of this size.
    #[schemars(extend("x-minimum" = "4MiB", "x-maximum" = "40GiB"))]
    pub journal_size: Option<Bytes>,
}

impl Default for FsSpec {
    fn default() -> FsSpec {
        FsSpec {
            data: JournalMode::ordered,
            delalloc: true,
            dioread_nolock: true,
            auto_da_alloc: true,
            commit: Duration::new(Time::from_s(5)),
            barrier: true,
            journal_size: None,
        }
    }
}

/// Minimum blocks of a journal (`JBD2_MIN_JOURNAL_BLOCKS`).
const LEAST_JOURNAL: u64 = 1024;

impl FsSpec {
    /// Number of journal blocks on a drive of `blocks` blocks; zero without a journal.
    ///
    /// # Errors
    /// If the journal is too small, or larger than half of the drive.
    pub(super) fn journal_blocks(&self, blocks: u64) -> Result<u64, SpecError> {
        if self.data == JournalMode::none {
            return Ok(0);
        }
        let wanted = self.journal_size.map_or(default_journal_blocks(blocks), |size| blocks_of(size.get()));
        if wanted < LEAST_JOURNAL {
            let what = format!("a journal of {wanted} blocks of 4 KiB is below the minimum, {LEAST_JOURNAL}");
            return Err(SpecError::new("journal_size", what).help("set it to 4MiB or more"));
        }
        // `mke2fs` refuses a journal of more than half of the file system.
        if wanted > blocks / 2 {
            let what = format!("a journal of {wanted} blocks takes more than half of the drive's {blocks}");
            return Err(
                SpecError::new("journal_size", what).help("set a smaller `journal_size`, or a larger drive")
            );
        }
        u32::try_from(wanted).map_err(|_| {
            SpecError::new("journal_size", format!("{wanted} blocks of {BLOCK} B exceed 2^32 - 1"))
        })?;
        Ok(wanted)
    }
}

/// Default number of journal blocks (`ext2fs_default_journal_size` of e2fsprogs).
fn default_journal_blocks(blocks: u64) -> u64 {
    const STEPS: [(u64, u64); 8] = [
        (32 << 10, 1 << 10),
        (256 << 10, 4 << 10),
        (512 << 10, 8 << 10),
        (4 << 20, 16 << 10),
        (8 << 20, 32 << 10),
        (16 << 20, 64 << 10),
        (32 << 20, 128 << 10),
        (u64::MAX, 256 << 10),
    ];
    STEPS.iter().find(|(below, _)| blocks < *below).map_or(256 << 10, |(_, journal)| *journal)
}
