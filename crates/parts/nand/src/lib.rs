//! Media: arrays, registers and channels with their timing; and the state that survives a power cut.
//!
//! * Knows cells, planes, dies, channels, their timing, errors and energy.
//! * Does not know the purpose of an operation or the location of data: a controller queues operations and takes back
//!   the finished ones.
//! * Read first: `dies/mod.rs`, the back end of a drive; then `array.rs`, the content of cells.

pub mod array;
pub mod base;
pub mod dies;
pub mod geometry;
pub mod numbers;
pub mod planes;
pub mod registers;
pub mod sparse;
