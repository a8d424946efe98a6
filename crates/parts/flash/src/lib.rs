//! Flash, in three layers: media (what arrays, registers and channels can do), controllers (what lies where) and ports
//! (who asks), and what is built of them: the drive, flash as memory, and flash that an accelerator governs.

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
