//! One machine from a spec: parts, wires, running, results.

mod applies;
mod assemble;
pub mod catalogue;
mod event;
pub mod gpu;
mod lines;
mod machine;
pub mod precondition;
pub mod reproduce;
pub mod result;
mod route;
pub mod run;
pub mod server;
pub mod source;
pub mod spec;
pub mod stall;
pub mod systems;
mod validate;
pub mod warmup;
pub mod workloads;

pub use event::Ev;
pub use machine::{End, Machine};
pub use spec::{Loaded, Spec};
pub use warmup::Warmup;
