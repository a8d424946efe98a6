//! Frames: the operations that a thread can be in the middle of.

use crate::fs::Tid;
use crate::{Inode, PAGE};
use engine::Time;
use proto::file::Call;
use proto::offload::Order;
use proto::{Completion, IoOp};

/// Step of a thread; the stack below holds the steps to return to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Frame {
    /// Asks a program for its thread's next action.
    Program {
        /// Program.
        program: u16,
        /// Thread of the program.
        thread: u32,
    },
    /// Takes the next request of a flow.
    Flow(u16),
    /// Answers a served request of a flow.
    Answer(u16),
    /// Answers a request of a flow with several requests in flight.
    Answered(u16, IoOp, Completion),
    /// Takes the completion of a request of a flow.
    Reap(u16),
    /// Polls for completions of a flow's requests.
    Poll(u16),
    /// Ends the completions found by polling.
    Polled(u16),
    /// Thread that does a ring's blocking operations.
    Worker(u16),
    /// Ends a blocking operation of a ring.
    Worked(u16, Completion),
    /// Enters the kernel.
    Call(u16, Call),
    /// Gives a coprocessor an order.
    Order {
        /// Coprocessor.
        device: u16,
        /// Order.
        order: Order,
    },
    /// Waits until an order is done.
    Ordered(u32),
    /// `filemap_read`.
    Read(Access),
    /// `generic_perform_write`, under the inode's lock.
    Write(Access),
    /// `balance_dirty_pages`.
    Balance(u16),
    /// Takes the lock of an inode.
    Lock(Inode),
    /// Takes the lock of an inode for a direct read or write.
    LockDirect {
        /// Byte range.
        access: Access,
        /// True for a write.
        write: bool,
        /// True if the thread has waited.
        waited: bool,
    },
    /// Releases the lock of an inode.
    Unlock(Inode),
    /// Submits the thread's bios, one after another, and its plugged requests.
    Submit,
    /// Waits for a counter of completions.
    Count(u32),
    /// Writes dirty pages of a range: `write_cache_pages`.
    Range(Range),
    /// Removes clean pages of a range.
    Forget(Range),
    /// Waits for pages of a range under write-back: `filemap_fdatawait_range`.
    WaitRange(Range),
    /// `ext4_sync_file`, or `blkdev_fsync`, after the data.
    Sync {
        /// Open file.
        file: u32,
        /// True for `fdatasync`.
        data_only: bool,
    },
    /// Returns from a sync.
    Synced {
        /// Disk of the journal.
        disk: u16,
        /// Transaction with the changes made durable.
        tid: Tid,
    },
    /// Waits until a transaction is committed.
    WaitCommit {
        /// Disk of the journal.
        disk: u16,
        /// Transaction.
        tid: Tid,
    },
    /// Waits for the log writes of a disk's journal in flight.
    WaitLog(u16),
    /// Makes room in the log of a disk's journal.
    Checkpoint(u16),
    /// Writes the superblock of a journal for a commit.
    Superblock {
        /// Disk.
        disk: u16,
        /// Block of the superblock.
        block: u64,
        /// Start of the log.
        tail: u32,
        /// First transaction of the log.
        tid: Tid,
        /// Force unit access.
        fua: bool,
    },
    /// Handles a written superblock of a journal.
    TailWritten {
        /// Disk of the journal.
        disk: u16,
        /// Start of the log.
        tail: u32,
        /// First transaction of the log.
        tid: Tid,
        /// True if the write made room in the log.
        checkpoint: bool,
    },
    /// Writes dirty metadata blocks to their places, those of an inode or all; without a journal.
    WriteHome {
        /// Disk.
        disk: u16,
        /// Inode of the blocks; `None` for all.
        inode: Option<Inode>,
        /// True if blocks that are being written are written once more.
        again: bool,
    },
    /// Waits for metadata blocks of a disk that are being written.
    WaitHome(u16),
    /// Makes the journal of a disk durable, for `sync`.
    SyncDisk(u16),
    /// Creates a file.
    Create(Inode),
    /// Changes the length of a file, or removes it.
    Resize(Resize),
    /// Flushes the drive's cache.
    Flush(u16),
    /// `O_DIRECT`.
    Direct {
        /// Byte range.
        access: Access,
        /// True for a write.
        write: bool,
        /// [`Dio`](super::io::Dio) of the request, if the thread does not wait for it.
        dio: Option<u32>,
    },
    /// Handles the submitted bios of a direct request, or of a [`Dio`](super::io::Dio).
    Submitted(Option<u32>),
    /// Handles a completed direct write.
    DirectWritten(Access),
    /// Thread that ends the unwaited direct writes of a disk.
    Finish(u16),
    /// Ends one of those writes.
    Finished(u32),
    /// Loads or stores a mapped page.
    Touch {
        /// Byte range.
        access: Access,
        /// True for a store.
        write: bool,
    },
    /// Loads or stores pages of a mapping, one after another.
    Mapped {
        /// Byte range.
        access: Access,
        /// True for a store.
        write: bool,
    },
    /// Begins the synchronous write of a range: pages that are dirty now, and none that becomes dirty later.
    BeginWritepages(Range),
    /// Ends the submission of such a range on this disk.
    EndWritepages(u16),
    /// Reclaims memory for a page that the thread needs.
    Reclaim,
    /// Sleeps.
    Nap(Time),
    /// Flusher of a disk.
    Flusher(u16),
    /// Handles the flusher's submitted chunk of an inode.
    Flushed {
        /// Disk.
        disk: u16,
        /// Inode.
        inode: Inode,
        /// First page.
        from: u64,
    },
    /// Writes dirty pages of a block device, that is metadata, for the flusher.
    Device {
        /// Disk.
        disk: u16,
        /// Next block.
        from: u64,
        /// Pages that it may still write.
        pages: u64,
    },
    /// Thread of a disk's journal.
    Journal(u16),
    /// Thread that converts newly written blocks of a disk.
    Convert(u16),
    /// Thread that reclaims memory in advance.
    Kswapd,
}

/// Byte range of a file to be read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Access {
    /// Open file.
    pub(super) file: u32,
    pub(super) inode: Inode,
    /// Next byte.
    pub(super) offset: u64,
    /// Byte after the last.
    pub(super) end: u64,
}

impl Access {
    pub(super) fn page(&self) -> u64 {
        self.offset / PAGE
    }

    /// Page after the last.
    pub(super) fn end_page(&self) -> u64 {
        self.end.div_ceil(PAGE)
    }

    /// Remaining bytes in the next page.
    pub(super) fn in_page(&self) -> u64 {
        ((self.page() + 1) * PAGE).min(self.end) - self.offset
    }

    pub(super) fn is_over(&self) -> bool {
        self.offset >= self.end
    }

    /// Advances to the next page.
    pub(super) fn advance(&mut self) {
        self.offset += self.in_page();
    }
}

/// Page range of a file to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Range {
    pub(super) inode: Inode,
    /// Next page.
    pub(super) page: u64,
    /// Page after the last.
    pub(super) end: u64,
    /// Pages that may still be written.
    pub(super) left: u64,
    /// True for integrity: every page that was dirty at the beginning, even if it is under write-back
    /// (`WB_SYNC_ALL`).
    pub(super) sync: bool,
    /// True if pages without blocks are allocated some; otherwise they are skipped.
    pub(super) allocate: bool,
    /// Current extent, whose blocks are allocated: the page after its last (zero without one), and the owner of its
    /// bios if it is new.
    pub(super) extent_end: u64,
    pub(super) io_end: Option<u32>,
}

impl Range {
    /// Range of all dirty pages in `page..end`, allocating blocks where needed.
    pub(super) fn of(inode: Inode, page: u64, end: u64) -> Range {
        let left = u64::MAX;
        Range { inode, page, end, left, sync: false, allocate: true, extent_end: 0, io_end: None }
    }
}

/// Change of a file's length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Resize {
    pub(super) inode: Inode,
    /// New length in bytes.
    pub(super) bytes: u64,
    /// True if the file itself is removed.
    pub(super) remove: bool,
}
