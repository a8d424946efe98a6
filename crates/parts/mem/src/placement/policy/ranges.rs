//! Addresses fill the memories in order.

use super::{Extent, Place, Placing, Targets};
use engine::Time;

/// See the family's list.
pub struct Ranges {
    targets: Targets,
    pages: u32,
}

impl Ranges {
    /// Creates the policy for these memories.
    pub fn new(targets: &Targets) -> Ranges {
        Ranges { targets: targets.clone(), pages: 0 }
    }
}

impl Placing for Ranges {
    fn settle(&mut self, extent: &Extent) {
        self.pages = extent.end;
    }
    #[inline]
    fn place(&mut self, page: u32, _now: Time) -> (Place, bool) {
        (self.targets.place(page), false)
    }
    fn find(&self, page: u32) -> Option<Place> {
        (page < self.pages).then(|| self.targets.place(page))
    }
    fn page_in(&self, place: Place) -> Option<u32> {
        Some(self.targets.number(place)).filter(|page| *page < self.pages)
    }
    fn frames(&self, target: u8) -> u32 {
        self.targets.among(self.pages, target)
    }
}
