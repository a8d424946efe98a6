//! A red-black tree with routing nodes, as changes over the loaded tree.
//!
//! Insertion, removal and their repairs: T. Cormen, C. Leiserson, R. Rivest, C. Stein, "Introduction to Algorithms",
//! chapter 13. A node with two children that loses its value stays as a routing node (N. Bronson, J. Casper, H.
//! Chafi, K. Olukotun, "A practical concurrent binary search tree", PPoPP 2010), so that a node never takes the place
//! of a different one. A search at a node is misled only by a rotation that moved this node down, or by its removal:
//! both change its version.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Shape;
use crate::service::{
    common::{loaded, loaded_below},
    loaded,
};
use engine::Snapshot;

/// No node.
pub(crate) const NIL: u64 = u64::MAX;

/// A node, identified by its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    /// Left and right child.
    pub(crate) children: [u64; 2],
    /// Parent.
    pub(crate) parent: u64,
    /// True if it is red.
    pub(crate) red: bool,
    /// Value; a routing node has none.
    pub(crate) value: Option<u64>,
    /// Number of times that the range of keys below it shrank.
    pub(crate) version: u32,
    /// True if it is in the tree.
    pub(crate) linked: bool,
}

engine::snapshot!(Node { children, parent, red, value, version, linked });

/// A node that a change has read for the first time, or has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touch {
    /// The node.
    pub(crate) key: u64,
    /// True if it was written.
    pub(crate) written: bool,
}

/// The tree.
pub(crate) struct Tree {
    shape: Shape,
    root: u64,
    changed: FxHashMap<u64, Node>,
    touched: Vec<Touch>,
}

impl Tree {
    /// Creates a tree over keys `0..n`, with those that are loaded.
    pub(crate) fn new(n: u64) -> Tree {
        let shape = Shape::new(n);
        let root = shape.root();
        Tree { shape, root, changed: FxHashMap::default(), touched: Vec::new() }
    }

    /// Appends the changed nodes.
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        debug_assert!(self.touched.is_empty(), "a change is under way");
        self.root.save(out);
        loaded::save_changes(&self.changed, out);
    }

    /// Restores saved changes on the tree loaded with keys `0..n`; `None` if it then breaks a rule of red-black
    /// trees.
    pub(crate) fn load(&mut self, input: &mut &[u8], n: u64) -> Option<()> {
        self.root = u64::load(input)?;
        self.changed = loaded::load_changes(input, |key, _| key < n)?;
        let loaded = Loaded { shape: &self.shape, root: self.root, changed: &self.changed, keys: n };
        loaded.is_sound().then_some(())
    }

    /// Returns the root.
    pub(crate) fn root(&self) -> u64 {
        self.root
    }

    /// Returns a node that is, or was, in the tree.
    pub(crate) fn node(&self, key: u64) -> Node {
        let known = self.changed.get(&key).copied().or_else(|| self.shape.node(key));
        known.expect("a node that a pointer leads to has been made")
    }

    /// Returns the nodes that changes since the last call read and wrote, in order.
    pub(crate) fn touched(&mut self) -> Vec<Touch> {
        std::mem::take(&mut self.touched)
    }

    /// Sets the value of a node of the tree, routing node or not.
    pub(crate) fn set(&mut self, key: u64, value: Option<u64>) {
        self.change(key, |node| node.value = value);
    }

    /// Adds a node below `parent`, which has no child on this side; [`NIL`] if the tree is empty.
    pub(crate) fn insert(&mut self, key: u64, value: u64, parent: u64, side: usize) {
        // A search that is still at an earlier node of this key must see that it was removed.
        let version = self.changed.get(&key).map_or(0, |node| node.version + 1);
        let node = Node { children: [NIL; 2], parent, red: true, value: Some(value), version, linked: true };
        self.changed.insert(key, node);
        self.touched.push(Touch { key, written: true });
        if parent == NIL {
            self.root = key;
        } else {
            self.change(parent, |node| node.children[side] = key);
        }
        self.repair_insertion(key);
    }

    /// Removes the value of a node; removes the node itself if it has at most one child, and then routing nodes above
    /// it that have only one child left.
    pub(crate) fn delete(&mut self, key: u64) {
        self.set(key, None);
        let mut at = key;
        while at != NIL {
            let node = self.read(at);
            if node.value.is_some() || !node.children.contains(&NIL) {
                break;
            }
            self.unlink(at, node);
            at = node.parent;
        }
    }

    fn read(&mut self, key: u64) -> Node {
        if !self.touched.iter().any(|touch| touch.key == key) {
            self.touched.push(Touch { key, written: false });
        }
        self.node(key)
    }

    fn change(&mut self, key: u64, change: impl FnOnce(&mut Node)) {
        let before = self.read(key);
        let mut node = before;
        change(&mut node);
        if node != before {
            self.changed.insert(key, node);
            self.touched.push(Touch { key, written: true });
        }
    }

    fn red(&mut self, key: u64) -> bool {
        key != NIL && self.read(key).red
    }

    fn paint(&mut self, key: u64, red: bool) {
        self.change(key, |node| node.red = red);
    }

    /// Returns the side of a child at its parent; of two empty sides the left.
    fn side(&mut self, parent: u64, child: u64) -> usize {
        usize::from(self.read(parent).children[0] != child)
    }

    /// Replaces `old` below `parent` by `new`.
    fn replace(&mut self, parent: u64, old: u64, new: u64) {
        if parent == NIL {
            self.root = new;
        } else {
            let side = self.side(parent, old);
            self.change(parent, |node| node.children[side] = new);
        }
        if new != NIL {
            self.change(new, |node| node.parent = parent);
        }
    }

    /// Rotates a node down to this side; its other child takes its place.
    fn rotate(&mut self, key: u64, side: usize) {
        let node = self.read(key);
        let up = node.children[1 - side];
        let between = self.read(up).children[side];
        self.replace(node.parent, key, up);
        self.change(up, |up| up.children[side] = key);
        self.change(key, |node| {
            node.children[1 - side] = between;
            node.parent = up;
            node.version += 1;
        });
        if between != NIL {
            self.change(between, |node| node.parent = key);
        }
    }

    fn repair_insertion(&mut self, mut at: u64) {
        loop {
            let parent = self.read(at).parent;
            if !self.red(parent) {
                break;
            }
            // A red node is not the root.
            let above = self.read(parent).parent;
            let side = self.side(above, parent);
            let uncle = self.read(above).children[1 - side];
            if self.red(uncle) {
                self.paint(parent, false);
                self.paint(uncle, false);
                self.paint(above, true);
                at = above;
                continue;
            }
            let mut top = parent;
            if self.side(parent, at) != side {
                self.rotate(parent, side);
                (at, top) = (parent, at);
            }
            self.paint(top, false);
            self.paint(above, true);
            self.rotate(above, 1 - side);
        }
        let root = self.root;
        self.paint(root, false);
    }

    /// Removes a node with at most one child.
    fn unlink(&mut self, key: u64, node: Node) {
        let child = if node.children[0] == NIL { node.children[1] } else { node.children[0] };
        self.replace(node.parent, key, child);
        self.change(key, |node| {
            node.linked = false;
            node.version += 1;
        });
        if !node.red {
            self.repair_removal(child, node.parent);
        }
    }

    /// Repairs paths below `at`, a child of `parent`, that have one black node too few.
    fn repair_removal(&mut self, mut at: u64, mut parent: u64) {
        while parent != NIL && !self.red(at) {
            let side = self.side(parent, at);
            let mut sibling = self.read(parent).children[1 - side];
            if self.red(sibling) {
                self.paint(sibling, false);
                self.paint(parent, true);
                self.rotate(parent, side);
                sibling = self.read(parent).children[1 - side];
            }
            let nephews = self.read(sibling).children;
            if !self.red(nephews[0]) && !self.red(nephews[1]) {
                self.paint(sibling, true);
                at = parent;
                parent = self.read(at).parent;
                continue;
            }
            if !self.red(nephews[1 - side]) {
                self.paint(nephews[side], false);
                self.paint(sibling, true);
                self.rotate(sibling, 1 - side);
                sibling = nephews[side];
            }
            let red = self.read(parent).red;
            self.paint(sibling, red);
            self.paint(parent, false);
            let outer = self.read(sibling).children[1 - side];
            self.paint(outer, false);
            self.rotate(parent, side);
            return;
        }
        if at != NIL {
            self.paint(at, false);
        }
    }
}

#[cfg(test)]
impl Tree {
    /// Returns the number of nodes that differ from the loaded tree.
    pub(crate) fn overlay(&self) -> usize {
        self.changed.len()
    }
}

// Check that loaded changes form a red-black tree with routing nodes.
//
// Most of the nodes that are unchanged have nothing changed below them: their subtrees follow from the shape, so only
// the others are visited, a few for each change.

/// Limit of versions: no run gets from here to the end of 32 bits.
const VERSION_MAX: u32 = 1 << 30;

/// More levels than a tree of 64-bit keys has.
const LEVELS: u32 = 130;

/// A tree with loaded changes.
pub(super) struct Loaded<'t> {
    pub(super) shape: &'t Shape,
    pub(super) root: u64,
    pub(super) changed: &'t FxHashMap<u64, Node>,
    /// Upper bound of its keys.
    pub(super) keys: u64,
}

/// Summary of a subtree, its root included.
struct Below {
    /// Number of black nodes per path down.
    black: u32,
    nodes: u64,
    /// Number of nodes visited.
    seen: usize,
}

impl Loaded<'_> {
    /// Returns true if the keys of nodes are below their bound and in order, their pointers agree, none is lost, and
    /// the colours keep the rules.
    pub(super) fn is_sound(&self) -> bool {
        let keys = self.keys;
        let may_be = |(key, node): (&u64, &Node)| *key < keys && node.version < VERSION_MAX;
        if !self.changed.iter().all(may_be) {
            return false;
        }
        let Some(open) = self.above_changes() else { return false };
        let linked = |is_linked: bool, was_there: bool| {
            let changed = self.changed.iter();
            changed.filter(|(key, node)| node.linked == is_linked && loaded(**key) == was_there).count()
                as u64
        };
        let due = (loaded_below(keys) + linked(true, false)).checked_sub(linked(false, true));
        if self.root == NIL {
            return open.is_empty() && due == Some(0);
        }
        let is_black = self.node(self.root).is_some_and(|node| !node.red);
        let found = self.below((self.root, NIL), (0, keys - 1), &open, 0);
        is_black && found.is_some_and(|found| Some(found.nodes) == due && found.seen == open.len())
    }

    fn node(&self, key: u64) -> Option<Node> {
        if key >= self.keys {
            return None;
        }
        self.changed.get(&key).copied().or_else(|| self.shape.node(key))
    }

    /// Returns the nodes in the tree that were changed, or that have a changed one below them; `None` if a parent
    /// pointer is invalid.
    fn above_changes(&self) -> Option<FxHashSet<u64>> {
        let mut open = FxHashSet::default();
        for (key, _) in self.changed.iter().filter(|(_, node)| node.linked) {
            let mut at = *key;
            while at != NIL && open.insert(at) {
                at = self.node(at).filter(|node| node.linked)?.parent;
            }
        }
        Some(open)
    }

    /// Checks the subtree of a node with this parent, whose keys must be within a range; `None` if it breaks a rule
    /// of red-black trees.
    fn below(
        &self,
        (key, parent): (u64, u64),
        (least, most): (u64, u64),
        open: &FxHashSet<u64>,
        level: u32,
    ) -> Option<Below> {
        let node = self.node(key).filter(|node| node.linked && node.parent == parent)?;
        if !(least..=most).contains(&key) || level > LEVELS {
            return None;
        }
        if !open.contains(&key) {
            let (keys, black, nodes) = self.shape.below(key);
            return (*keys.start() >= least && *keys.end() <= most).then_some(Below {
                black,
                nodes,
                seen: 0,
            });
        }
        let [left, right] = node.children;
        if node.value.is_none() && (left == NIL || right == NIL) {
            return None;
        }
        let side = |child: u64, range: Option<(u64, u64)>| {
            if child == NIL {
                return Some(Below { black: 0, nodes: 0, seen: 0 });
            }
            let is_red = self.node(child)?.red;
            if node.red && is_red { None } else { self.below((child, key), range?, open, level + 1) }
        };
        let low = side(left, key.checked_sub(1).map(|end| (least, end)))?;
        let high = side(right, Some((key + 1, most)))?;
        (low.black == high.black).then(|| Below {
            black: low.black + u32::from(!node.red),
            nodes: low.nodes + high.nodes + 1,
            seen: low.seen + high.seen + 1,
        })
    }
}
