//! The NAND array: what survives a power cut.
//!
//! It owns how far each block is programmed, how often it was erased, and the out-of-band area of each map unit (the
//! logical address written with the data). Everything else of the device is DRAM.

use crate::base::Base;
use crate::geometry::Geometry;
use crate::sparse::{Bits, Table};
use engine::{Mutant, Snapshot, planted_nth};
use proto::{Lpn, Slot};
use std::{collections::BTreeSet, ops::Range};

/// Bytes of the out-of-band area that a scan moves over the channel for each map unit: address and stamp.
pub const OOB_BYTES: u32 = 16;
/// Out-of-band word of a unit that holds no logical address: padding, or erased.
const NOTHING: u64 = 0;

/// Durable state.
#[derive(Clone, Debug)]
pub struct NandArray {
    /// Slot to `NOTHING` or logical unit + 1.
    oob: Table,
    /// Program units programmed, by block.
    programmed: Vec<u32>,
    /// Erase count, by block.
    erases: Vec<u32>,
    /// The placement in the out-of-band areas of a block's pages. Zero where there is one only.
    placements: Vec<u8>,
    /// Sequence numbers, if anybody wants to recover from them.
    pub stamps: Option<Stamps>,
    /// Pages that were passed over, if any may be.
    skips: Option<Box<Skips>>,
}

/// All but what was skipped: that is saved where pages are chosen (`save_skips`).
impl Snapshot for NandArray {
    fn save(&self, out: &mut Vec<u8>) {
        let NandArray { oob, programmed, erases, placements, stamps, skips: _ } = self;
        oob.save(out);
        programmed.save(out);
        erases.save(out);
        placements.save(out);
        stamps.save(out);
    }
    fn load(input: &mut &[u8]) -> Option<NandArray> {
        Some(NandArray {
            oob: Snapshot::load(input)?,
            programmed: Snapshot::load(input)?,
            erases: Snapshot::load(input)?,
            placements: Snapshot::load(input)?,
            stamps: Snapshot::load(input)?,
            skips: None,
        })
    }
}

impl NandArray {
    /// An erased array. `logical` bounds the logical addresses that will be written.
    pub fn new(geo: &Geometry, logical: u64) -> NandArray {
        NandArray {
            oob: Table::new(geo.slots, logical + 2),
            programmed: vec![0; geo.block_count as usize],
            erases: vec![0; geo.block_count as usize],
            placements: vec![0; geo.block_count as usize],
            stamps: None,
            skips: None,
        }
    }

    /// Whether this array can stand in the place of one that was built: as large in all that it keeps. It may keep stamps where that one does not.
    pub fn is_like(&self, built: &NandArray) -> bool {
        let blocks = built.erases.len() as u64;
        let lengths = [self.programmed.len(), self.erases.len(), self.placements.len()];
        self.oob.is_like(&built.oob)
            && lengths.iter().all(|length| *length as u64 == blocks)
            && self.stamps.as_ref().is_none_or(|stamps| stamps.is_of(built.oob.len(), blocks))
    }

    /// Whether no out-of-band area of a range of slots was ever written.
    pub fn names_nothing(&self, slots: std::ops::Range<u64>) -> bool {
        self.oob.is_untouched(slots)
    }

    /// Whether out-of-band areas name units below `units` alone, and no block is programmed or worn beyond all limits.
    pub fn is_within(&self, geo: &Geometry, units: u64) -> bool {
        self.oob.written_words().all(|(_, word)| word <= units)
            && self.programmed.iter().all(|count| *count <= geo.programs_per_block)
            && self.erases.iter().all(|count| *count < u32::MAX / 2)
            && self.skips.as_ref().is_none_or(|skips| skips.is_empty())
    }

    /// The logical address in a unit's out-of-band area. The base speaks for blocks that were never erased.
    #[inline]
    pub fn lpn(&self, slot: Slot, base: &Base, geo: &Geometry) -> Option<Lpn> {
        match self.oob.get(slot.0) {
            Some(word) => word.checked_sub(1).map(Lpn),
            None => self.base_lpn(slot, base, geo),
        }
    }

    #[cold]
    fn base_lpn(&self, slot: Slot, base: &Base, geo: &Geometry) -> Option<Lpn> {
        let erases = self.erases[geo.block_of_slot(slot).0 as usize];
        if erases == 0 { base.lpn(slot, geo) } else { None }
    }

    /// Loads the out-of-band area that the next program of this unit will write.
    #[inline]
    pub fn load_register(&mut self, slot: Slot, lpn: Option<Lpn>) {
        self.oob.set(slot.0, lpn.map_or(NOTHING, |l| l.0 + 1));
    }

    /// Programs the program unit that starts at `slot`.
    ///
    /// # Panics
    /// If it is not the next one of its block behind those that were skipped: NAND blocks are programmed in order.
    #[inline]
    pub fn program(&mut self, slot: Slot, geo: &Geometry) {
        let (block, unit) = geo.block_of_slot(slot);
        let programmed = &mut self.programmed[block as usize];
        assert_eq!(*programmed * geo.units_per_program, unit, "block {block} programmed out of order");
        *programmed += 1;
        if self.skips.is_some() {
            self.pass_skipped(block);
        }
    }

    /// Power went while the program unit at `slot` was being programmed: it is used up, and nothing can be read from it.
    pub fn tear_program(&mut self, slot: Slot, geo: &Geometry) {
        self.program(slot, geo);
        (slot.0..slot.0 + u64::from(geo.units_per_program)).for_each(|n| self.load_register(Slot(n), None));
    }

    /// Power went while a block was being erased: nothing can be read from it, and it must be erased again.
    pub fn tear_block(&mut self, block: u64, geo: &Geometry) {
        let first = geo.first_slot(block).0;
        let units = self.programmed[block as usize] * geo.units_per_program;
        (first..first + u64::from(units)).for_each(|n| self.load_register(Slot(n), None));
        if let Some(stamps) = &mut self.stamps {
            stamps.tear(block, geo);
        }
    }

    /// Whether the unit at `slot` has been programmed since its block was erased.
    #[inline]
    pub fn is_programmed(&self, slot: Slot, geo: &Geometry) -> bool {
        let (block, unit) = geo.block_of_slot(slot);
        unit < self.programmed[block as usize] * geo.units_per_program
            && !(self.skips.is_some() && self.is_skipped(block, unit / geo.units_per_program))
    }

    /// Has the processor fetch the out-of-band word of a slot.
    #[inline]
    pub fn prefetch(&self, slot: Slot) {
        self.oob.prefetch(slot.0);
    }

    /// Erases a block.
    #[inline]
    pub fn erase(&mut self, block: u64) {
        if self.skips.is_some() {
            self.clear_skips(block);
        }
        self.programmed[block as usize] = 0;
        self.placements[block as usize] = 0;
        self.erases[block as usize] += u32::from(!planted_nth(Mutant::FreeErase, 16));
    }

    /// Program units of a block that have been used since it was erased: they hold data, or were skipped.
    pub fn programs(&self, block: u64) -> u32 {
        self.programmed[block as usize]
    }

    /// Erase count of a block.
    #[inline]
    pub fn erases(&self, block: u64) -> u32 {
        self.erases[block as usize]
    }

    /// Writes the placement that a block's data belongs to beside the data.
    #[inline]
    pub fn place(&mut self, block: u64, placement: u8) {
        self.placements[block as usize] = placement;
    }

    /// The placement that a block's data belongs to.
    pub fn placement(&self, block: u64) -> u8 {
        self.placements[block as usize]
    }

    /// Erase counts of all blocks.
    pub fn all_erases(&self) -> &[u32] {
        &self.erases
    }

    /// Program units of all blocks that hold data since their block was erased.
    pub fn all_programs(&self) -> u64 {
        self.programmed.iter().map(|n| u64::from(*n)).sum::<u64>() - self.used_by_skips()
    }

    /// Bytes allocated.
    pub fn bytes(&self) -> u64 {
        self.oob.bytes()
            + (size_of_val(&*self.programmed) + size_of_val(&*self.erases) + self.placements.len()) as u64
    }

    /// Declares the first `programs` program units of a block programmed: preconditioning to an implicit state.
    pub fn assume_programmed(&mut self, block: u64, programs: u32) {
        self.programmed[block as usize] = programs;
    }
}

// Pages that were passed over.

/// Program units that hold nothing although later ones of their block have been programmed, or will be.
///
/// A block is used up to a program unit; those skipped behind that are pending, since programs in front of them are under way.
#[derive(Clone, Debug)]
pub(crate) struct Skips {
    /// Program units a block.
    per_block: u32,
    bits: Bits,
    /// Those that are not pending.
    used: u64,
}

engine::snapshot!(Skips { per_block, bits, used });

impl Skips {
    /// Whether nothing was skipped.
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0 && self.bits.words().all(|word| word == 0)
    }

    /// Whether these can stand in the place of those that were built.
    fn is_like(&self, built: &Skips) -> bool {
        self.per_block == built.per_block && self.bits.is_like(&built.bits)
    }

    fn at(&self, block: u64, program: u32) -> u64 {
        block * u64::from(self.per_block) + u64::from(program)
    }

    /// Program units of a block.
    fn of(&self, block: u64, programs: Range<u32>) -> Range<u64> {
        self.at(block, programs.start)..self.at(block, programs.end)
    }

    fn count(&self, block: u64, programs: Range<u32>) -> u64 {
        self.bits.ones(self.of(block, programs), 0).count() as u64
    }
}

impl NandArray {
    /// Pages may be skipped from now on.
    pub fn keep_skips(&mut self, geo: &Geometry) {
        let bits = Bits::new(geo.block_count * u64::from(geo.programs_per_block));
        self.skips = Some(Box::new(Skips { per_block: geo.programs_per_block, bits, used: 0 }));
    }

    /// The program unit at `slot` will never be programmed before its block is erased.
    pub fn skip(&mut self, slot: Slot, geo: &Geometry) {
        (slot.0..slot.0 + u64::from(geo.units_per_program)).for_each(|n| self.load_register(Slot(n), None));
        let (block, unit) = geo.block_of_slot(slot);
        if let Some(skips) = &mut self.skips {
            let at = skips.at(block, unit / geo.units_per_program);
            debug_assert!(!skips.bits.get(at), "skipped twice");
            skips.bits.flip(at);
        }
        self.pass_skipped(block);
    }

    /// Moves the end of what is used of a block behind skipped program units.
    #[cold]
    fn pass_skipped(&mut self, block: u64) {
        let Some(skips) = &mut self.skips else { return };
        let used = &mut self.programmed[block as usize];
        while *used < skips.per_block && skips.bits.get(skips.at(block, *used)) {
            *used += 1;
            skips.used += 1;
        }
    }

    /// Whether a program unit was skipped.
    #[inline]
    fn is_skipped(&self, block: u64, program: u32) -> bool {
        self.skips.as_ref().is_some_and(|skips| skips.bits.get(skips.at(block, program)))
    }

    /// Nothing of a block is skipped any more.
    #[cold]
    fn clear_skips(&mut self, block: u64) {
        let used = self.programmed[block as usize];
        if let Some(skips) = &mut self.skips {
            skips.used -= skips.count(block, 0..used);
            let all = skips.of(block, 0..skips.per_block);
            skips.bits.clear(all);
        }
    }

    /// Program units of a block that were skipped behind programs under way.
    pub fn pending_skips(&self, block: u64) -> u32 {
        let used = self.programmed[block as usize];
        self.skips.as_ref().map_or(0, |skips| skips.count(block, used..skips.per_block) as u32)
    }

    /// Power went: what was to be skipped later has not been.
    pub fn forget_pending_skips(&mut self) {
        let Some(skips) = &mut self.skips else { return };
        for (block, used) in (0u64..).zip(&self.programmed) {
            let pending = skips.of(block, *used..skips.per_block);
            skips.bits.clear(pending);
        }
    }

    /// Whether a block has skipped pages.
    pub fn has_skips(&self, block: u64) -> bool {
        self.skips.as_ref().is_some_and(|skips| skips.count(block, 0..skips.per_block) > 0)
    }

    /// Appends what was skipped.
    pub fn save_skips(&self, out: &mut Vec<u8>) {
        self.skips.save(out);
    }

    /// Takes back what [`NandArray::save_skips`] has appended; `None` if it is cut short or malformed, or of another shape.
    pub fn load_skips(&mut self, input: &mut &[u8], geo: &Geometry) -> Option<()> {
        let skips: Option<Box<Skips>> = Snapshot::load(input)?;
        let is_like = |skips: &Skips| self.skips.as_ref().is_none_or(|built| skips.is_like(built));
        self.skips = Some(skips.filter(|skips| skips.per_block == geo.programs_per_block && is_like(skips))?);
        Some(())
    }

    /// Program units that are used, and hold nothing.
    fn used_by_skips(&self) -> u64 {
        self.skips.as_ref().map_or(0, |skips| skips.used)
    }
}

// Sequence numbers in the out-of-band area: which of two copies of a unit is the newer one.

/// Moves of a copy that are told apart.
const MOVES: u64 = 255;

/// How new a copy is; of two copies of a unit the greater one counts.
///
/// It is the number of the program that the data came to flash with, and stays with the data when it is moved. A copy
/// that was moved loses against the one that it was made from: whatever the cut caught garbage collection at, its
/// victim is still whole, and what it had written is waste.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stamp(u64);

impl Stamp {
    /// Of a unit that is no copy of anything: erased, padding, torn, or refused by the map.
    pub const VOID: Stamp = Stamp(0);

    fn new(sequence: u64) -> Stamp {
        Stamp(sequence << 8 | MOVES)
    }
    /// Of a copy that is made of this one.
    pub fn moved(self) -> Stamp {
        if self.0 & MOVES == 0 { self } else { Stamp(self.0 - 1) }
    }
    /// The number of the program.
    pub fn sequence(self) -> u64 {
        self.0 >> 8
    }
}

/// Sequence numbers of a device's copies. Memory grows with the blocks that are touched.
#[derive(Clone, Debug)]
pub struct Stamps {
    by_slot: Table,
    /// Number of the first program since a block was erased; 0 if there was none.
    opened: Vec<u64>,
    /// Blocks whose erase was cut short: nothing in them can be read.
    unreadable: BTreeSet<u64>,
    /// Number of the last program.
    last: u64,
}

engine::snapshot!(Stamps { by_slot, opened, unreadable, last });

impl Stamps {
    /// Nothing has a number yet; the next program's is greater than `last`.
    pub fn new(geo: &Geometry, last: u64) -> Stamps {
        Stamps {
            by_slot: Table::new(geo.slots, u64::MAX),
            opened: vec![0; geo.block_count as usize],
            unreadable: BTreeSet::new(),
            last,
        }
    }

    /// Whether these are of an array of so many slots and blocks.
    pub fn is_of(&self, slots: u64, blocks: u64) -> bool {
        self.by_slot.len() == slots
            && self.opened.len() as u64 == blocks
            && self.unreadable.iter().all(|block| *block < blocks)
    }

    /// The number of the last program.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// A program has been done: the stamp of its data.
    pub fn issue(&mut self) -> Stamp {
        self.last += 1;
        Stamp::new(self.last)
    }

    /// The stamp of what was there before numbers were kept.
    pub fn present(&self) -> Stamp {
        Stamp::new(self.last)
    }

    /// The stamp of a copy.
    pub fn get(&self, slot: Slot) -> Stamp {
        self.by_slot.get(slot.0).map_or(Stamp::VOID, Stamp)
    }

    /// Writes the stamp of a copy.
    pub fn set(&mut self, slot: Slot, stamp: Stamp) {
        self.by_slot.set(slot.0, stamp.0);
    }

    /// A program has been done in a block.
    pub fn open(&mut self, block: u64) {
        if self.opened[block as usize] == 0 {
            self.opened[block as usize] = self.last;
        }
    }

    /// A block was opened at some time before numbers were kept.
    pub fn assume_opened(&mut self, block: u64, sequence: u64) {
        self.opened[block as usize] = sequence;
    }

    /// The number of the first program since a block was erased.
    pub fn opened(&self, block: u64) -> u64 {
        self.opened[block as usize]
    }

    /// A block has been erased.
    pub fn erase(&mut self, block: u64, geo: &Geometry) {
        self.void(block, geo);
        self.opened[block as usize] = 0;
        self.unreadable.remove(&block);
    }

    /// The erase of a block has been cut short.
    pub fn tear(&mut self, block: u64, geo: &Geometry) {
        self.void(block, geo);
        self.unreadable.insert(block);
    }

    /// Whether the erase of a block was cut short.
    pub fn is_unreadable(&self, block: u64) -> bool {
        self.unreadable.contains(&block)
    }

    fn void(&mut self, block: u64, geo: &Geometry) {
        let first = geo.first_slot(block).0;
        for slot in (first..first + u64::from(geo.units_per_block)).map(Slot) {
            if self.get(slot) != Stamp::VOID {
                self.set(slot, Stamp::VOID);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_programs_win_and_copies_lose_against_their_source() {
        let (old, new) = (Stamp::new(7), Stamp::new(8));
        assert!(new > old && new.moved() > old && old > old.moved() && old.moved() > old.moved().moved());
        assert_eq!((old.sequence(), old.moved().sequence()), (7, 7));
        let often = (0..1000).fold(old, |stamp, _| stamp.moved());
        assert!(often > Stamp::new(6) && often.sequence() == 7);
    }
}
