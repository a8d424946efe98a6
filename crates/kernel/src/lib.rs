//! The event kernel: simulated time, the event queue, resources, slabs, named random streams. Depends on nothing.

mod time;

pub use time::Time;
