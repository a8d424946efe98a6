//! What was measured of one flow.

use proto::IoOp;
use stats::OpStats;

/// Everything measured of one flow.
#[derive(Clone, Debug, Default)]
pub struct FlowStats {
    /// Its name.
    pub name: String,
    /// Reads.
    pub read: OpStats,
    /// Writes.
    pub write: OpStats,
    /// Deallocations and zeroing.
    pub trim: OpStats,
    /// Flushes.
    pub flush: OpStats,
}

impl FlowStats {
    /// The part for one kind of request.
    #[inline]
    pub fn of(&mut self, op: IoOp) -> &mut OpStats {
        match op {
            IoOp::Read => &mut self.read,
            IoOp::Write => &mut self.write,
            IoOp::Trim | IoOp::WriteZeroes => &mut self.trim,
            IoOp::Flush => &mut self.flush,
        }
    }
}
