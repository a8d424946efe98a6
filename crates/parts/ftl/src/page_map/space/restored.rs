//! Group whose state comes from outside: from a scan of flash, or from a file that must be sound.

use super::{ByWear, FRESH, FreeUnits, Freed, Frontier, Group, NONE, Ru, RuState};
use crate::page_map::units::Index;
use nand::{array::NandArray, geometry::Geometry};
use std::collections::BTreeSet;

/// Result of a scan of one reclaim unit.
pub struct Recovered {
    /// Number of valid map units.
    pub(crate) valid: u32,
    /// State: free, closed or bad.
    pub(crate) state: RuState,
    /// True if the unit is partly programmed.
    pub(crate) is_short: bool,
    /// Number of its first program: reclaim units are assumed to have been closed in the order in which they were
    /// opened.
    pub(crate) opened: u64,
    /// Erase count.
    pub(crate) erases: u32,
    /// Placement in its out-of-band area.
    pub(crate) placement: u8,
}

impl Group {
    /// Adopts the result of a scan, one record for each usable unit. No unit is open: the next program opens a free
    /// one.
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

// Consistency of the lists of a loaded group with its reclaim units.

impl Group {
    /// Returns whether this group can replace a built one: as many units, streams and lists, and no number beyond them.
    pub fn fits(&self, built: &Group) -> bool {
        let count = self.rus.len() as u32;
        let is_opened = |ru: &u32| *ru < count;
        let freed = match (&self.free.freed, &built.free.freed) {
            (Freed::FirstFreed(list), Freed::FirstFreed(_)) => list.iter().all(is_opened),
            (Freed::LeastWorn(set), Freed::LeastWorn(_)) => set.iter().all(|(_, ru)| is_opened(ru)),
            _ => false,
        };
        let pools = match (&self.pools, &built.pools) {
            (Some(pools), Some(built)) => pools.fits(built),
            (pools, built) => pools.is_none() && built.is_none(),
        };
        let by_wear = match (&self.by_wear, &built.by_wear) {
            (Some(wear), Some(built)) => wear.fits(built),
            (wear, built) => wear.is_none() && built.is_none(),
        };
        let end = built.free.end;
        freed
            && pools
            && by_wear
            && self.rus.len() == self.closed_at.len()
            && count <= end
            && self.free.end == end
            && self.free.fresh <= end
            && self.free_min <= end
            && self.retired <= count
            && self.frontiers.len() == built.frontiers.len()
            && self.frontiers.iter().all(|frontier| frontier.ru == NONE || is_opened(&frontier.ru))
            && self.index.fits(&built.index, count)
    }

    /// Returns the free units that were opened before, each with the erase count that it is listed under, if any.
    fn freed_by_wear(&self) -> Vec<(Option<u32>, u32)> {
        match &self.free.freed {
            Freed::FirstFreed(list) => list.iter().map(|ru| (None, *ru)).collect(),
            Freed::LeastWorn(set) => set.iter().map(|(erases, ru)| (Some(*erases), *ru)).collect(),
        }
    }
}

/// Returns the highest erase count of a reclaim unit's blocks.
pub(crate) fn erases_of(array: &NandArray, geo: &Geometry, ru: u64) -> u32 {
    (0..geo.lanes).map(|lane| array.erases(geo.block_of_ru(ru, lane))).max().unwrap_or(0)
}

/// Returns whether every list of a group that fits holds exactly its units, each once and in the right place; `erases`
/// are their erase counts.
pub(crate) fn is_group_sound(
    group: &Group,
    geo: &Geometry,
    placements: u8,
    clock: u64,
    erases: &dyn Fn(u32) -> u32,
) -> bool {
    let is_unit = |ru: &Ru| {
        ru.valid <= geo.units_per_ru
            && ru.placement < placements.max(1)
            && (ru.state != RuState::Free || ru.valid == 0)
            && (!ru.short || ru.state == RuState::Closed)
    };
    let freed = group.freed_by_wear();
    let known: BTreeSet<u32> = freed.iter().map(|(_, ru)| *ru).collect();
    let is_free = |(worn, ru): &(Option<u32>, u32)| {
        *ru < group.free.fresh
            && group.ru(*ru).state == RuState::Free
            && worn.is_none_or(|worn| worn == erases(*ru))
    };
    let open: BTreeSet<u32> = group.open_units().map(|(ru, _)| ru).collect();
    let is_open = |(ru, next): (u32, u32)| group.ru(ru).state == RuState::Open && next < geo.programs_per_ru;
    let closed = |ru: u32| {
        let unit = group.ru(ru);
        (unit.state == RuState::Closed).then_some((unit.valid, unit.placement))
    };
    group.rus.iter().all(is_unit)
        && group.closed_at.iter().all(|at| *at <= clock)
        && known.len() == freed.len()
        && freed.iter().all(is_free)
        && open.len() == group.open_units().count()
        && group.open_units().all(is_open)
        && group.index.is_sound(&|ru| closed(ru).map(|(valid, _)| valid))
        && group.pools.as_ref().is_none_or(|pools| pools.are_sound(&closed))
        && group
            .by_wear
            .as_ref()
            .is_none_or(|wear| wear.is_sound(group.index.len(), &|ru| closed(ru).is_some(), erases))
}
