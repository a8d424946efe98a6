//! Page cache: which file pages are in memory, clean or dirty, and which are evicted. It has no clock.
//!
//! The source is Linux 6.1: `mm/filemap.c`, `mm/page-writeback.c` (flags and tags), `mm/truncate.c`, `mm/readahead.c`,
//! `mm/swap.c`, `mm/vmscan.c`, `mm/workingset.c`. A caller reads a file as follows (`filemap_read`):
//!
//! 1. [`lookup`](PageCache::lookup) of the first page. On a miss, [`sync_ra`](PageCache::sync_ra) plans the read. The
//!    caller [inserts](PageCache::insert) the [missing pages](PageCache::missing_runs) of the plan, sets the marker as
//!    planned, and reads.
//! 2. If the folio is the marker ([`is_readahead`](PageCache::is_readahead)), [`async_ra`](PageCache::async_ra) plans
//!    more.
//! 3. Once it is [up to date](PageCache::is_uptodate): [`mark_accessed`](PageCache::mark_accessed), then the copy.
//!
//! Before an insertion, [`pressure`](PageCache::pressure) tells whether `kswapd` or the task itself has to make room.
//! Each calls [`reclaim`](PageCache::reclaim) round after round.
//!
//! Differences from the kernel:
//!
//! * Folios are single pages, as ext4 has them in 6.1.
//! * No per-processor batches of folios (`cpu_fbatches`): list changes take effect at once.
//! * One node with one zone, no control group, no anonymous memory. Memory is the cache's share.
//! * A page table entry is two flags of the folio: mapped, and accessed.
//! * The caller removes pages whose inode is gone ([`truncate`](PageCache::truncate)).
//!
//! Bounds: folios by memory, shadow entries by an eighth of it.

mod folio;
mod index;
mod list;
pub mod readahead;
pub mod reclaim;
#[cfg(test)]
mod tests;

pub use folio::Folio;
pub use index::{Run, Tag};
pub use readahead::{FileRa, Plan};
pub use reclaim::{Next, Reclaimed, ScanControl, Throttle};

use crate::{Inode, PAGE};
use config::{SpecError, units::Bytes};
use folio::{Folios, flag};
use index::Index;
use readahead::{ReadAhead, ReadAheadPolicy};
use reclaim::{Core, NodeState, Reclaim, ReclaimPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason for which a page is inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Read of this page.
    Read,
    /// Read of a nearby page.
    ReadAhead,
    /// Write of the page: rewriting reclaimed data is not a sign of a working set.
    Write,
    /// Fault of a mapping. (With `madvise` sequential or random it is a [`Read`](Cause::Read): `lru_gen_enter_fault`.)
    Fault,
    /// Fault of a nearby page.
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

/// Reclaimer that has to make room before a page can be inserted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Pressure {
    /// No reclaimer.
    None,
    /// `kswapd`: free pages are at or below the low watermark. The page can be inserted.
    Kswapd,
    /// The task (direct reclaim), and `kswapd`: free pages are at or below the min watermark.
    Direct,
}

/// Page cache of a host.
pub struct PageCache {
    core: Core,
    reclaim: Box<dyn Reclaim>,
    readahead: Box<dyn ReadAhead>,
}

impl PageCache {
    /// Creates an empty cache of up to `pages` memory pages, fewer than 2^31.
    ///
    /// # Errors
    /// The first invalid value, with its key.
    pub fn new(spec: &PageCacheSpec, pages: u64) -> Result<PageCache, SpecError> {
        spec.check(pages)?;
        if pages >= (1 << 31) - 1 {
            return Err(SpecError::new("memory", format!("{pages} pages of 4KiB exceed 2^31 - 2")));
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

    /// Returns the folio of a page, without counting.
    #[inline]
    pub fn find(&self, inode: Inode, page: u64) -> Option<Folio> {
        self.core.index.find(inode, page).map(Folio)
    }

    /// Returns the folio of a requested page; counts hits and misses.
    #[inline]
    pub fn lookup(&mut self, inode: Inode, page: u64) -> Option<Folio> {
        let found = self.seek(inode, page);
        self.count_lookup(found);
        found
    }

    /// Returns the folio of a page, without counting; on a miss, prefetches for its insertion.
    #[inline]
    pub fn seek(&self, inode: Inode, page: u64) -> Option<Folio> {
        self.core.index.find_or_prefetch(inode, page).map(Folio)
    }

    /// Counts a hit or a miss for the result of a look-up.
    #[inline]
    pub fn count_lookup(&mut self, found: Option<Folio>) {
        let stats = &mut self.core.stats;
        match found {
            None => stats.misses += 1,
            Some(folio) if self.core.folios.has(folio.0, flag::UPTODATE) => stats.hits += 1,
            Some(_) => stats.hits_under_read += 1,
        }
    }

    /// Inserts a missing page: locked and not up to date (`filemap_add_folio`). It is inactive, unless it was reclaimed
    /// recently; with generations, a faulted page is in the youngest one.
    ///
    /// # Panics
    /// If the page number is 2^32 or above: files have at most 16 TiB, as on ext4. If no memory page is free (debug
    /// builds).
    #[inline]
    pub fn insert(&mut self, inode: Inode, page: u64, cause: Cause) -> Folio {
        debug_assert!(self.core.free() > 0, "inserted a page without free memory");
        let ahead = if cause.is_ahead() { flag::AHEAD } else { 0 };
        self.core.stats.read_ahead += u64::from(cause.is_ahead());
        let (at, shadow) = self.core.take_folio(inode, page, flag::LOCKED | ahead);
        let shadow = shadow.filter(|_| cause != Cause::Write);
        self.reclaim.add(&mut self.core, at, shadow, cause.is_fault());
        Folio(at)
    }

    /// Records the use of a folio by a read (`folio_mark_accessed`).
    #[inline]
    pub fn mark_accessed(&mut self, folio: Folio) {
        self.core.use_ahead(folio.0);
        self.reclaim.accessed(&mut self.core, folio.0);
    }

    /// Returns the reclaimer that has to make room before the next insertion (`get_page_from_freelist`,
    /// `__alloc_pages_slowpath`).
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

    /// Watermarks of the memory.
    pub fn watermarks(&self) -> Watermarks {
        self.core.watermarks
    }

    /// Maximum pages of the cache.
    pub fn pages(&self) -> u64 {
        self.core.pages
    }

    /// Free pages of that maximum.
    #[inline]
    pub fn free(&self) -> u64 {
        self.core.free()
    }

    /// File pages in memory (`nr_file_pages`).
    #[inline]
    pub fn nr_file_pages(&self) -> u64 {
        self.core.folios.len()
    }

    /// Dirty pages (`nr_dirty`), without those under write-back.
    #[inline]
    pub fn nr_dirty(&self) -> u64 {
        self.core.nr_dirty
    }

    /// Pages under write-back (`nr_writeback`).
    #[inline]
    pub fn nr_writeback(&self) -> u64 {
        self.core.nr_writeback
    }

    /// Active pages (`nr_active_file`): on the active list, or in the two youngest generations.
    pub fn nr_active(&self) -> u64 {
        self.reclaim.active()
    }

    /// Inactive pages (`nr_inactive_file`).
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

    /// Counters since the window began.
    pub fn stats(&self) -> &PageCacheStats {
        &self.core.stats
    }

    /// Starts the measured window: clears the counters.
    pub fn reset_stats(&mut self) {
        self.core.stats = PageCacheStats::default();
    }
}

// Free-memory thresholds for reclaim.

/// Watermarks of a zone, in pages. An allocation succeeds at once while more than `low` are free, wakes `kswapd`
/// otherwise, and still succeeds while more than `min` are free; below that, the task reclaims itself. `kswapd` works
/// until more than `high` are free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watermarks {
    /// `WMARK_MIN`.
    pub min: u64,
    /// `WMARK_LOW`.
    pub low: u64,
    /// `WMARK_HIGH`.
    pub high: u64,
}

impl Watermarks {
    /// Computes the watermarks of a memory that is one zone (`calculate_min_free_kbytes`, `__setup_per_zone_wmarks`).
    ///
    /// The kernel counts all of its memory here. `khugepaged`, where it runs, raises `min_free_kbytes` further
    /// (`set_recommended_min_free_kbytes`). In that case set `min_free_kbytes` in the spec to the value of
    /// `/proc/sys/vm/min_free_kbytes`.
    pub fn new(spec: &PageCacheSpec, pages: u64) -> Watermarks {
        let min = match spec.min_free_kbytes {
            Some(bytes) => bytes.get() / PAGE,
            None => {
                let lowmem_kbytes = pages * (PAGE >> 10);
                (lowmem_kbytes * 16).isqrt().clamp(128, 262_144) / (PAGE >> 10)
            }
        };
        let apart = (min / 4).max(pages * u64::from(spec.watermark_scale_factor) / 10_000);
        Watermarks { min, low: min + apart, high: min + 2 * apart }
    }
}

// Page-cache statistics.

/// Counters of the measured window, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCacheStats {
    /// Look-ups that found the page, with its data.
    pub hits: u64,
    /// Look-ups that found the page while its data were still being read.
    pub hits_under_read: u64,
    /// Look-ups that did not find the page.
    pub misses: u64,
    /// Pages inserted by read-ahead without having been requested.
    pub read_ahead: u64,
    /// Pages from read-ahead, in this window or before, accessed for the first time.
    pub read_ahead_used: u64,
    /// Pages from read-ahead, evicted or removed without an access.
    pub read_ahead_wasted: u64,
    /// Pages made dirty (`nr_dirtied`).
    pub dirtied: u64,
    /// Pages whose write-back ended (`nr_written`).
    pub written: u64,
    /// Pages that reclaim took off lists to scan (`pgscan_file`).
    pub scanned: u64,
    /// Pages scanned by direct reclaim (`pgscan_direct`).
    pub scanned_direct: u64,
    /// Pages reclaimed, all of them clean (`pgsteal_file`).
    pub evicted: u64,
    /// Pages reclaimed by direct reclaim (`pgsteal_direct`).
    pub evicted_direct: u64,
    /// Pages moved to the active list, or protected (`pgactivate`).
    pub activated: u64,
    /// Pages moved from the active list to the inactive one (`pgdeactivate`).
    pub deactivated: u64,
    /// Pages moved to the tail when their write-back ended (`pgrotated`).
    pub rotated: u64,
    /// Pages read back while their shadow entry existed (`workingset_refault_file`).
    pub refaults: u64,
    /// Refaults activated at once (`workingset_activate_file`).
    pub refaults_activated: u64,
    /// Refaults of pages that were active when reclaimed, or hot (`workingset_restore_file`).
    pub refaults_restored: u64,
    /// Dirty pages marked by reclaim, to be freed when they are written (`nr_vmscan_immediate_reclaim`).
    pub marked_for_reclaim: u64,
    /// Dirty pages that `kswapd` chose to write itself.
    pub pageouts: u64,
    /// Pages removed by a truncation, an advice or an unlink.
    pub removed: u64,
}

// Invariants of the page cache.

impl PageCache {
    /// Cross-checks the accounts. O(folios): for tests, and the checks of a run.
    ///
    /// # Errors
    /// The violated invariant, with numbers.
    pub fn check(&self) -> Result<(), String> {
        let core = &self.core;
        let mut listed = vec![false; self.slots()];
        for at in self.reclaim.lists(core).into_iter().flatten() {
            if !core.folios.has(at, flag::LIVE) || std::mem::replace(&mut listed[at as usize], true) {
                return Err(format!("folio {at} is free but listed, or on two lists"));
            }
        }
        let (mut dirty, mut writeback) = (0, 0);
        for at in core.folios.live() {
            let (inode, page) = core.folios.owner(at);
            if !listed[at as usize] {
                return Err(format!("folio {at} is on no list"));
            }
            if core.index.find(inode, page) != Some(at) {
                return Err(format!("folio {at} holds page {page} of {inode:?}, but the index disagrees"));
            }
            let (is_dirty, is_writeback) =
                (core.folios.has(at, flag::DIRTY), core.folios.has(at, flag::WRITEBACK));
            dirty += u64::from(is_dirty);
            writeback += u64::from(is_writeback);
            // A page that is about to be written keeps its tag until it is.
            if is_dirty && !core.index.has_tag(inode, page, Tag::Dirty)
                || is_writeback != core.index.has_tag(inode, page, Tag::Writeback)
            {
                return Err(format!("tags of page {page} of {inode:?} do not match the flags of its folio"));
            }
        }
        if (dirty, writeback) != (core.nr_dirty, core.nr_writeback) {
            let counted = (core.nr_dirty, core.nr_writeback);
            return Err(format!("{dirty} dirty and {writeback} under write-back, counters: {counted:?}"));
        }
        core.index.check(core.folios.len())
    }

    fn slots(&self) -> usize {
        self.core.folios.live().last().map_or(0, |at| at as usize + 1)
    }
}

// User-visible configuration of the page cache.

/// Page cache, with Linux's names for its settings. Defaults are those of Linux 6.1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PageCacheSpec {
    /// Maximum read-ahead at once (`/sys/block/*/queue/read_ahead_kb`): whole pages. Zero reads single pages on demand.
    #[schemars(extend("x-maximum" = "1GiB"))]
    pub read_ahead_kb: Bytes,
    /// Read-ahead policy.
    pub readahead: ReadAheadPolicy,
    /// Eviction policy under memory pressure.
    pub reclaim: ReclaimPolicy,
    /// Whether a reclaimed page leaves a shadow entry, so that a refault is detected (`mm/workingset.c`).
    pub workingset: bool,
    /// Memory below which tasks reclaim themselves (`vm.min_free_kbytes`). Default: `calculate_min_free_kbytes` of the
    /// memory size.
    #[schemars(extend("x-minimum" = "128KiB"))]
    pub min_free_kbytes: Option<Bytes>,
    /// Distance between the watermarks, in ten thousandths of memory (`vm.watermark_scale_factor`).
    #[schemars(range(min = 1, max = 3000))]
    pub watermark_scale_factor: u32,
}

impl Default for PageCacheSpec {
    fn default() -> PageCacheSpec {
        PageCacheSpec {
            // `VM_READAHEAD_PAGES`.
            read_ahead_kb: Bytes::from_kib(128),
            readahead: ReadAheadPolicy::default(),
            reclaim: ReclaimPolicy::default(),
            workingset: true,
            min_free_kbytes: None,
            watermark_scale_factor: 10,
        }
    }
}

impl PageCacheSpec {
    /// Checks all values for a memory of `pages` pages.
    ///
    /// # Errors
    /// The first invalid value, with its key.
    pub fn check(&self, pages: u64) -> Result<(), SpecError> {
        if !self.read_ahead_kb.get().is_multiple_of(crate::PAGE) {
            let what = format!("{} is not a multiple of the 4KiB page size", self.read_ahead_kb);
            return Err(SpecError::new("read_ahead_kb", what));
        }
        SpecError::positive("watermark_scale_factor", self.watermark_scale_factor.into())?;
        let high = Watermarks::new(self, pages).high;
        if high >= pages {
            let what = format!("{high} of {pages} pages are kept free, which leaves none for files");
            let key =
                if self.min_free_kbytes.is_some() { "min_free_kbytes" } else { "watermark_scale_factor" };
            return Err(SpecError::new(key, what).help("lower this value, or give the host more memory"));
        }
        Ok(())
    }

    /// Pages of [`read_ahead_kb`](PageCacheSpec::read_ahead_kb).
    pub fn ra_pages(&self) -> u32 {
        (self.read_ahead_kb.get() / crate::PAGE) as u32
    }
}
