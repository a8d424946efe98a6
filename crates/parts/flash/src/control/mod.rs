//! Controllers: what lies where, and what moves when. They know no time and no port.
//!
//! Three kinds: a map of pages with reclaim units ([`ftl`], with a data [`buffer`] in front and [`recovery`] after a power
//! cut), a map of blocks with logs ([`log`]), and a log of page groups that an accelerator keeps itself ([`groups`]).

pub mod buffer;
pub mod ftl;
pub mod groups;
pub mod log;
pub mod purpose;
pub mod recovery;
