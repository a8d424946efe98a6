//! Sequence numbers in the out-of-band area: which of two copies of a unit is the newer one.

use crate::geometry::Geometry;
use crate::sparse::Table;
use proto::Slot;
use std::collections::BTreeSet;

/// Moves of a copy that are told apart.
const MOVES: u64 = 255;

/// How new a copy is; of two copies of a unit the greater one counts.
///
/// It is the number of the program that the data came to flash with, and stays with the data when it is moved. A copy
/// that was moved loses against the one that it was made from: whatever the cut caught garbage collection at, its
/// victim is still whole, and what it had written is waste.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stamp(u64);

impl Stamp {
    /// Of a unit that is no copy of anything: erased, padding, torn, or refused by the map.
    pub const VOID: Stamp = Stamp(0);

    fn new(sequence: u64) -> Stamp {
        Stamp(sequence << 8 | MOVES)
    }
    /// Of a copy that is made of this one.
    pub fn moved(self) -> Stamp {
        if self.0 & MOVES == 0 { self } else { Stamp(self.0 - 1) }
    }
    /// The number of the program.
    pub fn sequence(self) -> u64 {
        self.0 >> 8
    }
}

/// Sequence numbers of a device's copies. Memory grows with the blocks that are touched.
#[derive(Clone, Debug)]
pub struct Stamps {
    by_slot: Table,
    /// Number of the first program since a block was erased; 0 if there was none.
    opened: Vec<u64>,
    /// Blocks whose erase was cut short: nothing in them can be read.
    unreadable: BTreeSet<u64>,
    /// Number of the last program.
    last: u64,
}

engine::snapshot!(Stamps { by_slot, opened, unreadable, last });

impl Stamps {
    /// Nothing has a number yet; the next program's is greater than `last`.
    pub fn new(geo: &Geometry, last: u64) -> Stamps {
        Stamps {
            by_slot: Table::new(geo.slots, u64::MAX),
            opened: vec![0; geo.block_count as usize],
            unreadable: BTreeSet::new(),
            last,
        }
    }

    /// Whether these are of an array of so many slots and blocks.
    pub fn is_of(&self, slots: u64, blocks: u64) -> bool {
        self.by_slot.len() == slots
            && self.opened.len() as u64 == blocks
            && self.unreadable.iter().all(|block| *block < blocks)
    }

    /// The number of the last program.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// A program has been done: the stamp of its data.
    pub fn issue(&mut self) -> Stamp {
        self.last += 1;
        Stamp::new(self.last)
    }

    /// The stamp of what was there before numbers were kept.
    pub fn present(&self) -> Stamp {
        Stamp::new(self.last)
    }

    /// The stamp of a copy.
    pub fn get(&self, slot: Slot) -> Stamp {
        self.by_slot.get(slot.0).map_or(Stamp::VOID, Stamp)
    }

    /// Writes the stamp of a copy.
    pub fn set(&mut self, slot: Slot, stamp: Stamp) {
        self.by_slot.set(slot.0, stamp.0);
    }

    /// A program has been done in a block.
    pub fn open(&mut self, block: u64) {
        if self.opened[block as usize] == 0 {
            self.opened[block as usize] = self.last;
        }
    }

    /// A block was opened at some time before numbers were kept.
    pub fn assume_opened(&mut self, block: u64, sequence: u64) {
        self.opened[block as usize] = sequence;
    }

    /// The number of the first program since a block was erased.
    pub fn opened(&self, block: u64) -> u64 {
        self.opened[block as usize]
    }

    /// A block has been erased.
    pub fn erase(&mut self, block: u64, geo: &Geometry) {
        self.void(block, geo);
        self.opened[block as usize] = 0;
        self.unreadable.remove(&block);
    }

    /// The erase of a block has been cut short.
    pub fn tear(&mut self, block: u64, geo: &Geometry) {
        self.void(block, geo);
        self.unreadable.insert(block);
    }

    /// Whether the erase of a block was cut short.
    pub fn is_unreadable(&self, block: u64) -> bool {
        self.unreadable.contains(&block)
    }

    fn void(&mut self, block: u64, geo: &Geometry) {
        let first = geo.first_slot(block).0;
        for slot in (first..first + u64::from(geo.units_per_block)).map(Slot) {
            if self.get(slot) != Stamp::VOID {
                self.set(slot, Stamp::VOID);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_programs_win_and_copies_lose_against_their_source() {
        let (old, new) = (Stamp::new(7), Stamp::new(8));
        assert!(new > old && new.moved() > old && old > old.moved() && old.moved() > old.moved().moved());
        assert_eq!((old.sequence(), old.moved().sequence()), (7, 7));
        let often = (0..1000).fold(old, |stamp, _| stamp.moved());
        assert!(often > Stamp::new(6) && often.sequence() == 7);
    }
}
