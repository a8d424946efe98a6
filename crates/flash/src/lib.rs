//! The flash device: host interface, buffer, FTL, back end and NAND array.

pub mod array;
pub mod backend;
pub mod buffer;
pub mod device;
pub mod direct;
pub mod engine;
mod fastdiv;
pub mod ftl;
pub mod geometry;
pub mod hostif;
pub mod initiator;
pub mod positions;
pub mod recovery;
pub mod shadow;
pub mod soak;
pub mod spec;

pub use device::{Check, Device, DeviceParts, Event, Out};
