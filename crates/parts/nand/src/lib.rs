//! Media: what arrays, registers and channels can do, and when; and what survives a power cut.
//!
//! * Knows cells, planes, dies, channels, their timing, errors and energy.
//! * Does not know what an operation is for, nor what lies where: a controller queues operations and takes back those
//!   that are finished.
//! * Read first: `dies/mod.rs`, the back end of a drive; then `array.rs`, what cells hold.

pub mod array;
pub mod base;
pub mod dies;
pub mod geometry;
pub mod numbers;
pub mod planes;
pub mod registers;
pub mod sparse;
