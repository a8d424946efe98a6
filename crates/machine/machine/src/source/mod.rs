//! Sources of requests, as the injector wants them.

mod fio;
mod trace;
mod turns;

pub use fio::FioSource;
pub use trace::{Replay, TraceSource};
