//! One machine from a spec: parts, wires, running, results.

mod address;
mod applies;
mod assemble;
mod bind;
mod build;
pub mod catalogue;
pub mod complex;
mod energy;
mod event;
mod governed;
mod load;
mod machine;
pub mod memory;
mod outside;
mod packet;
pub mod pager;
mod parts;
mod plan;
pub mod precondition;
pub mod reproduce;
pub mod result;
mod route;
pub mod run;
pub mod source;
pub mod spec;
pub mod stall;
pub mod state;
pub mod systems;
mod validate;
pub mod warmup;
mod wires;
pub mod workloads;

pub use event::Ev;
pub use machine::{End, Machine};
pub use spec::{Loaded, Spec};
pub use warmup::Warmup;
