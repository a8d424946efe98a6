//! What use before a run leaves of a DRAM cache, as bytes.

use super::{DramCache, Page};
use kernel::Snapshot;

kernel::snapshot!(Page { coming, dirty, writing, app, pins });

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

    /// Takes what was saved of a cache of the same pages off the front of `input`, as it was built itself; `None` if that is malformed:
    /// then it must not be used any more.
    pub fn load_warm(&mut self, input: &mut &[u8]) -> Option<()> {
        for controller in &mut self.controllers {
            controller.tags.load(input)?;
        }
        (self.ledger.dirtied, self.ledger.stored) = Snapshot::load(input)?;
        Some(())
    }
}
