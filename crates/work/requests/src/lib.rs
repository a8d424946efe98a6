//! Requests to drives: trace readers, fio jobs, generators, and the injector that issues and measures requests.
//!
//! * Knows requests with their parameters, and the latency that a requester sees.
//! * Does not know programs, nor any component that serves requests.
//! * Read first: `fio/mod.rs` for jobs, `trace/mod.rs` for traces, `inject/mod.rs` for the injector.

pub mod fio;
pub mod inject;
pub mod synth;
pub mod trace;
