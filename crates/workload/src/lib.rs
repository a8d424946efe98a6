//! Workloads: trace readers, the fio vocabulary, synthetic requests, and the injector that issues and measures them.

pub mod inject;
pub mod trace;
