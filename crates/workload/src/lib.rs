//! Workloads: trace readers, the fio vocabulary, synthetic requests, and the injector that issues and measures them.

pub mod fio;
pub mod inject;
pub mod synth;
pub mod trace;
