//! workload

pub mod trace;
