//! Processors.

pub mod ooo;
pub mod simt;
pub mod vliw;
