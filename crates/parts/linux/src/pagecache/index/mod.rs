//! Index from file pages to folios: one tree of nodes per file, like the kernel's xarray.
//!
//! A node has 64 slots. A leaf covers 64 pages, an inner node 64 nodes. A tree is as high as its highest page requires
//! and contains only nodes that lead to pages, so memory is proportional to the cached pages. Bit words in each node
//! tell which slots are in use, hold a folio, or have a tag (`PAGECACHE_TAG_DIRTY` and so on) anywhere below.
//!
//! A reclaimed folio leaves a **shadow entry** in its slot (`mm/workingset.c`). Leaves with only shadow entries are
//! bounded as by `count_shadow_nodes`, one for eight pages of memory. Above the bound the oldest one is dropped, where
//! the kernel waits for its shrinker.

mod node;
#[cfg(test)]
mod tests;

pub use node::Run;

use super::list::{LruList, NONE};
use crate::Inode;
use node::{EMPTY, Node, Nodes, SHADOW, word};
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// Tag of pages, by which they are searched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tag {
    /// `PAGECACHE_TAG_DIRTY`.
    Dirty,
    /// `PAGECACHE_TAG_WRITEBACK`.
    Writeback,
    /// `PAGECACHE_TAG_TOWRITE`: dirty when a write-back began, which writes only these pages.
    ToWrite,
}

impl Tag {
    fn word(self) -> usize {
        match self {
            Tag::Dirty => word::DIRTY,
            Tag::Writeback => word::WRITEBACK,
            Tag::ToWrite => word::TOWRITE,
        }
    }
}

/// Remains of a reclaimed folio: 31 bits that the reclaim policy writes and reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shadow(pub(super) u32);

/// File with cached pages or shadow entries.
#[derive(Debug)]
struct Tree {
    inode: Inode,
    root: u32,
    /// Pages in memory.
    pages: u64,
    /// Dirty pages.
    dirty: u64,
    /// Pages under write-back.
    writeback: u64,
}

/// Trees of all files.
#[derive(Debug)]
pub struct Index {
    nodes: Nodes,
    trees: Vec<Tree>,
    free_trees: Vec<u32>,
    files: FxHashMap<Inode, u32>,
    walks: WalkCache,
    /// Leaves with only shadow entries.
    shadows: LruList,
    shadows_most: u64,
}

/// Page number as stored: files have at most 2^32 pages, as on ext4.
#[inline]
fn narrow(page: u64) -> u32 {
    debug_assert!(page <= u64::from(u32::MAX), "page {page} is beyond the maximum of 2^32 pages of a file");
    page as u32
}

#[inline]
fn offset_of(page: u32) -> u32 {
    page & 63
}

impl Index {
    /// Creates an empty index for a memory of `pages` pages.
    pub(super) fn new(pages: u64) -> Index {
        Index {
            nodes: Nodes::default(),
            trees: Vec::new(),
            free_trees: Vec::new(),
            files: FxHashMap::default(),
            walks: WalkCache::new(pages),
            shadows: LruList::EMPTY,
            shadows_most: pages >> 3,
        }
    }

    /// Returns the leaf that covers a page.
    #[inline]
    fn leaf(&self, inode: Inode, page: u32) -> Option<u32> {
        if let Some(leaf) = self.walks.get(inode, page) {
            return Some(leaf);
        }
        let leaf = self.descend(inode, page)?;
        self.walks.put(inode, page, leaf);
        Some(leaf)
    }

    fn descend(&self, inode: Inode, page: u32) -> Option<u32> {
        let mut at = self.tree(inode)?.root;
        let mut shift = self.nodes[at].shift;
        if u64::from(page) >> shift >= 64 {
            return None;
        }
        // The leaf is far away in memory, so it is not touched.
        while shift > 0 {
            at = self.nodes[at].slots[(page >> shift & 63) as usize];
            if at == EMPTY {
                return None;
            }
            shift -= 6;
        }
        Some(at)
    }

    /// Returns the leaf that covers a page, creating it if needed.
    fn leaf_for(&mut self, inode: Inode, page: u32) -> u32 {
        if let Some(leaf) = self.leaf(inode, page) {
            return leaf;
        }
        let tree = self.tree_for(inode, page);
        let mut at = self.trees[tree as usize].root;
        while self.nodes[at].shift > 0 {
            let shift = self.nodes[at].shift;
            let offset = page >> shift & 63;
            let below = self.nodes[at].slots[offset as usize];
            at = if below == EMPTY { self.add_below(at, offset) } else { below };
        }
        self.walks.put(inode, page, at);
        at
    }

    /// Returns the tree of a file, high enough for a page.
    fn tree_for(&mut self, inode: Inode, page: u32) -> u32 {
        let Some(&tree) = self.files.get(&inode) else {
            let mut shift = 0;
            while u64::from(page) >> shift >= 64 {
                shift += 6;
            }
            let tree = self.free_trees.pop().unwrap_or(self.trees.len() as u32);
            let root = self.nodes.insert(tree, 0, shift);
            let new = Tree { inode, root, pages: 0, dirty: 0, writeback: 0 };
            match self.trees.get_mut(tree as usize) {
                Some(free) => *free = new,
                None => self.trees.push(new),
            }
            self.files.insert(inode, tree);
            return tree;
        };
        let mut root = self.trees[tree as usize].root;
        while u64::from(page) >> self.nodes[root].shift >= 64 {
            let words = self.nodes[root].words.map(|word| u64::from(word != 0));
            let above = self.nodes.insert(tree, 0, self.nodes[root].shift + 6);
            (self.nodes[above].slots[0], self.nodes[above].words) = (root, words);
            (self.nodes[root].parent, self.nodes[root].offset) = (above, 0);
            root = above;
        }
        self.trees[tree as usize].root = root;
        tree
    }

    fn add_below(&mut self, at: u32, offset: u32) -> u32 {
        let Node { tree, first, shift, .. } = self.nodes[at];
        let below = self.nodes.insert(tree, first + (offset << shift), shift - 6);
        (self.nodes[below].parent, self.nodes[below].offset) = (at, offset as u8);
        self.nodes[at].slots[offset as usize] = below;
        self.nodes.set(at, offset, word::USED);
        below
    }

    /// Returns the folio of a page.
    #[inline]
    pub(super) fn find(&self, inode: Inode, page: u64) -> Option<u32> {
        let page = u32::try_from(page).ok()?;
        let slot = self.nodes[self.leaf(inode, page)?].slots[offset_of(page) as usize];
        (slot < EMPTY).then_some(slot)
    }

    /// Returns the folio of a page; on a miss, prefetches for its insertion.
    #[inline]
    pub(super) fn find_or_prefetch(&self, inode: Inode, page: u64) -> Option<u32> {
        let page = u32::try_from(page).ok()?;
        let leaf = self.leaf(inode, page)?;
        let slot = self.nodes[leaf].slots[offset_of(page) as usize];
        if slot >= EMPTY {
            engine::prefetch(&self.nodes[leaf].words);
            return None;
        }
        Some(slot)
    }

    /// Prefetches for the removal of a page whose folio is in this leaf.
    #[inline]
    pub(super) fn prefetch(&self, leaf: u32, page: u64) {
        let node = &self.nodes[leaf];
        engine::prefetch(&node.slots[offset_of(page as u32) as usize]);
        engine::prefetch(&node.words);
    }

    /// Inserts a missing page. Returns its leaf, valid until the page is removed, and the shadow entry of its last
    /// reclaim.
    ///
    /// # Panics
    /// If the page number is 2^32 or above.
    #[inline]
    pub(super) fn insert(&mut self, inode: Inode, page: u64, folio: u32) -> (u32, Option<Shadow>) {
        let page = u32::try_from(page).expect("a file has at most 2^32 pages");
        let (leaf, offset) = (self.leaf_for(inode, page), offset_of(page));
        if self.nodes[leaf].is_shadows() {
            self.shadows.remove(&mut self.nodes, leaf);
        }
        let node = &mut self.nodes[leaf];
        let before = std::mem::replace(&mut node.slots[offset as usize], folio);
        debug_assert!(before >= EMPTY, "page {page} of {inode:?} is already in memory");
        self.trees[node.tree as usize].pages += 1;
        self.nodes.set(leaf, offset, word::USED);
        self.nodes.set(leaf, offset, word::PRESENT);
        (leaf, (before & SHADOW != 0).then_some(Shadow(before & !SHADOW)))
    }

    /// Removes a page from its leaf, with all of its tags; may leave a shadow entry.
    pub(super) fn remove(&mut self, leaf: u32, page: u64, shadow: Option<Shadow>) {
        let (offset, node) = (offset_of(narrow(page)), &mut self.nodes[leaf]);
        debug_assert!(node.slots[offset as usize] < EMPTY);
        let (tree, words) = (node.tree, node.words);
        node.slots[offset as usize] = shadow.map_or(EMPTY, |shadow| SHADOW | shadow.0);
        self.trees[tree as usize].pages -= 1;
        for tag in [word::DIRTY, word::WRITEBACK, word::TOWRITE] {
            if words[tag] >> offset & 1 == 1 {
                self.nodes.clear(leaf, offset, tag);
            }
        }
        self.nodes.clear(leaf, offset, word::PRESENT);
        if shadow.is_none() {
            self.nodes.clear(leaf, offset, word::USED);
        }
        self.settle(leaf);
    }

    /// Frees a leaf that has become empty; lists it if only shadow entries are left.
    fn settle(&mut self, leaf: u32) {
        if self.nodes[leaf].words[word::USED] == 0 {
            self.free(leaf);
        } else if self.nodes[leaf].is_shadows() {
            self.shadows.add(&mut self.nodes, leaf);
            if self.shadows.len() > self.shadows_most {
                let oldest = self.shadows.tail().expect("the list is longer than its bound");
                self.forget(oldest, u64::MAX);
            }
        }
    }

    /// Drops shadow entries of a leaf, given as bits.
    fn forget(&mut self, leaf: u32, bits: u64) {
        let node = &mut self.nodes[leaf];
        let was_shadows = node.is_shadows();
        let mut gone = node.words[word::USED] & !node.words[word::PRESENT] & bits;
        while gone != 0 {
            let offset = gone.trailing_zeros();
            gone &= gone - 1;
            self.nodes[leaf].slots[offset as usize] = EMPTY;
            self.nodes.clear(leaf, offset, word::USED);
        }
        if self.nodes[leaf].words[word::USED] == 0 {
            if was_shadows {
                self.shadows.remove(&mut self.nodes, leaf);
            }
            self.free(leaf);
        }
    }

    /// Frees an empty leaf and its empty ancestors.
    fn free(&mut self, leaf: u32) {
        let Node { tree, first, .. } = self.nodes[leaf];
        self.walks.remove(self.trees[tree as usize].inode, first);
        let mut at = leaf;
        loop {
            let Node { parent, offset, .. } = self.nodes[at];
            self.nodes.remove(at);
            if parent == NONE {
                self.files.remove(&self.trees[tree as usize].inode);
                self.free_trees.push(tree);
                return;
            }
            // The bit in its parent was cleared when its own word became zero.
            self.nodes[parent].slots[usize::from(offset)] = EMPTY;
            if self.nodes[parent].words[word::USED] != 0 {
                return;
            }
            at = parent;
        }
    }

    /// Drops the shadow entries of pages in `from..=to`.
    pub(super) fn forget_range(&mut self, inode: Inode, from: u64, to: u64) {
        let mut next = from;
        while let Some(page) = self.next(inode, next, word::USED).filter(|page| *page <= to) {
            let leaf = self.leaf(inode, narrow(page)).expect("the page was found in the index");
            let first = u64::from(self.nodes[leaf].first);
            let low = u64::MAX << from.saturating_sub(first).min(63);
            let high = u64::MAX >> (63 - (to - first).min(63));
            self.forget(leaf, low & high);
            next = first + 64;
        }
    }

    fn tree(&self, inode: Inode) -> Option<&Tree> {
        Some(&self.trees[*self.files.get(&inode)? as usize])
    }

    /// Pages of a file in memory.
    pub(super) fn pages(&self, inode: Inode) -> u64 {
        self.tree(inode).map_or(0, |tree| tree.pages)
    }

    /// Dirty pages of a file.
    pub(super) fn dirty(&self, inode: Inode) -> u64 {
        self.tree(inode).map_or(0, |tree| tree.dirty)
    }

    /// Pages of a file under write-back.
    pub(super) fn writeback(&self, inode: Inode) -> u64 {
        self.tree(inode).map_or(0, |tree| tree.writeback)
    }

    /// Adds to the counts of dirty pages and pages under write-back of a leaf's file.
    #[inline]
    pub(super) fn count(&mut self, leaf: u32, dirty: i64, writeback: i64) {
        let tree = &mut self.trees[self.nodes[leaf].tree as usize];
        tree.dirty = tree.dirty.wrapping_add_signed(dirty);
        tree.writeback = tree.writeback.wrapping_add_signed(writeback);
    }
}

// Cache of recently used leaves.

/// Minimum and maximum entries, of 16 bytes: one for each of many sequential readers; within the second-level cache of
/// a processor.
const FEWEST: u64 = 1 << 8;

const MOST: u64 = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    leaf: u32,
}

/// Empty entry: its page would be beyond the end of any file.
const NOTHING: Entry = Entry { key: u64::MAX, leaf: 0 };

/// Direct-mapped cache of walks from a root to a leaf. A sequential reader walks once for 64 pages; a random reader of
/// a mostly cached file rarely walks.
#[derive(Debug)]
struct WalkCache {
    entries: Box<[Cell<Entry>]>,
}

#[inline]
fn key(inode: Inode, page: u32) -> u64 {
    u64::from(inode.0) << 32 | u64::from(page >> 6)
}

impl WalkCache {
    /// Creates a cache for a memory of `pages` pages, with one entry for sixteen of them.
    fn new(pages: u64) -> WalkCache {
        let entries = (pages / 16).next_power_of_two().clamp(FEWEST, MOST);
        WalkCache { entries: vec![Cell::new(NOTHING); entries as usize].into() }
    }

    #[inline]
    fn entry(&self, key: u64) -> &Cell<Entry> {
        // Consecutive leaves of a file never collide; those of different files are spread.
        let spread = (key >> 32).wrapping_mul(0x9e37_79b9) >> 8;
        &self.entries[(key ^ spread) as usize & (self.entries.len() - 1)]
    }

    #[inline]
    fn get(&self, inode: Inode, page: u32) -> Option<u32> {
        let key = key(inode, page);
        let entry = self.entry(key).get();
        (entry.key == key).then_some(entry.leaf)
    }

    #[inline]
    fn put(&self, inode: Inode, page: u32, leaf: u32) {
        let key = key(inode, page);
        self.entry(key).set(Entry { key, leaf });
    }

    /// Drops the leaf that covers a page.
    fn remove(&self, inode: Inode, page: u32) {
        let key = key(inode, page);
        let entry = self.entry(key);
        if entry.get().key == key {
            entry.set(NOTHING);
        }
    }
}

// Invariants of the trees.

impl Index {
    /// Walks all trees.
    ///
    /// # Errors
    /// The violated invariant, with numbers.
    pub(in crate::pagecache) fn check(&self, folios: u64) -> Result<(), String> {
        let (mut nodes, mut pages, mut shadows) = (0, 0, 0);
        let mut files: Vec<u32> = self.files.values().copied().collect();
        files.sort_unstable();
        for tree in files.iter().map(|at| &self.trees[*at as usize]) {
            if self.nodes[tree.root].parent != NONE {
                return Err(format!("the root of {:?} has a parent", tree.inode));
            }
            let (below, shadow) = self.check_below(tree, tree.root, &mut nodes)?;
            if below != tree.pages {
                return Err(format!("{below} pages in tree {:?}, {} counted", tree.inode, tree.pages));
            }
            pages += below;
            shadows += shadow;
        }
        let (all, kept) = (self.nodes.len(), self.shadows.len());
        if nodes != all || pages != folios || shadows != kept || kept > self.shadows_most {
            return Err(format!(
                "{nodes} of {all} nodes reached, {pages} pages in {folios} folios, {shadows} of {kept} shadow leaves reached"
            ));
        }
        Ok(())
    }

    /// Counts pages below a node, and leaves with only shadow entries.
    fn check_below(&self, tree: &Tree, at: u32, nodes: &mut usize) -> Result<(u64, u64), String> {
        let node = &self.nodes[at];
        *nodes += 1;
        let (mut pages, mut shadows, mut words) = (0, 0, [0; word::COUNT]);
        for (offset, &slot) in (0..).zip(&node.slots) {
            let bit = 1 << offset;
            if slot == EMPTY {
                continue;
            }
            words[word::USED] |= bit;
            if node.shift == 0 {
                let present = slot & SHADOW == 0;
                words[word::PRESENT] |= if present { bit } else { 0 };
                pages += u64::from(present);
                continue;
            }
            let below = &self.nodes[slot];
            if below.parent != at || u32::from(below.offset) != offset || below.shift + 6 != node.shift {
                return Err(format!("a child node of {:?} has a wrong parent, offset or level", tree.inode));
            }
            for (word, below) in words.iter_mut().zip(&below.words).skip(1) {
                *word |= if *below != 0 { bit } else { 0 };
            }
            let (more, leaves) = self.check_below(tree, slot, nodes)?;
            (pages, shadows) = (pages + more, shadows + leaves);
        }
        let known = if node.shift == 0 { 2 } else { word::COUNT };
        let tags = node.words[2] | node.words[3] | node.words[4];
        if node.words[..known] != words[..known] || node.words[0] == 0 || tags & !node.words[1] != 0 {
            return Err(format!("bit words of a node of {:?} do not match its slots", tree.inode));
        }
        Ok((pages, shadows + u64::from(node.is_shadows())))
    }
}
