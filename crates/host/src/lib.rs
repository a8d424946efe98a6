//! Host software.

pub mod paging;
pub mod stripe;
pub mod swap;
