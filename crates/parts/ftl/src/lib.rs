//! Flash translation layer: the location of data, and when it moves.
//!
//! Three kinds: a page map with reclaim units ([`page_map`], with a data [`buffer`] in front and [`recovery`] after a
//! power cut), a block map with logs ([`log`]), and a log of page groups that an accelerator manages itself
//! ([`page_groups`]).
//!
//! * Knows mapping, allocation, garbage collection, wear, bad blocks, buffered lines.
//! * Does not know time or ports: a drive asks for places and reports when an operation is done.
//! * Read first: `page_map/mod.rs`.

pub mod buffer;
pub mod log;
pub mod page_groups;
pub mod page_map;
pub mod purpose;
pub mod recovery;
