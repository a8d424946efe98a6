//! Translation: what lies where, and what moves when.
//!
//! Three kinds: a map of pages with reclaim units ([`page_map`], with a data [`buffer`] in front and [`recovery`] after a
//! power cut), a map of blocks with logs ([`log`]), and a log of page groups that an accelerator keeps itself
//! ([`page_groups`]).
//!
//! * Knows mapping, allocation, garbage collection, wear, bad blocks, buffered lines.
//! * Does not know time and ports: a drive asks for places and says when an operation is done.
//! * Read first: `page_map/mod.rs`.

pub mod buffer;
pub mod log;
pub mod page_groups;
pub mod page_map;
pub mod purpose;
pub mod recovery;
