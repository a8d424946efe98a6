//! What is physically in the pages.

use super::Entries;
use super::data::{Content, Stamps, Version};
use ftl::page_map::{Ftl, MapCopy};
use proto::{Lpn, Slot};
use rustc_hash::FxHashMap;

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
