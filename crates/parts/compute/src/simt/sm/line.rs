//! A line of a memory instruction.

use engine::Time;

/// A line of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Virtual page, counted in reaches.
    pub page: u64,
    /// First byte inside the page.
    pub offset: u64,
    /// First byte, physical.
    pub physical: u64,
    /// The cycle of its look-up's outcome, if nothing is before it.
    pub outcome: u64,
    /// Its latest milestone.
    pub since: Time,
    /// Its instruction.
    pub op: u32,
    /// Bytes touched.
    pub bytes: u8,
    /// Whether its page has still to be counted as looked up.
    pub counts: bool,
}
