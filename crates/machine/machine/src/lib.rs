//! Simulation of one machine from its spec: components, wires, running, results.
//!
//! * Knows every component, and the wires between them; the result document.
//! * Does not know papers, measurements and the command line: `studies` and `front` ask it.
//! * Read first: `run/mod.rs`, one run from names to its document; then `route/mod.rs`, the only place that knows the wires.

mod assemble;
mod build;
pub mod catalogue;
mod machine;
pub mod parts;
pub mod plan;
pub mod result;
mod route;
pub mod run;
pub mod source;
pub mod state;
mod wires;

pub use machine::Machine;
pub use machine::course::End;
pub use plan::{from_text, load};
pub use spec::warmup::Warmup;
pub use spec::{Loaded, Spec};
pub use wires::event::Ev;
