//! What stands for data: the write that each sector of a map unit came from, and the contents of registers and pages.

use super::{Entries, Shadow};
use ftl::page_map::{Ftl, MapCopy};
use nand::dies::op::{Op, OpKind};
use proto::{Lpn, Slot};
use rustc_hash::FxHashMap;
use std::fmt;

/// Bytes of a sector: the smallest logical block of NVMe.
pub(super) const SECTOR: u64 = 512;

/// Sectors of one map unit, as a bit set; a map unit has at most 128.
pub(super) type Sectors = u128;

/// Names the contents of a sector. Together with the sector's address it stands for the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Version(u64);

impl Version {
    /// Zeroes: never written, deallocated, or written as zeroes.
    pub(super) const ZERO: Version = Version(0);
    /// What preconditioning left as the newest copy.
    pub(super) const BASE: Version = Version(1);
    /// A copy that was out of date when the shadow began.
    pub(super) const STALE: Version = Version(2);
    /// An erased page.
    pub(super) const BLANK: Version = Version(3);
    /// Data of another unit.
    pub(super) const FOREIGN: Version = Version(4);

    /// The data of the `n`th write command.
    pub(super) fn of_write(n: u64) -> Version {
        Version(16 + (n << 9))
    }

    /// The same, written for a placement.
    pub(super) fn placed(self, placement: u8) -> Version {
        Version(self.0 + u64::from(placement) + 1)
    }

    /// The placement that it was written for, if that is known.
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
            Version::FOREIGN => write!(f, "another unit's data"),
            Version(n) => write!(f, "write {}", (n - 16) >> 9),
        }
    }
}

/// Versions of the sectors of one map unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Stamps {
    /// All of one version.
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

    /// Sectors of a version.
    pub(super) fn of(&self, version: Version) -> Sectors {
        let mut all = 0;
        self.each(|v, sectors| all |= if v == version { sectors } else { 0 });
        all
    }

    /// These stamps with `sectors` of others laid over.
    pub(super) fn under(&self, others: &Stamps, sectors: Sectors) -> Stamps {
        let mut all = self.clone();
        others.each(|version, of| {
            if of & sectors != 0 {
                all = all.with(version, of & sectors);
            }
        });
        all
    }

    /// These stamps with `sectors` written over by `version`.
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

/// The data of one map unit, wherever it is: in a page, in a register, in the controller's memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Content {
    /// The logical unit whose data it is.
    pub(super) lpn: Lpn,
    /// Which writes it came from.
    pub(super) stamps: Stamps,
    /// Of a translation page, its entries.
    pub(super) entries: Entries,
}

impl Content {
    /// Data of a unit of the host's.
    pub(super) fn new(lpn: Lpn, stamps: Stamps) -> Content {
        Content { lpn, stamps, entries: Entries::Unknown }
    }

    /// What a reader of a translation page makes of it.
    pub(super) fn entries_of(self, lpn: Lpn) -> Entries {
        if self.lpn == lpn { self.entries } else { Entries::Unknown }
    }

    /// What a reader of `lpn` makes of it.
    pub(super) fn seen_as(self, lpn: Lpn) -> Stamps {
        if self.lpn == lpn { self.stamps } else { Stamps::Whole(Version::FOREIGN) }
    }
}

// What is physically in the planes' page registers.
//
// A read that the device serves from a register gets what the last sensing has left there. Whatever else goes through a
// die's registers destroys it: the device must not take such a page for one that is still held.

/// The page that was sensed last, by die and plane; of a plane that is not named nothing is known.
#[derive(Default)]
pub(super) struct Registers {
    is_watched: bool,
    held: FxHashMap<(u32, u8), Vec<(Slot, Content)>>,
}

impl Shadow {
    /// The device serves reads from registers.
    pub(crate) fn watch_registers(&mut self) {
        self.registers.is_watched = true;
    }

    /// The array of a die has done its work: an operation's data is in the register, or was there.
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

    /// Something has gone through the registers of a die.
    pub(super) fn destroys_registers(&mut self, op: &Op, ftl: &Ftl) {
        if self.registers.is_watched {
            let planes = 0..ftl.geo.die_planes as u8;
            self.registers.held.extend(planes.map(|plane| ((op.die, plane), Vec::new())));
        }
    }
}

// What is physically in the pages.

#[derive(Clone, Debug)]
enum Cell {
    /// As it was when the shadow began: follows from the out-of-band area.
    Initial,
    /// Erased, or padding.
    Blank,
    Data(Content),
}

/// Contents of every slot. Only blocks that have been programmed or erased are stored.
pub(super) struct Truth {
    blocks: FxHashMap<u64, Box<[Cell]>>,
    /// The map when the shadow began: it says which initial copies were the newest.
    initial: MapCopy,
    /// What each logical unit held when power came back, if it was cut since.
    recovered: Option<Vec<Stamps>>,
}

impl Truth {
    pub(super) fn new(ftl: &Ftl) -> Truth {
        Truth { blocks: FxHashMap::default(), initial: ftl.map_copy(), recovered: None }
    }

    /// What a logical unit held when the shadow began.
    pub(super) fn initially(&self, lpn: Lpn, ftl: &Ftl) -> Stamps {
        if let Some(held) = self.recovered.as_ref().and_then(|units| units.get(lpn.0 as usize)) {
            return held.clone();
        }
        let holds = self.initial_slot(lpn, ftl).is_some();
        Stamps::Whole(if holds { Version::BASE } else { Version::ZERO })
    }

    /// Where a logical unit lay when the shadow began.
    pub(super) fn initial_slot(&self, lpn: Lpn, ftl: &Ftl) -> Option<Slot> {
        self.initial.lookup(lpn, &ftl.geo)
    }

    /// Power is back: what each logical unit holds is what the account begins with. The pages are as they were.
    pub(super) fn restart(&mut self, held: Vec<Stamps>) {
        self.recovered = Some(held);
    }

    /// Whether the block of a slot has been programmed or erased.
    pub(super) fn knows_block_of(&self, slot: Slot, ftl: &Ftl) -> bool {
        self.blocks.contains_key(&ftl.geo.block_of_slot(slot).0)
    }

    /// Slots of the blocks that have been programmed or erased, in no order that means anything.
    pub(super) fn known_slots(&self, ftl: &Ftl) -> impl Iterator<Item = Slot> {
        let per_block = u64::from(ftl.geo.units_per_block);
        let first = |block: &u64| ftl.geo.first_slot(*block).0;
        self.blocks.keys().map(first).flat_map(move |first| first..first + per_block).map(Slot)
    }

    /// The map when the shadow began.
    pub(super) fn initial(&self) -> &MapCopy {
        &self.initial
    }

    /// What sensing a slot finds.
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

    /// Stores a unit; false if the page was not erased.
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
        /// Against one version a sector.
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
