//! What use before a run leaves of a DRAM cache, as bytes.

use super::{DramCache, Page};
use engine::Snapshot;
use proto::memory::PAGE;

engine::snapshot!(Page { coming, dirty, writing, app, pins });

impl DramCache {
    /// Appends which pages are here, and what [`warm`](DramCache::warm) has changed besides, before the first command.
    ///
    /// # Panics
    /// If it is at work.
    pub fn save_warm(&self, out: &mut Vec<u8>) {
        assert_eq!(self.outstanding(), 0, "a cache is saved before its first command");
        self.controllers.iter().for_each(|controller| controller.tags.save(out));
        (self.ledger.dirtied, self.ledger.stored).save(out);
    }

    /// Takes what was saved of a cache of the same pages off the front of `input`, as it was built itself; `None` if that is malformed,
    /// if a page lies beyond the first `pages`, or if pages and their number contradict one another. Then it must not be used any
    /// more before something else has been loaded.
    pub fn load_warm(&mut self, input: &mut &[u8], pages: u64) -> Option<()> {
        for controller in &mut self.controllers {
            controller.tags.load(input)?;
        }
        (self.ledger.dirtied, self.ledger.stored) = Snapshot::load(input)?;
        let mut dirty = 0;
        for (number, controller) in (0..).zip(&self.controllers) {
            for place in 0..controller.tags.places() {
                let page = controller.tags.meta(place);
                let line = controller.tags.line(place);
                let is_at_rest = Page { dirty: false, ..*page } == Page::default();
                if !is_at_rest || !line.map_or(!page.dirty, |line| self.is_placed(number, line, pages)) {
                    return None;
                }
                dirty += u64::from(page.dirty);
            }
        }
        // Small enough that a run never counts to the end of 64 bits.
        let counts = self.ledger.dirtied < 1 << 62
            && self.ledger.dirtied.checked_sub(self.ledger.stored) == Some(dirty);
        counts.then_some(())
    }

    /// Whether a line of a controller is a page below `pages` that belongs there.
    fn is_placed(&self, number: u16, line: u64, pages: u64) -> bool {
        if line >= pages {
            return false;
        }
        let page = self.layout.page_of(number, line);
        page / PAGE < pages && self.controller_of(page) == number && self.layout.flat(page).is_none()
    }
}
