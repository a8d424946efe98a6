//! Host software.

pub mod paging;
pub mod swap;
