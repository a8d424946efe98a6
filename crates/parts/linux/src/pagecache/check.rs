//! What holds of the page cache at any time.

use super::folio::flag;
use super::{PageCache, Tag};

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
