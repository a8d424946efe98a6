//! Programs of GPUs, servers, hosts and accelerators, built in or recorded, and the graphs that they run on.
//!
//! * Knows programs with their parameters and their data, and what each of them asks for next.
//! * Does not know any component that executes them, nor how long anything takes.
//! * Read first: `program/mod.rs` for a GPU, `service/mod.rs` for a server, `host/mod.rs` for a host, `kernels/mod.rs` for an accelerator;
//!   `cpu_trace/mod.rs` and `simt_trace/mod.rs` for recorded ones.

pub mod cpu_trace;
mod files;
pub mod graph;
pub mod host;
pub mod kernels;
pub mod program;
pub mod service;
pub mod simt_trace;

pub use files::FILES;
