//! Folios: pages of memory that hold pages of files. Their marks, and the tags of their pages that go with them.

use super::{
    PageCache, Run, Tag,
    list::{Linked, Links, NONE},
};
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

// Marks of folios, and the tags of their pages that go with them.

impl PageCache {
    /// The file and the page of it that a folio holds.
    #[inline]
    pub fn owner(&self, folio: Folio) -> (Inode, u64) {
        self.core.folios.owner(folio.0)
    }

    /// The version of the data in a folio; zero when it was inserted. The cache only keeps it.
    #[inline]
    pub fn version(&self, folio: Folio) -> u32 {
        self.core.folios.version(folio.0)
    }

    /// The data in a folio have this version.
    #[inline]
    pub fn set_version(&mut self, folio: Folio, version: u32) {
        self.core.folios.set_version(folio.0, version);
    }

    /// `PG_uptodate`: the data are there.
    #[inline]
    pub fn is_uptodate(&self, folio: Folio) -> bool {
        self.core.folios.has(folio.0, flag::UPTODATE)
    }

    /// The data are there.
    #[inline]
    pub fn set_uptodate(&mut self, folio: Folio) {
        self.core.folios.set(folio.0, flag::UPTODATE);
    }

    /// `PG_locked`: somebody reads its data, or changes them; it does not leave.
    #[inline]
    pub fn is_locked(&self, folio: Folio) -> bool {
        self.core.folios.has(folio.0, flag::LOCKED)
    }

    /// Takes the lock of a folio that is not locked.
    #[inline]
    pub fn lock(&mut self, folio: Folio) {
        debug_assert!(!self.is_locked(folio), "locked twice");
        self.core.folios.set(folio.0, flag::LOCKED);
    }

    /// Gives the lock of a folio back. Whoever waits for it is the caller's business.
    #[inline]
    pub fn unlock(&mut self, folio: Folio) {
        debug_assert!(self.is_locked(folio), "unlocked twice");
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

    /// Whether it is on the active list, or in one of the two youngest generations.
    pub fn is_active(&self, folio: Folio) -> bool {
        self.reclaim.is_active(&self.core, folio.0)
    }

    /// `PG_workingset`: it was active once (two lists), or was used twice (generations).
    pub fn is_workingset(&self, folio: Folio) -> bool {
        self.core.folios.has(folio.0, flag::WORKINGSET)
    }

    /// `PG_readahead`: who reads this page asks for more ([`async_ra`](PageCache::async_ra)). The bit is that of `PG_reclaim`, as in the kernel: a
    /// dirty page that reclaim has marked is taken for a marker once it is read.
    #[inline]
    pub fn is_readahead(&self, folio: Folio) -> bool {
        self.core.folios.has(folio.0, flag::RECLAIM)
    }

    /// The folio becomes the marker of a read-ahead.
    #[inline]
    pub fn set_readahead(&mut self, folio: Folio) {
        self.core.folios.set(folio.0, flag::RECLAIM);
    }

    /// Whether it is mapped into an address space.
    #[inline]
    pub fn is_mapped(&self, folio: Folio) -> bool {
        self.core.folios.has(folio.0, flag::MAPPED)
    }

    /// A fault has mapped it, and uses it. The mapping ends when it leaves.
    #[inline]
    pub fn map(&mut self, folio: Folio) {
        self.core.use_ahead(folio.0);
        self.core.folios.set(folio.0, flag::MAPPED | flag::YOUNG);
    }

    /// A load or store of a mapped page, without a fault: the processor marks the page table entry.
    #[inline]
    pub fn touch(&mut self, folio: Folio) {
        debug_assert!(self.is_mapped(folio));
        self.core.use_ahead(folio.0);
        self.core.folios.set(folio.0, flag::YOUNG);
    }

    /// Its data are newer than the drive's (`filemap_dirty_folio`). Whether they were not before.
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

    /// Its data are about to be written (`folio_clear_dirty_for_io`): a store from now on makes it dirty again. Whether it was dirty. The tag
    /// stays until the [write-back begins](PageCache::start_writeback).
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

    /// Its data are being written (`__folio_start_writeback`, without `keep_write`).
    #[inline]
    pub fn start_writeback(&mut self, folio: Folio) {
        let core = &mut self.core;
        debug_assert!(!core.folios.has(folio.0, flag::WRITEBACK), "one write-back at a time");
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

    /// Its data have been written (`folio_end_writeback`). One that reclaim waits for comes to the end of its list
    /// (`folio_rotate_reclaimable`).
    #[inline]
    pub fn end_writeback(&mut self, folio: Folio) {
        let core = &mut self.core;
        debug_assert!(core.folios.has(folio.0, flag::WRITEBACK), "ended twice");
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

    /// Dirty pages of a file from `from` on, to `to` inclusive, are those that a write-back will write (`tag_pages_for_writeback`).
    pub fn tag_towrite(&mut self, inode: Inode, from: u64, to: u64) {
        self.core.index.tag_towrite(inode, from, to);
    }

    /// The first page of a file from `from` on that has a tag, and its folio.
    #[inline]
    pub fn next_tagged(&self, inode: Inode, from: u64, tag: Tag) -> Option<(u64, Folio)> {
        let page = self.core.index.next_tagged(inode, from, tag)?;
        Some((page, self.find(inode, page)?))
    }

    /// Appends the runs of pages with a tag among those from `from` on, to `to` inclusive, until they are `most` pages.
    pub fn tagged_runs(&self, inode: Inode, from: u64, to: u64, tag: Tag, most: u64, runs: &mut Vec<Run>) {
        self.core.index.tagged_runs(inode, (from, to), tag, most, runs);
    }

    /// The first page of a file from `from` on that is in memory.
    pub fn next_present(&self, inode: Inode, from: u64) -> Option<u64> {
        self.core.index.next_present(inode, from)
    }

    /// The first page of a file from `from` on, to `to` inclusive, that is not in memory.
    pub fn next_missing(&self, inode: Inode, from: u64, to: u64) -> Option<u64> {
        self.core.index.next_missing(inode, from, to)
    }

    /// Appends the runs of pages that are not in memory among `pages` from `first` on.
    pub fn missing_runs(&self, inode: Inode, first: u64, pages: u64, runs: &mut Vec<Run>) {
        self.core.index.missing_runs(inode, first, pages, runs);
    }
}

// Pages that leave because somebody says so.

impl PageCache {
    /// A folio leaves, whatever it holds; it is not under write-back.
    pub fn remove(&mut self, folio: Folio) {
        debug_assert!(!self.is_writeback(folio), "a write-back is waited for");
        self.reclaim.remove(&mut self.core, folio.0);
        self.core.drop_folio(folio.0, None);
        self.core.stats.removed += 1;
    }

    /// The pages of a file from `from` on leave (`truncate_inode_pages`), and nothing is remembered of them; dirty data are lost, as they should
    /// be. Each is told to `gone` before it leaves. Those that are locked or under write-back stay: the first of them is answered, to be waited for
    /// before the next call.
    pub fn truncate(
        &mut self,
        inode: Inode,
        from: u64,
        mut gone: impl FnMut(&PageCache, u64, Folio),
    ) -> Option<Folio> {
        let (mut next, mut stays) = (from, None);
        while let Some(page) = self.next_present(inode, next) {
            let folio = self.find(inode, page).expect("it is present");
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

    /// Pages of a file from `from` on, to `to` inclusive, leave if they are clean, unlocked and not mapped (`invalidate_mapping_pages`); how many
    /// did. The others, if unlocked, are the next that reclaim looks at (`deactivate_file_folio`).
    pub fn invalidate(&mut self, inode: Inode, from: u64, to: u64) -> u64 {
        let (mut next, mut count) = (from, 0);
        while let Some(page) = self.next_present(inode, next).filter(|page| *page <= to) {
            let folio = self.find(inode, page).expect("it is present");
            let flags = self.core.folios.flags(folio.0);
            next = page + 1;
            // `find_lock_entries` passes over those too.
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

    /// The same for pages that a direct write makes old: mapped ones leave, too (`invalidate_inode_pages2_range`), and dirty ones stay. One
    /// that is locked or under write-back is answered, to be waited for before the next call.
    pub fn invalidate2(&mut self, inode: Inode, from: u64, to: u64) -> Option<Folio> {
        let mut next = from;
        while let Some(page) = self.next_present(inode, next).filter(|page| *page <= to) {
            let folio = self.find(inode, page).expect("it is present");
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
