//! Whether changes that were loaded are those of a red-black tree with routing nodes.
//!
//! Of the nodes that are as they were loaded at first most have nothing changed below them: what is below one of these follows from
//! the shape, so that the others alone are looked at, a few for each change.

use super::shape::Shape;
use super::tree::{NIL, Node};
use crate::service::requests::{loaded, loaded_below};
use rustc_hash::{FxHashMap, FxHashSet};

/// The end of versions: no run comes from here to the end of 32 bits.
const VERSION_MAX: u32 = 1 << 30;
/// More levels than a tree of 64-bit keys has.
const LEVELS: u32 = 130;

/// A tree that was loaded.
pub(super) struct Loaded<'t> {
    pub(super) shape: &'t Shape,
    pub(super) root: u64,
    pub(super) changed: &'t FxHashMap<u64, Node>,
    /// Bound of its keys.
    pub(super) keys: u64,
}

/// What is below a place, its node included.
struct Below {
    /// Black nodes on each path down.
    black: u32,
    nodes: u64,
    /// Nodes that were looked at.
    seen: usize,
}

impl Loaded<'_> {
    /// Whether the keys of nodes are below their bound and in order, their pointers agree, none is lost, and the colours keep the rules.
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

    /// Nodes in the tree that were changed, or that have one below them; `None` if pointers upwards lead nowhere.
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

    /// The tree below a node with this parent, whose keys must lie between two; `None` if it breaks a rule of red-black trees.
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
