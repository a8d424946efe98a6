//! File system: where pages of files lie, and in which order they become durable. It has no clock.
//!
//! ext4 with its journal as in Linux 6.1 (`fs/ext4/{inode,extents,mballoc,fsync,page-io}.c`, `fs/jbd2/*.c`), as a state
//! machine of what reaches the drive, and when. Metadata blocks have real places and numbers; their content is
//! represented by the transaction it is from ([`Content`]).
//!
//! # Use
//!
//! * A change first [starts](Ext4::start) a handle, which may have to wait, and stops it afterwards. A handle can be
//!   held while pages are submitted, as by `ext4_writepages`; the commit of its transaction then waits for it.
//! * `write(2)`: [`Ext4::write`], with a handle unless [`Ext4::write_is_bare`]. With data in the journal its pages are
//!   not dirty for write-back: their blocks are among those of the block device.
//! * Write-back: [`Ext4::writepages`] with a handle, [`Ext4::map`] for places. When the data of `Unwritten` pages are
//!   on the drive, [`Ext4::end_io`] with a [reserved](Ext4::start_reserved) handle; only then are the pages clean.
//! * `O_DIRECT`: [`Ext4::direct_write`] with a handle unless [`Ext4::direct_is_bare`], [`Ext4::map`] for places, and
//!   [`Ext4::direct_end`] when the data are on the drive.
//! * `fsync`: write and wait for the pages, then do what [`Ext4::fsync`] returns.
//! * Journal thread: [`Ext4::commit_due`], [`Ext4::begin_commit`], and [`Ext4::commit_step`] until it is done.
//! * Blocks in [`Ext4::dirty_metadata`] are dirty pages of the block device: the flusher writes them
//!   ([`Ext4::write_home`], [`Ext4::home_written`]).
//!
//! # Left out
//!
//! Fast commits, quotas, inline data, hole punching, zeroing of the page at a new end by `truncate`, directory hash
//! trees, lazy initialisation of inode tables. Programs run as root and may use the 5 % that `mke2fs` reserves.

mod extents;
mod file;
mod journal;
mod layout;
mod mballoc;
#[cfg_attr(not(any(test, feature = "soak")), expect(dead_code, reason = "a soak drives it"))]
pub(crate) mod media;
mod recovery;
#[cfg(any(test, feature = "soak"))]
pub mod soak;
#[cfg(test)]
mod tests;
mod write;

pub use extents::Extent;
pub use journal::{Checkpoint, CommitCause, FsSpec, Handle, JournalMode, Step, Wait};
pub use layout::Changes;
pub use recovery::{Fault, Need, Recovered, RecoveredFile};

use crate::Inode;
use config::SpecError;
use engine::Time;
use extents::Change;
use file::{Directory, File};
use journal::Journal;
use layout::{Layout, blocks_of, group_of};
use mballoc::Allocator;
use recovery::{History, Record};
use std::collections::VecDeque;

/// Credits of a handle that changes only an inode (`ext4_dirty_inode`).
pub const INODE_CREDITS: u32 = 2;
/// Credits of a handle that creates or removes a name (`EXT4_DATA_TRANS_BLOCKS`, with a directory's blocks and a new
/// inode's bitmap).
pub const NAME_CREDITS: u32 = 27;
/// Credits of a handle that frees blocks (`ext4_blocks_for_truncate`, maximum).
pub const TRUNCATE_CREDITS: u32 = 64 + 8;
/// Maximum pages that one write-back handle allocates (`MAX_WRITEPAGES_EXTENT_LEN`).
pub const WRITEPAGES_MOST: u64 = 2048;

/// Error of a file-system operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FsError {
    /// Drive full (`ENOSPC`).
    NoSpace {
        /// Transaction whose commit frees blocks, if any: request it and retry (`ext4_should_retry_alloc`).
        retry: Option<Tid>,
    },
    /// File does not exist.
    NoFile,
    /// File already exists, or no inode is left for it.
    NoInode,
}

/// Mapping of pages of a file to the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// No block, and no data.
    Hole,
    /// Data in memory, but no block yet.
    Delayed,
    /// Blocks without valid data: the first, in units of 4 KiB from the start of the drive.
    Unwritten {
        /// Block of the first page.
        block: u64,
    },
    /// Blocks with data.
    Mapped {
        /// Block of the first page.
        block: u64,
    },
}

/// Consecutive pages with the same kind of mapping, contiguous on the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Mapping.
    pub place: Place,
    /// Number of pages.
    pub pages: u64,
}

/// File system on a drive.
pub struct Ext4 {
    spec: FsSpec,
    layout: Layout,
    allocator: Allocator,
    journal: Journal,
    directory: Directory,
    files: Vec<Option<Box<File>>>,
    /// Blocks to be freed when a transaction has committed, in order of transactions: first and number.
    pending: VecDeque<(Tid, u64, u64)>,
    history: Option<Box<History>>,
    /// Scratch lists, empty between calls.
    converted: Vec<Extent>,
    changes: Vec<Change>,
    new_blocks: Vec<u64>,
    /// Counters since the window began.
    pub stats: FsStats,
}

impl Ext4 {
    /// Creates a file system on a drive of `bytes` bytes.
    ///
    /// # Errors
    /// If the drive is too small, or the journal does not fit; with the key.
    pub fn new(spec: &FsSpec, bytes: u64) -> Result<Ext4, SpecError> {
        let blocks = blocks_of(bytes);
        let layout = Layout::new(blocks, spec.journal_blocks(blocks)?)?;
        let mut allocator = Allocator::new(&layout);
        let mut directory = Directory::new();
        directory.blocks.extend(allocator.metadata(0));
        Ok(Ext4 {
            journal: Journal::new(spec, layout.journal, layout.journal_blocks),
            spec: spec.clone(),
            layout,
            allocator,
            directory,
            files: Vec::new(),
            pending: VecDeque::new(),
            history: None,
            converted: Vec::new(),
            changes: Vec::new(),
            new_blocks: Vec::new(),
            stats: FsStats::default(),
        })
    }

    /// Records the contents of transactions from now on, for [`Ext4::recover`]. Call it before the first change.
    pub fn remember(&mut self) {
        self.history = Some(Box::default());
    }

    /// Starts the measured window: clears the counters.
    pub fn reset_stats(&mut self, _now: Time) {
        self.stats = FsStats::default();
    }

    /// Blocks of 4 KiB neither in a file nor promised to one.
    pub fn available(&self) -> u64 {
        self.allocator.available()
    }

    /// Starts a handle that changes at most `credits` metadata blocks.
    ///
    /// # Errors
    /// The condition to wait for first.
    pub fn start(&mut self, credits: u32, now: Time) -> Result<Handle, Wait> {
        self.journal.start(credits, now)
    }

    /// Starts a handle whose room was reserved by the one that allocated the pages; it never waits.
    pub fn start_reserved(&mut self, now: Time) -> Handle {
        self.journal.join(INODE_CREDITS, now)
    }

    /// Ends a handle.
    pub fn stop(&mut self, handle: Handle) {
        self.journal.stop(handle);
    }

    /// Length of a file in bytes, as seen by programs. `None` if the file does not exist.
    pub fn size(&self, inode: Inode) -> Option<u64> {
        self.file(inode).map(|file| file.size)
    }

    /// Extents of a file, in order of its pages.
    pub fn extents(&self, inode: Inode) -> impl Iterator<Item = Extent> + '_ {
        self.file(inode).into_iter().flat_map(|file| file.extents.iter().copied())
    }

    /// Number of records of a file's extents on the drive, and levels of blocks below the inode that hold them.
    pub fn tree(&self, inode: Inode) -> (u64, u32) {
        self.file(inode).map_or((0, 0), |file| (file.extents.records(), file.extents.depth()))
    }

    /// Maps the first of `count` pages of a file, as far as their mapping is uniform (`ext4_map_blocks`, without
    /// allocation).
    pub fn map(&self, inode: Inode, page: u64, count: u64) -> Run {
        let hole = Run { place: Place::Hole, pages: count };
        let Some(file) = self.file(inode) else { return hole };
        let end = page + count;
        let extent = file.extents.next(page).filter(|extent| extent.page < end);
        if let Some(extent) = extent.filter(|extent| extent.page <= page) {
            let block = extent.block + (page - extent.page);
            let place = if extent.unwritten { Place::Unwritten { block } } else { Place::Mapped { block } };
            return Run { place, pages: (extent.page + extent.pages).min(end) - page };
        }
        let end = extent.map_or(end, |extent| extent.page);
        match file.delayed.next(page).filter(|(from, _)| *from < end) {
            Some((from, to)) if from == page => Run { place: Place::Delayed, pages: to.min(end) - page },
            Some((from, _)) => Run { place: Place::Hole, pages: from - page },
            None => Run { place: Place::Hole, pages: end - page },
        }
    }

    /// Time at which the running transaction must be committed: at once if requested. `None` without a running
    /// transaction, or during a commit.
    pub fn commit_due(&self) -> Option<Time> {
        self.journal.due()
    }

    /// Requests the commit of a transaction.
    pub fn request_commit(&mut self, tid: Tid, cause: CommitCause) {
        self.journal.request(tid, cause);
    }

    /// Begins a commit if one is due; returns whether it was.
    pub fn begin_commit(&mut self, now: Time) -> bool {
        self.journal.begin(now, &mut self.stats)
    }

    /// Returns the next step of the commit in progress.
    pub fn commit_step(&mut self) -> Step {
        let step = self.journal.step(&mut self.stats);
        if let Step::Done { tid } = step {
            while let Some((_, block, blocks)) =
                self.pending.front().copied().filter(|(freed, ..)| *freed <= tid)
            {
                self.pending.pop_front();
                self.allocator.free(block, blocks);
            }
        }
        step
    }

    /// Returns whether a transaction is committed.
    pub fn is_committed(&self, tid: Tid) -> bool {
        self.journal.is_done(tid)
    }

    /// Returns the next step to make room in the log; blocks to write home are pushed to `blocks`.
    pub fn checkpoint(&mut self, blocks: &mut Vec<u64>) -> Checkpoint {
        self.journal.checkpoint(blocks, &mut self.stats)
    }

    /// Handles the completion of a superblock write requested by [`Checkpoint::Tail`].
    pub fn tail_written(&mut self, tail: u32, tid: Tid) {
        self.stats.superblocks += 1;
        self.journal.tail_written(tail, tid);
    }

    /// Blocks that may be written home, from one on, in order: metadata, and journaled pages.
    pub fn dirty_metadata(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        self.journal.dirty_home(from)
    }

    /// Number of blocks that may be written home.
    pub fn dirty_metadata_count(&self) -> usize {
        self.journal.dirty_count()
    }

    /// Begins to write a block home; returns its content. `None` if a transaction has taken it since it was found to be
    /// dirty, or if it is still being written.
    pub fn write_home(&mut self, block: u64) -> Option<Content> {
        self.journal.write_home(block).map(|tid| Content::Home { tid })
    }

    /// Handles the completion of a block's write home.
    pub fn home_written(&mut self, block: u64) {
        self.journal.home_written(block, &mut self.stats);
    }

    fn file(&self, inode: Inode) -> Option<&File> {
        self.files.get(inode.0 as usize)?.as_deref()
    }

    /// Takes a file out of the file system, so that both can be changed; it has to be put back.
    fn take_file(&mut self, inode: Inode) -> Result<Box<File>, FsError> {
        self.files.get_mut(inode.0 as usize).and_then(Option::take).ok_or(FsError::NoFile)
    }

    fn put_file(&mut self, inode: Inode, file: Box<File>) {
        self.files[inode.0 as usize] = Some(file);
    }

    /// Returns whether new blocks are unwritten until their data are on the drive (`ext4_should_dioread_nolock`).
    fn is_unwritten_first(&self) -> bool {
        self.spec.dioread_nolock && self.delays()
    }

    /// Returns whether allocation is delayed; with data in the journal it never is.
    fn delays(&self) -> bool {
        self.spec.delalloc && !self.journals_data()
    }

    fn journals_data(&self) -> bool {
        self.spec.data == JournalMode::journal
    }

    fn record(&mut self, tid: Tid, inode: Inode, record: Record) {
        if let Some(history) = &mut self.history {
            history.add(tid, inode, record);
        }
    }

    /// Marks a metadata block as changed.
    fn dirty(&mut self, tid: Tid, block: u64) {
        self.journal.dirty(block, false);
        if let Some(history) = &mut self.history {
            history.changed(tid, block);
        }
    }

    /// Marks the bitmaps and descriptors of the groups of some blocks as changed.
    fn dirty_groups(&mut self, tid: Tid, block: u64, blocks: u64) {
        for group in group_of(block)..=group_of(block + blocks - 1) {
            self.dirty(tid, self.layout.block_bitmap(group));
            self.dirty(tid, self.layout.descriptor(group));
        }
    }

    /// Frees blocks, once the transaction has committed (`ext4_free_blocks`); data blocks at once if their order does
    /// not matter.
    fn free_blocks(&mut self, tid: Tid, block: u64, blocks: u64, is_data: bool) {
        self.dirty_groups(tid, block, blocks);
        if self.journal.is_on() && !(is_data && self.spec.data == JournalMode::writeback) {
            self.pending.push_back((tid, block, blocks));
        } else {
            self.allocator.free(block, blocks);
        }
    }

    /// Frees a journaled metadata block.
    fn free_journaled(&mut self, tid: Tid, block: u64) {
        self.journal.forget(block);
        if let Some(history) = &mut self.history {
            history.forgot(tid, block);
        }
    }

    /// Marks an inode as changed in its table (`ext4_mark_inode_dirty`); `fsync` has to wait for that.
    fn dirty_inode(&mut self, tid: Tid, inode: Inode, file: &mut File) {
        self.dirty(tid, self.layout.inode_block(file.number));
        file.sync = tid;
        if file.disk_size != file.raw_size {
            file.raw_size = file.disk_size;
            file.data_sync = tid;
            self.record(tid, inode, Record::Size(file.disk_size));
        }
    }

    /// Ends a change of a file's extents: allocates, changes and frees its metadata blocks.
    fn settle(&mut self, tid: Tid, file: &mut File) {
        let mut changes = std::mem::take(&mut self.changes);
        let mut allocated = std::mem::take(&mut self.new_blocks);
        let allocator = &mut self.allocator;
        let allocate = |goal| {
            let block = allocator.metadata(goal);
            allocated.extend(block);
            block
        };
        file.extents.settle(allocate, |change| changes.push(change));
        for block in allocated.drain(..) {
            self.dirty_groups(tid, block, 1);
        }
        for change in changes.drain(..) {
            match change {
                Change::Changed(block) => self.dirty(tid, block),
                Change::Freed(block) => {
                    self.free_blocks(tid, block, 1, false);
                    self.free_journaled(tid, block);
                }
            }
        }
        (self.changes, self.new_blocks) = (changes, allocated);
    }
}

// Contents of blocks, as far as recovery needs them.

/// Transaction number, counted from one. Without a journal, the number of a change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tid(pub u32);

/// Content of a metadata or journal block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Superblock of the journal.
    Superblock {
        /// Start of the log, in blocks from the superblock.
        tail: u32,
        /// First transaction of the log.
        tid: Tid,
    },
    /// Descriptor, revoke block or copy of a transaction.
    Log {
        /// Transaction.
        tid: Tid,
        /// Index among the transaction's blocks.
        index: u32,
        /// Number of the transaction's blocks.
        of: u32,
    },
    /// Commit block.
    Commit {
        /// Transaction.
        tid: Tid,
    },
    /// Block in its home place, as of the closing of this transaction.
    Home {
        /// Transaction.
        tid: Tid,
    },
}

// File-system statistics.

/// Counters of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FsStats {
    /// Commits requested by `fsync` or `sync`.
    pub commits_sync: u64,
    /// Commits of transactions at the end of their interval.
    pub commits_interval: u64,
    /// Commits of transactions that were too large, or whose blocks a checkpoint needed.
    pub commits_space: u64,
    /// Descriptor blocks in the log.
    pub log_descriptors: u64,
    /// Copies of metadata blocks in the log.
    pub log_metadata: u64,
    /// Copies of file pages in the log.
    pub log_data: u64,
    /// Revoke blocks in the log.
    pub log_revokes: u64,
    /// Blocks revoked.
    pub revoked: u64,
    /// Commit blocks in the log.
    pub log_commits: u64,
    /// Writes of the journal's superblock.
    pub superblocks: u64,
    /// Batches of blocks written home to make room in the log.
    pub checkpoints: u64,
    /// Blocks of those batches.
    pub checkpoint_blocks: u64,
    /// Blocks of metadata and journaled data written home, for whatever reason.
    pub home_blocks: u64,
    /// Blocks allocated for data.
    pub allocated: u64,
    /// Allocations for data.
    pub allocations: u64,
    /// Data blocks freed.
    pub freed: u64,
    /// Writes refused for lack of room.
    pub no_space: u64,
}
