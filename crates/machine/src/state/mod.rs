//! States of drives after preconditioning: what they are, what they depend on, how they are kept.
//!
//! Preconditioning works without time, so its result depends on a part of the spec only: a [`StateSpec`]. Runs that agree in it can
//! share one state, whatever their timing, their buffers and their workloads. Who keeps states implements [`States`]: a run asks
//! for the one that it wants before it makes it.
//!
//! A state is that of the drive. What a server's memory is filled with before a run depends on the program's data, which
//! filling changes; flash as memory is filled with what its programs place there. Both are made by every run.

mod drive;
mod file;
mod keeper;
mod spec;
mod version;

pub use drive::State;
pub use file::{Kept, agree, read, write};
pub use keeper::{Found, Place, States};
pub use spec::{Difference, StateSpec};
pub use version::LAYOUT;
