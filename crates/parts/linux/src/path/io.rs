//! What bios are for, and what happens when they end.

use super::frame::Access;
use crate::Inode;
use crate::fs::Tid;
use crate::tasks::Task;
use proto::Completion;

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
    /// One of a request that nobody waits for: a [`Dio`].
    Dio(u32),
}

/// A direct request that its thread does not wait for (`struct iomap_dio` without `wait_for_completion`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Dio {
    /// The flow, and what it is told in the end.
    pub(super) flow: u16,
    pub(super) completion: Completion,
    pub(super) access: Access,
    pub(super) write: bool,
    /// Whether its bios have force unit access, or it is made durable after them (`IOMAP_DIO_WRITE_FUA`, `IOMAP_DIO_NEED_SYNC`).
    pub(super) fua: bool,
    pub(super) sync: bool,
    /// Whether its thread looks for its end.
    pub(super) polled: bool,
    /// Bios that have not ended, and the thread that submits them, until it has submitted all (`dio->ref`).
    pub(super) count: u32,
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
    /// The disk whose log they are written to.
    pub(super) log: Option<u16>,
    /// The disk to whose log a commit block is written, and its transaction.
    pub(super) commit: Option<(u16, Tid)>,
    /// Whether one has failed.
    pub(super) failed: bool,
}
