//! One machine from a spec: parts, wires, running, results.

mod event;
mod machine;
mod route;

pub use event::Ev;
pub use machine::{End, Machine, Warmup};
