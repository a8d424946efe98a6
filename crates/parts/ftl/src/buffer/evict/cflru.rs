//! Clean-first eviction within a window of the least recently used lines.

use super::{Aged, Eviction, LineState};
use crate::buffer::order::{Chain, NONE};
use engine::Snapshot;

/// Parameters of `cflru`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Number of lines at the least recently used end among which clean ones are preferred.
    #[schemars(range(min = 1))]
    pub window: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params { window: 1024 }
    }
}

/// Clean-first LRU: a clean line goes first if it is among the `window` least recently used lines.
///
/// All lines are in one list by recency. Its `window` least recently used lines are the clean-first region, the rest is
/// the working region. The least recently used clean line of the clean-first region is evicted. If that region holds
/// none, no line is evicted and the least recently used dirty line must be flushed first, even if lines of the working
/// region are clean. A window of one line is plain LRU; a window of the whole buffer never waits for a flush while any
/// line is clean, like [`Lru`](super::lru::Lru). Lines being flushed keep their position.
///
/// Source: Park, Jung, Kang, Kim and Lee, "CFLRU: a replacement algorithm for flash memory", CASES 2006 (static
/// window).
#[derive(Clone, Debug)]
pub struct Cflru {
    window: u32,
    aged: Aged,
    /// All lines, by recency.
    recency: Chain,
    inside: Vec<bool>,
    /// Number of lines in the clean-first region.
    count: u32,
    /// Most recently used line of the region, once it has `window` lines.
    edge: u32,
}

impl Cflru {
    /// Creates the policy over an empty buffer, with a clean-first region of `window` lines.
    ///
    /// # Panics
    /// If `window` is zero: no line could ever be evicted.
    pub fn new(window: u32) -> Cflru {
        assert!(window > 0, "the clean-first region needs at least one line");
        Cflru {
            window,
            aged: Aged::default(),
            recency: Chain::default(),
            inside: Vec::new(),
            count: 0,
            edge: NONE,
        }
    }

    fn link(&mut self, line: u32) {
        if self.inside.len() <= line as usize {
            self.inside.resize(line as usize + 1, false);
        }
        self.recency.push(line);
        // While the region is not full, every line is in it.
        if self.count < self.window {
            self.inside[line as usize] = true;
            self.count += 1;
            self.edge = line;
        }
    }

    fn unlink(&mut self, line: u32) {
        if std::mem::take(&mut self.inside[line as usize]) {
            let next = if self.count == self.window { self.recency.newer(self.edge) } else { NONE };
            if next == NONE {
                self.count -= 1;
            } else {
                self.inside[next as usize] = true;
                self.edge = next;
            }
        }
        self.recency.remove(line);
    }
}

impl Eviction for Cflru {
    fn enter(&mut self, line: u32, state: LineState) {
        self.aged.enter(line, state);
        self.link(line);
    }
    fn touch(&mut self, line: u32) {
        self.aged.renew(line);
        self.unlink(line);
        self.link(line);
    }
    fn turn(&mut self, line: u32, state: LineState) {
        self.aged.turn(line, state);
    }
    fn leave(&mut self, line: u32) {
        self.aged.leave(line);
        self.unlink(line);
    }
    fn evict(&mut self) -> Option<u32> {
        // The region is an end of the list: if it holds a clean line, it holds the oldest one.
        self.aged.oldest_clean().filter(|line| self.inside[*line as usize])
    }
    fn flush(&mut self) -> Option<u32> {
        self.aged.oldest_dirty()
    }
    fn save(&self, out: &mut Vec<u8>) {
        // The region follows from the list.
        let Cflru { window: _, aged, recency, inside: _, count: _, edge: _ } = self;
        aged.save(out);
        recency.iter().collect::<Vec<u32>>().save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let mut loaded = Cflru { aged: Aged::load(input)?, ..Cflru::new(self.window) };
        let mut seen = vec![false; loaded.aged.lines()];
        for line in Vec::<u32>::load(input)? {
            if std::mem::replace(seen.get_mut(line as usize)?, true) {
                return None;
            }
            loaded.link(line);
        }
        *self = loaded;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines 1 to 8 are the paper's pages P1 (most recently used) to P8; `dirty` are dirty.
    fn list(window: u32, dirty: &[u32]) -> Cflru {
        let mut policy = Cflru::new(window);
        for page in (1..=8).rev() {
            let state = if dirty.contains(&page) { LineState::Dirty } else { LineState::Clean };
            policy.enter(page, state);
        }
        policy
    }

    /// Returns the next victim: an evicted line, or a dirty one that must be flushed first and is then evicted.
    fn victim(policy: &mut Cflru) -> Option<u32> {
        let line = policy.evict().or_else(|| {
            let line = policy.flush()?;
            policy.turn(line, LineState::Flushing);
            policy.turn(line, LineState::Clean);
            assert_eq!(policy.evict(), Some(line), "the line flushed to make room is evicted");
            Some(line)
        })?;
        policy.leave(line);
        Some(line)
    }

    /// The paper's example list: with the window over P5 to P8, of which P6 and P8 are dirty, the victims are P7, P5,
    /// P8, P6, in that order, while LRU's are P8, P7, P6, P5. The paper fixes the window; here it moves on as lines are
    /// evicted, so the working region is dirty to keep clean lines out of the window.
    #[test]
    fn example_of_the_paper() {
        let dirty = [1, 2, 3, 4, 6, 8];
        let mut cflru = list(4, &dirty);
        assert_eq!([(); 4].map(|()| victim(&mut cflru)), [Some(7), Some(5), Some(8), Some(6)]);
        let mut lru = list(1, &dirty);
        assert_eq!([(); 4].map(|()| victim(&mut lru)), [Some(8), Some(7), Some(6), Some(5)]);
    }

    #[test]
    fn clean_lines_of_the_working_region_stay() {
        let mut policy = list(4, &[5, 6, 7, 8]);
        assert_eq!(policy.evict(), None, "P1 to P4 are clean, but in the working region");
        assert_eq!(policy.flush(), Some(8));
        // P8 is used again: the window moves on to P4, which is clean.
        policy.touch(8);
        assert_eq!(policy.evict(), Some(4));
    }
}
