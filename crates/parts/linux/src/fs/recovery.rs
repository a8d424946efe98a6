//! State after a power failure, as found by `fs/jbd2/recovery.c`.

use super::extents::{Extent, ExtentTree};
use super::{CommitCause, Content, Ext4, Tid};
use crate::Inode;
use engine::{Mutant, planted};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};

/// Change of a file by a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Record {
    Create,
    Unlink,
    /// Length in bytes.
    Size(u64),
    /// Mapping of pages.
    Map(Extent),
    /// Pages from here on without blocks.
    Hole {
        from: u64,
    },
    /// Page in the journal.
    Data {
        page: u64,
    },
}

/// File after recovery.
#[derive(Clone, Debug, Default)]
pub struct RecoveredFile {
    /// Length in bytes.
    pub size: u64,
    extents: ExtentTree,
    /// Journaled pages with the last transaction that has them; with data in the journal.
    journaled: BTreeMap<u64, Tid>,
}

impl RecoveredFile {
    /// Extents of the file, in order. Unwritten and missing pages read as zeroes.
    pub fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        self.extents.iter().copied()
    }

    /// Transaction whose copy of a page is read; with data in the journal.
    pub fn journaled(&self, page: u64) -> Option<Tid> {
        self.journaled.get(&page).copied()
    }

    fn apply(&mut self, tid: Tid, record: Record) {
        match record {
            Record::Size(bytes) => self.size = bytes,
            Record::Map(extent) => self.extents.set(extent),
            Record::Hole { from } => {
                self.extents.remove(from, u64::MAX, |_| {});
                self.journaled.retain(|page, _| *page < from);
            }
            Record::Data { page } => {
                self.journaled.insert(page, tid);
            }
            Record::Create | Record::Unlink => {}
        }
    }
}

/// Files after recovery.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// Newest valid transaction.
    pub last: Tid,
    /// Number of transactions replayed.
    pub replayed: u32,
    /// Files.
    pub files: BTreeMap<Inode, RecoveredFile>,
}

/// Inconsistency of a file system after a power failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Commit block is present, but a block of its transaction is missing.
    Torn {
        /// Transaction.
        tid: Tid,
    },
    /// Block is older than what was committed, and the log has no copy of it.
    Lost {
        /// Block.
        block: u64,
        /// Transaction that changed it.
        tid: Tid,
    },
    /// Block is in its home place, but its transaction is not committed.
    Ahead {
        /// Block.
        block: u64,
        /// Transaction that changed it.
        tid: Tid,
    },
}

/// Contents of transactions.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    records: VecDeque<(Tid, Inode, Record)>,
    /// Transactions that changed each block, and whether they freed it.
    blocks: FxHashMap<u64, Vec<(Tid, bool)>>,
}

impl History {
    pub(super) fn add(&mut self, tid: Tid, inode: Inode, record: Record) {
        self.records.push_back((tid, inode, record));
    }

    pub(super) fn changed(&mut self, tid: Tid, block: u64) {
        self.note(tid, block, false);
    }

    pub(super) fn forgot(&mut self, tid: Tid, block: u64) {
        self.note(tid, block, true);
    }

    fn note(&mut self, tid: Tid, block: u64, freed: bool) {
        let all = self.blocks.entry(block).or_default();
        match all.last_mut() {
            Some(last) if last.0 == tid => last.1 = freed,
            _ => all.push((tid, freed)),
        }
    }

    /// Computes the files that result from the transactions for which `holds` is true.
    fn files(&self, holds: impl Fn(Inode, Tid, Record) -> bool) -> BTreeMap<Inode, RecoveredFile> {
        let mut files = BTreeMap::<Inode, RecoveredFile>::new();
        for (tid, inode, record) in &self.records {
            if holds(*inode, *tid, *record) {
                if matches!(record, Record::Unlink) {
                    files.remove(inode);
                } else if matches!(record, Record::Create) {
                    files.insert(*inode, RecoveredFile::default());
                } else if let Some(file) = files.get_mut(inode) {
                    file.apply(*tid, *record);
                }
            }
        }
        files
    }

    /// Checks that every block that was not freed is as new as the last transaction requires, in its place or in the
    /// log.
    fn check(&self, first: Tid, last: Tid, read: &impl Fn(u64) -> Option<Content>) -> Result<(), Fault> {
        let mut blocks: Vec<_> = self.blocks.iter().collect();
        blocks.sort_unstable_by_key(|(block, _)| **block);
        for (block, all) in blocks {
            let home = match read(*block) {
                Some(Content::Home { tid }) => tid,
                _ => Tid(0),
            };
            if home > last {
                return Err(Fault::Ahead { block: *block, tid: home });
            }
            let Some((tid, freed)) = all.iter().rev().find(|(tid, _)| *tid <= last).copied() else {
                continue;
            };
            if !freed && home < tid && tid < first {
                return Err(Fault::Lost { block: *block, tid });
            }
        }
        Ok(())
    }
}

impl Ext4 {
    /// Recovers the files after a power failure, by replaying the journal. `read` returns the content of a block;
    /// `None` for data, and for blocks never written. Requires a journal, and that transactions [are
    /// recorded](Ext4::remember).
    ///
    /// # Errors
    /// An inconsistency that recovery cannot repair.
    pub fn recover(&self, read: impl Fn(u64) -> Option<Content>) -> Result<Recovered, Fault> {
        let Some(history) = &self.history else { return Ok(Recovered::default()) };
        if !self.journal.is_on() {
            return Ok(self.recover_without(history, &read));
        }
        let (first, last) = self.scan(&read)?;
        history.check(first, last, &read)?;
        let files = history.files(|_, tid, _| tid <= last);
        Ok(Recovered { last, replayed: (last.0 + 1) - first.0, files })
    }

    /// Finds the first transaction of the log, and the last complete one (`do_one_pass` with `PASS_SCAN`).
    fn scan(&self, read: &impl Fn(u64) -> Option<Content>) -> Result<(Tid, Tid), Fault> {
        let place = self.layout.journal;
        let Some(Content::Superblock { tail, tid: first }) = read(place) else { return Ok((Tid(1), Tid(0))) };
        let (mut at, mut tid) = (tail, first);
        let log = |at: u32| read(place + u64::from(at));
        loop {
            let of = match log(at) {
                Some(Content::Log { tid: found, index: 0, of }) if found == tid => of,
                // A transaction without changes.
                Some(Content::Commit { tid: found }) if found == tid => 0,
                _ => break,
            };
            let mut whole = true;
            for index in 0..of {
                whole &= log(at) == Some(Content::Log { tid, index, of });
                at = self.journal.after(at);
            }
            if log(at) != Some(Content::Commit { tid }) {
                break;
            }
            if !whole {
                return Err(Fault::Torn { tid });
            }
            at = self.journal.after(at);
            tid.0 += 1;
        }
        Ok((first, Tid(tid.0 - 1)))
    }

    /// Recovers files without a journal: the state of each file as in its inode and extent blocks. This is the synced
    /// state if nothing has changed since; bitmaps are left to `e2fsck`.
    fn recover_without(&self, history: &History, read: &impl Fn(u64) -> Option<Content>) -> Recovered {
        let holds = |inode: Inode, tid: Tid, record: Record| {
            let Some(file) = self.file(inode) else { return false };
            let leaf = match record {
                Record::Map(extent) => file.extents.leaf_block(extent.page),
                _ => None,
            };
            let home = match read(leaf.unwrap_or_else(|| self.layout.inode_block(file.number))) {
                Some(Content::Home { tid }) => tid,
                _ => Tid(0),
            };
            tid <= home
        };
        Recovered { last: Tid(0), replayed: 0, files: history.files(holds) }
    }
}

// Durability of files (`fs/ext4/fsync.c`).

/// Action required after the dirty pages of a file have been written and waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// Flush the drive.
    Flush,
    /// Wait for the requested commit of a transaction.
    Commit {
        /// Transaction.
        tid: Tid,
        /// True to flush the drive afterwards: the commit had already sent its flush.
        flush: bool,
    },
    /// Write the dirty ones of the file's [metadata blocks](Ext4::metadata), wait for them, and then flush; without a
    /// journal.
    Write {
        /// True to flush.
        flush: bool,
    },
}

impl Ext4 {
    /// Returns the action required by `fsync` or `fdatasync` of a file (`ext4_fsync_journal`, `ext4_fsync_nojournal`,
    /// `jbd2_complete_transaction`).
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

    /// Transaction that `fsync` or `fdatasync` of a file makes durable.
    pub fn holds(&self, inode: Inode, data_only: bool) -> Tid {
        self.file(inode).map_or(Tid(0), |file| if data_only { file.data_sync } else { file.sync })
    }

    /// Returns whether changes go through a journal.
    pub fn has_journal(&self) -> bool {
        self.journal.is_on()
    }

    /// Returns the action required by `sync` after all dirty pages have been written (`ext4_sync_fs`).
    pub fn sync_all(&mut self) -> Need {
        if !self.journal.is_on() {
            return Need::Write { flush: self.spec.barrier };
        }
        match self.force_commit() {
            Need::Nothing if self.spec.barrier => Need::Flush,
            // Pages written back meanwhile may have arrived after the flush of the current commit.
            Need::Commit { tid, .. } => {
                Need::Commit { tid, flush: self.spec.barrier && !self.journal.will_flush(tid) }
            }
            need => need,
        }
    }

    /// Requires the commit of the running transaction, or else of the committing one (`jbd2_journal_force_commit`).
    fn force_commit(&mut self) -> Need {
        let Some(tid) = self.journal.running().or(self.journal.committing()) else { return Need::Nothing };
        self.journal.request(tid, CommitCause::Sync);
        Need::Commit { tid, flush: false }
    }

    /// Dirty metadata blocks of a file: its inode's, and those of its extents. They are written with
    /// [`Ext4::write_home`].
    pub fn metadata(&self, inode: Inode) -> impl Iterator<Item = u64> + '_ {
        let file = self.file(inode);
        let own = file.map(|file| self.layout.inode_block(file.number));
        let extents = file.into_iter().flat_map(|file| file.extents.blocks());
        own.into_iter().chain(extents).filter(|block| self.journal.is_dirty(*block))
    }
}
