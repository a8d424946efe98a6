//! Power cuts: the durable state, and the recovery of a device.
//!
//! Durable are the NAND array (page states, and in the out-of-band area of each unit its address and its stamp), the
//! journal of deallocations (`journal`), the list of bad units, and the dirty lines of a protected buffer
//! ([`Durable`]). Everything else is in DRAM and lost: map, valid bits, free lists, frontiers, indexes, the volatile
//! buffer, commands.
//!
//! * A program in flight is **torn**: its program unit is used up and unreadable. One that has not left the queue, or
//!   whose data is still on the channel, has not happened.
//! * An erase in flight leaves the block unreadable; it is erased again. So are the other blocks of its reclaim unit,
//!   whose data had been moved before.
//! * A **scan** reads the out-of-band area of every programmed page; among the copies of a unit the one with the
//!   greatest stamp counts, unless the journal has deallocated it.
//! * Reclaim units that were open are **closed** as they are: nothing is appended after a torn page. All units without
//!   valid data are erased, full ones too: garbage collection needs its reserve back before it can go on.
//!
//! Assumed, and not modelled: an interrupted program leaves the other pages of its word line intact (drives keep a copy
//! of the lower page, or program in one shot); the stamp is assigned when a program completes, so that numbers follow
//! the order in which the map accepted the copies; translation pages are rebuilt in memory, and writing them back takes
//! no time.
//!
//! Stamps cost memory and a little time, so a device keeps them only on request (`Device::record_stamps` of `ssd`).
//! They change no result.

use crate::{
    buffer::Sectors,
    page_map::{Ftl, FtlCounters, space::Recovered, units::RuState},
};
use engine::Time;
use nand::base::Base;
use nand::{
    array::{NandArray, Stamp},
    geometry::Geometry,
};
use proto::{Lpn, Slot};
use serde::Serialize;
use std::collections::BTreeMap;

/// State of a device after a power cut.
#[derive(Clone, Debug)]
pub struct Durable {
    /// Content of the cells.
    pub array: NandArray,
    /// Content of never-erased blocks of the array that is not stored one by one.
    pub base: Base,
    /// Journal of the drive's map.
    pub journal: Journal,
    /// Reclaim units that have failed.
    pub retired: Vec<u64>,
    /// Reclaim units written with one bit per cell.
    pub cached: Vec<u64>,
    /// Dirty sectors of a protected buffer, oldest first.
    pub lines: Vec<(Lpn, Sectors)>,
    /// Placements of the last writes of these lines.
    pub placements: Vec<u8>,
    /// Work interrupted by the cut.
    pub cut: Cut,
}

/// Work interrupted by a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Commands that were not completed.
    pub commands: u64,
    /// Programs in flight: their program units are torn.
    pub torn_programs: u64,
    /// Erases in flight: their blocks are unreadable.
    pub torn_erases: u64,
    /// Deallocations not yet written to the journal: their units hold their last data again.
    pub trims_undone: u64,
    /// Units of a volatile buffer that were not on flash.
    pub lines_lost: u64,
    /// Units of a protected buffer that were not on flash: they are preserved.
    pub lines_kept: u64,
}

/// Work of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// Pages whose out-of-band area was read: all programmed ones.
    pub pages_scanned: u64,
    /// Copies found.
    pub copies: u64,
    /// Copies that are out of date.
    pub outdated: u64,
    /// Copies deallocated according to the journal.
    pub deallocated: u64,
    /// Logical units that hold data, including translation pages.
    pub units: u64,
    /// Reclaim units erased: their erase had been interrupted, or something was programmed in them and nothing was
    /// valid.
    pub erases: u64,
    /// Reclaim units closed before they were full.
    pub closed_short: u64,
    /// Time of the scan and the erases, with all dies working: that of the busiest die or channel. An estimate from the
    /// device's own times; the controller's work on the entries is not included.
    #[serde(skip)]
    pub time: Time,
}

// Deallocations that survive a power cut.
//
// A deallocation changes the map in memory and nothing on flash: the unit's old copy is still there, with its address
// and number, and a scan would find it. So the controller writes a journal of the deallocated units, each with the
// number of the program before it. Assumed: the journal has a separate place (a few blocks of SLC that the capacity
// does not count), and writing it takes no time. It is written
//
// * with a flush command,
// * with a write of zeroes that is completed from flash,
// * with a deallocation that takes data from the buffer whose write waits to become durable,
// * before any block is erased: the newest copy of a deallocated unit may be in it, and an older one elsewhere,
// * at once, if the device's memory is protected: it is stored there.
//
// Entries not yet written are lost in a cut: the unit holds its last data again, as NVMe allows until a flush has
// completed.

/// Journal of units deallocated and not written since, with the number of the last program before that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    written: BTreeMap<u64, u64>,
    pending: BTreeMap<u64, u64>,
}

engine::snapshot!(Journal { written, pending });

impl Journal {
    /// Adds a unit deallocated after program `sequence`.
    pub fn trimmed(&mut self, lpn: Lpn, sequence: u64) {
        self.pending.insert(lpn.0, sequence);
    }

    /// Removes a unit with a newer copy on flash.
    pub fn superseded(&mut self, lpn: Lpn) {
        self.written.remove(&lpn.0);
        self.pending.remove(&lpn.0);
    }

    /// Writes the pending entries.
    pub fn write(&mut self) {
        self.written.append(&mut self.pending);
    }

    /// Returns the journal after a power cut, and the number of deallocations that it undoes.
    pub fn cut(mut self) -> (Journal, u64) {
        let undone = self.pending.len() as u64;
        self.pending.clear();
        (self, undone)
    }

    /// Returns whether a copy of a unit with this number was deallocated.
    pub fn outdates(&self, lpn: Lpn, sequence: u64) -> bool {
        self.written.get(&lpn.0).is_some_and(|trimmed| sequence <= *trimmed)
    }
}

// Rebuilding the translation layer from flash.

/// Predicate: the first of two copies of a unit counts more than the second.
pub type Newer = fn(Stamp, Stamp) -> bool;

impl Ftl {
    /// Rebuilds an empty translation layer of the same shape from the state after a cut. Calls `erased` with each block
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

    /// Sets the state of every reclaim unit: free, closed, or closed before it was full.
    ///
    /// A job of garbage collection opens at most one unit. When the job is interrupted, everything in this unit was
    /// copied from a victim that is still complete, and none of it counts, even if the unit is full by then. The unit
    /// must be free again before anything is collected: it may have been the last of the reserve.
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

/// Returns the number of used program units of a reclaim unit.
fn programs(array: &NandArray, geo: &Geometry, ru: u64) -> u32 {
    (0..geo.lanes).map(|lane| array.programs(geo.block_of_ru(ru, lane))).sum()
}

/// Returns whether the cut has left a reclaim unit between two states: some block unreadable, or erased more often than
/// the others.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_survives() {
        let mut journal = Journal::default();
        journal.trimmed(Lpn(1), 10);
        journal.trimmed(Lpn(2), 11);
        journal.write();
        journal.trimmed(Lpn(3), 12);
        journal.superseded(Lpn(2));
        let (left, undone) = journal.cut();
        assert_eq!(undone, 1);
        assert!(left.outdates(Lpn(1), 10) && !left.outdates(Lpn(1), 11));
        assert!(!left.outdates(Lpn(2), 11) && !left.outdates(Lpn(3), 12));
    }
}
