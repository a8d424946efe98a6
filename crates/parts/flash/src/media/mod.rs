//! Media: what arrays, registers and channels can do, and when; and what survives a power cut.
//!
//! Media carry operations out. What an operation is for, and what lies where, is their controller's: it queues operations,
//! takes back those that are finished, and says what an array and its registers hold.

pub mod array;
pub mod base;
pub mod dies;
pub mod energy;
pub mod geometry;
pub mod packages;
pub mod planes;
pub mod registers;
