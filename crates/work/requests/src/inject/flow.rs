//! What was measured of one flow.

use proto::IoOp;
use stats::{OpStats, Span};

/// Everything measured of one flow.
#[derive(Clone, Debug, Default)]
pub struct FlowStats {
    /// Its name.
    pub name: String,
    /// The target that it submits to.
    pub target: u16,
    /// Whether requests arrive at times of their own, whatever the device does.
    pub open: bool,
    /// When it was at work.
    pub span: Span,
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
    /// Reads, writes, deallocations, flushes.
    pub fn by_kind(&self) -> [&OpStats; 4] {
        [&self.read, &self.write, &self.trim, &self.flush]
    }

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
