//! Workloads: trace readers, jobs of fio, generators, the injector that issues requests and measures them; programs of
//! GPUs, servers, hosts and accelerators, and the graphs that they run on.
//!
//! * Knows requests and programs with their parameters, and the latency that a requester sees.
//! * Does not know any component that serves them.
//! * Read first: `fio/mod.rs` for jobs, `trace/mod.rs` for traces, `inject/mod.rs` for the injector.

pub mod cpu_trace;
pub mod fio;
pub mod graph;
pub mod host;
pub mod inject;
pub mod kernels;
pub mod program;
pub mod service;
pub mod simt_trace;
pub mod synth;
pub mod trace;
