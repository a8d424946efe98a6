//! Linux: the path from system calls to drives.
//!
//! * Knows tasks on cores, files, page cache, write-back, ext4, the block layer with its schedulers.
//! * Does not know drives. It issues commands and hears completions.
//! * Read first: `path/mod.rs`, the life of a system call; then `block/mod.rs` and `pagecache/mod.rs`.

pub mod block;
pub mod fs;
pub mod pagecache;
pub mod path;
pub mod tasks;
pub mod writeback;

// Names that floors of the path to a drive share.

/// Bytes of a page of memory.
pub const PAGE: u64 = 4096;

/// A file of a file system, whoever has it open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Inode(pub u32);
