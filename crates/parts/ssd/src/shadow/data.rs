//! Model of data: the write that each sector of a map unit came from, and the contents of registers and pages.

use super::{Entries, Shadow};
use ftl::page_map::{Ftl, MapCopy};
use nand::dies::op::{Op, OpKind};
use proto::{Lpn, Slot};
use rustc_hash::FxHashMap;
use std::fmt;

/// Size of a sector in bytes: the smallest logical block of NVMe.
pub(super) const SECTOR: u64 = 512;

/// Sectors of one map unit, as a bit set; a map unit has at most 128.
pub(super) type Sectors = u128;

/// Version of a sector: together with the sector's address, it represents the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Version(u64);

impl Version {
    /// Zeroes: never written, deallocated, or written as zeroes.
    pub(super) const ZERO: Version = Version(0);
    /// Newest copy left by preconditioning.
    pub(super) const BASE: Version = Version(1);
    /// Copy that was out of date when the shadow began.
    pub(super) const STALE: Version = Version(2);
    /// Contents of an erased page.
    pub(super) const BLANK: Version = Version(3);
    /// Data of a different unit.
    pub(super) const FOREIGN: Version = Version(4);

    /// Version of the `n`th write command.
    pub(super) fn of_write(n: u64) -> Version {
        Version(16 + (n << 9))
    }

    /// Returns this version as written for a placement.
    pub(super) fn placed(self, placement: u8) -> Version {
        Version(self.0 + u64::from(placement) + 1)
    }

    /// Placement that the version was written for, if known.
    pub(super) fn placement(self) -> Option<u8> {
        let low = self.0.checked_sub(16)? & 511;
        low.checked_sub(1).map(|placement| placement as u8)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Version::ZERO => write!(f, "zeroes"),
            Version::BASE => write!(f, "preconditioned data"),
            Version::STALE => write!(f, "an outdated preconditioned copy"),
            Version::BLANK => write!(f, "an erased page"),
            Version::FOREIGN => write!(f, "data of a different unit"),
            Version(n) => write!(f, "write {}", (n - 16) >> 9),
        }
    }
}

/// Versions of the sectors of one map unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Stamps {
    /// One version for all sectors.
    Whole(Version),
    /// Disjoint sets that cover the unit.
    Mixed(Box<[(Version, Sectors)]>),
}

impl Stamps {
    /// Calls `f` with each version and its sectors.
    pub(super) fn each(&self, mut f: impl FnMut(Version, Sectors)) {
        match self {
            Stamps::Whole(version) => f(*version, Sectors::MAX),
            Stamps::Mixed(parts) => parts.iter().for_each(|(v, s)| f(*v, *s)),
        }
    }

    /// Sectors that have a version.
    pub(super) fn of(&self, version: Version) -> Sectors {
        let mut all = 0;
        self.each(|v, sectors| all |= if v == version { sectors } else { 0 });
        all
    }

    /// Returns these stamps with `sectors` of others overlaid.
    pub(super) fn under(&self, others: &Stamps, sectors: Sectors) -> Stamps {
        let mut all = self.clone();
        others.each(|version, of| {
            if of & sectors != 0 {
                all = all.with(version, of & sectors);
            }
        });
        all
    }

    /// Returns these stamps with `sectors` overwritten by `version`.
    pub(super) fn with(&self, version: Version, sectors: Sectors) -> Stamps {
        let mut parts = vec![(version, sectors)];
        self.each(|old, of| {
            let left = of & !sectors;
            match parts.iter_mut().find(|(v, _)| *v == old) {
                _ if left == 0 => {}
                Some((_, same)) => *same |= left,
                None => parts.push((old, left)),
            }
        });
        match parts[..] {
            [(only, _)] => Stamps::Whole(only),
            _ => Stamps::Mixed(parts.into()),
        }
    }
}

/// Data of one map unit, in a page, a register, or the controller's memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Content {
    /// Logical unit of the data.
    pub(super) lpn: Lpn,
    /// Writes that the data came from.
    pub(super) stamps: Stamps,
    /// Entries of a translation page.
    pub(super) entries: Entries,
}

impl Content {
    /// Creates the data of a host unit.
    pub(super) fn new(lpn: Lpn, stamps: Stamps) -> Content {
        Content { lpn, stamps, entries: Entries::Unknown }
    }

    /// Entries as seen by a reader of translation page `lpn`.
    pub(super) fn entries_of(self, lpn: Lpn) -> Entries {
        if self.lpn == lpn { self.entries } else { Entries::Unknown }
    }

    /// Stamps as seen by a reader of `lpn`.
    pub(super) fn seen_as(self, lpn: Lpn) -> Stamps {
        if self.lpn == lpn { self.stamps } else { Stamps::Whole(Version::FOREIGN) }
    }
}

// Physical contents of the planes' page registers.
//
// A read that the device serves from a register returns the data left by the last sensing. Any other use of a die's
// registers destroys it: the device must not assume that such a page is still held.

/// Page sensed last, by die and plane; unknown for a plane without an entry.
#[derive(Default)]
pub(super) struct Registers {
    is_watched: bool,
    held: FxHashMap<(u32, u8), Vec<(Slot, Content)>>,
}

impl Shadow {
    /// Enables tracking because the device serves reads from registers.
    pub(crate) fn watch_registers(&mut self) {
        self.registers.is_watched = true;
    }

    /// Notes the end of a die's array work: the operation's data is in the register, or was there.
    #[cold]
    pub(crate) fn sensed(&mut self, name: u32, op: &Op, from_register: bool, ftl: &Ftl) {
        if !matches!(op.kind, OpKind::Read | OpKind::CopyBack) {
            return;
        }
        if self.registers.is_watched && !from_register && op.kind == OpKind::Read {
            let page = ftl.geo.page_name(op.slot);
            let units = u64::from(ftl.geo.units_per_page());
            let slots = (page * units..(page + 1) * units).map(Slot);
            let held = slots.map(|slot| (slot, self.truth.read(slot, ftl))).collect();
            self.registers.held.insert((op.die, op.plane), held);
        }
        let Some(errand) = self.errands.get_mut(name as usize) else { return };
        let held = self.registers.held.get(&(op.die, op.plane)).filter(|_| from_register);
        let lost = || Content::new(Lpn(u64::MAX), Stamps::Whole(Version::BLANK));
        let read = |slot: &Slot| match held {
            Some(held) => held.iter().find(|(s, _)| s == slot).map_or_else(lost, |(_, c)| c.clone()),
            None => self.truth.read(*slot, ftl),
        };
        errand.data = errand.slots.iter().map(read).collect();
    }

    /// Notes that data has passed through the registers of a die.
    pub(super) fn destroys_registers(&mut self, op: &Op, ftl: &Ftl) {
        if self.registers.is_watched {
            let planes = 0..ftl.geo.die_planes as u8;
            self.registers.held.extend(planes.map(|plane| ((op.die, plane), Vec::new())));
        }
    }
}

// Physical contents of the pages.

#[derive(Clone, Debug)]
enum Cell {
    /// Unchanged since the shadow began: follows from the out-of-band area.
    Initial,
    /// Erased, or padding.
    Blank,
    Data(Content),
}

/// Contents of every slot. Only blocks that have been programmed or erased are stored.
pub(super) struct Truth {
    blocks: FxHashMap<u64, Box<[Cell]>>,
    /// Initial map: tells which initial copies were the newest.
    initial: MapCopy,
    /// Contents of each logical unit after a power cut, if there was one.
    recovered: Option<Vec<Stamps>>,
}

impl Truth {
    pub(super) fn new(ftl: &Ftl) -> Truth {
        Truth { blocks: FxHashMap::default(), initial: ftl.map_copy(), recovered: None }
    }

    /// Initial contents of a logical unit.
    pub(super) fn initially(&self, lpn: Lpn, ftl: &Ftl) -> Stamps {
        if let Some(held) = self.recovered.as_ref().and_then(|units| units.get(lpn.0 as usize)) {
            return held.clone();
        }
        let holds = self.initial_slot(lpn, ftl).is_some();
        Stamps::Whole(if holds { Version::BASE } else { Version::ZERO })
    }

    /// Initial slot of a logical unit.
    pub(super) fn initial_slot(&self, lpn: Lpn, ftl: &Ftl) -> Option<Slot> {
        self.initial.lookup(lpn, &ftl.geo)
    }

    /// Restarts the account after a power cut with the contents of each logical unit. The pages are unchanged.
    pub(super) fn restart(&mut self, held: Vec<Stamps>) {
        self.recovered = Some(held);
    }

    /// Returns true if the block of a slot has been programmed or erased.
    pub(super) fn knows_block_of(&self, slot: Slot, ftl: &Ftl) -> bool {
        self.blocks.contains_key(&ftl.geo.block_of_slot(slot).0)
    }

    /// Slots of the blocks that have been programmed or erased, in arbitrary order.
    pub(super) fn known_slots(&self, ftl: &Ftl) -> impl Iterator<Item = Slot> {
        let per_block = u64::from(ftl.geo.units_per_block);
        let first = |block: &u64| ftl.geo.first_slot(*block).0;
        self.blocks.keys().map(first).flat_map(move |first| first..first + per_block).map(Slot)
    }

    /// Initial map.
    pub(super) fn initial(&self) -> &MapCopy {
        &self.initial
    }

    /// Contents that sensing a slot returns.
    pub(super) fn read(&self, slot: Slot, ftl: &Ftl) -> Content {
        let (block, unit) = ftl.geo.block_of_slot(slot);
        match self.blocks.get(&block).map(|cells| &cells[unit as usize]) {
            Some(Cell::Data(content)) => content.clone(),
            Some(Cell::Blank) => Content::new(Lpn(u64::MAX), Stamps::Whole(Version::BLANK)),
            Some(Cell::Initial) | None => self.read_initial(slot, ftl),
        }
    }

    fn read_initial(&self, slot: Slot, ftl: &Ftl) -> Content {
        let Some(lpn) = ftl.lpn_at(slot).filter(|_| ftl.array.is_programmed(slot, &ftl.geo)) else {
            return Content::new(Lpn(u64::MAX), Stamps::Whole(Version::BLANK));
        };
        let newest = self.initial.lookup(lpn, &ftl.geo) == Some(slot);
        let stamps = Stamps::Whole(if newest { Version::BASE } else { Version::STALE });
        let entries = if newest && lpn.0 >= ftl.logical() { Entries::Initial } else { Entries::Unknown };
        Content { lpn, stamps, entries }
    }

    fn cells(&mut self, block: u64, ftl: &Ftl) -> &mut Box<[Cell]> {
        let count = ftl.geo.units_per_block as usize;
        self.blocks.entry(block).or_insert_with(|| vec![Cell::Initial; count].into())
    }

    /// Stores a unit; returns false if the page was not erased.
    pub(super) fn program(&mut self, slot: Slot, content: Content, ftl: &Ftl) -> bool {
        let programmed = ftl.array.is_programmed(slot, &ftl.geo);
        let (block, unit) = ftl.geo.block_of_slot(slot);
        let cell = &mut self.cells(block, ftl)[unit as usize];
        let was_blank = match cell {
            Cell::Initial => !programmed,
            Cell::Blank => true,
            Cell::Data(_) => false,
        };
        *cell = Cell::Data(content);
        was_blank
    }

    /// Empties the block that begins at a slot.
    pub(super) fn erase(&mut self, first: Slot, ftl: &Ftl) {
        let (block, _) = ftl.geo.block_of_slot(first);
        self.cells(block, ftl).fill(Cell::Blank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compared with a version for each sector.
        #[test]
        fn overlays_as_an_array_would(writes in prop::collection::vec((0u32..128, 1u32..128, 0u64..4), 1..8)) {
            let mut stamps = Stamps::Whole(Version::ZERO);
            let mut naive = [Version::ZERO; 128];
            for (first, count, n) in writes {
                let count = count.min(128 - first);
                let sectors = (Sectors::MAX >> (128 - count)) << first;
                stamps = stamps.with(Version::of_write(n), sectors);
                naive[first as usize..(first + count) as usize].fill(Version::of_write(n));
            }
            let mut seen: Sectors = 0;
            stamps.each(|version, sectors| {
                assert_eq!(seen & sectors, 0);
                seen |= sectors;
                (0..128).filter(|s| sectors >> s & 1 == 1).for_each(|s| assert_eq!(naive[s], version));
            });
            prop_assert_eq!(seen, Sectors::MAX);
        }
    }
}
