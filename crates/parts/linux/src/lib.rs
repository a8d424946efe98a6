//! Host software.

pub mod block;
pub mod fs;
mod ids;
pub mod pagecache;
pub mod paging;
pub mod path;
pub mod stripe;
pub mod swap;
pub mod tasks;
pub mod writeback;

pub use ids::{Inode, PAGE};
