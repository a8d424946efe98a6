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

// How much memory is kept free, and who reclaims when.

/// The watermarks of a zone, in pages. An allocation succeeds at once while more than `low` are free, wakes `kswapd` otherwise, and still succeeds while
/// more than `min` are free; beneath, the task reclaims itself. `kswapd` works until more than `high` are free.
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
    /// Of a memory that is one zone (`calculate_min_free_kbytes`, `__setup_per_zone_wmarks`).
    ///
    /// The kernel counts all of its memory here. Where `khugepaged` runs it raises `min_free_kbytes` further
    /// (`set_recommended_min_free_kbytes`): then give the spec what `/proc/sys/vm/min_free_kbytes` says.
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

// What the page cache counts.

/// Counters of the measured window, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCacheStats {
    /// Look-ups that found the page, with its data.
    pub hits: u64,
    /// Look-ups that found the page while its data were still being read.
    pub hits_under_read: u64,
    /// Look-ups that did not find the page.
    pub misses: u64,
    /// Pages that came by read-ahead without having been asked for.
    pub read_ahead: u64,
    /// Of those that came so, in this window or before, accessed since for the first time.
    pub read_ahead_used: u64,
    /// Of those that came so, gone without ever having been accessed.
    pub read_ahead_wasted: u64,
    /// Pages made dirty (`nr_dirtied`).
    pub dirtied: u64,
    /// Pages whose write-back ended (`nr_written`).
    pub written: u64,
    /// Pages that reclaim took off lists to look at (`pgscan_file`).
    pub scanned: u64,
    /// Of them, by direct reclaim (`pgscan_direct`).
    pub scanned_direct: u64,
    /// Pages that were reclaimed, all of them clean (`pgsteal_file`).
    pub evicted: u64,
    /// Of them, by direct reclaim (`pgsteal_direct`).
    pub evicted_direct: u64,
    /// Pages that came to the active list, or were protected (`pgactivate`).
    pub activated: u64,
    /// Pages that left the active list for the inactive one (`pgdeactivate`).
    pub deactivated: u64,
    /// Pages sent to the tail, since their write-back ended (`pgrotated`).
    pub rotated: u64,
    /// Pages that came back while their shadow entry was there (`workingset_refault_file`).
    pub refaults: u64,
    /// Of them, activated at once (`workingset_activate_file`).
    pub refaults_activated: u64,
    /// Of them, active when they were reclaimed, or hot (`workingset_restore_file`).
    pub refaults_restored: u64,
    /// Dirty pages that reclaim marked, so that they go when they are written (`nr_vmscan_immediate_reclaim`).
    pub marked_for_reclaim: u64,
    /// Dirty pages that `kswapd` chose to write itself.
    pub pageouts: u64,
    /// Pages that a truncation, an advice or an unlink removed.
    pub removed: u64,
}

// What holds of the page cache at any time.

impl PageCache {
    /// Holds the accounts against each other. O(folios): for tests, and the checks of a run.
    ///
    /// # Errors
    /// What does not hold, in numbers.
    pub fn check(&self) -> Result<(), String> {
        let core = &self.core;
        let mut listed = vec![false; self.slots()];
        for at in self.reclaim.lists(core).into_iter().flatten() {
            if !core.folios.has(at, flag::LIVE) || std::mem::replace(&mut listed[at as usize], true) {
                return Err(format!("folio {at} is free, or on two lists"));
            }
        }
        let (mut dirty, mut writeback) = (0, 0);
        for at in core.folios.live() {
            let (inode, page) = core.folios.owner(at);
            if !listed[at as usize] {
                return Err(format!("folio {at} is on no list"));
            }
            if core.index.find(inode, page) != Some(at) {
                return Err(format!("folio {at} is not the one of page {page} of {inode:?}"));
            }
            let (is_dirty, is_writeback) =
                (core.folios.has(at, flag::DIRTY), core.folios.has(at, flag::WRITEBACK));
            dirty += u64::from(is_dirty);
            writeback += u64::from(is_writeback);
            // A page that is about to be written keeps its tag until it is.
            if is_dirty && !core.index.has_tag(inode, page, Tag::Dirty)
                || is_writeback != core.index.has_tag(inode, page, Tag::Writeback)
            {
                return Err(format!("page {page} of {inode:?} has tags that its folio belies"));
            }
        }
        if (dirty, writeback) != (core.nr_dirty, core.nr_writeback) {
            let counted = (core.nr_dirty, core.nr_writeback);
            return Err(format!("{dirty} dirty and {writeback} written, counted {counted:?}"));
        }
        core.index.check(core.folios.len())
    }

    fn slots(&self) -> usize {
        self.core.folios.live().last().map_or(0, |at| at as usize + 1)
    }
}

// What a user writes about the page cache.

/// The page cache, by the names that Linux has for what can be turned. What is left out is as Linux 6.1 has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PageCacheSpec {
    /// The most that is read ahead at once (`/sys/block/*/queue/read_ahead_kb`): whole pages. Zero reads single pages, as they are asked for.
    #[schemars(extend("x-maximum" = "1GiB"))]
    pub read_ahead_kb: Bytes,
    /// How it is decided what is read ahead.
    pub readahead: ReadAheadPolicy,
    /// Which pages leave when memory is short.
    pub reclaim: ReclaimPolicy,
    /// Whether a page that was reclaimed leaves a shadow entry, so that its return is noticed (`mm/workingset.c`).
    pub workingset: bool,
    /// Memory below which tasks reclaim themselves (`vm.min_free_kbytes`); without it, what `calculate_min_free_kbytes` makes of the size of
    /// memory.
    #[schemars(extend("x-minimum" = "128KiB"))]
    pub min_free_kbytes: Option<Bytes>,
    /// How far the watermarks are apart, in ten thousandths of memory (`vm.watermark_scale_factor`).
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
    /// Checks everything for a memory of `pages`.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key.
    pub fn check(&self, pages: u64) -> Result<(), SpecError> {
        if !self.read_ahead_kb.get().is_multiple_of(crate::PAGE) {
            let what = format!("{} is no whole number of pages of 4KiB", self.read_ahead_kb);
            return Err(SpecError::new("read_ahead_kb", what));
        }
        SpecError::positive("watermark_scale_factor", self.watermark_scale_factor.into())?;
        let high = Watermarks::new(self, pages).high;
        if high >= pages {
            let what = format!("{high} pages are kept free of {pages}: none is left for files");
            let key =
                if self.min_free_kbytes.is_some() { "min_free_kbytes" } else { "watermark_scale_factor" };
            return Err(SpecError::new(key, what).help("keep less free, or give the host more memory"));
        }
        Ok(())
    }

    /// Pages of [`read_ahead_kb`](PageCacheSpec::read_ahead_kb).
    pub fn ra_pages(&self) -> u32 {
        (self.read_ahead_kb.get() / crate::PAGE) as u32
    }
}
