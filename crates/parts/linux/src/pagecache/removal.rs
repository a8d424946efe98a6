//! Pages that leave because somebody says so.

use super::folio::flag;
use super::{Folio, PageCache};
use crate::Inode;

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
