//! What a thread can be in the middle of.

use crate::fs::Tid;
use crate::{Inode, PAGE};
use engine::Time;
use proto::file::Call;
use proto::offload::Order;
use proto::{Completion, IoOp};

/// One step of what a thread does; the thread's stack has those that it returns to below it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Frame {
    /// Asks a program what its thread does next.
    Program {
        /// Which program.
        program: u16,
        /// Which of its threads.
        thread: u32,
    },
    /// Takes the next request of a flow of requests.
    Flow(u16),
    /// A request of a flow has been served.
    Answer(u16),
    /// The same of a flow with several requests under way.
    Answered(u16, IoOp, Completion),
    /// A flow takes the end of one of its requests.
    Reap(u16),
    /// A flow looks for the ends of its requests.
    Poll(u16),
    /// It has found some.
    Polled(u16),
    /// The thread that does what a flow's ring cannot do without waiting.
    Worker(u16),
    /// It has done it.
    Worked(u16, Completion),
    /// Enters the kernel.
    Call(u16, Call),
    /// Gives a coprocessor an order.
    Order {
        /// Which of them.
        device: u16,
        /// What it shall do.
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
    /// Takes it for a direct read or write.
    LockDirect {
        /// What is read or written.
        access: Access,
        /// Whether it writes.
        write: bool,
        /// Whether it has waited.
        waited: bool,
    },
    /// Gives it back.
    Unlock(Inode),
    /// Submits the thread's bios, one after another, and what has been plugged.
    Submit,
    /// Waits for a count of completions.
    Count(u32),
    /// Writes dirty pages of a range: `write_cache_pages`.
    Range(Range),
    /// Pages of a range that are clean leave.
    Forget(Range),
    /// Waits for pages of a range that are being written: `filemap_fdatawait_range`.
    WaitRange(Range),
    /// `ext4_sync_file`, or `blkdev_fsync`, after the data.
    Sync {
        /// Of this open file.
        file: u32,
        /// `fdatasync`.
        data_only: bool,
    },
    /// A sync returns.
    Synced {
        /// The disk of the journal.
        disk: u16,
        /// The transaction that holds what it has made durable.
        tid: Tid,
    },
    /// Waits until a transaction is committed.
    WaitCommit {
        /// The disk of the journal.
        disk: u16,
        /// The transaction.
        tid: Tid,
    },
    /// Waits until what is being written to the log of a disk's journal is there.
    WaitLog(u16),
    /// Makes room in the log of a disk's journal.
    Checkpoint(u16),
    /// A commit writes the superblock of its journal.
    Superblock {
        /// The disk.
        disk: u16,
        /// Where.
        block: u64,
        /// Where the log begins.
        tail: u32,
        /// With which transaction.
        tid: Tid,
        /// Force unit access.
        fua: bool,
    },
    /// The superblock of a journal has been written.
    TailWritten {
        /// Its disk.
        disk: u16,
        /// Where the log begins.
        tail: u32,
        /// With which transaction.
        tid: Tid,
        /// Whether it made room in the log.
        checkpoint: bool,
    },
    /// Without a journal: writes dirty blocks of metadata to their places, those of an inode or all.
    WriteHome {
        /// The disk.
        disk: u16,
        /// Whose.
        inode: Option<Inode>,
        /// Whether blocks that are being written are written once more.
        again: bool,
    },
    /// Waits for blocks of a disk's metadata that are on their way.
    WaitHome(u16),
    /// Makes the journal of a disk durable, for `sync`.
    SyncDisk(u16),
    /// Makes a file.
    Create(Inode),
    /// Changes the length of a file, or removes it.
    Resize(Resize),
    /// Empties the drive's cache.
    Flush(u16),
    /// `O_DIRECT`.
    Direct {
        /// What it reads or writes.
        access: Access,
        /// Whether it writes.
        write: bool,
        /// The [`Dio`](super::io::Dio) that it is, if the thread does not wait for it.
        dio: Option<u32>,
    },
    /// The bios of a direct request, or of a [`Dio`](super::io::Dio), have been submitted.
    Submitted(Option<u32>),
    /// A direct write is on the drive.
    DirectWritten(Access),
    /// The thread that ends direct writes of a disk that nobody waits for.
    Finish(u16),
    /// One of them has ended.
    Finished(u32),
    /// A load or store of a mapped page.
    Touch {
        /// Of this byte on.
        access: Access,
        /// Whether it stores.
        write: bool,
    },
    /// Loads or stores of the pages of a mapping, one after another.
    Mapped {
        /// What is copied.
        access: Access,
        /// Whether it stores.
        write: bool,
    },
    /// A thread begins to write a range itself: what is dirty of it now, and nothing that becomes so later.
    BeginWritepages(Range),
    /// It has submitted the range, which is on this disk.
    EndWritepages(u16),
    /// Reclaims memory for a page that the thread needs.
    Reclaim,
    /// Sleeps.
    Nap(Time),
    /// The flusher of a disk.
    Flusher(u16),
    /// The flusher has written what it was told of an inode.
    Flushed {
        /// Its disk.
        disk: u16,
        /// The inode.
        inode: Inode,
        /// Where it began.
        from: u64,
    },
    /// The flusher writes dirty pages of a block device: metadata.
    Device {
        /// The disk.
        disk: u16,
        /// The next block.
        from: u64,
        /// Pages that it may still write.
        pages: u64,
    },
    /// The thread of a disk's journal.
    Journal(u16),
    /// The thread that ends what was written into new blocks of a disk.
    Convert(u16),
    /// Reclaims memory before others must.
    Kswapd,
}

/// Bytes of a file that are read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Access {
    /// The open file.
    pub(super) file: u32,
    pub(super) inode: Inode,
    /// The next byte.
    pub(super) offset: u64,
    /// The byte after the last.
    pub(super) end: u64,
}

impl Access {
    pub(super) fn page(&self) -> u64 {
        self.offset / PAGE
    }

    /// The page after the last.
    pub(super) fn end_page(&self) -> u64 {
        self.end.div_ceil(PAGE)
    }

    /// Bytes of the page that is next.
    pub(super) fn in_page(&self) -> u64 {
        ((self.page() + 1) * PAGE).min(self.end) - self.offset
    }

    pub(super) fn is_over(&self) -> bool {
        self.offset >= self.end
    }

    /// The next page.
    pub(super) fn advance(&mut self) {
        self.offset += self.in_page();
    }
}

/// Pages of a file that are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Range {
    pub(super) inode: Inode,
    /// The next page.
    pub(super) page: u64,
    /// The page after the last.
    pub(super) end: u64,
    /// Pages that may still be written.
    pub(super) left: u64,
    /// For integrity: every page that was dirty at the beginning, whatever is being written of it (`WB_SYNC_ALL`).
    pub(super) sync: bool,
    /// Whether pages without blocks get some; otherwise they are passed over.
    pub(super) allocate: bool,
    /// The extent under way, which has its blocks: the page after its last, zero without one, and what its bios belong to if it is new.
    pub(super) extent_end: u64,
    pub(super) io_end: Option<u32>,
}

impl Range {
    /// All that is dirty of some pages, with what they need.
    pub(super) fn of(inode: Inode, page: u64, end: u64) -> Range {
        let left = u64::MAX;
        Range { inode, page, end, left, sync: false, allocate: true, extent_end: 0, io_end: None }
    }
}

/// A change of a file's length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Resize {
    pub(super) inode: Inode,
    /// The new one.
    pub(super) bytes: u64,
    /// Whether the file itself goes.
    pub(super) remove: bool,
}
