//! Folios: memory pages that hold file pages, their flags, and the tags of their pages.

use super::{
    PageCache, Run, Tag,
    list::{Linked, Links, NONE},
};
use crate::Inode;

/// Memory page that holds a file page, until it is removed; then its number is reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Folio(pub u32);

/// Flags of a folio, named as in `include/linux/page-flags.h` without `PG_`.
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
    /// Accessed bit of its page table entry.
    pub(in crate::pagecache) const YOUNG: u32 = 1 << 9;
    /// Read ahead, and not accessed since.
    pub(in crate::pagecache) const AHEAD: u32 = 1 << 10;
    /// In use: holds a page.
    pub(in crate::pagecache) const LIVE: u32 = 1 << 11;
    /// Position of the generation, plus one, in three bits (`LRU_GEN_MASK`); multi-generational policy.
    pub(in crate::pagecache) const GEN_SHIFT: u32 = 16;
    pub(in crate::pagecache) const GEN_MASK: u32 = 7 << GEN_SHIFT;
    /// Position of the accesses beyond the second, in two bits (`LRU_REFS_MASK`).
    pub(in crate::pagecache) const REFS_SHIFT: u32 = 20;
    pub(in crate::pagecache) const REFS_MASK: u32 = 3 << REFS_SHIFT;
}

/// Data of a folio used when it is inserted, moved or removed.
#[derive(Clone, Copy, Debug)]
struct Record {
    links: Links,
    inode: Inode,
    page: u32,
    version: u32,
    /// Index leaf that holds the page.
    leaf: u32,
}

/// All folios. Flags are stored apart from the records, so that a hit reads four bytes a folio.
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
    /// Allocates a folio for a page, with these flags; its leaf is set [later](Folios::set_leaf).
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

    /// Frees a folio.
    #[inline]
    pub(super) fn give(&mut self, at: u32) {
        debug_assert!(self.has(at, flag::LIVE), "folio {at} freed twice");
        self.flags[at as usize] = 0;
        self.free.push(at);
    }

    /// Number of folios that hold a page.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        (self.flags.len() - self.free.len()) as u64
    }

    /// Folios that hold a page.
    pub(super) fn live(&self) -> impl Iterator<Item = u32> {
        (0..self.flags.len() as u32).filter(|at| self.has(*at, flag::LIVE))
    }

    #[inline]
    pub(super) fn owner(&self, at: u32) -> (Inode, u64) {
        let Record { inode, page, .. } = self.records[at as usize];
        (inode, page.into())
    }

    /// Index position of a folio's page: the leaf, and the page.
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

    /// Prefetches the flags of a folio.
    #[inline]
    pub(super) fn prefetch(&self, at: u32) {
        engine::prefetch(&self.flags[at as usize]);
    }

    /// Flags of a folio.
    #[inline]
    pub(super) fn flags(&self, at: u32) -> u32 {
        self.flags[at as usize]
    }

    #[inline]
    pub(super) fn flags_mut(&mut self, at: u32) -> &mut u32 {
        &mut self.flags[at as usize]
    }

    /// Returns whether a folio has one of these flags.
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

    /// Clears these flags; returns whether one of them was set.
    #[inline]
    pub(super) fn take_flag(&mut self, at: u32, flags: u32) -> bool {
        let had = self.has(at, flags);
        self.clear(at, flags);
        had
    }
}

// Flags of folios, and the tags of their pages.

impl PageCache {
    /// File and page held by a folio.
    #[inline]
    pub fn owner(&self, folio: Folio) -> (Inode, u64) {
        self.core.folios.owner(folio.0)
    }

    /// Version of a folio's data; zero after insertion. The cache only stores it.
    #[inline]
    pub fn version(&self, folio: Folio) -> u32 {
        self.core.folios.version(folio.0)
    }

    /// Sets the version of a folio's data.
    #[inline]
    pub fn set_version(&mut self, folio: Folio, version: u32) {
        self.core.folios.set_version(folio.0, version);
    }

    /// Returns whether the data have been read (`PG_uptodate`).
    #[inline]
    pub fn is_uptodate(&self, folio: Folio) -> bool {
        self.core.folios.has(folio.0, flag::UPTODATE)
    }

    /// Marks the data as present.
    #[inline]
    pub fn set_uptodate(&mut self, folio: Folio) {
        self.core.folios.set(folio.0, flag::UPTODATE);
    }

    /// Returns whether the data are being read or changed (`PG_locked`); a locked folio is not evicted.
    #[inline]
    pub fn is_locked(&self, folio: Folio) -> bool {
        self.core.folios.has(folio.0, flag::LOCKED)
    }

    /// Locks an unlocked folio.
    #[inline]
    pub fn lock(&mut self, folio: Folio) {
        debug_assert!(!self.is_locked(folio), "folio locked twice");
        self.core.folios.set(folio.0, flag::LOCKED);
    }

    /// Unlocks a folio. The caller wakes its waiters.
    #[inline]
    pub fn unlock(&mut self, folio: Folio) {
        debug_assert!(self.is_locked(folio), "folio unlocked twice");
        self.core.folios.clear(folio.0, flag::LOCKED);
    }

    /// `PG_dirty`.
    #[inline]
    pub fn is_dirty(&self, folio: Folio) -> bool {
        self.core.folios.has(folio.0, flag::DIRTY)
    }

    /// `PG_writeback`.
    #[inline]
    pub fn is_writeback(&self, folio: Folio) -> bool {
        self.core.folios.has(folio.0, flag::WRITEBACK)
    }

    /// `PG_referenced`.
    pub fn is_referenced(&self, folio: Folio) -> bool {
        self.core.folios.has(folio.0, flag::REFERENCED)
    }

    /// Returns whether a folio is on the active list, or in one of the two youngest generations.
    pub fn is_active(&self, folio: Folio) -> bool {
        self.reclaim.is_active(&self.core, folio.0)
    }

    /// Returns whether a folio was active once (two lists), or used twice (generations) (`PG_workingset`).
    pub fn is_workingset(&self, folio: Folio) -> bool {
        self.core.folios.has(folio.0, flag::WORKINGSET)
    }

    /// `PG_readahead`: a reader of this page asks for more ([`async_ra`](PageCache::async_ra)). The bit is that of
    /// `PG_reclaim`, as in the kernel: a dirty page that reclaim has marked is taken for a marker once it is read.
    #[inline]
    pub fn is_readahead(&self, folio: Folio) -> bool {
        self.core.folios.has(folio.0, flag::RECLAIM)
    }

    /// Makes a folio the marker of a read-ahead.
    #[inline]
    pub fn set_readahead(&mut self, folio: Folio) {
        self.core.folios.set(folio.0, flag::RECLAIM);
    }

    /// Returns whether a folio is mapped into an address space.
    #[inline]
    pub fn is_mapped(&self, folio: Folio) -> bool {
        self.core.folios.has(folio.0, flag::MAPPED)
    }

    /// Maps a folio after a fault, and marks it used. The mapping ends when the folio is removed.
    #[inline]
    pub fn map(&mut self, folio: Folio) {
        self.core.use_ahead(folio.0);
        self.core.folios.set(folio.0, flag::MAPPED | flag::YOUNG);
    }

    /// Marks the page table entry of a mapped page as accessed: a load or store without a fault.
    #[inline]
    pub fn touch(&mut self, folio: Folio) {
        debug_assert!(self.is_mapped(folio));
        self.core.use_ahead(folio.0);
        self.core.folios.set(folio.0, flag::YOUNG);
    }

    /// Marks a folio dirty (`filemap_dirty_folio`); returns whether it was clean before.
    #[inline]
    pub fn set_dirty(&mut self, folio: Folio) -> bool {
        let core = &mut self.core;
        core.use_ahead(folio.0);
        let flags = core.folios.flags_mut(folio.0);
        let before = *flags;
        *flags = (before | flag::DIRTY) & !flag::RECLAIM;
        if before & flag::DIRTY != 0 {
            return false;
        }
        let (leaf, page) = core.folios.slot(folio.0);
        core.index.set_tag(leaf, page, Tag::Dirty, true);
        core.index.count(leaf, 1, 0);
        core.nr_dirty += 1;
        core.stats.dirtied += 1;
        true
    }

    /// Clears the dirty flag before a write (`folio_clear_dirty_for_io`); a later store makes the folio dirty again.
    /// Returns whether it was dirty. The tag stays until the [write-back begins](PageCache::start_writeback).
    #[inline]
    pub fn clear_dirty_for_io(&mut self, folio: Folio) -> bool {
        let core = &mut self.core;
        if !core.folios.take_flag(folio.0, flag::DIRTY) {
            return false;
        }
        let (leaf, _) = core.folios.slot(folio.0);
        core.index.count(leaf, -1, 0);
        core.nr_dirty -= 1;
        true
    }

    /// Begins the write-back of a folio (`__folio_start_writeback`, without `keep_write`).
    #[inline]
    pub fn start_writeback(&mut self, folio: Folio) {
        let core = &mut self.core;
        debug_assert!(!core.folios.has(folio.0, flag::WRITEBACK), "folio is already under write-back");
        core.folios.set(folio.0, flag::WRITEBACK);
        let (leaf, page) = core.folios.slot(folio.0);
        core.index.set_tag(leaf, page, Tag::Writeback, true);
        if !core.folios.has(folio.0, flag::DIRTY) {
            core.index.set_tag(leaf, page, Tag::Dirty, false);
        }
        core.index.set_tag(leaf, page, Tag::ToWrite, false);
        core.index.count(leaf, 0, 1);
        core.nr_writeback += 1;
    }

    /// Ends the write-back of a folio (`folio_end_writeback`). A folio that reclaim waits for moves to the end of its
    /// list (`folio_rotate_reclaimable`).
    #[inline]
    pub fn end_writeback(&mut self, folio: Folio) {
        let core = &mut self.core;
        debug_assert!(core.folios.has(folio.0, flag::WRITEBACK), "folio is not under write-back");
        if core.folios.take_flag(folio.0, flag::RECLAIM)
            && !core.folios.has(folio.0, flag::LOCKED | flag::DIRTY)
        {
            self.reclaim.rotate(core, folio.0);
            core.stats.rotated += 1;
        }
        core.folios.clear(folio.0, flag::WRITEBACK);
        let (leaf, page) = core.folios.slot(folio.0);
        core.index.set_tag(leaf, page, Tag::Writeback, false);
        core.index.count(leaf, 0, -1);
        core.nr_writeback -= 1;
        core.stats.written += 1;
    }

    /// Tags dirty pages of a file in `from..=to` for the next write-back (`tag_pages_for_writeback`).
    pub fn tag_towrite(&mut self, inode: Inode, from: u64, to: u64) {
        self.core.index.tag_towrite(inode, from, to);
    }

    /// First page of a file at or after `from` with a tag, and its folio.
    #[inline]
    pub fn next_tagged(&self, inode: Inode, from: u64, tag: Tag) -> Option<(u64, Folio)> {
        let page = self.core.index.next_tagged(inode, from, tag)?;
        Some((page, self.find(inode, page)?))
    }

    /// Appends runs of tagged pages in `from..=to`, up to `most` pages in total.
    pub fn tagged_runs(&self, inode: Inode, from: u64, to: u64, tag: Tag, most: u64, runs: &mut Vec<Run>) {
        self.core.index.tagged_runs(inode, (from, to), tag, most, runs);
    }

    /// First page of a file at or after `from` that is in memory.
    pub fn next_present(&self, inode: Inode, from: u64) -> Option<u64> {
        self.core.index.next_present(inode, from)
    }

    /// First page of a file in `from..=to` that is not in memory.
    pub fn next_missing(&self, inode: Inode, from: u64, to: u64) -> Option<u64> {
        self.core.index.next_missing(inode, from, to)
    }

    /// Appends the runs of pages not in memory among `pages` pages from `first` on.
    pub fn missing_runs(&self, inode: Inode, first: u64, pages: u64, runs: &mut Vec<Run>) {
        self.core.index.missing_runs(inode, first, pages, runs);
    }
}

// Explicit removal of pages.

impl PageCache {
    /// Removes a folio, whatever it holds; it must not be under write-back.
    pub fn remove(&mut self, folio: Folio) {
        debug_assert!(!self.is_writeback(folio), "folio removed under write-back");
        self.reclaim.remove(&mut self.core, folio.0);
        self.core.drop_folio(folio.0, None);
        self.core.stats.removed += 1;
    }

    /// Removes the pages of a file from `from` on (`truncate_inode_pages`), without shadow entries; dirty data are
    /// lost, as intended. Each page is passed to `gone` before it is removed. Pages that are locked or under write-back
    /// stay: the first of them is returned, to be waited for before the next call.
    pub fn truncate(
        &mut self,
        inode: Inode,
        from: u64,
        mut gone: impl FnMut(&PageCache, u64, Folio),
    ) -> Option<Folio> {
        let (mut next, mut stays) = (from, None);
        while let Some(page) = self.next_present(inode, next) {
            let folio = self.find(inode, page).expect("a present page has a folio");
            if self.core.folios.has(folio.0, flag::LOCKED | flag::WRITEBACK) {
                stays = stays.or(Some(folio));
            } else {
                gone(self, page, folio);
                self.remove(folio);
            }
            next = page + 1;
        }
        self.core.index.forget_range(inode, from, u32::MAX.into());
        stays
    }

    /// Removes pages of a file in `from..=to` that are clean, unlocked and not mapped (`invalidate_mapping_pages`);
    /// returns their number. The others, if unlocked, are next in line for reclaim (`deactivate_file_folio`).
    pub fn invalidate(&mut self, inode: Inode, from: u64, to: u64) -> u64 {
        let (mut next, mut count) = (from, 0);
        while let Some(page) = self.next_present(inode, next).filter(|page| *page <= to) {
            let folio = self.find(inode, page).expect("a present page has a folio");
            let flags = self.core.folios.flags(folio.0);
            next = page + 1;
            // `find_lock_entries` skips those as well.
            if flags & (flag::LOCKED | flag::WRITEBACK) != 0 {
                continue;
            }
            if flags & (flag::DIRTY | flag::MAPPED) == 0 {
                self.remove(folio);
                count += 1;
            } else if flags & flag::MAPPED == 0 {
                self.reclaim.deactivate(&mut self.core, folio.0);
            }
        }
        self.core.index.forget_range(inode, from, to);
        count
    }

    /// Removes pages that a direct write makes stale: mapped ones too (`invalidate_inode_pages2_range`), but not dirty
    /// ones. Returns a page that is locked or under write-back, to be waited for before the next call.
    pub fn invalidate2(&mut self, inode: Inode, from: u64, to: u64) -> Option<Folio> {
        let mut next = from;
        while let Some(page) = self.next_present(inode, next).filter(|page| *page <= to) {
            let folio = self.find(inode, page).expect("a present page has a folio");
            let flags = self.core.folios.flags(folio.0);
            if flags & (flag::LOCKED | flag::WRITEBACK) != 0 {
                return Some(folio);
            }
            if flags & flag::DIRTY == 0 {
                self.remove(folio);
            }
            next = page + 1;
        }
        self.core.index.forget_range(inode, from, to);
        None
    }
}
