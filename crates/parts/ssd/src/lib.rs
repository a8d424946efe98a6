//! Components built of media and translation: the drive, flash as memory, and flash managed by an accelerator; the
//! ports of their requesters; and a shadow that checks every read.
//!
//! * Knows commands in flight, garbage collection and destaging under way, NVMe and AHCI ports, specs of flash.
//! * Does not know hosts and workloads: commands come as messages of `proto`.
//! * Read first: `device/mod.rs`, the drive.

pub mod check;
pub mod device;
pub mod direct;
pub mod page_groups;
pub mod port;
pub mod shadow;
#[cfg(any(test, feature = "soak"))]
pub mod soak;
pub mod spec;

pub use check::Check;
pub use device::{Device, DeviceParts, Event, Out};
