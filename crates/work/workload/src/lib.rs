//! Workloads: trace readers, the fio vocabulary, synthetic requests, and the injector that issues and measures them; programs of a
//! GPU and the graphs they run on; programs of a server, computed and recorded, and their jobs; programs
//! of a host that make system calls; kernels of an accelerator.

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
