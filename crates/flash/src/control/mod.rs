//! Controllers: what lies where, and what moves when. They know no time and no port.
//!
//! Two kinds: a map of pages with reclaim units ([`ftl`], with a data [`buffer`] in front and [`recovery`] after a power
//! cut), and a map of blocks with logs ([`log`]).

pub mod buffer;
pub mod ftl;
pub mod log;
pub mod purpose;
pub mod recovery;
