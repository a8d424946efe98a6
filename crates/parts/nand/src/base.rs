//! Implicit base state under the sparse tables.
//!
//! A drive that was filled once in order need not store that: the place of each logical unit follows from the geometry.
//! The tables hold only the changes since.

use crate::geometry::Geometry;
use proto::{Lpn, Slot};

/// State that a table entry inherits until it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Base {
    /// Empty device.
    #[default]
    Empty,
    /// Logical units `0..units` were written once, in order, onto the empty device.
    Sequential {
        /// Logical units written.
        units: u64,
    },
    /// Logical units written once, one unit after another to the next group in turn, each group filling its own program
    /// unit. This holds as far as the units fill a program unit of every group; the rest followed in order.
    Interleaved {
        /// Logical units written.
        units: u64,
    },
}

impl engine::Snapshot for Base {
    fn save(&self, out: &mut Vec<u8>) {
        let written = match self {
            Base::Empty => None,
            Base::Sequential { units } => Some((*units, false)),
            Base::Interleaved { units } => Some((*units, true)),
        };
        written.save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        Some(match Option::<(u64, bool)>::load(input)? {
            None => Base::Empty,
            Some((units, false)) => Base::Sequential { units },
            Some((units, true)) => Base::Interleaved { units },
        })
    }
}

impl Base {
    /// Returns the number of logical units written.
    pub fn units(&self) -> u64 {
        match *self {
            Base::Empty => 0,
            Base::Sequential { units } | Base::Interleaved { units } => units,
        }
    }

    /// Returns the slot of a logical unit.
    #[inline]
    pub fn slot(&self, lpn: Lpn, geo: &Geometry) -> Option<Slot> {
        match *self {
            Base::Sequential { units } if lpn.0 < units => Some(sequential(lpn.0, geo)),
            Base::Interleaved { units } if lpn.0 < units => {
                let row = row(geo);
                let (whole, within) = (lpn.0 / row, lpn.0 % row);
                if (whole + 1) * row > units {
                    return Some(sequential(lpn.0, geo));
                }
                let (turn, group) = (within / u64::from(geo.groups), within % u64::from(geo.groups));
                Some(sequential(whole * row + group * u64::from(geo.units_per_program) + turn, geo))
            }
            _ => None,
        }
    }

    /// Returns the logical unit at a slot.
    #[inline]
    pub fn lpn(&self, slot: Slot, geo: &Geometry) -> Option<Lpn> {
        match *self {
            Base::Empty => None,
            Base::Sequential { units } => Some(in_order(slot, geo)).filter(|l| *l < units).map(Lpn),
            Base::Interleaved { units } => {
                let (row, nth) = (row(geo), in_order(slot, geo));
                let (whole, within) = (nth / row, nth % row);
                if (whole + 1) * row > units {
                    return Some(nth).filter(|l| *l < units).map(Lpn);
                }
                let per_program = u64::from(geo.units_per_program);
                let (group, turn) = (within / per_program, within % per_program);
                Some(Lpn(whole * row + turn * u64::from(geo.groups) + group))
            }
        }
    }
}

/// Returns the number of units in one program unit of every group.
fn row(geo: &Geometry) -> u64 {
    u64::from(geo.groups) * u64::from(geo.units_per_program)
}

/// Returns the slot of the unit with index `nth` in write order.
fn sequential(nth: u64, geo: &Geometry) -> Slot {
    let (group, nth, unit) = geo.sequential_place(nth);
    let per_ru = u64::from(geo.programs_per_ru);
    let ru = u64::from(group) * u64::from(geo.shape.blocks) + nth / per_ru;
    Slot(geo.slot_of_program(ru, (nth % per_ru) as u32).0 + u64::from(unit))
}

/// Returns the number of units written before the one at a slot.
fn in_order(slot: Slot, geo: &Geometry) -> u64 {
    let (ru, program, unit) = geo.program_of_slot(slot);
    let group = geo.group_of_ru(ru);
    let number = ru - u64::from(group) * u64::from(geo.shape.blocks);
    let nth = number * u64::from(geo.programs_per_ru) + u64::from(program);
    geo.sequential_unit(group, nth, unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Reclaim, tests::small};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slot_and_lpn_are_inverse(which in 0usize..3, units in 1u64..4000, lpn in 0u64..4000) {
            let geo = Geometry::new(small([Reclaim::Block, Reclaim::PlaneSet, Reclaim::Superblock][which]));
            for base in [Base::Sequential { units }, Base::Interleaved { units }] {
                match base.slot(Lpn(lpn), &geo) {
                    Some(slot) => prop_assert_eq!(base.lpn(slot, &geo), Some(Lpn(lpn))),
                    None => prop_assert!(lpn >= units),
                }
            }
        }

        #[test]
        fn interleaved_units_take_the_slots_of_those_in_order(which in 0usize..3, units in 1u64..2000) {
            let geo = Geometry::new(small([Reclaim::Block, Reclaim::PlaneSet, Reclaim::Superblock][which]));
            let slots = |base: Base| {
                let all = (0..units).filter_map(|lpn| base.slot(Lpn(lpn), &geo));
                all.map(|slot| slot.0).collect::<std::collections::BTreeSet<_>>()
            };
            prop_assert_eq!(slots(Base::Sequential { units }), slots(Base::Interleaved { units }));
            // Neighbours are in different groups, in turn.
            if units >= row(&geo) && geo.groups > 1 {
                let group = |lpn| geo.group_of_ru(geo.ru_of_slot(Base::Interleaved { units }.slot(Lpn(lpn), &geo).expect("written")));
                for lpn in 0..u64::from(geo.groups) {
                    prop_assert_eq!(group(lpn), geo.group_at(lpn));
                }
            }
        }
    }
}
