//! The translation layer from what is on flash.

use super::{Durable, Journal, Recovery};
use crate::page_map::space::Recovered;
use crate::page_map::unit::RuState;
use crate::page_map::{Ftl, FtlCounters};
use nand::array::{NandArray, Stamp};
use nand::geometry::Geometry;
use proto::{Lpn, Slot};

/// Whether the first of two copies of a unit counts more than the second.
pub type Newer = fn(Stamp, Stamp) -> bool;

impl Ftl {
    /// Rebuilds an empty translation layer of the same shape from what a cut has left. Calls `erased` with each block
    /// that it erases. O(slots).
    pub fn recover(
        &mut self,
        durable: Durable,
        newer: Newer,
        mut erased: impl FnMut(u64),
    ) -> (Recovery, Journal) {
        let Durable { array, base, journal, retired, cached, .. } = durable;
        let mut report = Recovery::default();
        self.array = array;
        self.set_base(base);
        self.find_skips();
        for ru in 0..self.geo.ru_count {
            if was_being_erased(&self.array, &self.geo, ru) {
                erase_rest(&mut self.array, &self.geo, ru, &mut erased);
                report.erases += 1;
            }
        }
        self.find_newest(&journal, newer, &mut report);
        let logical = self.logical();
        for lpn in (0..logical + self.hidden()).map(Lpn) {
            report.units += u64::from(self.accept_found(lpn));
        }
        self.rebuild_groups(&retired, &mut report, &mut erased);
        self.assume_retired(&retired);
        self.find_slc(&cached);
        (report, journal)
    }

    /// Points the map at the newest copy of each unit.
    fn find_newest(&mut self, journal: &Journal, newer: Newer, report: &mut Recovery) {
        let units = self.logical() + self.hidden();
        self.forget_map();
        for block in 0..self.geo.block_count {
            let programs = self.array.programs(block);
            report.pages_scanned += u64::from(programs * self.geo.shape.program_pages);
            let first = self.geo.first_slot(block).0;
            for slot in (first..first + u64::from(programs * self.geo.units_per_program)).map(Slot) {
                let stamp = self.stamp(slot);
                let Some(lpn) = self.lpn_at(slot).filter(|l| stamp != Stamp::VOID && l.0 < units) else {
                    continue;
                };
                report.copies += 1;
                if journal.outdates(lpn, stamp.sequence()) {
                    report.deallocated += 1;
                    continue;
                }
                match self.found(lpn) {
                    Some(other) => {
                        report.outdated += 1;
                        if newer(stamp, self.stamp(other)) {
                            self.find(lpn, slot);
                        }
                    }
                    None => self.find(lpn, slot),
                }
            }
        }
    }

    fn stamp(&self, slot: Slot) -> Stamp {
        self.array.stamps.as_ref().map_or(Stamp::VOID, |s| s.get(slot))
    }

    /// Gives every reclaim unit its place: free, closed, or closed before it was full.
    ///
    /// A job of garbage collection opens at most one unit. When it is cut, all that this unit holds was copied from a
    /// victim that is still whole, and nothing in it counts, even if it is full by then. It has to be free again before
    /// anything is collected: it may have been the last of the reserve.
    fn rebuild_groups(&mut self, retired: &[u64], report: &mut Recovery, erased: &mut impl FnMut(u64)) {
        let blocks = self.geo.shape.blocks;
        for group in 0..self.geo.groups {
            let first = u64::from(group) * u64::from(blocks);
            let mut units = Vec::with_capacity(blocks as usize);
            for ru in first..first + u64::from(self.usable(group)) {
                let valid = self.found_in(ru);
                let programs = programs(&self.array, &self.geo, ru);
                let state = match () {
                    () if retired.contains(&ru) => RuState::Bad,
                    () if valid == 0 => RuState::Free,
                    () => RuState::Closed,
                };
                if state == RuState::Free && programs > 0 {
                    erase_rest(&mut self.array, &self.geo, ru, erased);
                    report.erases += 1;
                }
                let is_short = state == RuState::Closed && programs < self.geo.programs_per_ru;
                report.closed_short += u64::from(is_short);
                let lane = self.geo.block_of_ru(ru, 0);
                units.push(Recovered {
                    valid,
                    state,
                    is_short,
                    opened: self.array.stamps.as_ref().map_or(0, |s| s.opened(lane)),
                    erases: self.array.erases(lane),
                    placement: self.placement_on_flash(ru),
                });
            }
            self.groups[group as usize].recover(&self.geo, &units);
        }
        let erases: u64 = self.array.all_erases().iter().map(|n| u64::from(*n)).sum();
        self.counters = FtlCounters { erases: erases / u64::from(self.geo.lanes), ..FtlCounters::default() };
        self.set_clock(self.array.stamps.as_ref().map_or(0, |s| s.last()));
    }
}

/// Program units of a reclaim unit that are used.
fn programs(array: &NandArray, geo: &Geometry, ru: u64) -> u32 {
    (0..geo.lanes).map(|lane| array.programs(geo.block_of_ru(ru, lane))).sum()
}

/// Whether the cut has found a reclaim unit between two states: some block unreadable, or erased more often than the
/// others.
fn was_being_erased(array: &NandArray, geo: &Geometry, ru: u64) -> bool {
    let first = array.erases(geo.block_of_ru(ru, 0));
    (0..geo.lanes).map(|lane| geo.block_of_ru(ru, lane)).any(|block| {
        array.erases(block) != first || array.stamps.as_ref().is_some_and(|s| s.is_unreadable(block))
    })
}

/// Erases the blocks of a reclaim unit that have not been erased with the others.
fn erase_rest(array: &mut NandArray, geo: &Geometry, ru: u64, erased: &mut impl FnMut(u64)) {
    let blocks = || (0..geo.lanes).map(|lane| geo.block_of_ru(ru, lane));
    let most = blocks().map(|block| array.erases(block)).max().unwrap_or(0);
    let least = blocks().map(|block| array.erases(block)).min().unwrap_or(0);
    let target = if least < most { most } else { most + 1 };
    for block in blocks() {
        if array.erases(block) < target {
            array.erase(block);
            if let Some(stamps) = &mut array.stamps {
                stamps.erase(block, geo);
            }
            erased(block);
        }
    }
}
