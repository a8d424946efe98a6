//! Host software.

pub mod paging;
