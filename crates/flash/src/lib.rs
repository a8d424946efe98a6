//! The flash device: host interface, buffer, FTL, back end and NAND array.

pub mod array;
pub mod backend;
pub mod base;
pub mod buffer;
mod check;
pub mod device;
pub mod direct;
pub mod engine;
mod event;
mod fastdiv;
pub mod ftl;
pub mod geometry;
pub mod hostif;
pub mod initiator;
pub mod positions;
pub mod recovery;
pub mod shadow;
pub mod soak;
pub mod sparse;
pub mod spec;

pub use check::Check;
pub use device::{Device, DeviceParts};
pub use event::{Event, Out};
