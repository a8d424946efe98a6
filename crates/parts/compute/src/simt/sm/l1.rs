//! The lines of the first-level data cache.

use crate::simt::spec::L1Spec;
use mem::cache::tags::{Shape, Tags};

/// Groups of pages that are counted together.
const GROUPS: usize = 256;

/// A page of an application as one word.
#[inline]
pub(super) fn page_key(app: u8, page: u64) -> u64 {
    page << 8 | u64::from(app)
}

/// Which physical lines are here, and to which virtual page each belongs: a page whose translation goes takes its lines
/// along, because its frame may get another's data.
pub(super) struct L1 {
    tags: Tags<u64>,
    /// Lines of each group of pages, so that a page without any costs no search.
    lines_of: Vec<u32>,
}

#[inline]
fn group(key: u64) -> usize {
    // Fibonacci hashing (Knuth, volume 3, 6.4): neighbours spread.
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize
}

impl L1 {
    pub(super) fn new(spec: &L1Spec) -> L1 {
        let shape = Shape { sets: spec.sets, ways: spec.ways };
        L1 { tags: Tags::new(shape, &spec.replacement), lines_of: vec![0; GROUPS] }
    }

    /// Whether a line is here; that counts as a use.
    #[inline]
    pub(super) fn look_up(&mut self, line: u64) -> bool {
        let Some(place) = self.tags.find(line) else { return false };
        self.tags.touch(place);
        true
    }

    /// Takes a line of a page in.
    pub(super) fn fill(&mut self, line: u64, key: u64) {
        debug_assert!(self.tags.find(line).is_none(), "a line that is here was fetched");
        if let Some((_, gone)) = self.tags.insert(line, key, |_| true) {
            self.lines_of[group(key)] += 1;
            if let Some((_, key)) = gone {
                self.lines_of[group(key)] -= 1;
            }
        }
    }

    /// Gives a line up.
    #[inline]
    pub(super) fn evict(&mut self, line: u64) {
        if let Some(place) = self.tags.find(line) {
            self.remove(place);
        }
    }

    fn remove(&mut self, place: u32) {
        self.lines_of[group(*self.tags.meta(place))] -= 1;
        self.tags.remove(place);
    }

    /// Gives every line of a page up.
    pub(super) fn forget(&mut self, key: u64) {
        if self.lines_of[group(key)] == 0 {
            return;
        }
        for place in 0..self.tags.places() {
            if self.tags.line(place).is_some() && *self.tags.meta(place) == key {
                self.remove(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{L1, page_key};
    use crate::simt::spec::L1Spec;
    use mem::cache::replace::ReplacementPolicy;

    #[test]
    fn a_page_takes_its_lines_along() {
        let replacement = ReplacementPolicy::lru;
        let spec = L1Spec { sets: 4, ways: 2, replacement, latency: 1, miss_registers: 1, merges: 0 };
        let mut l1 = L1::new(&spec);
        for line in 0..12 {
            l1.fill(line, page_key(line as u8 % 2, 9));
        }
        // Two ways of four sets: the last eight lines.
        let here = |l1: &mut L1| (0..12).filter(|line| l1.look_up(*line)).collect::<Vec<u64>>();
        assert_eq!(here(&mut l1), [4, 5, 6, 7, 8, 9, 10, 11]);
        l1.evict(8);
        l1.forget(page_key(1, 9));
        assert_eq!(here(&mut l1), [4, 6, 10]);
        l1.forget(page_key(0, 9));
        assert!(here(&mut l1).is_empty());
        assert!(l1.lines_of.iter().all(|lines| *lines == 0));
    }
}
