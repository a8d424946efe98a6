//! Making room in the log, as `fs/jbd2/checkpoint.c` does.

use super::super::FsStats;
use super::{Commit, CommitCause, Journal, Tid};
use std::collections::VecDeque;

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
