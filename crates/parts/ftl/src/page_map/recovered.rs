//! The map as a scan of flash finds it.

use super::{DEALLOCATED, Ftl};
use nand::array::NandArray;
use nand::base::Base;
use nand::sparse::{Bits, Table};
use proto::{Lpn, Slot};

impl Ftl {
    /// What survives a power cut.
    pub fn into_array(self) -> (NandArray, Base) {
        (self.array, self.base)
    }

    /// What never-erased blocks hold that are not stored one by one. The map must not follow it: see
    /// [`Ftl::forget_map`].
    pub fn set_base(&mut self, base: Base) {
        self.base = base;
    }

    /// Begins a scan: no unit has been found.
    pub fn forget_map(&mut self) {
        let units = self.logical + self.hidden;
        self.map = Table::new(units, self.geo.slots + 2);
        self.valid = Bits::new(self.geo.slots);
        self.mapped = 0;
    }

    /// The copy of a unit that counts so far.
    pub fn found(&self, lpn: Lpn) -> Option<Slot> {
        self.map.get(lpn.0).and_then(|word| word.checked_sub(1)).map(Slot)
    }

    /// A copy of a unit counts more than the one found before.
    pub fn find(&mut self, lpn: Lpn, slot: Slot) {
        self.map.set(lpn.0, slot.0 + 1);
    }

    /// Ends the search for a unit: what was found is valid, and a unit that was not found holds no data. Whether it was.
    pub fn accept_found(&mut self, lpn: Lpn) -> bool {
        let Some(slot) = self.found(lpn) else {
            self.map.set(lpn.0, DEALLOCATED);
            return false;
        };
        self.valid.flip(slot.0);
        self.mapped += u64::from(lpn.0 < self.logical);
        true
    }

    /// Units found in a reclaim unit.
    pub fn found_in(&self, ru: u64) -> u32 {
        (0..self.geo.lanes)
            .map(|lane| {
                let first = self.geo.first_slot(self.geo.block_of_ru(ru, lane)).0;
                self.valid.ones(first..first + u64::from(self.geo.units_per_block), 0).count() as u32
            })
            .sum()
    }

    /// Ages count from here on.
    pub fn set_clock(&mut self, clock: u64) {
        self.clock = clock;
    }

    /// Map units committed since the beginning.
    pub fn clock(&self) -> u64 {
        self.clock
    }
}
