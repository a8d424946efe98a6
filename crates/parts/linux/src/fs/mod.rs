//! A file system: where pages of files lie, and in which order they become durable. It knows no time but what it is told.
//!
//! It is ext4 with its journal, as Linux 6.1 has them (`fs/ext4/{inode,extents,mballoc,fsync,page-io}.c`, `fs/jbd2/*.c`), as a state machine: what
//! reaches the drive, and when it may. Blocks of metadata have real places and numbers; what they hold is told by the number
//! of the transaction that they are from ([`Content`]).
//!
//! # How it is driven
//!
//! * Whoever changes something first [starts](Ext4::start) a handle, which may have to wait, and stops it after. A handle can be held while pages
//!   are submitted, as `ext4_writepages` does: the commit of its transaction then waits for it.
//! * `write(2)`: [`Ext4::write`], with a handle unless [`Ext4::write_is_bare`].
//!   With data in the journal its pages are not dirty for write-back then: their blocks are among those of the block device.
//! * Write-back: [`Ext4::writepages`] with a handle, [`Ext4::map`] for places; when the data of pages that were `Unwritten` are on the drive,
//!   [`Ext4::end_io`] with a [reserved](Ext4::start_reserved) handle, and only then are the pages clean.
//! * `O_DIRECT`: [`Ext4::direct_write`] with a handle unless [`Ext4::direct_is_bare`], [`Ext4::map`] for places, and [`Ext4::direct_end`] when the
//!   data are on the drive.
//! * `fsync`: write and wait for the pages, then [`Ext4::fsync`] says what is to be done.
//! * The journal's thread: [`Ext4::commit_due`], [`Ext4::begin_commit`], and [`Ext4::commit_step`] until it is done.
//! * Blocks in [`Ext4::dirty_metadata`] are dirty pages of the block device: the flusher writes them ([`Ext4::write_home`],
//!   [`Ext4::home_written`]).
//!
//! # Left out
//!
//! Fast commits, quotas, inline data, holes punched, the page at a new end that `truncate` fills with zeroes, trees of hashes in directories,
//! lazy initialisation of inode tables. Programs run as root: the 5 % that `mke2fs` reserves are theirs.

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

/// Credits of a handle that changes an inode only (`ext4_dirty_inode`).
pub const INODE_CREDITS: u32 = 2;
/// Credits of a handle that makes or removes a name (`EXT4_DATA_TRANS_BLOCKS`, with a directory's blocks and a new inode's bitmap).
pub const NAME_CREDITS: u32 = 27;
/// Credits of a handle that frees blocks (`ext4_blocks_for_truncate`, at most).
pub const TRUNCATE_CREDITS: u32 = 64 + 8;
/// Pages that one handle of write-back allocates at most (`MAX_WRITEPAGES_EXTENT_LEN`).
pub const WRITEPAGES_MOST: u64 = 2048;

/// What cannot be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FsError {
    /// There is no room (`ENOSPC`).
    NoSpace {
        /// If blocks become free with the commit of this transaction: ask for it and try again (`ext4_should_retry_alloc`).
        retry: Option<Tid>,
    },
    /// There is no such file.
    NoFile,
    /// There is such a file already, or no inode is left for it.
    NoInode,
}

/// What pages of a file have on the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// No block, and no data.
    Hole,
    /// Data in memory, and no block yet.
    Delayed,
    /// Blocks whose data do not count yet: the first, in units of 4 KiB from the start of the drive.
    Unwritten {
        /// The block of the first page.
        block: u64,
    },
    /// Blocks with data.
    Mapped {
        /// The block of the first page.
        block: u64,
    },
}

/// Pages one after another that are alike, and lie one after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// What they have on the drive.
    pub place: Place,
    /// How many.
    pub pages: u64,
}

/// A file system on a drive.
pub struct Ext4 {
    spec: FsSpec,
    layout: Layout,
    allocator: Allocator,
    journal: Journal,
    directory: Directory,
    files: Vec<Option<Box<File>>>,
    /// Blocks that become free when a transaction has committed, in order of transactions: first and number.
    pending: VecDeque<(Tid, u64, u64)>,
    history: Option<Box<History>>,
    /// Lists that are empty between calls.
    converted: Vec<Extent>,
    changes: Vec<Change>,
    new_blocks: Vec<u64>,
    /// What happened since the window began.
    pub stats: FsStats,
}

impl Ext4 {
    /// A new file system on a drive of so many bytes.
    ///
    /// # Errors
    /// A drive that is too small, or a journal that does not fit; with the key.
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

    /// From now on, what transactions hold is remembered, so that [`Ext4::recover`] can be asked. Before the first change.
    pub fn remember(&mut self) {
        self.history = Some(Box::default());
    }

    /// Starts the measured window: what happened before is forgotten.
    pub fn reset_stats(&mut self, _now: Time) {
        self.stats = FsStats::default();
    }

    /// Blocks of 4 KiB that no file has and that are not promised to one.
    pub fn available(&self) -> u64 {
        self.allocator.available()
    }

    /// Starts a handle that changes at most `credits` blocks of metadata.
    ///
    /// # Errors
    /// What has to be waited for first.
    pub fn start(&mut self, credits: u32, now: Time) -> Result<Handle, Wait> {
        self.journal.start(credits, now)
    }

    /// Starts a handle whose room was reserved by the one that allocated the pages: it waits for nothing.
    pub fn start_reserved(&mut self, now: Time) -> Handle {
        self.journal.join(INODE_CREDITS, now)
    }

    /// Ends a handle.
    pub fn stop(&mut self, handle: Handle) {
        self.journal.stop(handle);
    }

    /// Length of a file in bytes, as programs see it. None if there is no such file.
    pub fn size(&self, inode: Inode) -> Option<u64> {
        self.file(inode).map(|file| file.size)
    }

    /// Extents of a file, in the order of its pages.
    pub fn extents(&self, inode: Inode) -> impl Iterator<Item = Extent> + '_ {
        self.file(inode).into_iter().flat_map(|file| file.extents.iter().copied())
    }

    /// Records of a file's extents on the drive, and levels of blocks that hold them below the inode.
    pub fn tree(&self, inode: Inode) -> (u64, u32) {
        self.file(inode).map_or((0, 0), |file| (file.extents.records(), file.extents.depth()))
    }

    /// What the first of so many pages of a file have on the drive, as far as they are alike (`ext4_map_blocks`, without allocation).
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

    /// When the running transaction has to be committed: at once if it was asked for. None if there is none, or one is being committed.
    pub fn commit_due(&self) -> Option<Time> {
        self.journal.due()
    }

    /// Asks that a transaction be committed soon.
    pub fn request_commit(&mut self, tid: Tid, cause: CommitCause) {
        self.journal.request(tid, cause);
    }

    /// Begins a commit if one is due; whether it was.
    pub fn begin_commit(&mut self, now: Time) -> bool {
        self.journal.begin(now, &mut self.stats)
    }

    /// The next step of the commit that has begun.
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

    /// Whether a transaction is committed.
    pub fn is_committed(&self, tid: Tid) -> bool {
        self.journal.is_done(tid)
    }

    /// What makes room in the log next; blocks to write home are pushed to `blocks`.
    pub fn checkpoint(&mut self, blocks: &mut Vec<u64>) -> Checkpoint {
        self.journal.checkpoint(blocks, &mut self.stats)
    }

    /// A superblock that [`Checkpoint::Tail`] asked for is on the drive.
    pub fn tail_written(&mut self, tail: u32, tid: Tid) {
        self.stats.superblocks += 1;
        self.journal.tail_written(tail, tid);
    }

    /// Places of blocks that may be written home, from one on, in order: metadata, and pages that were journaled.
    pub fn dirty_metadata(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        self.journal.dirty_home(from)
    }

    /// How many there are.
    pub fn dirty_metadata_count(&self) -> usize {
        self.journal.dirty_count()
    }

    /// Begins to write a block home: what it holds. None if a transaction has taken it since it was found to be dirty, or
    /// if it is still being written.
    pub fn write_home(&mut self, block: u64) -> Option<Content> {
        self.journal.write_home(block).map(|tid| Content::Home { tid })
    }

    /// A block has been written home.
    pub fn home_written(&mut self, block: u64) {
        self.journal.home_written(block, &mut self.stats);
    }

    fn file(&self, inode: Inode) -> Option<&File> {
        self.files.get(inode.0 as usize)?.as_deref()
    }

    /// A file, apart from the file system, so that both can be changed; it has to be put back.
    fn take_file(&mut self, inode: Inode) -> Result<Box<File>, FsError> {
        self.files.get_mut(inode.0 as usize).and_then(Option::take).ok_or(FsError::NoFile)
    }

    fn put_file(&mut self, inode: Inode, file: Box<File>) {
        self.files[inode.0 as usize] = Some(file);
    }

    /// Whether new blocks are unwritten until their data are on the drive (`ext4_should_dioread_nolock`).
    fn is_unwritten_first(&self) -> bool {
        self.spec.dioread_nolock && self.delays()
    }

    /// Whether allocation is delayed; with data in the journal it never is.
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

    /// A block of metadata is changed.
    fn dirty(&mut self, tid: Tid, block: u64) {
        self.journal.dirty(block, false);
        if let Some(history) = &mut self.history {
            history.changed(tid, block);
        }
    }

    /// The bitmap and the descriptor of the groups of some blocks are changed.
    fn dirty_groups(&mut self, tid: Tid, block: u64, blocks: u64) {
        for group in group_of(block)..=group_of(block + blocks - 1) {
            self.dirty(tid, self.layout.block_bitmap(group));
            self.dirty(tid, self.layout.descriptor(group));
        }
    }

    /// Blocks are free, once the transaction has committed (`ext4_free_blocks`); data at once if their order does not matter.
    fn free_blocks(&mut self, tid: Tid, block: u64, blocks: u64, is_data: bool) {
        self.dirty_groups(tid, block, blocks);
        if self.journal.is_on() && !(is_data && self.spec.data == JournalMode::writeback) {
            self.pending.push_back((tid, block, blocks));
        } else {
            self.allocator.free(block, blocks);
        }
    }

    /// A block of metadata that was journaled is free.
    fn free_journaled(&mut self, tid: Tid, block: u64) {
        self.journal.forget(block);
        if let Some(history) = &mut self.history {
            history.forgot(tid, block);
        }
    }

    /// The inode is written to its table (`ext4_mark_inode_dirty`), and `fsync` has to wait for that.
    fn dirty_inode(&mut self, tid: Tid, inode: Inode, file: &mut File) {
        self.dirty(tid, self.layout.inode_block(file.number));
        file.sync = tid;
        if file.disk_size != file.raw_size {
            file.raw_size = file.disk_size;
            file.data_sync = tid;
            self.record(tid, inode, Record::Size(file.disk_size));
        }
    }

    /// Ends a change of a file's extents: its blocks of metadata are allocated, changed, freed.
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

// What blocks of a drive hold, as far as recovery looks at it.

/// The number of a transaction, counted from one. Without a journal, that of a change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tid(pub u32);

/// What a block of metadata, or of the journal, holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// The journal's superblock.
    Superblock {
        /// Where the log begins, in blocks from the superblock.
        tail: u32,
        /// The transaction that begins there.
        tid: Tid,
    },
    /// One of the descriptors, revoke blocks and copies of a transaction.
    Log {
        /// The transaction.
        tid: Tid,
        /// Which of them.
        index: u32,
        /// How many there are.
        of: u32,
    },
    /// A commit block.
    Commit {
        /// The transaction.
        tid: Tid,
    },
    /// A block in its home place, as it was when this transaction was closed.
    Home {
        /// The transaction.
        tid: Tid,
    },
}

// What a file system counts.

/// Counters of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FsStats {
    /// Commits that `fsync` or `sync` asked for.
    pub commits_sync: u64,
    /// Commits of transactions whose time was up.
    pub commits_interval: u64,
    /// Commits of transactions that were too large, or whose blocks a checkpoint needed.
    pub commits_space: u64,
    /// Descriptor blocks in the log.
    pub log_descriptors: u64,
    /// Copies of blocks of metadata in the log.
    pub log_metadata: u64,
    /// Copies of pages of files in the log.
    pub log_data: u64,
    /// Revoke blocks in the log, and what they revoke.
    pub log_revokes: u64,
    /// Blocks revoked.
    pub revoked: u64,
    /// Commit blocks in the log.
    pub log_commits: u64,
    /// Writes of the journal's superblock.
    pub superblocks: u64,
    /// Batches of blocks that were written home to make room in the log.
    pub checkpoints: u64,
    /// Their blocks.
    pub checkpoint_blocks: u64,
    /// Blocks of metadata, and of data that was journaled, written home, for whatever reason.
    pub home_blocks: u64,
    /// Blocks allocated for data.
    pub allocated: u64,
    /// Allocations that were made for that.
    pub allocations: u64,
    /// Blocks of data freed.
    pub freed: u64,
    /// Writes refused because there was no room.
    pub no_space: u64,
}
