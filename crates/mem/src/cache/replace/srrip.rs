//! Static re-reference interval prediction.

use super::Replacement;

/// The longest interval that two bits predict.
const DISTANT: u8 = 3;

/// SRRIP with hit priority, two bits a line (Jaleel et al., ISCA 2010, section 4).
///
/// A line enters with a long interval (2), a use makes it immediate (0). The first way with the distant interval (3) is
/// the victim; if there is none, all intervals grow until there is one. The growth is applied when the new line enters.
pub struct Srrip {
    ways: u32,
    intervals: Vec<u8>,
}

impl Srrip {
    /// For `sets` of `ways`.
    pub fn new(sets: u32, ways: u32) -> Srrip {
        Srrip { ways, intervals: vec![DISTANT; (sets * ways) as usize] }
    }
}

impl Replacement for Srrip {
    fn enter(&mut self, set: u32, way: u32) {
        let first = (set * self.ways) as usize;
        let intervals = &mut self.intervals[first..first + self.ways as usize];
        // An empty way is distant: nothing grows for it.
        let growth = DISTANT - intervals[way as usize];
        for interval in intervals.iter_mut() {
            *interval = (*interval + growth).min(DISTANT);
        }
        intervals[way as usize] = DISTANT - 1;
    }
    fn touch(&mut self, set: u32, way: u32) {
        self.intervals[(set * self.ways + way) as usize] = 0;
    }
    fn leave(&mut self, set: u32, way: u32) {
        self.intervals[(set * self.ways + way) as usize] = DISTANT;
    }
    fn victim(&mut self, set: u32, may: &dyn Fn(u32) -> bool) -> Option<u32> {
        let first = set * self.ways;
        let interval = |way: &u32| self.intervals[(first + way) as usize];
        // The highest way comes first in the reversed order, so the lowest one wins among equals.
        (0..self.ways).rev().filter(|way| may(*way)).max_by_key(interval)
    }
}
