//! Commits, as in `jbd2_journal_commit_transaction`: a plan of steps for a caller with a clock.

use super::super::FsStats;
use super::{CommitCause, Journal, Ordered, Tid};
use crate::Inode;
use engine::{Mutant, Time, planted};

/// Tags of a descriptor block: 16 B each with checksums of version 3 (`journal_block_tag3_t`), after a header of 12 B.
/// The first is followed by a UUID of 16 B, and 36 B must be left for another one.
pub(in crate::fs) const TAGS: u32 = (4096 - 12 - 16 - 36) / 16 + 1;
/// Records of a revoke block: 8 B each, after a header of 16 B and before a checksum of 4 B.
pub(in crate::fs) const REVOKES: u32 = (4096 - 16 - 4) / 8;

/// Next step of a commit. Places are blocks of 4 KiB from the start of the drive. Unless noted, the next step follows
/// at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// No commit in progress.
    Idle,
    /// Handles of the transaction are open: go on when one is stopped.
    Handles,
    /// The transaction is closed: it holds the current contents of its blocks. Handles that wait because it is
    /// [locked](super::Wait::Locked) may retry.
    Began {
        /// Transaction.
        tid: Tid,
    },
    /// Write the journal's superblock, and go on when it is written.
    Superblock {
        /// Block of the superblock.
        block: u64,
        /// Start of the log, in blocks from the superblock.
        tail: u32,
        /// First transaction of the log.
        tid: Tid,
        /// Force unit access.
        fua: bool,
    },
    /// Begin to write those pages that are dirty and have blocks.
    Submit {
        /// File.
        inode: Inode,
        /// First page.
        page: u64,
        /// Number of pages.
        pages: u64,
    },
    /// Begin to write blocks of the log.
    Write {
        /// First block.
        block: u64,
        /// Number of blocks.
        count: u32,
        /// Transaction.
        tid: Tid,
        /// Index of the first block among the transaction's log blocks.
        index: u32,
        /// Number of the transaction's log blocks.
        of: u32,
    },
    /// Wait for those pages that are being written.
    Finish {
        /// File.
        inode: Inode,
        /// First page.
        page: u64,
        /// Number of pages.
        pages: u64,
    },
    /// Wait for all log blocks in flight.
    Wait,
    /// Write the commit block, and go on when it is written.
    Commit {
        /// Place of the commit block.
        block: u64,
        /// Transaction.
        tid: Tid,
        /// True to flush the drive first (`REQ_PREFLUSH`).
        preflush: bool,
        /// Force unit access.
        fua: bool,
    },
    /// The transaction is committed: wake its waiters. Its blocks may be written home.
    Done {
        /// Transaction.
        tid: Tid,
    },
}

/// Progress of a commit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stage {
    Superblock,
    Submit(usize),
    Log,
    Finish(usize),
    Wait,
    Record,
    Tail,
    Done,
}

/// Transaction being committed.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    tid: Tid,
    stage: Stage,
    blocks: Vec<u64>,
    revoked: Vec<u64>,
    ordered: Vec<Ordered>,
    /// First block in the log, number of blocks there without the commit block, and number of blocks written.
    start: u32,
    of: u32,
    written: u32,
    /// True if log writes are in flight.
    logging: bool,
    /// Possible start of the log once the commit block is on the drive.
    tail: Option<(u32, Tid)>,
}

impl Commit {
    pub(super) fn tid(&self) -> Tid {
        self.tid
    }

    pub(super) fn start(&self) -> u32 {
        self.start
    }

    /// Returns whether the commit still has to wait for pages of a file to reach the drive.
    pub(super) fn orders(&self, inode: Inode) -> bool {
        let waits =
            matches!(self.stage, Stage::Superblock | Stage::Submit(_) | Stage::Log | Stage::Finish(_));
        waits && self.ordered.iter().any(|ordered| ordered.inode == inode)
    }

    /// Log blocks that the commit will still take.
    pub(super) fn unwritten(&self) -> u32 {
        if self.stage <= Stage::Record { self.of - self.written + 1 } else { 0 }
    }

    pub(super) fn is_logging(&self) -> bool {
        self.logging
    }

    pub(super) fn log_written(&mut self) {
        self.logging = false;
    }

    /// Returns whether the commit's flush is still to come.
    pub(super) fn will_flush(&self) -> bool {
        self.stage <= Stage::Record
    }
}

impl Journal {
    /// Closes the running transaction to new handles if a commit is due; returns whether it was. The caller then asks
    /// for [steps](Journal::step).
    pub(in crate::fs) fn begin(&mut self, now: Time, stats: &mut FsStats) -> bool {
        let due = self.due().is_some_and(|due| due <= now);
        if let Some(running) = self.running.as_mut().filter(|_| due) {
            running.locked = true;
            match running.requested {
                Some(CommitCause::Sync) => stats.commits_sync += 1,
                Some(CommitCause::Space) => stats.commits_space += 1,
                Some(CommitCause::Interval) | None => stats.commits_interval += 1,
            }
        }
        due
    }

    /// Returns the next step of the commit.
    pub(in crate::fs) fn step(&mut self, stats: &mut FsStats) -> Step {
        let Some(mut commit) = self.committing.take() else {
            return match &self.running {
                Some(running) if running.locked && running.updates > 0 => Step::Handles,
                Some(running) if running.locked => self.switch(stats),
                _ => Step::Idle,
            };
        };
        let step = loop {
            if let Some(step) = self.stage(&mut commit, stats) {
                break step;
            }
        };
        if commit.stage == Stage::Done && matches!(step, Step::Done { .. }) {
            self.finish(commit);
        } else {
            self.committing = Some(commit);
        }
        step
    }

    /// `T_LOCKED` to `T_FLUSH`: from here on a new transaction takes changes.
    fn switch(&mut self, stats: &mut FsStats) -> Step {
        let running = self.running.take().expect("a commit has a running transaction");
        let (tid, mut blocks, mut revoked) = (running.tid, running.blocks, running.revoked);
        if !revoked.is_empty() {
            // A block may have been changed, freed, and reused.
            for list in [&mut blocks, &mut revoked] {
                list.sort_unstable();
                list.dedup();
            }
            blocks.retain(|block| !self.buffers.is_forgotten(*block));
            revoked.retain(|block| self.buffers.is_forgotten(*block));
        }
        blocks.iter().chain(&revoked).for_each(|block| self.buffers.switch(*block));
        let (copies, revokes) = (blocks.len() as u32, revoked.len() as u32);
        let (descriptors, revoke_blocks) = (copies.div_ceil(TAGS), revokes.div_ceil(REVOKES));
        let data = blocks.iter().filter(|block| self.buffers.get(**block).data).count() as u64;
        stats.log_descriptors += u64::from(descriptors);
        stats.log_revokes += u64::from(revoke_blocks);
        stats.revoked += u64::from(revokes);
        stats.log_data += data;
        stats.log_metadata += u64::from(copies) - data;
        self.committing = Some(Commit {
            tid,
            stage: Stage::Superblock,
            blocks,
            revoked,
            ordered: running.ordered,
            start: self.head,
            of: descriptors + revoke_blocks + copies,
            written: 0,
            logging: false,
            tail: None,
        });
        Step::Began { tid }
    }

    /// Runs one stage: returns a step, or `None` if the stage has nothing to do.
    fn stage(&mut self, commit: &mut Commit, stats: &mut FsStats) -> Option<Step> {
        match commit.stage {
            Stage::Superblock => {
                commit.stage = Stage::Submit(0);
                let first = std::mem::replace(&mut self.empty, false);
                stats.superblocks += u64::from(first);
                first.then_some(Step::Superblock {
                    block: self.place,
                    tail: self.tail,
                    tid: self.tail_tid,
                    fua: false,
                })
            }
            Stage::Submit(at) => {
                let ordered = commit.ordered.get(at).copied();
                commit.stage = if ordered.is_some() { Stage::Submit(at + 1) } else { Stage::Log };
                let Ordered { inode, first, end, .. } = ordered.filter(|ordered| ordered.submit)?;
                Some(Step::Submit { inode, page: first, pages: end - first })
            }
            Stage::Log => self.log(commit),
            Stage::Finish(at) => {
                let ordered = commit.ordered.get(at).copied();
                commit.stage = if ordered.is_some() { Stage::Finish(at + 1) } else { Stage::Wait };
                let Ordered { inode, first, end, .. } = ordered.filter(|_| !planted(Mutant::EarlyCommit))?;
                Some(Step::Finish { inode, page: first, pages: end - first })
            }
            Stage::Wait => {
                commit.stage = Stage::Record;
                // The commit block's flush makes blocks already written home durable. Writing the superblock is only
                // worth it if much is freed.
                let tail = self.log_tail(Some(commit));
                let freed = self.between(self.tail, tail.0);
                commit.tail = (freed >= self.blocks / 4).then_some(tail);
                Some(Step::Wait)
            }
            Stage::Record => {
                commit.stage = Stage::Tail;
                stats.log_commits += 1;
                let block = self.place + u64::from(self.take_log_block());
                Some(Step::Commit { block, tid: commit.tid, preflush: self.barrier, fua: self.barrier })
            }
            Stage::Tail => {
                commit.stage = Stage::Done;
                let (tail, tid) = commit.tail?;
                stats.superblocks += 1;
                Some(Step::Superblock { block: self.place, tail, tid, fua: self.barrier })
            }
            Stage::Done => Some(Step::Done { tid: commit.tid }),
        }
    }

    /// Takes contiguous log blocks for the next write.
    fn log(&mut self, commit: &mut Commit) -> Option<Step> {
        let index = commit.written;
        let count = (commit.of - index).min(self.blocks - self.head);
        if count == 0 {
            commit.stage = Stage::Finish(0);
            return None;
        }
        let block = self.place + u64::from(self.head);
        (0..count).for_each(|_| {
            self.take_log_block();
        });
        commit.written += count;
        commit.logging = true;
        Some(Step::Write { block, count, tid: commit.tid, index, of: commit.of })
    }

    /// `jbd2_journal_next_log_block`.
    fn take_log_block(&mut self) -> u32 {
        debug_assert!(self.free > 0, "the log is full");
        let at = self.head;
        self.head = self.after(at);
        self.free -= 1;
        at
    }

    /// Phases 6 and 7: the transaction's blocks may be written home, and it is kept until they have been.
    fn finish(&mut self, commit: Commit) {
        let Commit { tid, blocks, revoked, start, tail, .. } = commit;
        for block in &blocks {
            let before = self.buffers.commit(*block, tid);
            self.checkpoints.leave(before);
        }
        for block in &revoked {
            let before = self.buffers.commit_forgotten(*block);
            self.checkpoints.leave(before);
        }
        self.checkpoints.add(tid, start, blocks);
        self.done = tid;
        if let Some((tail, tid)) = tail {
            self.tail_written(tail, tid);
        }
    }
}
