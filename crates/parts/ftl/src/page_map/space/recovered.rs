//! A group as a scan of flash finds it.

use super::{ByWear, FRESH, FreeUnits, Freed, Frontier, Group, NONE, Ru, RuState};
use crate::page_map::index::Index;
use nand::geometry::Geometry;

/// What a scan says about a reclaim unit.
pub struct Recovered {
    /// Valid map units.
    pub(crate) valid: u32,
    /// Free, closed or bad.
    pub(crate) state: RuState,
    /// Programmed in part.
    pub(crate) is_short: bool,
    /// Number of its first program: reclaim units are taken to have been closed in the order in which they were opened.
    pub(crate) opened: u64,
    /// Erase count.
    pub(crate) erases: u32,
    /// The placement in its out-of-band area.
    pub(crate) placement: u8,
}

impl Group {
    /// Takes over what a scan has found, one record for each usable unit. No unit is open: the next program opens a free one.
    pub fn recover(&mut self, geo: &Geometry, units: &[Recovered]) {
        let least_worn = matches!(self.free.freed, Freed::LeastWorn(_));
        let count = units.len() as u32;
        self.free = FreeUnits { fresh: count, ..FreeUnits::new(count, least_worn) };
        self.index = Index::new(count, geo.units_per_ru);
        self.frontiers.fill(Frontier { ru: NONE, next: 0 });
        self.rus = units
            .iter()
            .map(|unit| Ru {
                valid: unit.valid,
                state: unit.state,
                short: unit.is_short,
                placement: unit.placement,
                ..FRESH
            })
            .collect();
        self.closed_at = units.iter().map(|unit| unit.opened).collect();
        self.valid = units.iter().map(|unit| u64::from(unit.valid)).sum();
        let of = |state: RuState| (0..count).filter(move |n| units[*n as usize].state == state);
        let mut closed: Vec<u32> = of(RuState::Closed).collect();
        closed.sort_by_key(|n| units[*n as usize].opened);
        if let Some(wear) = &mut self.by_wear {
            *wear = ByWear::new(count);
            (0..count).zip(units).for_each(|(number, unit)| wear.erased(number, unit.erases));
        }
        self.pools = self.pools.as_ref().map(|pools| pools.emptied(geo.units_per_ru));
        for number in closed {
            self.list_closed(number, units[number as usize].opened);
        }
        for number in of(RuState::Free) {
            self.free.put(number, units[number as usize].erases);
        }
        self.retired = of(RuState::Bad).count() as u32;
        self.free_min = self.free.len();
    }
}
