//! Blocks as the journal knows them (`journal_head`), and making room in the log, as `fs/jbd2/checkpoint.c` does.

use super::super::FsStats;
use super::{Commit, CommitCause, Journal, Tid};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};

/// Blocks that a checkpoint writes at once (`JBD2_NR_BATCH`).
const BATCH: usize = 64;

/// What makes room in the log next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checkpoint {
    /// There is room.
    Done,
    /// Write the blocks that were told home, and go on when they are ([`home_written`](super::super::Ext4::home_written)).
    Write,
    /// Blocks of the oldest transaction are being written home already: go on when one is.
    Wait,
    /// A transaction holds what has to be written home: go on when its commit is done, which has been asked for.
    Commit(Tid),
    /// Flush the drive if there are barriers, and then write the journal's superblock, with FUA if there are; say
    /// [`tail_written`](super::super::Ext4::tail_written), and go on.
    Tail {
        /// The superblock.
        block: u64,
        /// Where the log will begin, and with which transaction.
        tail: u32,
        /// That transaction.
        tid: Tid,
        /// Whether to flush before.
        flush: bool,
    },
}

/// A committed transaction whose blocks have not all been written home.
#[derive(Clone, Debug)]
struct Kept {
    tid: Tid,
    /// Where it begins in the log.
    start: u32,
    left: u32,
    blocks: Vec<u64>,
}

/// Committed transactions, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Checkpoints {
    kept: VecDeque<Kept>,
}

impl Checkpoints {
    pub(super) fn add(&mut self, tid: Tid, start: u32, blocks: Vec<u64>) {
        self.kept.push_back(Kept { tid, start, left: blocks.len() as u32, blocks });
        self.drop_done();
    }

    /// A block is not needed any more for a transaction.
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
    /// Where the log has to begin, and with which transaction (`jbd2_journal_get_log_tail`).
    pub(super) fn log_tail(&self, committing: Option<&Commit>) -> (u32, Tid) {
        match (self.checkpoints.kept.front(), committing) {
            (Some(kept), _) => (kept.start, kept.tid),
            (None, Some(commit)) => (commit.start(), commit.tid()),
            (None, None) => (self.head, Tid(self.done.0 + 1)),
        }
    }

    /// What makes room next; blocks to write home are pushed to `blocks` (`__jbd2_log_wait_for_space`, `jbd2_log_do_checkpoint`).
    pub(in crate::fs) fn checkpoint(&mut self, blocks: &mut Vec<u64>, stats: &mut FsStats) -> Checkpoint {
        if self.space_left() >= self.most() {
            return Checkpoint::Done;
        }
        let (tail, tid) = self.log_tail(self.committing.as_ref());
        if tail != self.tail && !self.empty {
            return Checkpoint::Tail { block: self.place, tail, tid, flush: self.barrier };
        }
        let Some(oldest) = self.checkpoints.kept.front() else {
            // What takes the room is being committed.
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
        debug_assert!(waits, "transaction {:?} has blocks left, and none is being written", oldest.tid);
        Checkpoint::Wait
    }

    /// The superblock that says where the log begins is on the drive (`__jbd2_update_log_tail`).
    pub(in crate::fs) fn tail_written(&mut self, tail: u32, tid: Tid) {
        if tid > self.tail_tid {
            self.free += self.between(self.tail, tail);
            (self.tail, self.tail_tid) = (tail, tid);
        }
    }
}

// What the journal knows of blocks (`journal_head`): which transactions hold them, and whether they may be written home.

/// A block that a transaction holds, or that has not been written home since one did.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Buffer {
    /// It is in the running transaction.
    running: bool,
    /// It is in the one that is being committed.
    committing: bool,
    /// The running transaction, or then the one that is being committed, has freed it.
    forgotten: bool,
    /// It is a page of a file.
    pub(super) data: bool,
    /// What is written home: the newest committed transaction that holds it.
    content: Tid,
    /// The transaction that is needed until it has been written home; zero: none.
    checkpoint: Tid,
}

impl Buffer {
    /// Whether a transaction that is not committed yet holds it.
    pub(super) fn is_held(&self) -> bool {
        self.running || self.committing
    }

    /// Whether the log gets the block itself: the transaction that is being committed holds it, and the running one has not changed it since.
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

/// All of them.
#[derive(Clone, Default, Debug)]
pub(super) struct Buffers {
    all: FxHashMap<u64, Buffer>,
    /// What may be written home.
    pub(super) home: BTreeSet<u64>,
    /// What is being written home, whatever became of it since.
    writing: BTreeSet<u64>,
}

impl Buffers {
    pub(super) fn get(&self, block: u64) -> Buffer {
        self.all.get(&block).copied().unwrap_or_default()
    }

    /// Whether one of some blocks that lie side by side is being written home.
    pub(super) fn is_writing(&self, block: u64, blocks: u64) -> bool {
        self.writing.range(block..block + blocks).next().is_some()
    }

    /// The running transaction holds a block; whether it did not before. What it was before is written home no more, as the journal will.
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

    /// The running transaction frees a block.
    pub(super) fn forget(&mut self, block: u64) {
        let buffer = self.all.entry(block).or_default();
        (buffer.running, buffer.forgotten) = (true, true);
        self.home.remove(&block);
    }

    /// Whether the running transaction has freed a block, and not used it again.
    pub(super) fn is_forgotten(&self, block: u64) -> bool {
        self.get(block).forgotten
    }

    /// A block moves from the running transaction to the one that is being committed.
    pub(super) fn switch(&mut self, block: u64) {
        if let Some(buffer) = self.all.get_mut(&block) {
            (buffer.running, buffer.committing) = (false, true);
        }
    }

    /// A transaction that holds a block is committed: the one that it was needed for before.
    pub(super) fn commit(&mut self, block: u64, tid: Tid) -> Tid {
        let Some(buffer) = self.all.get_mut(&block) else { return Tid(0) };
        (buffer.committing, buffer.content) = (false, tid);
        if !buffer.running {
            self.home.insert(block);
        }
        std::mem::replace(&mut buffer.checkpoint, tid)
    }

    /// A transaction that has freed a block is committed: the one that it was needed for before.
    pub(super) fn commit_forgotten(&mut self, block: u64) -> Tid {
        self.all.remove(&block).map_or(Tid(0), |buffer| buffer.checkpoint)
    }

    /// Without a journal: a block was changed.
    pub(super) fn dirty(&mut self, block: u64, content: Tid) {
        self.all.entry(block).or_default().content = content;
        self.home.insert(block);
    }

    /// Without a journal: a block is free.
    pub(super) fn drop(&mut self, block: u64) {
        self.all.remove(&block);
        self.home.remove(&block);
    }

    /// Begins to write a block home: what it holds, if it may be written and is not being written.
    pub(super) fn write(&mut self, block: u64) -> Option<Tid> {
        let buffer = self.all.get(&block).filter(|_| !self.writing.contains(&block))?;
        self.home.remove(&block).then(|| {
            self.writing.insert(block);
            buffer.content
        })
    }

    /// A block has been written home: the transaction that does not need it any more.
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
