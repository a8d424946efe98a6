//! The journal of a file system, as `fs/jbd2` has it: one transaction that takes changes, at most one that is being committed, and
//! those whose blocks have not all been written home.
//!
//! What is written to a block here is a *copy* of a block of metadata (or of data, in mode `journal`), known by its place on the drive. Blocks of the
//! journal are counted from its superblock, which is block 0 of it.
//!
//! Left out: fast commits, asynchronous commits, a journal on another device, credits of revoke records, abort after an error of the drive.

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

/// Blocks that the log keeps free beyond what is counted (`jbd2_log_space_left`).
const SPARE: u32 = 32;

/// Why a transaction is committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitCause {
    /// Somebody waits for it: `fsync`, `sync`.
    Sync,
    /// Its time is up.
    Interval,
    /// It is too large, or a checkpoint needs its blocks.
    Space,
}

/// Why a handle cannot be started now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// The running transaction is about to be committed: try again when the commit has begun ([`Step::Began`]).
    Locked,
    /// There is no room in the log: call [`checkpoint`](super::Ext4::checkpoint), and try again.
    Space,
}

/// A part of an operation whose changes are in one transaction (`handle_t`). It is given back to [`stop`](super::Ext4::stop).
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

/// Pages of a file that a commit has to see on the drive (`jbd2_inode`).
#[derive(Clone, Copy, Debug)]
struct Ordered {
    inode: Inode,
    first: u64,
    /// One behind the last.
    end: u64,
    /// Whether the commit writes what of them is dirty; otherwise it waits for what is being written.
    submit: bool,
}

/// The transaction that takes changes.
#[derive(Clone, Debug)]
struct Running {
    tid: Tid,
    since: Time,
    /// No new handles: it is about to be committed.
    locked: bool,
    updates: u32,
    credits: u32,
    requested: Option<CommitCause>,
    /// Blocks changed; what was freed since is still among them.
    blocks: Vec<u64>,
    /// Blocks freed, some perhaps in use again.
    revoked: Vec<u64>,
    ordered: Vec<Ordered>,
}

/// A journal.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    barrier: bool,
    interval: Time,
    /// Its superblock's place on the drive.
    place: u64,
    /// Its blocks, the superblock among them; none: there is no journal, and changes go home as they are.
    blocks: u32,
    /// Where the next block is written, how many are free, and where the oldest transaction begins that is needed.
    head: u32,
    free: u32,
    tail: u32,
    tail_tid: Tid,
    /// The superblock says that it is empty: it has to be written before the first commit (`JBD2_FLUSHED`).
    empty: bool,
    running: Option<Running>,
    committing: Option<Commit>,
    /// The newest transaction that is committed, and the newest that there is.
    done: Tid,
    newest: Tid,
    buffers: Buffers,
    checkpoints: Checkpoints,
}

impl Journal {
    /// An empty journal of so many blocks, at a place.
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

    /// Whether there is one.
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

    /// Starts a handle that changes at most so many blocks (`start_this_handle`, `add_transaction_credits`).
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

    /// Starts a handle whose room was reserved with another one: it waits for nothing (`jbd2_journal_start_reserved`).
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

    /// A block was changed (`jbd2_journal_dirty_metadata`); `data`: it is a page of a file.
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

    /// A block that was journaled is free: no copy of it may be replayed any more (`jbd2_journal_revoke`, `jbd2_journal_forget`).
    pub(super) fn forget(&mut self, block: u64) {
        match &mut self.running {
            Some(running) if self.blocks > 0 => {
                self.buffers.forget(block);
                running.revoked.push(block);
            }
            _ => self.buffers.drop(block),
        }
    }

    /// The running transaction makes data visible (`ext4_jbd2_inode_add_write`, `ext4_jbd2_inode_add_wait`). As in the kernel there is one
    /// range for each file.
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

    /// Whether the commit that is under way has still to see pages of a file on the drive.
    pub(super) fn is_ordering(&self, inode: Inode) -> bool {
        self.committing.as_ref().is_some_and(|commit| commit.orders(inode))
    }

    /// Whether a commit writes blocks to the log at this time.
    pub(super) fn is_logging(&self) -> bool {
        self.committing.as_ref().is_some_and(Commit::is_logging)
    }

    /// Whether it writes this one as it is (`buffer_shadow`).
    pub(super) fn is_logged(&self, block: u64) -> bool {
        self.is_logging() && self.buffers.get(block).is_shadowed()
    }

    /// Blocks of the log that were begun to be written are there.
    pub(super) fn log_written(&mut self) {
        self.committing.iter_mut().for_each(Commit::log_written);
    }

    /// Asks that a transaction be committed, if it is the running one (`jbd2_log_start_commit`).
    pub(super) fn request(&mut self, tid: Tid, cause: CommitCause) {
        if let Some(running) = self.running.as_mut().filter(|running| running.tid == tid) {
            running.requested.get_or_insert(cause);
        }
    }

    /// Whether a transaction is committed (`j_commit_sequence`).
    pub(super) fn is_done(&self, tid: Tid) -> bool {
        tid <= self.done
    }

    /// The transaction that takes changes.
    pub(super) fn running(&self) -> Option<Tid> {
        self.running.as_ref().map(|running| running.tid)
    }

    /// The transaction that is being committed, from when it takes no more handles.
    pub(super) fn committing(&self) -> Option<Tid> {
        self.committing.as_ref().map(Commit::tid)
    }

    /// When a commit is due: at once if it was asked for. None while another one is under way.
    pub(super) fn due(&self) -> Option<Time> {
        let running = self.running.as_ref().filter(|running| self.committing.is_none() && !running.locked)?;
        Some(if running.requested.is_some() { Time::ZERO } else { running.since + self.interval })
    }

    /// Whether the commit of a transaction will still flush what has been written so far (`jbd2_trans_will_send_data_barrier`).
    pub(super) fn will_flush(&self, tid: Tid) -> bool {
        self.barrier
            && !self.is_done(tid)
            && self.committing.as_ref().is_none_or(|commit| commit.tid() != tid || commit.will_flush())
    }

    /// Blocks of metadata that may be written home, from a place on, in the order of places.
    pub(super) fn dirty_home(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        self.buffers.home.range(from..).copied()
    }

    /// How many there are.
    pub(super) fn dirty_count(&self) -> usize {
        self.buffers.home.len()
    }

    /// Whether a block may be written home.
    pub(super) fn is_dirty(&self, block: u64) -> bool {
        self.buffers.home.contains(&block)
    }

    /// Begins to write a block home: what it holds.
    pub(super) fn write_home(&mut self, block: u64) -> Option<Tid> {
        self.buffers.write(block)
    }

    /// Whether one of some blocks is being written home.
    pub(super) fn is_writing_home(&self, block: u64, blocks: u64) -> bool {
        self.buffers.is_writing(block, blocks)
    }

    /// A block has been written home.
    pub(super) fn home_written(&mut self, block: u64, stats: &mut FsStats) {
        stats.home_blocks += 1;
        if let Some(tid) = self.buffers.written(block) {
            self.checkpoints.leave(tid);
        }
    }

    /// The block behind another one in the log.
    pub(super) fn after(&self, at: u32) -> u32 {
        if at + 1 == self.blocks { 1 } else { at + 1 }
    }

    /// Log blocks from one up to another.
    fn between(&self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { to + self.blocks - 1 - from }
    }
}

// What a user writes about a file system.

config::policies! {
    /// What the journal of a file system holds (mount option `data` of ext4).
    #[derive(Copy, Eq)]
    pub family JournalMode: choice {
        /// Metadata; data that a transaction makes visible are on the drive before it commits.
        default ordered,
        /// Metadata; data reach the drive in any order, so that after a cut of power a file may show what was in its blocks before.
        writeback,
        /// Metadata and data. There is no delayed allocation then.
        journal,
        /// Nothing: there is no journal, and a check of the whole file system after a cut of power.
        none,
    }
}

/// A file system: ext4 as Linux 6.1 mounts what `mke2fs` has made, with the names and defaults of its mount options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FsSpec {
    /// What its journal holds.
    pub data: JournalMode,
    /// Whether blocks are allocated when pages are written back, and not when they are written to the page cache.
    pub delalloc: bool,
    /// Whether new blocks are marked as unwritten until their data are on the drive. Without delayed allocation they never are.
    pub dioread_nolock: bool,
    /// Whether a file that was cut to nothing and written anew is written back when it is closed.
    pub auto_da_alloc: bool,
    /// A transaction commits after so long at the latest.
    #[schemars(extend("x-minimum" = "1ms", "x-maximum" = "900s"))]
    pub commit: Duration,
    /// Whether commits and `fsync` flush the drive's cache.
    pub barrier: bool,
    /// Size of the journal; without it, that of `mke2fs` for a file system of this size.
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

/// The fewest blocks of a journal (`JBD2_MIN_JOURNAL_BLOCKS`).
const LEAST_JOURNAL: u64 = 1024;

impl FsSpec {
    /// Blocks of the journal on a drive of so many blocks, if there is one.
    ///
    /// # Errors
    /// A journal that is too small, or larger than half of the drive.
    pub(super) fn journal_blocks(&self, blocks: u64) -> Result<u64, SpecError> {
        if self.data == JournalMode::none {
            return Ok(0);
        }
        let wanted = self.journal_size.map_or(default_journal_blocks(blocks), |size| blocks_of(size.get()));
        if wanted < LEAST_JOURNAL {
            let what = format!("a journal of {wanted} blocks of 4 KiB is smaller than {LEAST_JOURNAL}");
            return Err(SpecError::new("journal_size", what).help("give it 4MiB or more"));
        }
        // `mke2fs` refuses a journal of more than half of the file system.
        if wanted > blocks / 2 {
            let what = format!("a journal of {wanted} blocks takes more than half of {blocks}");
            return Err(
                SpecError::new("journal_size", what).help("make the journal smaller or the drive larger")
            );
        }
        u32::try_from(wanted).map_err(|_| {
            SpecError::new("journal_size", format!("{wanted} blocks of {BLOCK} B are too many"))
        })?;
        Ok(wanted)
    }
}

/// Blocks of a journal by default (`ext2fs_default_journal_size` of e2fsprogs).
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
