//! First touch: a page gets a frame at its first use.

use super::{Extent, Place, Placing, Table, Targets};
use engine::Time;

/// See the family's list.
pub struct FirstTouch {
    table: Table,
}

impl FirstTouch {
    /// Creates the policy for these memories.
    pub fn new(targets: &Targets) -> FirstTouch {
        FirstTouch { table: Table::new(targets) }
    }
}

impl Placing for FirstTouch {
    fn settle(&mut self, extent: &Extent) {
        self.table.settle(extent);
    }
    #[inline]
    fn place(&mut self, page: u32, _now: Time) -> (Place, bool) {
        self.table.place(page)
    }
    fn find(&self, page: u32) -> Option<Place> {
        self.table.find(page)
    }
    fn page_in(&self, place: Place) -> Option<u32> {
        self.table.page_in(place)
    }
    fn frames(&self, target: u8) -> u32 {
        self.table.used(target)
    }
}
