//! workload

pub mod fio;
pub mod synth;
