//! The reader under every format of a file: unpacking, lines of bounded length, fields, numbers, and faults with their place.
//!
//! Bytes are unpacked by content ([`Input`]) and split into lines ([`Lines`]); a line is split into fields ([`Fields`]), and whatever is
//! wrong with it ([`Bad`]) becomes a [`config::Diagnostic`] that names the file and the line.
//!
//! * Knows bytes, compressions, lines and numbers.
//! * Does not know any format, nor what a file is for.
//! * Read first: `input.rs`, then `input.rs`.

// A diagnostic is returned once in the life of a reader: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

pub mod fault;
mod fields;
mod input;
pub mod varint;

pub use fault::{Bad, shown};
pub use fields::{Base, Fields, unsigned};
pub use input::{Bytes, Compression, Input, Line, Lines, MAX_LINE, Meter, PREFIX, unpack};
