//! Reclaim: which pages leave when memory is short, as `mm/vmscan.c` of Linux 6.1 decides.
//!
//! Two reclaim: `kswapd`, which is woken when at most the low watermark is free and works until more than the high one is
//! ([`ScanControl::kswapd`], `balance_pgdat`); and a task that finds at most the min watermark free ([`ScanControl::direct`], `try_to_free_pages`),
//! which asks for 32 pages. Each does round after round ([`PageCache::reclaim`](super::PageCache::reclaim)); a round scans the lists at one priority and says what comes next.
//! Clean pages go. Dirty ones are marked, so that they go once they are written, and get out of the way; the flushers are woken where a batch held
//! nothing but dirty pages that nobody writes.

pub mod mglru;
mod rounds;
mod shrink;
pub mod two_lists;

pub use rounds::{Next, Reclaimed, ScanControl, Throttle};
pub(super) use shrink::{Fate, Tally, shrink_folio};

use super::core::Core;
use super::index::Shadow;

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
