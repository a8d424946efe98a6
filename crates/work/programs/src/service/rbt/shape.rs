//! The tree as it is loaded: complete, every level full but the last, which is filled from the left.
//!
//! Nodes of a last level that is not full are red, all others black: the rules of a red-black tree hold.

use crate::service::rbt::tree::{NIL, Node};
use std::ops::RangeInclusive;

use crate::service::requests::{loaded, loaded_below, loaded_key};

/// A complete tree over the keys that are loaded.
pub(crate) struct Shape {
    /// Depth of the last level; the root's is 0.
    depth: u32,
    /// Nodes of the last level.
    last: u64,
}

impl Shape {
    /// Over those of the keys `0..n` that are loaded; `n` is at least 1.
    pub(crate) fn new(n: u64) -> Shape {
        let nodes = loaded_below(n);
        let depth = nodes.ilog2();
        Shape { depth, last: nodes + 1 - (1 << depth) }
    }

    /// The key at the top.
    pub(crate) fn root(&self) -> u64 {
        self.key(0, 0).unwrap_or(NIL)
    }

    /// The key of node `j`, from the left, at depth `d`, if there is one.
    fn key(&self, d: u32, j: u64) -> Option<u64> {
        if d > self.depth || d == self.depth && j >= self.last {
            return None;
        }
        // Its place in order if the last level were full, less those of the last level that are missing before it.
        let full = ((2 * j + 1) << (self.depth - d)) - 1;
        Some(loaded_key(full - full.div_ceil(2).saturating_sub(self.last)))
    }

    /// The place of a loaded key if the last level were full.
    fn full(&self, key: u64) -> u64 {
        let order = loaded_below(key);
        if order < 2 * self.last { order } else { 2 * (order - self.last) + 1 }
    }

    /// What is loaded at and below a loaded key: the keys that it lies between, black nodes on each path down, and nodes.
    pub(crate) fn below(&self, key: u64) -> (RangeInclusive<u64>, u32, u64) {
        let full = self.full(key);
        let height = (full + 1).trailing_zeros();
        // Places in order, without those of the last level that are missing before them.
        let order = |full: u64| full - full.div_ceil(2).saturating_sub(self.last);
        let (first, end) = (order(full + 1 - (1 << height)), order(full + (1 << height)));
        let is_full = self.last == 1 << self.depth;
        (loaded_key(first)..=loaded_key(end - 1), height + u32::from(is_full), end - first)
    }

    /// The node of a key as it is loaded, if it is.
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
