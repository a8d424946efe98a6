//! What makes a file durable (`fs/ext4/fsync.c`).

use super::{CommitCause, Ext4, Tid};
use crate::Inode;
use engine::{Mutant, planted};

/// What is to be done after the dirty pages of a file have been written and waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// Flush the drive.
    Flush,
    /// Wait until a transaction is committed, which has been asked for.
    Commit {
        /// The transaction.
        tid: Tid,
        /// Flush the drive after: the commit had already sent its flush.
        flush: bool,
    },
    /// Without a journal: write those of the file's [blocks of metadata](Ext4::metadata) that are dirty, wait for them, and then flush.
    Write {
        /// Whether to flush.
        flush: bool,
    },
}

impl Ext4 {
    /// What `fsync` of a file has to do, or `fdatasync` (`ext4_fsync_journal`, `ext4_fsync_nojournal`, `jbd2_complete_transaction`).
    pub fn fsync(&mut self, inode: Inode, data_only: bool) -> Need {
        let barrier = self.spec.barrier;
        if !self.journal.is_on() {
            return Need::Write { flush: barrier };
        }
        if self.journals_data() {
            return self.force_commit();
        }
        let tid = self.holds(inode, data_only);
        let tid = if planted(Mutant::OlderCommit) { Tid(tid.0.saturating_sub(1)) } else { tid };
        let flush = barrier && !self.journal.will_flush(tid) && !planted(Mutant::UnflushedSync);
        if !self.journal.is_done(tid) {
            self.journal.request(tid, CommitCause::Sync);
            Need::Commit { tid, flush }
        } else if flush {
            Need::Flush
        } else {
            Need::Nothing
        }
    }

    /// The transaction that holds what `fsync` of a file, or `fdatasync`, makes durable.
    pub fn holds(&self, inode: Inode, data_only: bool) -> Tid {
        self.file(inode).map_or(Tid(0), |file| if data_only { file.data_sync } else { file.sync })
    }

    /// Whether changes go through a journal.
    pub fn has_journal(&self) -> bool {
        self.journal.is_on()
    }

    /// What `sync` has to do after all dirty pages have been written (`ext4_sync_fs`).
    pub fn sync_all(&mut self) -> Need {
        if !self.journal.is_on() {
            return Need::Write { flush: self.spec.barrier };
        }
        match self.force_commit() {
            Need::Nothing if self.spec.barrier => Need::Flush,
            // What was written back meanwhile may have come after the flush of a commit that is under way.
            Need::Commit { tid, .. } => {
                Need::Commit { tid, flush: self.spec.barrier && !self.journal.will_flush(tid) }
            }
            need => need,
        }
    }

    /// The running transaction, or else the one that is being committed (`jbd2_journal_force_commit`).
    fn force_commit(&mut self) -> Need {
        let Some(tid) = self.journal.running().or(self.journal.committing()) else { return Need::Nothing };
        self.journal.request(tid, CommitCause::Sync);
        Need::Commit { tid, flush: false }
    }

    /// Blocks of metadata of a file that are dirty: its inode's, and those of its extents. They are written with [`Ext4::write_home`].
    pub fn metadata(&self, inode: Inode) -> impl Iterator<Item = u64> + '_ {
        let file = self.file(inode);
        let own = file.map(|file| self.layout.inode_block(file.number));
        let extents = file.into_iter().flat_map(|file| file.extents.blocks());
        own.into_iter().chain(extents).filter(|block| self.journal.is_dirty(*block))
    }
}
