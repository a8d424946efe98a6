//! The flash device: host interface, buffer, FTL, back end and NAND array.

pub mod array;
mod fastdiv;
pub mod ftl;
pub mod geometry;
