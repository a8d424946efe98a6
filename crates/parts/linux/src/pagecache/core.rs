//! What the policies of reclaim act on: folios, the index, and counts.

use super::folio::{Folios, flag};
use super::index::{Index, Shadow};
use super::{Folio, PageCacheStats, Watermarks};
use crate::Inode;
use engine::{Mutant, planted};

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
