//! Processors.

pub mod ooo;
pub mod simt;
