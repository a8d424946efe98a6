//! Linux: the path from system calls to drives.
//!
//! * Knows tasks on cores, files, page cache, write-back, ext4, the block layer with its schedulers.
//! * Does not know drives. It issues commands and hears completions.
//! * Read first: `path/mod.rs`, the life of a system call; then `block/mod.rs` and `pagecache/mod.rs`.

pub mod block;
pub mod fs;
mod ids;
pub mod pagecache;
pub mod path;
pub mod tasks;
pub mod writeback;

pub use ids::{Inode, PAGE};
