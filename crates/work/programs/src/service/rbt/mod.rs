//! Red-black tree: lookups, inserts and deletes.
//!
//! Source: the micro-benchmark "red-black tree" of AstriFlash's suite (MICRO 2019). A search descends one node per
//! piece and remembers the version of each node on arrival. If the node has lost keys since (a rotation moved it
//! down, or it was removed) the search starts over, otherwise it reads the child pointer again (hand-over-hand
//! optimistic validation: Bronson et al., PPoPP 2010). A job that changes the tree takes one lock for all of it, for
//! the length of one piece. A node is a line; each key's node always has the same place, as if the allocator returned
//! it. A node's place is independent of its height: keys were inserted in random order.

mod tree;

use super::{Built, Entry};
use crate::program::Params;
use crate::service::common::{Common, LOOKUPS, Objects, Want, keys, loaded, loaded_below, loaded_key, want};
use crate::service::jobs::{DATA, Emit, FIRST_BLOCK, LINE, Program, Served, Value};
use std::ops::RangeInclusive;
use tree::{NIL, Node, Tree};

/// Bytes of a node: key, value, left, right, parent 8 each, colour and version 8, 16 unused. A line.
const NODE: u64 = LINE;
/// Offsets in a node of the pointers, and of colour and version. A change writes some of the bytes from the value to
/// the version.
const LEFT: u64 = 16;
const VERSION: u64 = 40;
/// Root pointer and lock of the tree, each on a separate line before the nodes.
const ROOT: u64 = DATA;
const LOCK: u64 = DATA + LINE;
const NODES: u64 = DATA + 2 * LINE;
/// Instructions of the short path of an allocator that keeps blocks by size for each thread.
const ALLOCATE: u16 = 8;

const TOP: u32 = FIRST_BLOCK;
const VISIT: u32 = TOP + 1;
const VALUE: u32 = TOP + 2;
const ENTER: u32 = TOP + 3;
const REPAIR: u32 = TOP + 4;
const LEAVE: u32 = TOP + 5;

pub(crate) const ENTRY: Entry = Entry {
    name: "rbt",
    source: "micro-benchmarks (MICRO 2019)",
    what: "looks up, inserts and deletes keys of a red-black tree with nodes of 64 bytes",
    keys: keys!["20000", LOOKUPS],
    build,
};

fn build(params: &Params) -> Built {
    let common = Common::read(params, NODES - DATA + NODE)?;
    let rbt = Rbt::new(&common, params.integer(LOOKUPS.name, 0..=100)?);
    Ok(Box::new(Served::new(rbt, common.work)))
}

/// The tree and its place in memory.
pub(crate) struct Rbt {
    common: Common,
    lookups: u64,
    keys: Objects,
    tree: Tree,
}

/// Position of a search.
#[derive(Clone, Copy)]
struct Rest {
    node: u64,
    version: u32,
    /// Child to which it goes.
    side: usize,
    /// Pointer to the node, and the values loaded from it.
    link: Value,
    loaded: Value,
}

/// A job: its request, and the position of its search.
pub(crate) struct Job {
    want: Want,
    key: u64,
    value: u64,
    rest: Option<Rest>,
    /// Value found.
    found: Option<u64>,
}

impl Rbt {
    pub(crate) fn new(common: &Common, lookups: u64) -> Rbt {
        let keys = (common.data - (NODES - DATA)) / NODE;
        Rbt { common: common.clone(), lookups, keys: Objects::new(keys, common), tree: Tree::new(keys) }
    }

    fn address(&self, key: u64) -> u64 {
        NODES + self.keys.slot(key) * NODE
    }

    /// Returns the node below the search's position, if that still holds the key, and the pointer to it.
    fn below(&self, job: &Job, e: &mut Emit<'_>) -> Option<(u64, Value)> {
        let Some(rest) = job.rest else {
            e.block(TOP);
            return Some((self.tree.root(), e.load(ROOT, 8, [])));
        };
        let (node, address) = (self.tree.node(rest.node), self.address(rest.node));
        e.block(VISIT);
        let pointer = e.load(address + LEFT + 8 * rest.side as u64, 8, [rest.link, rest.loaded]);
        let version = e.load(address + VERSION, 8, [rest.link]);
        let stale = node.version != rest.version;
        e.branch(stale, [version]);
        (!stale).then_some((node.children[rest.side], pointer))
    }

    /// Visits a node; returns whether it has the key.
    fn visit(&self, job: &mut Job, key: u64, link: Value, e: &mut Emit<'_>) -> bool {
        let address = self.address(key);
        let loaded = e.load(address, 8, [link]);
        e.load(address + VERSION, 8, [link]);
        e.branch(key == job.key, [loaded]);
        let side = usize::from(job.key > key);
        // The side is chosen by a conditional add to the address, not by a branch.
        let chosen = e.compute(2, [loaded]);
        let version = self.tree.node(key).version;
        job.rest = Some(Rest { node: key, version, side, link, loaded: chosen });
        key == job.key
    }

    /// Executes the request at the node of its key, or at its insertion point.
    fn act(&mut self, job: &mut Job, at: Option<Value>, e: &mut Emit<'_>) {
        let there = at.is_some();
        job.found = at.and_then(|_| self.tree.node(job.key).value);
        if let Some(link) = at {
            e.block(VALUE);
            let value = e.load(self.address(job.key) + 8, 8, [link]);
            e.branch(job.found.is_none(), [value]);
        }
        let rest = job.rest.map_or((NIL, 0), |rest| (rest.node, rest.side));
        match job.want {
            Want::Look => return,
            Want::Delete if job.found.is_none() => return,
            Want::Delete => self.tree.delete(job.key),
            Want::Insert if there => self.tree.set(job.key, Some(job.value)),
            Want::Insert => self.tree.insert(job.key, job.value, rest.0, rest.1),
        }
        let link = at.or(job.rest.map(|rest| rest.link)).unwrap_or_default();
        self.write(link, !there, e);
    }

    /// Writes the operations of a change: under the lock, each node it reads for the first time (found through a
    /// pointer of the previous one), and each it writes.
    fn write(&mut self, link: Value, allocates: bool, e: &mut Emit<'_>) {
        e.block(ENTER);
        if allocates {
            let blocks = e.load(e.frame(), 16, []);
            e.compute(ALLOCATE, [blocks]);
        }
        let taken = e.atomic(LOCK, []);
        e.branch(false, [taken]);
        let mut last = link;
        for touch in self.tree.touched() {
            e.block(REPAIR);
            let address = self.address(touch.key);
            if touch.written {
                e.store(address + 8, 40, [last]);
            } else {
                last = e.load(address + LEFT, 32, [last]);
                e.branch(false, [last]);
            }
        }
        e.block(LEAVE);
        e.store(LOCK, 8, []);
    }
}

impl Program for Rbt {
    type Job = Job;
    const BLOCKS: u32 = LEAVE + 1;

    fn end(&self) -> u64 {
        NODES + self.keys.len() * NODE
    }

    fn begin(&self, job: u64) -> Job {
        let mut stream = self.common.stream(job);
        let want = want(self.lookups, &mut stream);
        let key = self.keys.draw(&mut stream);
        Job { want, key, value: stream.bits(), rest: None, found: None }
    }

    fn piece(&mut self, job: &mut Job, e: &mut Emit<'_>) -> bool {
        let Some((below, link)) = self.below(job, e) else {
            job.rest = None;
            return true;
        };
        e.branch(below == NIL, [link]);
        if below == NIL {
            self.act(job, None, e);
            return false;
        }
        let hit = self.visit(job, below, link, e);
        if hit {
            self.act(job, Some(link), e);
        }
        !hit
    }

    fn save(&self, out: &mut Vec<u8>) {
        self.tree.save(out);
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.tree.load(input, self.keys.len())
    }
}

// The loaded tree: complete, every level full but the last, which is filled from the left.
//
// Nodes of an incomplete last level are red, all others black: the rules of a red-black tree hold.

/// Complete tree over the loaded keys.
pub(crate) struct Shape {
    /// Depth of the last level; the root's is 0.
    depth: u32,
    /// Number of nodes of the last level.
    last: u64,
}

impl Shape {
    /// Creates the tree over the loaded keys of `0..n`; `n` is at least 1.
    pub(crate) fn new(n: u64) -> Shape {
        let nodes = loaded_below(n);
        let depth = nodes.ilog2();
        Shape { depth, last: nodes + 1 - (1 << depth) }
    }

    /// Returns the key of the root.
    pub(crate) fn root(&self) -> u64 {
        self.key(0, 0).unwrap_or(NIL)
    }

    /// Returns the key of node `j`, from the left, at depth `d`, if there is one.
    fn key(&self, d: u32, j: u64) -> Option<u64> {
        if d > self.depth || d == self.depth && j >= self.last {
            return None;
        }
        // Position in order in a full tree, minus the missing nodes of the last level before it.
        let full = ((2 * j + 1) << (self.depth - d)) - 1;
        Some(loaded_key(full - full.div_ceil(2).saturating_sub(self.last)))
    }

    /// Returns the position of a loaded key in a full tree.
    fn full(&self, key: u64) -> u64 {
        let order = loaded_below(key);
        if order < 2 * self.last { order } else { 2 * (order - self.last) + 1 }
    }

    /// Returns the loaded subtree of a loaded key: its range of keys, black nodes per path down, and nodes.
    pub(crate) fn below(&self, key: u64) -> (RangeInclusive<u64>, u32, u64) {
        let full = self.full(key);
        let height = (full + 1).trailing_zeros();
        // Positions in order, without the missing nodes of the last level before them.
        let order = |full: u64| full - full.div_ceil(2).saturating_sub(self.last);
        let (first, end) = (order(full + 1 - (1 << height)), order(full + (1 << height)));
        let is_full = self.last == 1 << self.depth;
        (loaded_key(first)..=loaded_key(end - 1), height + u32::from(is_full), end - first)
    }

    /// Returns the node of a key as loaded, if it is.
    pub(crate) fn node(&self, key: u64) -> Option<Node> {
        if !loaded(key) {
            return None;
        }
        let full = self.full(key);
        let height = (full + 1).trailing_zeros();
        let (d, j) = (self.depth - height, (full + 1) >> (height + 1));
        let parent = if d == 0 { None } else { self.key(d - 1, j / 2) };
        Some(Node {
            children: [self.key(d + 1, 2 * j).unwrap_or(NIL), self.key(d + 1, 2 * j + 1).unwrap_or(NIL)],
            parent: parent.unwrap_or(NIL),
            red: d > 0 && d == self.depth && self.last < 1 << self.depth,
            value: Some(key),
            version: 0,
            linked: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::common::loaded;
    use crate::service::drive::{chased, drive, small};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Checks the rules of a binary search tree and of a red-black tree below a node; its black height. Values go to `all`.
    fn rules(tree: &Tree, key: u64, parent: u64, range: (u64, u64), all: &mut BTreeMap<u64, u64>) -> u32 {
        if key == NIL {
            return 1;
        }
        let node = tree.node(key);
        assert!((range.0..range.1).contains(&key) && node.linked && node.parent == parent);
        let [left, right] = node.children;
        assert!(!node.red || node.children.iter().all(|&child| child == NIL || !tree.node(child).red));
        match node.value {
            Some(value) => assert!(all.insert(key, value).is_none()),
            None => assert!(left != NIL && right != NIL, "a routing node has two children"),
        }
        let heights =
            [rules(tree, left, key, (range.0, key), all), rules(tree, right, key, (key + 1, range.1), all)];
        assert_eq!(heights[0], heights[1], "below {key}");
        heights[0] + u32::from(!node.red)
    }

    fn contents(tree: &Tree) -> BTreeMap<u64, u64> {
        let mut all = BTreeMap::new();
        if tree.root() != NIL {
            assert!(!tree.node(tree.root()).red);
        }
        rules(tree, tree.root(), NIL, (0, u64::MAX), &mut all);
        all
    }

    /// Every job's outcome is what a map has when the job ends, whatever the others do between its pieces.
    fn against_a_map(keys: u64, lookups: u64, slots: u64, jobs: u64) {
        let mut rbt = Rbt::new(&small(NODES - DATA + keys * NODE), lookups);
        let mut map: BTreeMap<u64, u64> =
            (0..keys).filter(|&key| loaded(key)).map(|key| (key, key)).collect();
        assert_eq!(contents(&rbt.tree), map);
        drive(&mut rbt, 0..jobs, slots, |rbt, number, job, _| {
            let before = match job.want {
                Want::Look => map.get(&job.key).copied(),
                Want::Insert => map.insert(job.key, job.value),
                Want::Delete => map.remove(&job.key),
            };
            assert_eq!(job.found, before);
            if number.is_multiple_of(50) {
                contents(&rbt.tree);
            }
        });
        assert_eq!(contents(&rbt.tree), map);
    }

    /// A saved tree is taken back. With a byte that is another it is refused, or a tree that keeps the rules.
    #[test]
    fn a_tree_that_is_loaded_keeps_the_rules() {
        let keys = 300;
        let fresh = || Rbt::new(&small(NODES - DATA + keys * NODE), 20);
        let mut rbt = fresh();
        drive(&mut rbt, 0..400, 3, |_, _, _, _| {});
        let mut saved = Vec::new();
        rbt.tree.save(&mut saved);
        let mut other = fresh();
        assert_eq!(other.tree.load(&mut saved.as_slice(), keys), Some(()));
        assert_eq!(contents(&other.tree), contents(&rbt.tree));
        let (mut refused, mut taken) = (0, 0);
        for at in 0..saved.len() {
            for flip in [1, 0x80] {
                let mut damaged = saved.clone();
                damaged[at] ^= flip;
                let mut other = fresh();
                match other.tree.load(&mut damaged.as_slice(), keys) {
                    Some(()) => {
                        contents(&other.tree);
                        taken += 1;
                    }
                    None => refused += 1,
                }
            }
        }
        // Values, and versions, may be any.
        assert!(refused > taken && taken > 0, "{refused} refused, {taken} taken");
    }

    #[test]
    fn it_does_what_a_map_does() {
        against_a_map(1, 20, 3, 200);
        against_a_map(1000, 50, 1, 3000);
        against_a_map(3000, 90, 8, 3000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn small_trees_under_many_changes_keep_their_rules(keys in 2u64..80, slots in 1u64..40) {
            against_a_map(keys, 10, slots, 3000);
        }
    }

    #[test]
    fn trees_of_every_size_are_loaded_by_the_rules() {
        for keys in 1..200 {
            let map: BTreeMap<u64, u64> =
                (0..keys).filter(|&key| loaded(key)).map(|key| (key, key)).collect();
            assert_eq!(contents(&Tree::new(keys)), map);
        }
    }

    #[test]
    fn a_search_of_a_tebibyte_chases_its_path() {
        let mut rbt = Rbt::new(&small(1 << 40), 90);
        let (mut longest, mut visits) = (0, 0);
        drive(&mut rbt, 0..1000, 4, |rbt, _, _, history| {
            let path = chased(history, NODES..rbt.end(), NODE);
            longest = longest.max(path.len());
            visits += path.len();
        });
        // 2^34 keys less a sixteenth: 34 levels, the mean depth one less; a restart adds to it.
        assert!((34..70).contains(&longest), "{longest}");
        assert!((30_000..36_000).contains(&visits), "{visits}");
        assert!(rbt.tree.overlay() < 1500 && rbt.tree.overlay() > 50, "{}", rbt.tree.overlay());
    }
}
