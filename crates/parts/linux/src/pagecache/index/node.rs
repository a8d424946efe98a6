//! Nodes of the trees, with 64 slots and a bit for each slot and tag; and ordered searches among their pages.

use super::{Index, Tag, narrow, offset_of};
use crate::{
    Inode,
    pagecache::list::{Linked, Links, NONE},
};

/// Empty slot: no folio, node or shadow.
pub(super) const EMPTY: u32 = (1 << 31) - 1;
/// Flag of a slot that holds a shadow entry, in the other 31 bits.
pub(super) const SHADOW: u32 = 1 << 31;

/// Words of a node, one bit a slot. Above the leaves a bit covers all that lies below the slot.
pub(super) mod word {
    /// Folio or shadow entry.
    pub(in crate::pagecache::index) const USED: usize = 0;
    /// Folio.
    pub(in crate::pagecache::index) const PRESENT: usize = 1;
    pub(in crate::pagecache::index) const DIRTY: usize = 2;
    pub(in crate::pagecache::index) const WRITEBACK: usize = 3;
    pub(in crate::pagecache::index) const TOWRITE: usize = 4;
    pub(in crate::pagecache::index) const COUNT: usize = 5;
}

/// Node, like `struct xa_node`: slots of a leaf hold folios and shadow entries, those of an inner node hold nodes. 320
/// bytes.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Node {
    pub(super) slots: [u32; 64],
    pub(super) words: [u64; word::COUNT],
    pub(super) parent: u32,
    /// Tree of the node.
    pub(super) tree: u32,
    /// First page that it covers.
    pub(super) first: u32,
    /// Links among the leaves with only shadow entries.
    links: Links,
    /// Log2 of the pages that a slot covers.
    pub(super) shift: u8,
    /// Slot in its parent.
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

    /// Returns whether the node is a leaf with shadow entries but no folio.
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
    /// Creates an empty node of a tree, without a parent.
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

    /// Frees an empty node, which stays empty for its next use.
    pub(super) fn remove(&mut self, at: u32) {
        debug_assert!(self.nodes[at as usize].words == [0; word::COUNT]);
        debug_assert!(self.nodes[at as usize].slots == [EMPTY; 64]);
        self.free.push(at);
    }

    /// Number of nodes in use.
    pub(super) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Sets the bit of a slot in a word, and those of its ancestors.
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

    /// Clears the bit of a slot in a word, and those of its ancestors that no other slot needs.
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

// Ordered searches: next tagged page, runs of pages, next and last missing page.

/// Consecutive pages of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// First page.
    pub first: u64,
    /// Number of pages.
    pub pages: u64,
}

impl Run {
    /// First page after the run.
    pub fn end(&self) -> u64 {
        self.first + self.pages
    }
}

/// Bits of a leaf that begins at `first` for pages at or after `from`.
#[inline]
fn at_or_behind(from: u64, first: u64) -> u64 {
    u64::MAX.checked_shl(from.saturating_sub(first).min(64) as u32).unwrap_or(0)
}

/// Bits of a leaf for pages up to `to`, which is at or after `first`.
#[inline]
fn up_to(to: u64, first: u64) -> u64 {
    u64::MAX >> (63 - (to - first).min(63))
}

/// Ordered iterator over leaves that have a bit of a word set. It uses the words of the nodes above them, so that
/// finding the next leaf need not wait for data of the last one. The first leaf may qualify by pages before the range.
struct Leaves {
    inode: Inode,
    which: usize,
    to: u64,
    /// First page after the node whose bits are iterated.
    behind: u64,
    node: u32,
    bits: u64,
}

impl Leaves {
    /// Creates an iterator over the leaves of pages in `from..=to`.
    fn new(inode: Inode, from: u64, to: u64, which: usize) -> Leaves {
        Leaves { inode, which, to, behind: from, node: NONE, bits: 0 }
    }

    /// Returns the next leaf, and its first page.
    #[inline]
    fn next(&mut self, index: &Index) -> Option<(u32, u64)> {
        if self.bits == 0 {
            if self.behind > self.to {
                return None;
            }
            let from = u32::try_from(self.behind).ok()?;
            (self.node, self.bits) = index.branch(self.inode, from, self.which)?;
            let node = &index.nodes[self.node];
            self.behind = u64::from(node.first) + (64 << node.shift);
            if node.shift == 0 {
                self.bits = 0;
                return (u64::from(node.first) <= self.to).then_some((self.node, node.first.into()));
            }
        }
        let (node, bit) = (&index.nodes[self.node], self.bits.trailing_zeros());
        self.bits &= self.bits - 1;
        let first = u64::from(node.first) + u64::from(bit << 6);
        (first <= self.to).then_some((node.slots[bit as usize], first))
    }
}

impl Index {
    /// First page at or after `from` whose bit of a word is set.
    pub(super) fn next(&self, inode: Inode, from: u64, which: usize) -> Option<u64> {
        if from > u64::from(u32::MAX) {
            return None;
        }
        let from = narrow(from);
        if let Some(leaf) = self.walks.get(inode, from) {
            let node = &self.nodes[leaf];
            let word = node.words[which] >> offset_of(from);
            if word != 0 {
                return Some(u64::from(from) + u64::from(word.trailing_zeros()));
            }
        }
        self.next_from_root(inode, from, which)
    }

    fn next_from_root(&self, inode: Inode, from: u32, which: usize) -> Option<u64> {
        let mut leaves = Leaves::new(inode, from.into(), u64::MAX, which);
        while let Some((leaf, first)) = leaves.next(self) {
            let word = self.nodes[leaf].words[which] & at_or_behind(from.into(), first);
            if word != 0 {
                return Some(first + u64::from(word.trailing_zeros()));
            }
        }
        None
    }

    /// Finds the node above leaves, or the root leaf, with the first bit of a word set at or after `from`; returns the
    /// node, and its bits from there on. The page at `from` itself need not have the bit.
    fn branch(&self, inode: Inode, from: u32, which: usize) -> Option<(u32, u64)> {
        let mut at = self.tree(inode)?.root;
        if u64::from(from) >> self.nodes[at].shift >= 64 {
            return None;
        }
        let mut page = from;
        loop {
            let node = &self.nodes[at];
            let offset = page >> node.shift & 63;
            let word = node.words[which] >> offset << offset;
            if word == 0 {
                (at, page) = self.behind(at)?;
                continue;
            }
            if node.shift <= 6 {
                return Some((at, word));
            }
            let next = word.trailing_zeros();
            if next != offset {
                page = node.first + (next << node.shift);
            }
            at = node.slots[next as usize];
        }
    }

    /// Nearest ancestor that covers pages after this node, and the first of those pages.
    fn behind(&self, mut at: u32) -> Option<(u32, u32)> {
        loop {
            let node = &self.nodes[at];
            if node.parent == NONE {
                return None;
            }
            let parent = &self.nodes[node.parent];
            if node.offset < 63 {
                let page = u64::from(parent.first) + ((u64::from(node.offset) + 1) << parent.shift);
                return Some((node.parent, u32::try_from(page).ok()?));
            }
            at = node.parent;
        }
    }

    /// First page at or after `from` with a tag.
    pub(in crate::pagecache) fn next_tagged(&self, inode: Inode, from: u64, tag: Tag) -> Option<u64> {
        self.next(inode, from, tag.word())
    }

    /// First page at or after `from` that is in memory.
    pub(in crate::pagecache) fn next_present(&self, inode: Inode, from: u64) -> Option<u64> {
        self.next(inode, from, word::PRESENT)
    }

    /// Appends runs of tagged pages in `from..=to`, up to `most` pages in total.
    pub(in crate::pagecache) fn tagged_runs(
        &self,
        inode: Inode,
        (from, to): (u64, u64),
        tag: Tag,
        most: u64,
        runs: &mut Vec<Run>,
    ) {
        let (mut left, begin) = (most, runs.len());
        let mut leaves = Leaves::new(inode, from, to, tag.word());
        while left > 0
            && let Some((leaf, first)) = leaves.next(self)
        {
            let mut word = self.nodes[leaf].words[tag.word()] & at_or_behind(from, first) & up_to(to, first);
            while word != 0 && left > 0 {
                let offset = word.trailing_zeros();
                let pages = u64::from((word >> offset).trailing_ones()).min(left);
                let page = first + u64::from(offset);
                match runs[begin..].last_mut() {
                    Some(run) if run.end() == page => run.pages += pages,
                    _ => runs.push(Run { first: page, pages }),
                }
                left -= pages;
                word &= at_or_behind(page + pages, first);
            }
        }
    }

    /// Tags dirty pages in `from..=to` as to be written (`tag_pages_for_writeback`).
    pub(in crate::pagecache) fn tag_towrite(&mut self, inode: Inode, from: u64, to: u64) {
        let mut leaves = Leaves::new(inode, from, to, word::DIRTY);
        while let Some((leaf, first)) = leaves.next(self) {
            let mut dirty =
                self.nodes[leaf].words[word::DIRTY] & at_or_behind(from, first) & up_to(to, first);
            while dirty != 0 {
                self.nodes.set(leaf, dirty.trailing_zeros(), word::TOWRITE);
                dirty &= dirty - 1;
            }
        }
    }

    /// Sets or clears a tag of a page whose folio is in this leaf.
    #[inline]
    pub(in crate::pagecache) fn set_tag(&mut self, leaf: u32, page: u64, tag: Tag, on: bool) {
        let offset = offset_of(narrow(page));
        if on {
            self.nodes.set(leaf, offset, tag.word());
        } else {
            self.nodes.clear(leaf, offset, tag.word());
        }
    }

    /// Returns whether a page has a tag.
    pub(in crate::pagecache) fn has_tag(&self, inode: Inode, page: u64, tag: Tag) -> bool {
        let leaf = self.leaf(inode, narrow(page));
        leaf.is_some_and(|leaf| self.nodes[leaf].words[tag.word()] >> offset_of(page as u32) & 1 == 1)
    }

    /// First missing page among `most` pages from `from` on, or the last of them if none is missing
    /// (`page_cache_next_miss` of 6.1, whose comment differs).
    pub(in crate::pagecache) fn next_miss(&self, inode: Inode, from: u64, most: u64) -> u64 {
        let last = from + most.saturating_sub(1);
        self.next_missing(inode, from, last).unwrap_or(last)
    }

    /// First missing page in `from..=to`.
    pub(in crate::pagecache) fn next_missing(&self, inode: Inode, from: u64, to: u64) -> Option<u64> {
        let mut page = from;
        while page <= to {
            let leaf = u32::try_from(page).ok().and_then(|page| self.leaf(inode, page));
            let Some(leaf) = leaf else { return Some(page) };
            let missing = !self.nodes[leaf].words[word::PRESENT] >> offset_of(page as u32);
            if missing != 0 {
                let found = page + u64::from(missing.trailing_zeros());
                return (found <= to).then_some(found);
            }
            page = (page | 63) + 1;
        }
        None
    }

    /// Last missing page among the `most` pages up to and including `from`, or the first of them if none is missing
    /// (`page_cache_prev_miss` of 6.1). Returns -1, that is 2^64 - 1, if all pages from the beginning of the file are
    /// present.
    pub(in crate::pagecache) fn prev_miss(&self, inode: Inode, from: u64, most: u64) -> u64 {
        let first = from.saturating_sub(most.saturating_sub(1));
        let mut page = from;
        loop {
            let Some(leaf) = self.leaf(inode, narrow(page)) else { return page };
            let missing = !self.nodes[leaf].words[word::PRESENT] << (63 - offset_of(page as u32));
            let found = page.wrapping_sub(missing.leading_zeros().into());
            if missing != 0 && found >= first && found <= page {
                return found;
            }
            let begin = page & !63;
            if begin <= first {
                return if from + 1 < most { u64::MAX } else { first };
            }
            page = begin - 1;
        }
    }

    /// Appends the runs of missing pages among `pages` pages from `first` on.
    pub(in crate::pagecache) fn missing_runs(
        &self,
        inode: Inode,
        first: u64,
        pages: u64,
        runs: &mut Vec<Run>,
    ) {
        let end = first + pages;
        let mut next = first;
        while next < end
            && let Some(from) = self.next_missing(inode, next, end - 1)
        {
            let to = self.next_present(inode, from).map_or(end, |present| present.min(end));
            runs.push(Run { first: from, pages: to - from });
            next = to;
        }
    }
}
