//! Journal state of blocks (`journal_head`), and checkpoints that make room in the log, as in `fs/jbd2/checkpoint.c`.

use super::super::FsStats;
use super::{Commit, CommitCause, Journal, Tid};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};

/// Blocks that a checkpoint writes at once (`JBD2_NR_BATCH`).
const BATCH: usize = 64;

/// Next step to make room in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checkpoint {
    /// The log has room.
    Done,
    /// Write the returned blocks home, then go on ([`home_written`](super::super::Ext4::home_written)).
    Write,
    /// Blocks of the oldest transaction are being written home already: go on when one has been.
    Wait,
    /// A transaction holds blocks to be written home: go on after its commit, which has been requested.
    Commit(Tid),
    /// Flush the drive if barriers are on, write the journal's superblock (with FUA if they are), call
    /// [`tail_written`](super::super::Ext4::tail_written), and go on.
    Tail {
        /// Superblock.
        block: u64,
        /// New start of the log.
        tail: u32,
        /// First transaction of the log.
        tid: Tid,
        /// True to flush first.
        flush: bool,
    },
}

/// Committed transaction whose blocks have not all been written home.
#[derive(Clone, Debug)]
struct Kept {
    tid: Tid,
    /// First block in the log.
    start: u32,
    left: u32,
    blocks: Vec<u64>,
}

/// Committed transactions, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Checkpoints {
    kept: VecDeque<Kept>,
}

impl Checkpoints {
    pub(super) fn add(&mut self, tid: Tid, start: u32, blocks: Vec<u64>) {
        self.kept.push_back(Kept { tid, start, left: blocks.len() as u32, blocks });
        self.drop_done();
    }

    /// Drops a block from a transaction that no longer needs it.
    pub(super) fn leave(&mut self, tid: Tid) {
        if let Ok(at) = self.kept.binary_search_by_key(&tid, |kept| kept.tid) {
            self.kept[at].left -= 1;
            self.drop_done();
        }
    }

    fn drop_done(&mut self) {
        while self.kept.front().is_some_and(|kept| kept.left == 0) {
            self.kept.pop_front();
        }
    }
}

impl Journal {
    /// Required start of the log, and its first transaction (`jbd2_journal_get_log_tail`).
    pub(super) fn log_tail(&self, committing: Option<&Commit>) -> (u32, Tid) {
        match (self.checkpoints.kept.front(), committing) {
            (Some(kept), _) => (kept.start, kept.tid),
            (None, Some(commit)) => (commit.start(), commit.tid()),
            (None, None) => (self.head, Tid(self.done.0 + 1)),
        }
    }

    /// Returns the next step to make room; blocks to write home are pushed to `blocks` (`__jbd2_log_wait_for_space`,
    /// `jbd2_log_do_checkpoint`).
    pub(in crate::fs) fn checkpoint(&mut self, blocks: &mut Vec<u64>, stats: &mut FsStats) -> Checkpoint {
        if self.space_left() >= self.most() {
            return Checkpoint::Done;
        }
        let (tail, tid) = self.log_tail(self.committing.as_ref());
        if tail != self.tail && !self.empty {
            return Checkpoint::Tail { block: self.place, tail, tid, flush: self.barrier };
        }
        let Some(oldest) = self.checkpoints.kept.front() else {
            // The transaction that takes the room is being committed.
            return self
                .committing
                .as_ref()
                .map_or(Checkpoint::Done, |commit| Checkpoint::Commit(commit.tid()));
        };
        let mut waits = false;
        let before = blocks.len();
        for block in &oldest.blocks {
            let buffer = self.buffers.get(*block);
            if buffer.checkpoint() != oldest.tid {
                continue;
            }
            if buffer.is_held() {
                if blocks.len() > before {
                    break;
                }
                let holder = self.committing.as_ref().map(Commit::tid).filter(|_| buffer.is_committing());
                let holder = holder.or_else(|| self.running()).expect("a transaction holds it");
                self.request(holder, CommitCause::Space);
                return Checkpoint::Commit(holder);
            } else if self.buffers.home.contains(block) {
                blocks.push(*block);
                if blocks.len() == before + BATCH {
                    break;
                }
            } else {
                waits |= self.buffers.is_writing(*block, 1);
            }
        }
        let found = blocks.len() - before;
        stats.checkpoint_blocks += found as u64;
        stats.checkpoints += u64::from(found > 0);
        if found > 0 {
            return Checkpoint::Write;
        }
        debug_assert!(waits, "transaction {:?} has blocks left, but none is being written", oldest.tid);
        Checkpoint::Wait
    }

    /// Handles the completion of a superblock write with the log's start (`__jbd2_update_log_tail`).
    pub(in crate::fs) fn tail_written(&mut self, tail: u32, tid: Tid) {
        if tid > self.tail_tid {
            self.free += self.between(self.tail, tail);
            (self.tail, self.tail_tid) = (tail, tid);
        }
    }
}

// Journal state of blocks (`journal_head`): which transactions hold them, and whether they may be written home.

/// Block held by a transaction, or not written home since.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Buffer {
    /// True if the block is in the running transaction.
    running: bool,
    /// True if the block is in the committing transaction.
    committing: bool,
    /// True if the running, or else the committing, transaction has freed it.
    forgotten: bool,
    /// True for a page of a file.
    pub(super) data: bool,
    /// Version to write home: the newest committed transaction that holds it.
    content: Tid,
    /// Transaction kept until it has been written home; zero if none.
    checkpoint: Tid,
}

impl Buffer {
    /// Returns whether an uncommitted transaction holds it.
    pub(super) fn is_held(&self) -> bool {
        self.running || self.committing
    }

    /// Returns whether the log gets the block itself: the committing transaction holds it, and the running one has not
    /// changed it since.
    pub(super) fn is_shadowed(&self) -> bool {
        self.committing && !self.running && !self.forgotten
    }

    pub(super) fn is_committing(&self) -> bool {
        self.committing
    }

    pub(super) fn checkpoint(&self) -> Tid {
        self.checkpoint
    }
}

/// All blocks of a journal.
#[derive(Clone, Default, Debug)]
pub(super) struct Buffers {
    all: FxHashMap<u64, Buffer>,
    /// Blocks that may be written home.
    pub(super) home: BTreeSet<u64>,
    /// Blocks being written home, whatever happened to them since.
    writing: BTreeSet<u64>,
}

impl Buffers {
    pub(super) fn get(&self, block: u64) -> Buffer {
        self.all.get(&block).copied().unwrap_or_default()
    }

    /// Returns whether any of some adjacent blocks is being written home.
    pub(super) fn is_writing(&self, block: u64, blocks: u64) -> bool {
        self.writing.range(block..block + blocks).next().is_some()
    }

    /// Adds a block to the running transaction; returns whether it is new there. Its earlier version is not written
    /// home any more, since the journal's will be.
    pub(super) fn join(&mut self, block: u64, data: bool) -> bool {
        let buffer = self.all.entry(block).or_default();
        buffer.data = data;
        if buffer.running && !buffer.forgotten {
            return false;
        }
        (buffer.running, buffer.forgotten) = (true, false);
        self.home.remove(&block);
        true
    }

    /// Frees a block in the running transaction.
    pub(super) fn forget(&mut self, block: u64) {
        let buffer = self.all.entry(block).or_default();
        (buffer.running, buffer.forgotten) = (true, true);
        self.home.remove(&block);
    }

    /// Returns whether the running transaction has freed a block, and not reused it.
    pub(super) fn is_forgotten(&self, block: u64) -> bool {
        self.get(block).forgotten
    }

    /// Moves a block from the running transaction to the committing one.
    pub(super) fn switch(&mut self, block: u64) {
        if let Some(buffer) = self.all.get_mut(&block) {
            (buffer.running, buffer.committing) = (false, true);
        }
    }

    /// Commits a block of a transaction; returns the transaction that needed it before.
    pub(super) fn commit(&mut self, block: u64, tid: Tid) -> Tid {
        let Some(buffer) = self.all.get_mut(&block) else { return Tid(0) };
        (buffer.committing, buffer.content) = (false, tid);
        if !buffer.running {
            self.home.insert(block);
        }
        std::mem::replace(&mut buffer.checkpoint, tid)
    }

    /// Commits the freeing of a block; returns the transaction that needed it before.
    pub(super) fn commit_forgotten(&mut self, block: u64) -> Tid {
        self.all.remove(&block).map_or(Tid(0), |buffer| buffer.checkpoint)
    }

    /// Marks a block as changed, without a journal.
    pub(super) fn dirty(&mut self, block: u64, content: Tid) {
        self.all.entry(block).or_default().content = content;
        self.home.insert(block);
    }

    /// Drops a freed block, without a journal.
    pub(super) fn drop(&mut self, block: u64) {
        self.all.remove(&block);
        self.home.remove(&block);
    }

    /// Begins to write a block home; returns its version, unless it may not be written or is being written.
    pub(super) fn write(&mut self, block: u64) -> Option<Tid> {
        let buffer = self.all.get(&block).filter(|_| !self.writing.contains(&block))?;
        self.home.remove(&block).then(|| {
            self.writing.insert(block);
            buffer.content
        })
    }

    /// Handles the completion of a block's write home; returns the transaction that no longer needs it.
    pub(super) fn written(&mut self, block: u64) -> Option<Tid> {
        self.writing.remove(&block);
        let buffer = self.all.get(&block)?;
        if buffer.is_held() || self.home.contains(&block) {
            return None;
        }
        let checkpoint = buffer.checkpoint;
        self.all.remove(&block);
        (checkpoint != Tid(0)).then_some(checkpoint)
    }
}
