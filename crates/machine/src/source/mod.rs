//! Sources of requests, as the injector wants them.

mod trace;

pub use trace::{Replay, TraceSource};
