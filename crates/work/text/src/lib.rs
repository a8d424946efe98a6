//! Common reader of all file formats: unpacking, lines of bounded length, fields, numbers, and faults with their
//! place.
//!
//! Bytes are unpacked by content ([`Input`]) and split into lines ([`Lines`]); a line is split into fields
//! ([`Fields`]), and a fault in it ([`Bad`]) becomes a [`config::Diagnostic`] that names the file and the line.
//!
//! * Knows bytes, compressions, lines and numbers.
//! * Does not know any format or the purpose of a file.
//! * Read first: `input.rs`.

// A reader returns at most one diagnostic in its life: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

pub mod fault;
mod fields;
mod input;
pub mod varint;

pub use fault::{Bad, shown};
pub use fields::{Base, Fields, unsigned};
pub use input::{Bytes, Compression, Input, Line, Lines, MAX_LINE, Meter, PREFIX, unpack};
