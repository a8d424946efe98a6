//! Messages that parts of a machine exchange, and the address types they are written in.
//!
//! A part crate knows this crate and never another part. Everything here is plain data.

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
