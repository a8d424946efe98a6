//! The implicit base state under the sparse tables.
//!
//! A drive that was filled once in order need not store that: the place of each logical unit follows from the
//! geometry. The tables hold only what has changed since.

use crate::geometry::Geometry;
use proto::{Lpn, Slot};

/// The state that a table entry inherits while it has not been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Base {
    /// Nothing was ever written.
    #[default]
    Empty,
    /// Logical units `0..units` were written once, in order, onto the empty device.
    Sequential {
        /// Logical units written.
        units: u64,
    },
}

impl kernel::Snapshot for Base {
    fn save(&self, out: &mut Vec<u8>) {
        let units = match self {
            Base::Empty => None,
            Base::Sequential { units } => Some(*units),
        };
        units.save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        Some(Option::<u64>::load(input)?.map_or(Base::Empty, |units| Base::Sequential { units }))
    }
}

impl Base {
    /// Where a logical unit lies.
    #[inline]
    pub fn slot(&self, lpn: Lpn, geo: &Geometry) -> Option<Slot> {
        match *self {
            Base::Sequential { units } if lpn.0 < units => {
                let (group, nth, unit) = geo.sequential_place(lpn.0);
                let per_ru = u64::from(geo.programs_per_ru);
                let ru = u64::from(group) * u64::from(geo.shape.blocks) + nth / per_ru;
                Some(Slot(geo.slot_of_program(ru, (nth % per_ru) as u32).0 + u64::from(unit)))
            }
            _ => None,
        }
    }

    /// Which logical unit lies at a slot.
    #[inline]
    pub fn lpn(&self, slot: Slot, geo: &Geometry) -> Option<Lpn> {
        match *self {
            Base::Empty => None,
            Base::Sequential { units } => {
                let (ru, program, unit) = geo.program_of_slot(slot);
                let group = geo.group_of_ru(ru);
                let number = ru - u64::from(group) * u64::from(geo.shape.blocks);
                let nth = number * u64::from(geo.programs_per_ru) + u64::from(program);
                Some(geo.sequential_unit(group, nth, unit)).filter(|l| *l < units).map(Lpn)
            }
        }
    }
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
            let base = Base::Sequential { units };
            match base.slot(Lpn(lpn), &geo) {
                Some(slot) => prop_assert_eq!(base.lpn(slot, &geo), Some(Lpn(lpn))),
                None => prop_assert!(lpn >= units),
            }
        }
    }
}
