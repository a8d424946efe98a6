//! What bios are for, and what happens when they end.

use crate::Inode;
use crate::tasks::Task;

/// What a bio is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Io {
    /// Pages that are read into the page cache.
    Read { inode: Inode, page: u64, pages: u32 },
    /// Dirty pages that are written.
    Write {
        inode: Inode,
        page: u64,
        pages: u32,
        /// The [`IoEnd`] that they belong to, if their blocks are new.
        io_end: Option<u32>,
    },
    /// A block of metadata that goes to its place.
    Home { disk: u16, block: u64 },
    /// One of several that a thread waits for.
    Counted(u32),
}

/// Pages of an extent that is new on the drive (`ext4_io_end_t`): they are being written until its last bio has ended and a worker has made it the
/// file's.
#[derive(Clone, Copy, Debug)]
pub(super) struct IoEnd {
    pub(super) inode: Inode,
    pub(super) page: u64,
    /// How many have been submitted.
    pub(super) pages: u64,
    /// Bios that have not ended, and the thread that submits them, until it has submitted all (`io_end->count`).
    pub(super) count: u32,
}

/// Bios that a thread waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter {
    /// How many have not ended.
    pub(super) left: u32,
    /// Who sleeps until none is left.
    pub(super) waiter: Option<Task>,
}
