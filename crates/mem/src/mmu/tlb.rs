//! A translation lookaside buffer as a table without time.

use crate::cache::replace::ReplacementPolicy;
use crate::cache::tags::{Shape, Tags};

/// Applications that one buffer can tell apart.
const APPS: u64 = 256;

/// Translations of pages, tagged with their application.
pub struct Tlb {
    tags: Tags<u64>,
}

impl Tlb {
    /// An empty buffer of `entries` in sets of `ways`, least recently used out first.
    pub fn new(entries: u32, ways: u32) -> Tlb {
        let shape = Shape { sets: entries / ways, ways };
        Tlb { tags: Tags::new(shape, &ReplacementPolicy::lru) }
    }

    /// The physical page behind a virtual one, if it is here; that counts as a use.
    #[inline]
    pub fn look_up(&mut self, app: u8, page: u64) -> Option<u64> {
        let place = self.tags.find(page * APPS + u64::from(app))?;
        self.tags.touch(place);
        Some(*self.tags.meta(place))
    }

    /// Takes a translation in.
    pub fn fill(&mut self, app: u8, page: u64, frame: u64) {
        let key = page * APPS + u64::from(app);
        match self.tags.find(key) {
            Some(place) => *self.tags.meta_mut(place) = frame,
            None => {
                self.tags.insert(key, frame, |_| true);
            }
        }
    }

    /// Forgets a translation.
    pub fn invalidate(&mut self, app: u8, page: u64) {
        if let Some(place) = self.tags.find(page * APPS + u64::from(app)) {
            self.tags.remove(place);
        }
    }
}
