//! States before the first event of a run: what they are, what they depend on, how they are kept.
//!
//! Preconditioning of drives, and filling of a server's memory, work without time, so their results depend on a part of the spec only: a
//! [`StateSpec`]. Runs that agree in it can share one state, whatever their timing and their buffers; of a drive also whatever their
//! workloads. Who keeps states implements [`States`]: a run asks for those that it wants before it makes them.
//!
//! Flash as memory is filled with what its programs place there: every run does that.

mod drive;
mod file;
mod filled;
mod keeper;
mod source;
mod spec;
mod version;
mod wanted;

pub use drive::State;
pub use file::{Kept, agree, read, write};
pub use keeper::{Found, Place, States};
pub(crate) use source::OfMemory;
pub use spec::{Difference, StateSpec};
pub use version::LAYOUT;
pub use wanted::{Wanted, has_any};
