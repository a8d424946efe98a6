//! Linux: the path from system calls to drives.
//!
//! * Models tasks on cores, files, the page cache, write-back, ext4, and the block layer with its schedulers.
//! * Does not model drives: it issues commands and receives completions.
//! * Start with `path/mod.rs`, the life of a system call; then `block/mod.rs` and `pagecache/mod.rs`.

pub mod block;
pub mod fs;
pub mod pagecache;
pub mod path;
pub mod tasks;
pub mod writeback;

// Types and constants shared by the layers above the drive.

/// Page size in bytes.
pub const PAGE: u64 = 4096;

/// File of a file system, independent of who has it open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Inode(pub u32);
