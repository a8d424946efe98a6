//! The page cache: which pages of files are in memory, clean or dirty, and which leave. It knows no time.
//!
//! It follows Linux 6.1: `mm/filemap.c`, `mm/page-writeback.c` (marks and tags), `mm/truncate.c`, `mm/readahead.c`, `mm/swap.c`, `mm/vmscan.c`,
//! `mm/workingset.c`. Who drives it reads a file so (`filemap_read`):
//!
//! 1. [`lookup`](PageCache::lookup) of the first page. If it is missing, [`sync_ra`](PageCache::sync_ra) plans what is read; the caller
//!    [inserts](PageCache::insert) what [is missing](PageCache::missing_runs) of the plan, sets the marker where the plan says, and reads.
//! 2. If the folio has the marker ([`is_readahead`](PageCache::is_readahead)), [`async_ra`](PageCache::async_ra) plans more.
//! 3. When it is [up to date](PageCache::is_uptodate): [`mark_accessed`](PageCache::mark_accessed), the copy.
//!
//! Before an insertion [`pressure`](PageCache::pressure) says who has to make room: nobody, `kswapd`, or the task itself. Each calls
//! [`reclaim`](PageCache::reclaim) round after round.
//!
//! Where it differs from the kernel:
//!
//! * Folios are single pages, as ext4 has them in 6.1.
//! * There are no batches of folios for each processor (`cpu_fbatches`): what joins or changes a list does so at once.
//! * There is one node with one zone, no control group, no anonymous memory. The memory is what the cache may take.
//! * A page table entry is two marks of the folio: mapped, and accessed.
//! * Pages whose inode is gone are removed by the caller ([`truncate`](PageCache::truncate)).
//!
//! Bounds: folios by memory, shadow entries by an eighth of it.

mod check;
mod core;
mod folio;
mod index;
mod list;
mod marks;
pub mod readahead;
pub mod reclaim;
mod removal;
mod spec;
mod stats;
#[cfg(test)]
mod tests;
mod watermarks;

pub use folio::Folio;
pub use index::{Run, Tag};
pub use readahead::{FileRa, Plan};
pub use reclaim::{Next, Reclaimed, ScanControl, Throttle};
pub use spec::PageCacheSpec;
pub use stats::PageCacheStats;
pub use watermarks::Watermarks;

use crate::Inode;
use config::SpecError;
use core::{Core, NodeState};
use folio::{Folios, flag};
use index::Index;
use readahead::ReadAhead;
use reclaim::Reclaim;

/// Why a page comes to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A read asked for it.
    Read,
    /// A read asked for others nearby.
    ReadAhead,
    /// A write covers it: data that were reclaimed and are written anew are no sign of a working set.
    Write,
    /// A fault of a mapping asked for it. (Of one that `madvise` called sequential or random, it is a [`Read`](Cause::Read): `lru_gen_enter_fault`.)
    Fault,
    /// A fault asked for others nearby.
    FaultAhead,
}

impl Cause {
    fn is_ahead(self) -> bool {
        matches!(self, Cause::ReadAhead | Cause::FaultAhead)
    }
    fn is_fault(self) -> bool {
        matches!(self, Cause::Fault | Cause::FaultAhead)
    }
}

/// Who has to make room before a page can be inserted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Pressure {
    /// Nobody.
    None,
    /// `kswapd`: at most the low watermark is free. The page can be inserted.
    Kswapd,
    /// The task (direct reclaim), and `kswapd`: at most the min watermark is free.
    Direct,
}

/// The page cache of a host.
pub struct PageCache {
    core: Core,
    reclaim: Box<dyn Reclaim>,
    readahead: Box<dyn ReadAhead>,
}

impl PageCache {
    /// An empty cache that may take so many pages of memory, fewer than 2^31.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key.
    pub fn new(spec: &PageCacheSpec, pages: u64) -> Result<PageCache, SpecError> {
        spec.check(pages)?;
        if pages >= (1 << 31) - 1 {
            return Err(SpecError::new("memory", format!("{pages} pages of 4KiB are more than 2^31 - 2")));
        }
        let core = Core {
            folios: Folios::default(),
            index: Index::new(pages),
            stats: PageCacheStats::default(),
            watermarks: Watermarks::new(spec, pages),
            node: NodeState::default(),
            pages,
            nr_dirty: 0,
            nr_writeback: 0,
            keeps_shadows: spec.workingset,
            pageout: Vec::new(),
        };
        Ok(PageCache { core, reclaim: spec.reclaim.build(&()), readahead: spec.readahead.build(&()) })
    }

    /// The folio of a page, without counting.
    #[inline]
    pub fn find(&self, inode: Inode, page: u64) -> Option<Folio> {
        self.core.index.find(inode, page).map(Folio)
    }

    /// The folio of a page that is asked for; counts hits and misses.
    #[inline]
    pub fn lookup(&mut self, inode: Inode, page: u64) -> Option<Folio> {
        let found = self.seek(inode, page);
        self.count_lookup(found);
        found
    }

    /// The folio of a page, without counting; if there is none, one is about to come.
    #[inline]
    pub fn seek(&self, inode: Inode, page: u64) -> Option<Folio> {
        self.core.index.find_or_prefetch(inode, page).map(Folio)
    }

    /// Counts a hit or a miss: what was found was asked for.
    #[inline]
    pub fn count_lookup(&mut self, found: Option<Folio>) {
        let stats = &mut self.core.stats;
        match found {
            None => stats.misses += 1,
            Some(folio) if self.core.folios.has(folio.0, flag::UPTODATE) => stats.hits += 1,
            Some(_) => stats.hits_under_read += 1,
        }
    }

    /// A page that is missing comes to a folio: locked and not up to date (`filemap_add_folio`). It is inactive, unless it was reclaimed not
    /// long ago; a fault's is in the youngest generation where there are such.
    ///
    /// # Panics
    /// If the page is the 2^32nd of its file or one behind it: files have at most 16 TiB, as ext4's. If no page of memory is free (debug builds).
    #[inline]
    pub fn insert(&mut self, inode: Inode, page: u64, cause: Cause) -> Folio {
        debug_assert!(self.core.free() > 0, "the caller makes room");
        let ahead = if cause.is_ahead() { flag::AHEAD } else { 0 };
        self.core.stats.read_ahead += u64::from(cause.is_ahead());
        let (at, shadow) = self.core.take_folio(inode, page, flag::LOCKED | ahead);
        let shadow = shadow.filter(|_| cause != Cause::Write);
        self.reclaim.add(&mut self.core, at, shadow, cause.is_fault());
        Folio(at)
    }

    /// A folio is used by a read (`folio_mark_accessed`).
    #[inline]
    pub fn mark_accessed(&mut self, folio: Folio) {
        self.core.use_ahead(folio.0);
        self.reclaim.accessed(&mut self.core, folio.0);
    }

    /// Who has to make room before the next insertion (`get_page_from_freelist`, `__alloc_pages_slowpath`).
    #[inline]
    pub fn pressure(&self) -> Pressure {
        let (free, marks) = (self.core.free(), &self.core.watermarks);
        if free > marks.low {
            Pressure::None
        } else if free > marks.min {
            Pressure::Kswapd
        } else {
            Pressure::Direct
        }
    }

    /// The watermarks.
    pub fn watermarks(&self) -> Watermarks {
        self.core.watermarks
    }

    /// Pages that the cache may take.
    pub fn pages(&self) -> u64 {
        self.core.pages
    }

    /// Of them, free.
    #[inline]
    pub fn free(&self) -> u64 {
        self.core.free()
    }

    /// Pages of files in memory (`nr_file_pages`).
    #[inline]
    pub fn nr_file_pages(&self) -> u64 {
        self.core.folios.len()
    }

    /// Of them, dirty (`nr_dirty`): those under write-back are not.
    #[inline]
    pub fn nr_dirty(&self) -> u64 {
        self.core.nr_dirty
    }

    /// Of them, under write-back (`nr_writeback`).
    #[inline]
    pub fn nr_writeback(&self) -> u64 {
        self.core.nr_writeback
    }

    /// Of them, active (`nr_active_file`): on the active list, or in the two youngest generations.
    pub fn nr_active(&self) -> u64 {
        self.reclaim.active()
    }

    /// Of them, inactive (`nr_inactive_file`).
    pub fn nr_inactive(&self) -> u64 {
        self.core.folios.len() - self.reclaim.active()
    }

    /// Pages of a file in memory.
    pub fn file_pages(&self, inode: Inode) -> u64 {
        self.core.index.pages(inode)
    }

    /// Dirty pages of a file.
    pub fn dirty_pages(&self, inode: Inode) -> u64 {
        self.core.index.dirty(inode)
    }

    /// Pages of a file under write-back.
    pub fn writeback_pages(&self, inode: Inode) -> u64 {
        self.core.index.writeback(inode)
    }

    /// What was counted since the window began.
    pub fn stats(&self) -> &PageCacheStats {
        &self.core.stats
    }

    /// Starts the measured window: what happened before is forgotten.
    pub fn reset_stats(&mut self) {
        self.core.stats = PageCacheStats::default();
    }
}
