//! Least recently used.

use super::{Aged, Eviction, LineState};
use engine::Snapshot;

/// Least recently used: the line that the host has not read or written for longest goes first.
///
/// The least recently used clean line is evicted, the least recently used dirty line is flushed: two independent
/// orders, so nothing waits for a flush while any line is clean. [`Cflru`](super::cflru::Cflru) with a window of one
/// line is the LRU of a single list, in which a dirty line at the end must be flushed first.
#[derive(Clone, Debug, Default)]
pub struct Lru {
    aged: Aged,
}

impl Lru {
    /// Creates the policy over an empty buffer.
    pub fn new() -> Lru {
        Lru::default()
    }
}

impl Eviction for Lru {
    fn enter(&mut self, line: u32, state: LineState) {
        self.aged.enter(line, state);
    }
    fn touch(&mut self, line: u32) {
        self.aged.renew(line);
    }
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
