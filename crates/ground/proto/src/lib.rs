//! Messages between components of a machine, and the address types in them.
//!
//! * Knows commands, completions, loads, stores, system calls and page groups as plain data, each with its units.
//! * Does not know any component. A component crate depends on this crate in place of another component.
//! * Read first: `block.rs`, the commands of a drive; then `memory.rs`.

mod account;
mod batches;
mod block;
pub mod coherence;
pub mod cpu;
pub mod file;
pub mod groups;
pub mod memory;
pub mod offload;
pub mod simt;
mod units;

pub use account::{Account, ByHolder, Holder, MILESTONES, Place};
pub use batches::Batches;
pub use block::{ANNOUNCED_PAGE, BufferState, Command, Completion, INNER, IoOp, IoRequest, Port, Status};
pub use units::{Lpn, Slot};
