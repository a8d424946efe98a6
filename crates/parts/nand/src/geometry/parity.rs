//! Placement of parity that protects program units of other dies: superblock parity, or RAIN.
//!
//! Dies form sets of `data + 1`, neighbours on different channels first. A row consists of the program units with equal
//! number, in blocks with equal number, of all dies of a set: one die holds the parity of the others, and this die
//! rotates from row to row. Rows of parity have no slots: slots only count units that can hold data.

use super::Geometry;
use proto::Slot;

/// Sets of dies that protect each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sets {
    /// Program units protected by one parity unit.
    data: u32,
    channels: u32,
    /// Dies per channel.
    per_channel: u32,
}

impl Sets {
    pub(super) fn new(data: u32, channels: u32, dies: u32) -> Sets {
        Sets { data, channels, per_channel: dies / channels }
    }

    /// Returns the number of program units that hold data in a block of `rows`.
    pub(super) fn data_rows(self, rows: u32) -> u32 {
        rows / (self.data + 1) * self.data
    }

    /// Returns a die's position in the order of sets.
    fn place(self, die: u32) -> u32 {
        die % self.per_channel * self.channels + die / self.per_channel
    }

    fn die_at(self, place: u32) -> u32 {
        place % self.channels * self.per_channel + place / self.channels
    }

    /// Returns the row, among each `data + 1`, that holds parity on a die.
    fn row_of_parity(self, die: u32) -> u32 {
        self.place(die) % (self.data + 1)
    }

    /// Returns the row of a die's data program unit number `nth`.
    pub(super) fn row(self, die: u32, nth: u32) -> u32 {
        let (turn, within) = (nth / self.data, nth % self.data);
        turn * (self.data + 1) + within + u32::from(within >= self.row_of_parity(die))
    }

    /// Returns the row of parity that is due on a die with its data program unit number `nth`: the row before it or, at
    /// the end of a rotation, the one after it.
    fn due(self, die: u32, nth: u32) -> Option<u32> {
        let (turn, within) = (nth / self.data, nth % self.data);
        let at = self.row_of_parity(die);
        let is_due = within == at || (at == self.data && within + 1 == self.data);
        is_due.then_some(turn * (self.data + 1) + at)
    }

    /// Returns the data program unit of a die in a row; `None` if it is parity.
    fn nth(self, die: u32, row: u32) -> Option<u32> {
        let (turn, within) = (row / (self.data + 1), row % (self.data + 1));
        let at = self.row_of_parity(die);
        (within != at).then(|| turn * self.data + within - u32::from(within > at))
    }

    /// Iterates over the other dies of a die's set.
    fn others(self, die: u32) -> impl Iterator<Item = u32> {
        let first = self.place(die) / (self.data + 1) * (self.data + 1);
        (first..=first + self.data).map(move |place| self.die_at(place)).filter(move |other| *other != die)
    }
}

impl Geometry {
    /// Returns where parity must be programmed along with the data program unit at a slot, if due.
    #[inline]
    pub fn parity_due(&self, slot: Slot) -> Option<Address> {
        let sets = self.sets?;
        let at = self.address(slot);
        let row = sets.due(at.die, self.program_of_block(slot))?;
        Some(Address { page: row * self.shape.program_pages, ..at })
    }

    /// Iterates over the pages from which a page can be rebuilt: one on each other die of its set; none without parity.
    /// Each comes with its first slot, unless it holds parity.
    pub fn rebuilt_from(&self, at: Address) -> impl Iterator<Item = (Address, Option<Slot>)> + '_ {
        let dies =
            self.sets.into_iter().flat_map(move |sets| sets.others(at.die).map(move |die| (sets, die)));
        dies.map(move |(sets, die)| {
            let (row, page) = (at.page / self.shape.program_pages, at.page % self.shape.program_pages);
            let unit =
                |nth| nth * self.units_per_program + page * self.shape.page_bytes / self.shape.unit_bytes;
            let at = Address { die, ..at };
            let slot = sets
                .nth(die, row)
                .map(|nth| Slot(self.first_slot(self.block_at(at)).0 + u64::from(unit(nth))));
            (at, slot)
        })
    }

    /// Returns the number of program units that hold parity on a device full of data.
    pub fn parity_programs(&self) -> u64 {
        u64::from(self.shape.pages / self.shape.program_pages - self.programs_per_block) * self.block_count
    }
}

// Address of a page among dies and planes.

/// Address of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// Die.
    pub die: u32,
    /// Plane in the die.
    pub plane: u8,
    /// Block in the plane.
    pub block: u32,
    /// Page in the block.
    pub page: u32,
}

#[cfg(test)]
mod tests {
    use super::super::{Reclaim, Shape, tests::small};
    use super::*;
    use std::collections::BTreeMap;

    /// Four dies on two channels; blocks of 24 program units.
    fn geometry(data: u32, reclaim: Reclaim) -> Geometry {
        let shape = Shape { ways: 2, dies: 1, pages: 72, parity: Some(data), ..small(reclaim) };
        Geometry::new(shape)
    }

    fn row_of(at: Address) -> (u8, u32, u32) {
        (at.plane, at.block, at.page)
    }

    #[test]
    fn each_row_of_a_set_has_one_parity_and_data_of_all_other_dies() {
        for (data, reclaim) in [(1, Reclaim::Block), (3, Reclaim::PlaneSet), (3, Reclaim::Superblock)] {
            let geo = geometry(data, reclaim);
            let (mut held, mut parity) = (BTreeMap::new(), BTreeMap::new());
            for slot in (0..geo.slots).step_by(geo.units_per_program as usize).map(Slot) {
                let at = geo.address(slot);
                let row = (at.plane, at.block, at.page);
                held.entry(row).or_insert_with(Vec::new).push(at.die);
                if let Some(due) = geo.parity_due(slot) {
                    assert_eq!((due.die, due.plane, due.block), (at.die, at.plane, at.block));
                    assert_eq!(
                        due.page.abs_diff(at.page),
                        geo.shape.program_pages,
                        "beside what it comes with"
                    );
                    parity.entry((due.plane, due.block, due.page)).or_insert_with(Vec::new).push(due.die);
                }
            }
            let sets = geo.die_count / (data + 1);
            let rows = geo.shape.pages / geo.shape.program_pages;
            assert_eq!(parity.len() as u32, rows * geo.shape.blocks * geo.shape.planes, "a row has parity");
            for (row, of_parity) in &parity {
                let of_data = &held[row];
                assert_eq!((of_parity.len() as u32, of_data.len() as u32), (sets, sets * data), "{row:?}");
                assert!(of_parity.iter().all(|die| !of_data.contains(die)), "{row:?}");
                for die in of_data {
                    let at = Address { die: *die, plane: row.0, block: row.1, page: row.2 };
                    let from: Vec<(Address, Option<Slot>)> = geo.rebuilt_from(at).collect();
                    assert_eq!(from.len() as u32, data);
                    for (other, slot) in &from {
                        assert_eq!((other.plane, other.block, other.page), row_of(at), "{row:?}");
                        assert_eq!(slot.is_none(), of_parity.contains(&other.die), "{row:?}");
                        assert!(slot.is_none_or(|slot| geo.address(slot) == *other), "{row:?}");
                    }
                    assert_eq!(from.iter().filter(|(_, slot)| slot.is_none()).count(), 1, "{row:?}");
                }
            }
            assert_eq!(parity.values().map(|dies| dies.len() as u64).sum::<u64>(), geo.parity_programs());
            // Each die has its share of the parity.
            let of_die = |die: u32| parity.values().filter(|dies| dies.contains(&die)).count();
            assert!(
                (0..geo.die_count)
                    .all(|die| of_die(die) * geo.die_count as usize == parity.len() * sets as usize)
            );
        }
    }

    #[test]
    fn sets_spread_over_channels_first() {
        let geo = geometry(1, Reclaim::Block);
        let at = geo.address(Slot(0));
        let channels = geo.rebuilt_from(at).map(|(other, _)| geo.channel_of_die(other.die));
        assert_eq!(channels.collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn nothing_changes_without_it() {
        let geo = Geometry::new(small(Reclaim::Block));
        assert_eq!((geo.parity_programs(), geo.rebuilt_from(geo.address(Slot(5))).count()), (0, 0));
        assert!((0..geo.slots).all(|slot| geo.parity_due(Slot(slot)).is_none()));
    }
}
