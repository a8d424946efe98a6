//! One machine from a spec: components, wires, preconditioning, running, results.
//!
//! * Knows every component, and the wires between them; the result document; shipped systems.
//! * Does not know papers, measurements and the command line: `studies` and `front` ask it.
//! * Read first: `run.rs`, one run from names to its document; then `spec/mod.rs` and `route/mod.rs`, the only place that knows the wires.

mod address;
mod advance;
mod applies;
mod assemble;
mod bill;
mod bind;
mod bring;
mod build;
pub mod catalogue;
pub mod complex;
mod driven;
mod end;
mod event;
mod gauges;
mod governed;
mod machine;
pub mod memory;
pub mod pager;
mod parts;
mod plan;
pub mod precondition;
pub mod requests;
pub mod result;
mod route;
pub mod run;
mod session;
pub mod source;
pub mod spec;
pub mod stall;
pub mod state;
pub mod systems;
mod validate;
pub mod warmup;
mod wires;
pub mod workloads;

pub use end::End;
pub use event::Ev;
pub use machine::Machine;
pub use spec::{Loaded, Spec};
pub use warmup::Warmup;
