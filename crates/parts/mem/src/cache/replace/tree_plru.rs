//! Tree pseudo-LRU.

use super::{Replacement, as_many};
use engine::Snapshot;

/// Binary tree over the ways of a set. Each inner node points to the half not used last; following the pointers leads
/// to the victim. A half in which nothing may be evicted is skipped.
pub struct TreePlru {
    ways: u32,
    /// One node for each way but the first: the node that splits a range of ways before way `w` is `w`. True points to
    /// the upper half.
    upper: Vec<bool>,
}

impl TreePlru {
    /// Creates the policy for `sets` of `ways`, any number of them: of an odd range, one half is smaller.
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
    fn save(&self, out: &mut Vec<u8>) {
        self.upper.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.upper = as_many(&self.upper, input)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ReplacementPolicy;
    use super::super::tests::{Reference, decides_as};

    /// Tree of nodes, each of which remembers the half used last.
    enum Tree {
        Leaf(u32),
        Node { low: Box<Tree>, high: Box<Tree>, last_high: bool },
    }

    impl Tree {
        fn new(ways: std::ops::Range<u32>) -> Tree {
            if ways.len() == 1 {
                return Tree::Leaf(ways.start);
            }
            let middle = ways.start + ways.len() as u32 / 2;
            let (low, high) = (Tree::new(ways.start..middle), Tree::new(middle..ways.end));
            // Initially the lower half goes first.
            Tree::Node { low: Box::new(low), high: Box::new(high), last_high: true }
        }
        fn has(&self, mask: u32) -> bool {
            match self {
                Tree::Leaf(way) => mask >> way & 1 == 1,
                Tree::Node { low, high, .. } => low.has(mask) || high.has(mask),
            }
        }
    }

    impl Reference for Tree {
        fn enter(&mut self, way: u32) {
            self.touch(way);
        }
        fn touch(&mut self, way: u32) {
            if let Tree::Node { low, high, last_high } = self {
                *last_high = high.has(1 << way);
                if *last_high { high.touch(way) } else { low.touch(way) }
            }
        }
        fn victim(&mut self, mask: u32) -> u32 {
            match self {
                Tree::Leaf(way) => *way,
                Tree::Node { low, high, last_high } => {
                    let take_low = if *last_high { low.has(mask) } else { !high.has(mask) };
                    if take_low { low.victim(mask) } else { high.victim(mask) }
                }
            }
        }
    }

    #[test]
    fn it_decides_as_its_reference() {
        decides_as(&ReplacementPolicy::tree_plru, false, |ways| Tree::new(0..ways));
    }
}
