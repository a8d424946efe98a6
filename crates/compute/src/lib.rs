//! Processors.

pub mod simt;
