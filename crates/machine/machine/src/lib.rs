//! One machine from a spec: components, wires, preconditioning, running, results.
//!
//! * Knows every component, and the wires between them; the result document; shipped systems.
//! * Does not know papers, measurements and the command line: `studies` and `front` ask it.
//! * Read first: `run/mod.rs`, one run from names to its document; then `spec/mod.rs` and `route/mod.rs`, the only place that knows the wires.

mod assemble;
mod build;
pub mod catalogue;
mod machine;
pub mod parts;
pub mod plan;
pub mod precondition;
pub mod result;
mod route;
pub mod run;
pub mod source;
pub mod spec;
pub mod state;
pub mod systems;
pub mod warmup;
mod wires;

pub use machine::Machine;
pub use machine::course::End;
pub use spec::{Loaded, Spec};
pub use warmup::Warmup;
pub use wires::event::Ev;
