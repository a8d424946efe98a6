//! Flash, in three layers: media (arrays, registers, channels), controllers (placement of data) and ports
//! (requesters), and the components that are built of them: the drive, flash as memory, flash that an accelerator governs.
//!
//! * Knows dies, translation, garbage collection, wear, buffers, NVMe and AHCI ports, and a shadow that checks every read.
//! * Does not know hosts and workloads: commands come as messages of `proto`.
//! * Read first: `device/mod.rs`, the drive; then `control/ftl/mod.rs`, translation without time.

mod check;
pub mod control;
pub mod device;
pub mod direct;
mod fastdiv;
pub mod groups;
pub mod media;
mod names;
pub mod port;
pub mod positions;
pub mod shadow;
pub mod soak;
pub mod sparse;
pub mod spec;

pub use check::Check;
pub use device::{Device, DeviceParts, Event, Out};
