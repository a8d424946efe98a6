//! How long requests took where they were recorded.

use proto::IoOp;
use stats::Histogram;

/// Response times that a trace has of the requests it hands out, in picoseconds. Requests without one are not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Of reads.
    pub read: Histogram,
    /// Of writes, with those of zeroes.
    pub write: Histogram,
}

impl Recorded {
    /// Adds the response time of a request; those of trims and flushes are not kept.
    pub fn add(&mut self, op: IoOp, ps: u64) {
        match op {
            IoOp::Read => self.read.record(ps),
            IoOp::Write | IoOp::WriteZeroes => self.write.record(ps),
            IoOp::Trim | IoOp::Flush => {}
        }
    }
    /// Adds those of another trace.
    pub fn merge(&mut self, other: &Recorded) {
        self.read.merge(&other.read);
        self.write.merge(&other.write);
    }
    /// Whether none was recorded.
    pub fn is_empty(&self) -> bool {
        self.read.count() + self.write.count() == 0
    }
}
