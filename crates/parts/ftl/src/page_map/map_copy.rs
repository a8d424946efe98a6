//! The map as it stood at some moment, against the map as it is.

use super::Ftl;
use nand::base::Base;
use nand::geometry::Geometry;
use nand::sparse::Table;
use proto::{Lpn, Slot};

/// The map as it stood at some moment.
pub struct MapCopy {
    map: Table,
    base: Base,
}

impl MapCopy {
    /// Where a logical unit lay.
    pub fn lookup(&self, lpn: Lpn, geo: &Geometry) -> Option<Slot> {
        lookup(&self.map, &self.base, lpn, geo)
    }

    /// Units whose place had been written into the map, in ascending order: all others were where the base says.
    pub fn written(&self) -> impl Iterator<Item = Lpn> {
        self.map.written().map(Lpn)
    }

    /// Whether a unit's place had been written into the map.
    pub fn is_written(&self, lpn: Lpn) -> bool {
        self.map.get(lpn.0).is_some()
    }
}

#[inline]
pub(super) fn lookup(map: &Table, base: &Base, lpn: Lpn, geo: &Geometry) -> Option<Slot> {
    match map.get(lpn.0) {
        Some(word) => word.checked_sub(1).map(Slot),
        None => base.slot(lpn, geo),
    }
}

impl Ftl {
    /// The map as it stands, for an observer that must know what there was when it began.
    pub fn map_copy(&self) -> MapCopy {
        MapCopy { map: self.map.clone(), base: self.base }
    }

    /// Units whose place has been written into the map, in ascending order: all others are where the base says.
    pub fn written(&self) -> impl Iterator<Item = Lpn> {
        self.map.written().map(Lpn)
    }

    /// Whether a unit's place has been written into the map.
    pub fn is_written(&self, lpn: Lpn) -> bool {
        self.map.get(lpn.0).is_some()
    }

    /// Whether the base is that of a copy of the map.
    pub fn based_on(&self, copy: &MapCopy) -> bool {
        self.base == copy.base
    }

    /// The unit that the base has at a slot.
    pub fn base_unit(&self, slot: Slot) -> Option<Lpn> {
        self.base.lpn(slot, &self.geo)
    }
}
