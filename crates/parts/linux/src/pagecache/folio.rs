//! Folios: pages of memory that hold pages of files.

use super::list::{Linked, Links, NONE};
use crate::Inode;

/// A page of memory that holds a page of a file, until it is removed; then its name is used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Folio(pub u32);

/// Marks of a folio, by the names of `include/linux/page-flags.h` without `PG_`.
pub(super) mod flag {
    pub(in crate::pagecache) const LOCKED: u32 = 1;
    pub(in crate::pagecache) const UPTODATE: u32 = 1 << 1;
    pub(in crate::pagecache) const DIRTY: u32 = 1 << 2;
    pub(in crate::pagecache) const WRITEBACK: u32 = 1 << 3;
    pub(in crate::pagecache) const REFERENCED: u32 = 1 << 4;
    pub(in crate::pagecache) const ACTIVE: u32 = 1 << 5;
    pub(in crate::pagecache) const WORKINGSET: u32 = 1 << 6;
    /// `PG_readahead` is the same bit: a folio under write-back that reclaim waits for, or the marker of a read-ahead.
    pub(in crate::pagecache) const RECLAIM: u32 = 1 << 7;
    /// Mapped into an address space (`folio_mapped`).
    pub(in crate::pagecache) const MAPPED: u32 = 1 << 8;
    /// The accessed bit of its page table entry.
    pub(in crate::pagecache) const YOUNG: u32 = 1 << 9;
    /// Read ahead, and not accessed since.
    pub(in crate::pagecache) const AHEAD: u32 = 1 << 10;
    /// In use: holds a page.
    pub(in crate::pagecache) const LIVE: u32 = 1 << 11;
    /// Where the multi-generational policy keeps the generation, plus one, in three bits (`LRU_GEN_MASK`).
    pub(in crate::pagecache) const GEN_SHIFT: u32 = 16;
    pub(in crate::pagecache) const GEN_MASK: u32 = 7 << GEN_SHIFT;
    /// Where it keeps accesses beyond the second, in two bits (`LRU_REFS_MASK`).
    pub(in crate::pagecache) const REFS_SHIFT: u32 = 20;
    pub(in crate::pagecache) const REFS_MASK: u32 = 3 << REFS_SHIFT;
}

/// What is looked at when a folio comes, moves or leaves.
#[derive(Clone, Copy, Debug)]
struct Record {
    links: Links,
    inode: Inode,
    page: u32,
    version: u32,
    /// Where the index has the page.
    leaf: u32,
}

/// All folios. What is looked at together lies together: a hit reads marks only, four bytes a folio.
#[derive(Debug, Default)]
pub(super) struct Folios {
    flags: Vec<u32>,
    records: Vec<Record>,
    free: Vec<u32>,
}

impl Linked for Folios {
    #[inline]
    fn links(&self, at: u32) -> Links {
        self.records[at as usize].links
    }
    #[inline]
    fn links_mut(&mut self, at: u32) -> &mut Links {
        &mut self.records[at as usize].links
    }
}

impl Folios {
    /// A folio for a page, with these marks; its leaf is said [later](Folios::set_leaf).
    #[inline]
    pub(super) fn take(&mut self, inode: Inode, page: u32, flags: u32) -> u32 {
        let record = Record { links: Links::NONE, inode, page, version: 0, leaf: NONE };
        if let Some(at) = self.free.pop() {
            (self.flags[at as usize], self.records[at as usize]) = (flags | flag::LIVE, record);
            return at;
        }
        let at = self.flags.len() as u32;
        self.flags.push(flags | flag::LIVE);
        self.records.push(record);
        at
    }

    /// A folio holds no page any more.
    #[inline]
    pub(super) fn give(&mut self, at: u32) {
        debug_assert!(self.has(at, flag::LIVE), "freed twice: {at}");
        self.flags[at as usize] = 0;
        self.free.push(at);
    }

    /// Folios that hold a page.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        (self.flags.len() - self.free.len()) as u64
    }

    /// Every folio that holds a page.
    pub(super) fn live(&self) -> impl Iterator<Item = u32> {
        (0..self.flags.len() as u32).filter(|at| self.has(*at, flag::LIVE))
    }

    #[inline]
    pub(super) fn owner(&self, at: u32) -> (Inode, u64) {
        let Record { inode, page, .. } = self.records[at as usize];
        (inode, page.into())
    }

    /// Where the index has the page of a folio: the leaf, and the page.
    #[inline]
    pub(super) fn slot(&self, at: u32) -> (u32, u64) {
        let Record { leaf, page, .. } = self.records[at as usize];
        (leaf, page.into())
    }

    #[inline]
    pub(super) fn set_leaf(&mut self, at: u32, leaf: u32) {
        self.records[at as usize].leaf = leaf;
    }

    #[inline]
    pub(super) fn version(&self, at: u32) -> u32 {
        self.records[at as usize].version
    }

    #[inline]
    pub(super) fn set_version(&mut self, at: u32, version: u32) {
        self.records[at as usize].version = version;
    }

    /// The marks of a folio will be looked at.
    #[inline]
    pub(super) fn prefetch(&self, at: u32) {
        engine::prefetch(&self.flags[at as usize]);
    }

    /// All marks.
    #[inline]
    pub(super) fn flags(&self, at: u32) -> u32 {
        self.flags[at as usize]
    }

    #[inline]
    pub(super) fn flags_mut(&mut self, at: u32) -> &mut u32 {
        &mut self.flags[at as usize]
    }

    /// Whether it has one of these marks.
    #[inline]
    pub(super) fn has(&self, at: u32, flags: u32) -> bool {
        self.flags[at as usize] & flags != 0
    }

    #[inline]
    pub(super) fn set(&mut self, at: u32, flags: u32) {
        self.flags[at as usize] |= flags;
    }

    #[inline]
    pub(super) fn clear(&mut self, at: u32, flags: u32) {
        self.flags[at as usize] &= !flags;
    }

    /// Whether it had one of these marks, which it has no more.
    #[inline]
    pub(super) fn take_flag(&mut self, at: u32, flags: u32) -> bool {
        let had = self.has(at, flags);
        self.clear(at, flags);
        had
    }
}
