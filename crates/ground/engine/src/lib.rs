//! The event engine: simulated time, the event queue, contexts, resources, slabs, waiting lists, named random streams, snapshots, and the faults that
//! mutation tests plant.
//!
//! * Knows order of events, one clock per machine, determinism: the same events in the same order on every machine.
//! * Does not know any component, any unit but time and bytes. It depends on no other crate.
//! * Read first: `cx.rs`, the context that a component sees; then `queue/`.

mod cx;
mod event;
mod known;
mod lists;
pub mod mutant;
mod prefetch;
mod queue;
pub mod resource;
mod rng;
mod slab;
mod snapshot;
mod time;

pub use cx::{Cx, Inside, Recorder};
pub use event::{At, Event};
pub use known::Known;
pub use lists::{Digest, Flags, List, Lists};
pub use mutant::{Mutant, planted, planted_nth};
pub use prefetch::prefetch;
pub use queue::{EventQueue, Ticket};
pub use rng::{Rng, mix};
pub use slab::Slab;
pub use snapshot::Snapshot;
pub use time::Time;
