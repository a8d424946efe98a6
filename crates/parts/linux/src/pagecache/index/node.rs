//! Nodes of the trees: 64 slots each, with a bit for each slot and mark.

use crate::pagecache::list::{Linked, Links, NONE};

/// No folio, no node, no shadow.
pub(super) const EMPTY: u32 = (1 << 31) - 1;
/// A slot with this bit holds a shadow entry, in the other 31.
pub(super) const SHADOW: u32 = 1 << 31;

/// Words of a node, one bit a slot. Those of a node above the leaves say what is anywhere below a slot.
pub(super) mod word {
    /// A folio, or a shadow entry.
    pub(in crate::pagecache::index) const USED: usize = 0;
    /// A folio.
    pub(in crate::pagecache::index) const PRESENT: usize = 1;
    pub(in crate::pagecache::index) const DIRTY: usize = 2;
    pub(in crate::pagecache::index) const WRITEBACK: usize = 3;
    pub(in crate::pagecache::index) const TOWRITE: usize = 4;
    pub(in crate::pagecache::index) const COUNT: usize = 5;
}

/// A node, as `struct xa_node`: the slots of a leaf hold folios and shadow entries, those of another node hold nodes. 320 bytes.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Node {
    pub(super) slots: [u32; 64],
    pub(super) words: [u64; word::COUNT],
    pub(super) parent: u32,
    /// The tree that it belongs to.
    pub(super) tree: u32,
    /// The first page that it covers.
    pub(super) first: u32,
    /// Among leaves that hold shadow entries alone.
    links: Links,
    /// A slot covers this power of two of pages.
    pub(super) shift: u8,
    /// Its slot in its parent.
    pub(super) offset: u8,
}

impl Node {
    const fn new() -> Node {
        Node {
            slots: [EMPTY; 64],
            words: [0; word::COUNT],
            parent: NONE,
            tree: 0,
            first: 0,
            links: Links::NONE,
            shift: 0,
            offset: 0,
        }
    }

    /// Whether it is a leaf that holds shadow entries and no folio.
    #[inline]
    pub(super) fn is_shadows(&self) -> bool {
        self.shift == 0 && self.words[word::PRESENT] == 0 && self.words[word::USED] != 0
    }
}

/// Nodes of all trees.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

impl Linked for Nodes {
    #[inline]
    fn links(&self, at: u32) -> Links {
        self.nodes[at as usize].links
    }
    #[inline]
    fn links_mut(&mut self, at: u32) -> &mut Links {
        &mut self.nodes[at as usize].links
    }
}

impl std::ops::Index<u32> for Nodes {
    type Output = Node;
    #[inline]
    fn index(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }
}

impl std::ops::IndexMut<u32> for Nodes {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut Node {
        &mut self.nodes[at as usize]
    }
}

impl Nodes {
    /// An empty node of a tree, without a parent.
    pub(super) fn insert(&mut self, tree: u32, first: u32, shift: u8) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            let at = self.nodes.len() as u32;
            assert!(at < EMPTY, "2^31 nodes");
            self.nodes.push(Node::new());
            at
        });
        let node = &mut self.nodes[at as usize];
        (node.parent, node.tree, node.first, node.shift) = (NONE, tree, first, shift);
        at
    }

    /// A node goes; it is empty, as it will be when it is used again.
    pub(super) fn remove(&mut self, at: u32) {
        debug_assert!(self.nodes[at as usize].words == [0; word::COUNT]);
        debug_assert!(self.nodes[at as usize].slots == [EMPTY; 64]);
        self.free.push(at);
    }

    /// Nodes in use.
    pub(super) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// A slot has this bit of a word from now on, and so have those above it.
    #[inline]
    pub(super) fn set(&mut self, mut at: u32, offset: u32, word: usize) {
        let mut bit = 1 << offset;
        loop {
            let node = &mut self.nodes[at as usize];
            let before = node.words[word];
            node.words[word] = before | bit;
            if before != 0 || node.parent == NONE {
                return;
            }
            (at, bit) = (node.parent, 1 << node.offset);
        }
    }

    /// A slot has this bit of a word no more; those above it lose it where nothing else has it.
    #[inline]
    pub(super) fn clear(&mut self, mut at: u32, offset: u32, word: usize) {
        let mut bit = 1 << offset;
        loop {
            let node = &mut self.nodes[at as usize];
            let before = node.words[word];
            node.words[word] = before & !bit;
            if before & bit == 0 || before != bit || node.parent == NONE {
                return;
            }
            (at, bit) = (node.parent, 1 << node.offset);
        }
    }
}
