//! Power cuts: what is durable, and how a device finds its way back.
//!
//! Durable is the NAND array (page states, and in the out-of-band area of each unit its address and its stamp), the
//! journal of deallocations (`journal`), the list of bad units, and the dirty lines of a protected buffer
//! ([`Durable`]). Everything else is DRAM and gone: map, valid bits, free lists, frontiers, indexes, the volatile
//! buffer, commands.
//!
//! * A program under way is **torn**: its program unit is used up and unreadable. One that has not left the queue, or
//!   whose data is still on the channel, has not happened.
//! * An erase under way leaves the block unreadable; it is erased again. So are the other blocks of its reclaim unit,
//!   whose data had been moved before.
//! * A **scan** reads the out-of-band area of every programmed page; of the copies of a unit the one with the greatest
//!   stamp counts, unless the journal has deallocated it.
//! * Reclaim units that were open are **closed** as they are: nothing is appended behind a torn page. All units without
//!   valid data are erased, full ones too: collection needs its reserve back before it can go on.
//!
//! Assumed, and not modelled: a cut program leaves the other pages of its word line alone (drives keep a copy of the
//! lower page, or program in one shot); the stamp is given when a program completes, so that numbers follow the order in
//! which the map took the copies in; translation pages are rebuilt in memory, and writing them back takes no time.
//!
//! Stamps cost memory and a little time, so a device keeps them only when told to
//! ([`Device::record_stamps`](crate::Device::record_stamps)). They change no result.

mod journal;
mod scan;

pub use journal::Journal;
pub use scan::Newer;

use crate::buffer::Sectors;
use engine::Time;
use nand::array::NandArray;
use nand::base::Base;
use proto::Lpn;
use serde::Serialize;

/// What a power cut leaves of a device.
#[derive(Clone, Debug)]
pub struct Durable {
    /// What cells hold.
    pub array: NandArray,
    /// What never-erased blocks of the array hold that are not stored one by one.
    pub base: Base,
    /// What the drive had noted of its map.
    pub journal: Journal,
    /// Reclaim units that have failed.
    pub retired: Vec<u64>,
    /// Reclaim units written with one bit a cell.
    pub cached: Vec<u64>,
    /// Dirty sectors of a protected buffer, oldest first.
    pub lines: Vec<(Lpn, Sectors)>,
    /// Placements of their last writes.
    pub placements: Vec<u8>,
    /// What the cut has interrupted.
    pub cut: Cut,
}

/// What a power cut has interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Commands that were not answered.
    pub commands: u64,
    /// Programs under way: their program units are torn.
    pub torn_programs: u64,
    /// Erases under way: their blocks are unreadable.
    pub torn_erases: u64,
    /// Deallocations that had not been written to the journal: their units hold their last data again.
    pub trims_undone: u64,
    /// Units of a volatile buffer that flash did not hold.
    pub lines_lost: u64,
    /// Units of a protected buffer that flash did not hold: they are still there.
    pub lines_kept: u64,
}

/// What a recovery has found and done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// Pages whose out-of-band area was read: all that are programmed.
    pub pages_scanned: u64,
    /// Copies found.
    pub copies: u64,
    /// Of these, the ones that are out of date.
    pub outdated: u64,
    /// Of these, the ones that the journal says are deallocated.
    pub deallocated: u64,
    /// Logical units that hold data, translation pages among them.
    pub units: u64,
    /// Reclaim units erased: their erase had been cut short, or something was programmed in them and nothing was valid.
    pub erases: u64,
    /// Reclaim units closed before they were full.
    pub closed_short: u64,
    /// Time of the scan and the erases, with all dies at work: the busiest die or channel. An estimate from the
    /// device's own times; the controller's work on the entries is not part of it.
    #[serde(skip)]
    pub time: Time,
}
