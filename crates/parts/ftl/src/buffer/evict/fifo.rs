//! First in, first out.

use super::{Aged, Eviction, LineState};
use engine::Snapshot;

/// First in, first out: the line that has been in the buffer longest goes first.
///
/// Age counts from the moment the unit took its line; reads, rewrites and flushes do not renew it. The oldest clean
/// line is evicted, the oldest dirty line is flushed.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    aged: Aged,
}

impl Fifo {
    /// Creates the policy over an empty buffer.
    pub fn new() -> Fifo {
        Fifo::default()
    }
}

impl Eviction for Fifo {
    fn enter(&mut self, line: u32, state: LineState) {
        self.aged.enter(line, state);
    }
    fn touch(&mut self, _line: u32) {}
    fn turn(&mut self, line: u32, state: LineState) {
        self.aged.turn(line, state);
    }
    fn leave(&mut self, line: u32) {
        self.aged.leave(line);
    }
    fn evict(&mut self) -> Option<u32> {
        self.aged.oldest_clean()
    }
    fn flush(&mut self) -> Option<u32> {
        self.aged.oldest_dirty()
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.aged.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.aged = Aged::load(input)?;
        Some(())
    }
}
