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
        /// Whether their blocks are new and become the file's only now.
        convert: bool,
    },
    /// A block of metadata that goes to its place.
    Home { disk: u16, block: u64 },
    /// One of several that a thread waits for.
    Counted(u32),
}

/// Bios that a thread waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter {
    /// How many have not ended.
    pub(super) left: u32,
    /// Who sleeps until none is left.
    pub(super) waiter: Option<Task>,
}
