//! Static re-reference interval prediction.

use super::{Replacement, as_many};
use engine::Snapshot;

/// Longest interval that two bits predict.
const DISTANT: u8 = 3;

/// SRRIP with hit priority, two bits per line (Jaleel et al., ISCA 2010, section 4).
///
/// A line enters with a long interval (2); a use makes it immediate (0). The first way with the distant interval (3) is
/// the victim; without one, all intervals grow until one is distant. The growth is applied when the new line enters.
pub struct Srrip {
    ways: u32,
    intervals: Vec<u8>,
}

impl Srrip {
    /// Creates the policy for `sets` of `ways`.
    pub fn new(sets: u32, ways: u32) -> Srrip {
        Srrip { ways, intervals: vec![DISTANT; (sets * ways) as usize] }
    }
}

impl Replacement for Srrip {
    fn enter(&mut self, set: u32, way: u32) {
        let first = (set * self.ways) as usize;
        let intervals = &mut self.intervals[first..first + self.ways as usize];
        // Empty ways are distant: no interval grows for them.
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
    fn save(&self, out: &mut Vec<u8>) {
        self.intervals.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let loaded = as_many(&self.intervals, input)?;
        self.intervals = loaded.iter().all(|interval| *interval <= DISTANT).then_some(loaded)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Reference, decides_as};
    use super::super::{Places, ReplacementPolicy};
    use crate::cache::{Shape, Tags};

    /// Algorithm as printed by Jaleel et al.: look for a 3 from the left; increment all, and look again.
    struct Intervals(Vec<u32>);

    impl Reference for Intervals {
        fn enter(&mut self, way: u32) {
            self.0[way as usize] = 2;
        }
        fn touch(&mut self, way: u32) {
            self.0[way as usize] = 0;
        }
        fn victim(&mut self, mask: u32) -> u32 {
            loop {
                let found = (0..self.0.len()).find(|w| self.0[*w] == 3 && mask >> w & 1 == 1);
                if let Some(way) = found {
                    return way as u32;
                }
                self.0.iter_mut().for_each(|interval| *interval = (*interval + 1).min(3));
            }
        }
    }

    // Empty ways become distant.
    #[test]
    fn it_decides_as_its_reference() {
        decides_as(&ReplacementPolicy::srrip, true, |ways| Intervals(vec![3; ways as usize]));
    }

    #[test]
    fn srrip_example_of_the_paper() {
        // Jaleel et al.'s mixed pattern, a1 a2 a2 a1 b1 b2 b3 b4 a1 a2 on four ways: a1 and a2 outlive the scan.
        let mut tags: Tags<()> = Tags::new(Shape { sets: 1, ways: 4 }, &ReplacementPolicy::srrip);
        let (a1, a2, scan) = (1, 2, [11, 12, 13, 14]);
        let mut hits = Vec::new();
        for line in [a1, a2, a2, a1].into_iter().chain(scan).chain([a1, a2]) {
            match tags.find(line) {
                Some(place) => {
                    tags.touch(place);
                    hits.push(line);
                }
                None => {
                    tags.insert(line, (), |()| true).expect("room");
                }
            }
        }
        assert_eq!(hits, [a2, a1, a1, a2]);
    }

    #[test]
    fn an_emptied_way_makes_nothing_older() {
        let mut srrip = ReplacementPolicy::srrip.build(&Places { sets: 1, ways: 2, seed: 0 });
        srrip.enter(0, 0);
        srrip.enter(0, 1);
        srrip.touch(0, 0);
        srrip.leave(0, 1);
        srrip.enter(0, 1);
        // Way 0 is still expected soon, way 1 is new: 0 against 2.
        assert_eq!(srrip.victim(0, &|_| true), Some(1));
    }
}
