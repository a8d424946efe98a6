//! Reclaim: which pages are evicted under memory pressure, as in `mm/vmscan.c` of Linux 6.1.
//!
//! Reclaim has two callers. `kswapd` is woken when free pages are at or below the low watermark, and works until they
//! exceed the high one ([`ScanControl::kswapd`], `balance_pgdat`). A task that finds free pages at or below the min
//! watermark asks for 32 pages ([`ScanControl::direct`], `try_to_free_pages`). Each does round after round
//! ([`PageCache::reclaim`](super::PageCache::reclaim)); a round scans the lists at one priority and tells how to go on.
//! Clean pages are freed. Dirty ones are marked for freeing once they are written, and moved out of the way. The
//! flushers are woken if a batch held only dirty pages that are not under write-back.

pub mod mglru;
mod rounds;
pub mod two_lists;

pub use rounds::{Next, Reclaimed, ScanControl, Throttle};

use super::{
    Folio, PageCacheStats, Watermarks,
    folio::{Folios, flag},
    index::{Index, Shadow},
};
use crate::Inode;
use engine::{Mutant, planted};

config::policies! {
    /// Eviction policy of file pages under memory pressure.
    pub family ReclaimPolicy: dyn Reclaim, context () {
        /// An active and an inactive list; a second access activates.
        ///
        /// Linux 6.1 by default, unless `mglru` is built in and switched on. Uses the refault distance of
        /// `mm/workingset.c` if shadow entries are kept.
        default two_lists => |_: &()| two_lists::TwoLists::default(),
        /// Generations, and tiers by the number of accesses: the multi-generational LRU.
        ///
        /// Linux 6.1 with `CONFIG_LRU_GEN`, and `/sys/kernel/mm/lru_gen/enabled` set.
        mglru => |_: &()| mglru::Mglru::default(),
    }
}

/// Pages that are scanned, or requested, at once.
pub(super) const SWAP_CLUSTER_MAX: u64 = 32;
/// First priority of a scan: 1/4096 of a list.
pub(super) const DEF_PRIORITY: i8 = 12;
/// Failures of `kswapd` after which it stays asleep.
pub(super) const MAX_RECLAIM_RETRIES: u32 = 16;

/// Keeps the folios of the cache in an order, and selects victims.
///
/// Contract: every folio that was added and neither removed nor reclaimed is on exactly one list of the policy. The
/// policy neither frees nor moves a locked folio, except to the head of a list, and frees no folio that is dirty or
/// under write-back. It does not allocate.
pub trait Reclaim: Send {
    /// Adds a new folio (`folio_add_lru`), with the shadow entry of its page's last reclaim (`workingset_refault`);
    /// `fault`: by a fault of a mapping.
    #[doc(hidden)]
    fn add(&mut self, core: &mut Core, at: u32, shadow: Option<Shadow>, fault: bool);
    /// Records a read of a folio through a descriptor (`folio_mark_accessed`).
    #[doc(hidden)]
    fn accessed(&mut self, core: &mut Core, at: u32);
    /// Removes a folio (`lruvec_del_folio`).
    #[doc(hidden)]
    fn remove(&mut self, core: &mut Core, at: u32);
    /// Moves a written folio that reclaim waits for to its list's tail (`folio_rotate_reclaimable`).
    #[doc(hidden)]
    fn rotate(&mut self, core: &mut Core, at: u32);
    /// Deactivates a folio that will not be needed but could not be removed (`deactivate_file_folio`).
    #[doc(hidden)]
    fn deactivate(&mut self, core: &mut Core, at: u32);
    /// Ages the folios before a scan of `kswapd` (`kswapd_age_node`).
    #[doc(hidden)]
    fn age(&mut self, core: &mut Core, control: &mut ScanControl);
    /// Scans at the control's priority (`shrink_lruvec`).
    #[doc(hidden)]
    fn shrink(&mut self, core: &mut Core, control: &mut ScanControl, tally: &mut Tally);
    /// Ends a reclaim (`snapshot_refaults`).
    #[doc(hidden)]
    fn end(&mut self);
    /// Number of active folios.
    fn active(&self) -> u64;
    /// Returns whether a folio counts as active.
    #[doc(hidden)]
    fn is_active(&self, core: &Core, at: u32) -> bool;
    /// Lists of folios, each from its head; for checks.
    #[doc(hidden)]
    fn lists(&self, core: &Core) -> Vec<Vec<u32>>;
}

// State that reclaim policies act on: folios, the index, and counts.

/// Reclaim state of a node (`pgdat->flags`, `lruvec->flags`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeState {
    /// `PGDAT_DIRTY`: reclaim found only dirty pages not under write-back, so that `kswapd` may write them.
    pub(super) dirty: bool,
    /// `PGDAT_WRITEBACK`: reclaim found only pages under write-back.
    pub(super) writeback: bool,
    /// `LRUVEC_CONGESTED`: all dirty pages found are under write-back and were found before.
    pub(super) congested: bool,
    /// Failures of `kswapd` in a row (`kswapd_failures`).
    pub(super) kswapd_failures: u32,
}

/// Page cache without its policies.
#[derive(Debug)]
pub struct Core {
    pub(super) folios: Folios,
    pub(super) index: Index,
    pub(super) stats: PageCacheStats,
    pub(super) watermarks: Watermarks,
    pub(super) node: NodeState,
    /// Maximum pages of the cache.
    pub(super) pages: u64,
    pub(super) nr_dirty: u64,
    pub(super) nr_writeback: u64,
    /// True if reclaimed pages leave shadow entries.
    pub(super) keeps_shadows: bool,
    /// Dirty folios that `kswapd` writes itself.
    pub(super) pageout: Vec<Folio>,
}

impl Core {
    #[inline]
    pub(super) fn free(&self) -> u64 {
        self.pages.saturating_sub(self.folios.len())
    }

    /// Allocates an unlisted folio for a page, with these flags; returns it with the shadow entry of the page's last
    /// reclaim.
    #[inline]
    pub(super) fn take_folio(&mut self, inode: Inode, page: u64, flags: u32) -> (u32, Option<Shadow>) {
        let at = self.folios.take(inode, page as u32, flags);
        let (leaf, shadow) = self.index.insert(inode, page, at);
        self.folios.set_leaf(at, leaf);
        (at, shadow)
    }

    /// Frees an unlisted folio, and removes its page from the index.
    #[inline]
    pub(super) fn drop_folio(&mut self, at: u32, shadow: Option<Shadow>) {
        let (leaf, page) = self.folios.slot(at);
        let flags = self.folios.flags(at);
        let (dirty, writeback) = (flags & flag::DIRTY != 0, flags & flag::WRITEBACK != 0);
        if dirty || writeback {
            self.nr_dirty -= u64::from(dirty);
            self.nr_writeback -= u64::from(writeback);
            self.index.count(leaf, -i64::from(dirty), -i64::from(writeback));
        }
        self.stats.read_ahead_wasted += u64::from(flags & flag::AHEAD != 0);
        self.index.remove(leaf, page, shadow);
        self.folios.give(at);
    }

    /// Prefetches the data of folios that reclaim is about to scan and mostly free.
    pub(super) fn prefetch(&self, batch: &[u32]) {
        for &at in batch {
            self.folios.prefetch(at);
            let (leaf, page) = self.folios.slot(at);
            self.index.prefetch(leaf, page);
        }
    }

    /// Reclaims a clean folio (`__remove_mapping`).
    #[inline]
    pub(super) fn reclaim(&mut self, at: u32, shadow: Shadow) {
        let dirty = if planted(Mutant::ReclaimedDirty) { 0 } else { flag::DIRTY };
        debug_assert!(!self.folios.has(at, dirty | flag::WRITEBACK | flag::LOCKED));
        let shadow = Some(shadow).filter(|_| self.keeps_shadows);
        self.drop_folio(at, shadow);
    }

    /// Records the first use of a folio that was read ahead.
    #[inline]
    pub(super) fn use_ahead(&mut self, at: u32) {
        if self.folios.take_flag(at, flag::AHEAD) {
            self.stats.read_ahead_used += 1;
        }
    }
}

// Fate of a folio that reclaim has taken off its list.

/// Counters of a round (`struct reclaim_stat` and `scan_control.nr`), in pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Taken off the inactive list, or the oldest generation.
    pub(in crate::pagecache) taken: u64,
    /// Moved between lists without being looked at closely.
    pub(in crate::pagecache) refilled: u64,
    /// Freed.
    pub(in crate::pagecache) freed: u64,
    /// Dirty or under write-back.
    pub(in crate::pagecache) dirty: u64,
    /// Dirty and not under write-back.
    pub(in crate::pagecache) unqueued_dirty: u64,
    /// Under write-back, and marked for reclaim before.
    pub(in crate::pagecache) congested: u64,
    /// Under write-back, and marked for reclaim now.
    pub(in crate::pagecache) writeback: u64,
    /// Under write-back, marked, and met by `kswapd` when all that it finds is under write-back.
    pub(in crate::pagecache) immediate: u64,
    /// Activated.
    pub(in crate::pagecache) activated: u64,
    /// True if a batch held only dirty pages that are not under write-back.
    pub(in crate::pagecache) wakes_flushers: bool,
}

/// Fate of a scanned folio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::pagecache) enum Fate {
    /// Freed.
    Free,
    /// Moved out of the way.
    Activate,
    /// Kept in place.
    Keep,
}

/// Result of checking a folio's references (`enum folio_references`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum References {
    Reclaim,
    ReclaimClean,
    Keep,
    Activate,
}

/// Checks references (`folio_check_references`), without executable pages.
fn check_references(core: &mut Core, at: u32) -> References {
    let young = core.folios.take_flag(at, flag::YOUNG);
    let referenced = core.folios.take_flag(at, flag::REFERENCED);
    if young {
        // The first use is the fault that mapped the folio; a folio has to be used twice.
        core.folios.set(at, flag::REFERENCED);
        return if referenced { References::Activate } else { References::Keep };
    }
    if referenced { References::ReclaimClean } else { References::Reclaim }
}

/// Part of `shrink_folio_list` for one unlisted file folio.
pub(in crate::pagecache) fn shrink_folio(
    core: &mut Core,
    at: u32,
    control: &mut ScanControl,
    tally: &mut Tally,
) -> Fate {
    let flags = core.folios.flags(at);
    if flags & flag::LOCKED != 0 {
        return Fate::Keep;
    }
    control.nr_scanned += 1;
    let (dirty, writeback) = (flags & flag::DIRTY != 0, flags & flag::WRITEBACK != 0);
    let marked = flags & flag::RECLAIM != 0;
    tally.dirty += u64::from(dirty || writeback);
    tally.unqueued_dirty += u64::from(dirty && !writeback);
    if writeback {
        tally.congested += u64::from(marked);
        if control.kswapd && marked && core.node.writeback {
            tally.immediate += 1;
        } else {
            core.folios.set(at, flag::RECLAIM);
            tally.writeback += 1;
        }
        return Fate::Activate;
    }
    let references = check_references(core, at);
    match references {
        References::Activate => return Fate::Activate,
        References::Keep => return Fate::Keep,
        References::Reclaim | References::ReclaimClean => {}
    }
    core.folios.clear(at, flag::MAPPED);
    if !dirty || planted(Mutant::ReclaimedDirty) {
        return Fate::Free;
    }
    if !(control.kswapd && marked && core.node.dirty) {
        core.folios.set(at, flag::RECLAIM);
        core.stats.marked_for_reclaim += 1;
        return Fate::Activate;
    }
    if references == References::Reclaim {
        core.pageout.push(Folio(at));
        core.stats.pageouts += 1;
    }
    Fate::Keep
}
