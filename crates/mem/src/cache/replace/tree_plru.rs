//! Tree pseudo-LRU.

use super::Replacement;

/// A binary tree over the ways of a set. Each inner node points to the half that was not used last; the victim is where
/// the pointers lead. A half in which nothing may go is passed over.
pub struct TreePlru {
    ways: u32,
    /// One node for each way but the first: the node that splits a range of ways before way `w` is `w`. True points to
    /// the upper half.
    upper: Vec<bool>,
}

impl TreePlru {
    /// For `sets` of `ways`, any number of them: a half is the smaller one where they do not divide.
    pub fn new(sets: u32, ways: u32) -> TreePlru {
        TreePlru { ways, upper: vec![false; (sets * ways) as usize] }
    }
}

impl Replacement for TreePlru {
    fn enter(&mut self, set: u32, way: u32) {
        self.touch(set, way);
    }
    fn touch(&mut self, set: u32, way: u32) {
        let first = set * self.ways;
        let (mut low, mut high) = (0, self.ways);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let used_upper = way >= middle;
            self.upper[(first + middle) as usize] = !used_upper;
            if used_upper {
                low = middle;
            } else {
                high = middle;
            }
        }
    }
    fn leave(&mut self, _set: u32, _way: u32) {}
    fn victim(&mut self, set: u32, may: &dyn Fn(u32) -> bool) -> Option<u32> {
        let first = set * self.ways;
        let (mut low, mut high) = (0, self.ways);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let upper = self.upper[(first + middle) as usize];
            let pointed = if upper { middle..high } else { low..middle };
            if pointed.into_iter().any(may) == upper {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low).filter(|way| may(*way))
    }
}
