//! The flash device: host interface, buffer, FTL, back end and NAND array.

pub mod array;
pub mod buffer;
mod fastdiv;
pub mod ftl;
pub mod geometry;
