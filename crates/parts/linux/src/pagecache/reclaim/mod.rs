//! Reclaim: which pages leave when memory is short, as `mm/vmscan.c` of Linux 6.1 decides.
//!
//! Two reclaim: `kswapd`, which is woken when at most the low watermark is free and works until more than the high one is
//! ([`ScanControl::kswapd`], `balance_pgdat`); and a task that finds at most the min watermark free ([`ScanControl::direct`], `try_to_free_pages`),
//! which asks for 32 pages. Each does round after round ([`PageCache::reclaim`](super::PageCache::reclaim)); a round scans the lists at one priority and says what comes next.
//! Clean pages go. Dirty ones are marked, so that they go once they are written, and get out of the way; the flushers are woken where a batch held
//! nothing but dirty pages that nobody writes.

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
    /// Which pages of files leave memory when it is short.
    pub family ReclaimPolicy: dyn Reclaim, context () {
        /// An active and an inactive list; a second access activates.
        ///
        /// Linux 6.1 unless the other is built in and switched on, which by default it is not. With the refault distance of `mm/workingset.c` where shadow
        /// entries are kept.
        default two_lists => |_: &()| two_lists::TwoLists::default(),
        /// Generations, and tiers by the number of accesses: the multi-generational LRU.
        ///
        /// Linux 6.1 with `CONFIG_LRU_GEN`, and `/sys/kernel/mm/lru_gen/enabled` set.
        mglru => |_: &()| mglru::Mglru::default(),
    }
}

/// Pages that are scanned, or asked for, at once.
pub(super) const SWAP_CLUSTER_MAX: u64 = 32;
/// The first priority of a scan: 1/4096 of a list.
pub(super) const DEF_PRIORITY: i8 = 12;
/// How often `kswapd` may fail before it stays asleep.
pub(super) const MAX_RECLAIM_RETRIES: u32 = 16;

/// Keeps the folios of the cache in an order, and chooses those that leave.
///
/// Contract: every folio that was added and neither removed nor reclaimed is on exactly one list of the policy. It neither frees nor moves a folio that
/// is locked, except to the head of a list, and frees none that is dirty or under write-back. It allocates nothing.
pub trait Reclaim: Send {
    /// A new folio (`folio_add_lru`), with what was left of it when its page was reclaimed (`workingset_refault`); `fault`: by a
    /// fault of a mapping.
    #[doc(hidden)]
    fn add(&mut self, core: &mut Core, at: u32, shadow: Option<Shadow>, fault: bool);
    /// A folio was read through a descriptor (`folio_mark_accessed`).
    #[doc(hidden)]
    fn accessed(&mut self, core: &mut Core, at: u32);
    /// A folio leaves (`lruvec_del_folio`).
    #[doc(hidden)]
    fn remove(&mut self, core: &mut Core, at: u32);
    /// A folio that reclaim waits for was written (`folio_rotate_reclaimable`).
    #[doc(hidden)]
    fn rotate(&mut self, core: &mut Core, at: u32);
    /// A folio will not be needed, but could not leave (`deactivate_file_folio`).
    #[doc(hidden)]
    fn deactivate(&mut self, core: &mut Core, at: u32);
    /// `kswapd` lets the folios age before it scans (`kswapd_age_node`).
    #[doc(hidden)]
    fn age(&mut self, core: &mut Core, control: &mut ScanControl);
    /// Scans, at the control's priority (`shrink_lruvec`).
    #[doc(hidden)]
    fn shrink(&mut self, core: &mut Core, control: &mut ScanControl, tally: &mut Tally);
    /// A reclaim has ended (`snapshot_refaults`).
    #[doc(hidden)]
    fn end(&mut self);
    /// Folios that count as active.
    fn active(&self) -> u64;
    /// Whether a folio counts as active.
    #[doc(hidden)]
    fn is_active(&self, core: &Core, at: u32) -> bool;
    /// Every folio, list by list, each from its head; for checks.
    #[doc(hidden)]
    fn lists(&self, core: &Core) -> Vec<Vec<u32>>;
}

// What the policies of reclaim act on: folios, the index, and counts.

/// What a node's reclaim remembers (`pgdat->flags`, `lruvec->flags`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeState {
    /// `PGDAT_DIRTY`: reclaim found nothing but dirty pages that nobody writes, so that `kswapd` may.
    pub(super) dirty: bool,
    /// `PGDAT_WRITEBACK`: reclaim found nothing but pages under write-back.
    pub(super) writeback: bool,
    /// `LRUVEC_CONGESTED`: all dirty pages that were found are under write-back and were found before.
    pub(super) congested: bool,
    /// How often `kswapd` gave up (`kswapd_failures`).
    pub(super) kswapd_failures: u32,
}

/// The page cache without its policies.
#[derive(Debug)]
pub struct Core {
    pub(super) folios: Folios,
    pub(super) index: Index,
    pub(super) stats: PageCacheStats,
    pub(super) watermarks: Watermarks,
    pub(super) node: NodeState,
    /// Pages that the cache may take.
    pub(super) pages: u64,
    pub(super) nr_dirty: u64,
    pub(super) nr_writeback: u64,
    /// Whether what is reclaimed leaves shadow entries.
    pub(super) keeps_shadows: bool,
    /// Dirty folios that `kswapd` writes itself.
    pub(super) pageout: Vec<Folio>,
}

impl Core {
    #[inline]
    pub(super) fn free(&self) -> u64 {
        self.pages.saturating_sub(self.folios.len())
    }

    /// A page comes to a folio that is on no list, with these marks. The shadow entry that it left when it was reclaimed.
    #[inline]
    pub(super) fn take_folio(&mut self, inode: Inode, page: u64, flags: u32) -> (u32, Option<Shadow>) {
        let at = self.folios.take(inode, page as u32, flags);
        let (leaf, shadow) = self.index.insert(inode, page, at);
        self.folios.set_leaf(at, leaf);
        (at, shadow)
    }

    /// A folio that is on no list any more loses its page, and its memory is free.
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

    /// Folios will be looked at, and most of them reclaimed: what is far away comes at the same time.
    pub(super) fn prefetch(&self, batch: &[u32]) {
        for &at in batch {
            self.folios.prefetch(at);
            let (leaf, page) = self.folios.slot(at);
            self.index.prefetch(leaf, page);
        }
    }

    /// A clean folio is reclaimed (`__remove_mapping`).
    #[inline]
    pub(super) fn reclaim(&mut self, at: u32, shadow: Shadow) {
        let dirty = if planted(Mutant::ReclaimedDirty) { 0 } else { flag::DIRTY };
        debug_assert!(!self.folios.has(at, dirty | flag::WRITEBACK | flag::LOCKED));
        let shadow = Some(shadow).filter(|_| self.keeps_shadows);
        self.drop_folio(at, shadow);
    }

    /// A folio was used that had been read ahead.
    #[inline]
    pub(super) fn use_ahead(&mut self, at: u32) {
        if self.folios.take_flag(at, flag::AHEAD) {
            self.stats.read_ahead_used += 1;
        }
    }
}

// What becomes of a folio that reclaim has taken off its list.

/// Counts of a round (`struct reclaim_stat` and `scan_control.nr`), in pages.
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
    /// Whether a batch held nothing but dirty pages that nobody writes.
    pub(in crate::pagecache) wakes_flushers: bool,
}

/// What becomes of a folio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::pagecache) enum Fate {
    /// It is freed.
    Free,
    /// It gets out of the way.
    Activate,
    /// It stays as it is.
    Keep,
}

/// What the use of a folio says (`enum folio_references`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum References {
    Reclaim,
    ReclaimClean,
    Keep,
    Activate,
}

/// `folio_check_references`, without pages of programs.
fn check_references(core: &mut Core, at: u32) -> References {
    let young = core.folios.take_flag(at, flag::YOUNG);
    let referenced = core.folios.take_flag(at, flag::REFERENCED);
    if young {
        // Its first use is the fault that mapped it: a folio has to be used twice.
        core.folios.set(at, flag::REFERENCED);
        return if referenced { References::Activate } else { References::Keep };
    }
    if referenced { References::ReclaimClean } else { References::Reclaim }
}

/// The part of `shrink_folio_list` for one folio of a file, which is on no list.
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
