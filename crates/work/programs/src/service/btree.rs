//! The shape of a B+-tree that is loaded by a formula, and the visit to one of its nodes.
//!
//! Nodes as in Y. Mao, E. Kohler, R. Morris, "Cache craftiness for fast multicore key-value storage" (Masstree), EuroSys 2012,
//! section 4, whose trees Silo uses as well: 15 keys of eight bytes, versions for readers without locks, and all lines of a
//! node fetched at once before its keys are searched.

use crate::service::emit::{Emit, LINE, Value};

/// Keys of a leaf and children of an inner node as loaded: of 15, what random inserts leave on average (ln 2 = 69 %; A. Yao,
/// "On random 2-3 trees", Acta Informatica 9, 1978).
pub(crate) const FILL: u64 = 11;
/// Bytes of a node, five lines. Inner: version 8, count 8, 15 keys, 16 children, parent: 272. Leaf: version 8, permutation 8, 15
/// keys, 15 lengths, 15 pointers, next, previous, parent: 296.
pub(crate) const NODE: u64 = 5 * LINE;
/// Where in a node the pointers are, of an inner one and of a leaf.
const CHILDREN: u64 = 136;
const POINTERS: u64 = 152;
/// Instructions of a binary search among up to 15 keys: four turns of load from L1, comparison, conditional select.
const SEARCH: u16 = 12;

/// The largest number up to `most` that fits; 1 does, and if a number does so do those below.
pub(crate) fn largest(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut least, mut most) = (1, most.max(1));
    while least < most {
        let middle = least + (most - least).div_ceil(2);
        (least, most) = if fits(middle) { (middle, most) } else { (least, middle - 1) };
    }
    least
}

/// A tree over the keys `0..n`; leaves are level 0.
pub(crate) struct BTree {
    /// Number of the first node of each level.
    first: Vec<u64>,
    nodes: u64,
}

impl BTree {
    /// Over `n` keys, at least one.
    pub(crate) fn new(n: u64) -> BTree {
        let (mut first, mut nodes, mut level) = (Vec::new(), 0, n);
        loop {
            level = level.div_ceil(FILL);
            first.push(nodes);
            nodes += level;
            if level == 1 {
                return BTree { first, nodes };
            }
        }
    }

    /// How many nodes it has.
    pub(crate) fn nodes(&self) -> u64 {
        self.nodes
    }

    /// How many levels it has.
    pub(crate) fn levels(&self) -> u32 {
        self.first.len() as u32
    }

    /// The number of the node of a level on the way to a key, and which of its children or keys is the next.
    pub(crate) fn node(&self, level: u32, key: u64) -> (u64, u64) {
        let below = FILL.pow(level);
        (self.first[level as usize] + key / below / FILL, key / below % FILL)
    }
}

/// Visits the node at `address`, to which `link` points: fetches its lines, searches, loads the pointer behind the key that
/// was found, and checks that the version has not changed. Returns this pointer. Writes one basic block.
pub(crate) fn visit(address: u64, leaf: bool, found: u64, link: Value, e: &mut Emit<'_>) -> Value {
    let version = e.load(address, 16, [link]);
    let mut keys = version;
    for line in 1..NODE / LINE {
        let fetched = e.load(address + line * LINE, 8, [link]);
        // Keys end in the third line; pointers are in those behind it.
        if line == 2 {
            keys = fetched;
        }
    }
    e.branch(false, [version]);
    let index = e.compute(SEARCH, [keys, version]);
    let pointers = if leaf { POINTERS } else { CHILDREN };
    let pointer = e.load(address + pointers + 8 * found, 8, [index, link]);
    let again = e.load(address, 8, [link]);
    e.branch(false, [version, again]);
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_of_all_keys_meet_every_node_and_agree() {
        for n in [1, 11, 12, 121, 122, 5000] {
            let tree = BTree::new(n);
            let mut seen = vec![Vec::new(); tree.nodes() as usize];
            for key in 0..n {
                for level in 0..tree.levels() {
                    let (node, child) = tree.node(level, key);
                    assert!(child < FILL);
                    // What the pointer names: the key, or the node below.
                    let named = if level == 0 { key } else { tree.node(level - 1, key).0 };
                    seen[node as usize].push((child, named));
                }
                assert_eq!(tree.node(tree.levels() - 1, key).0, tree.nodes() - 1);
            }
            for children in &mut seen {
                children.dedup();
                let numbers: Vec<u64> = children.iter().map(|child| child.0).collect();
                assert_eq!(numbers, (0..children.len() as u64).collect::<Vec<_>>());
                assert!(children.windows(2).all(|pair| pair[0].1 + 1 == pair[1].1));
            }
        }
    }
}
