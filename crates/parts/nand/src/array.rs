//! NAND array: the state that survives a power cut.
//!
//! Holds the programmed length and the erase count of each block, and the out-of-band area of each map unit (the
//! logical address written with the data). Everything else in the device is DRAM.

use crate::base::Base;
use crate::geometry::Geometry;
use crate::sparse::{Bits, Table};
use engine::{Mutant, Snapshot, planted_nth};
use proto::{Lpn, Slot};
use std::{collections::BTreeSet, ops::Range};

/// Bytes of the out-of-band area that a scan transfers over the channel for each map unit: address and stamp.
pub const OOB_BYTES: u32 = 16;
/// Out-of-band word of a unit without a logical address: padding, or erased.
const NOTHING: u64 = 0;

/// Durable state.
#[derive(Clone, Debug)]
pub struct NandArray {
    /// Out-of-band words by slot: `NOTHING` or logical unit + 1.
    oob: Table,
    /// Programmed program units, by block.
    programmed: Vec<u32>,
    /// Erase counts, by block.
    erases: Vec<u32>,
    /// Placement in the out-of-band areas of a block's pages, by block. Zero if only one placement exists.
    placements: Vec<u8>,
    /// Sequence numbers, if recovery may need them.
    pub stamps: Option<Stamps>,
    /// Skipped pages, if pages may be skipped.
    skips: Option<Box<Skips>>,
}

/// All but the skipped pages, which are saved where pages are chosen (`save_skips`).
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
    /// Creates an erased array. `logical` bounds the logical addresses that will be written.
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

    /// Returns whether this array can replace a built one: all its tables have the same size. It may keep stamps where
    /// the built one does not.
    pub fn is_like(&self, built: &NandArray) -> bool {
        let blocks = built.erases.len() as u64;
        let lengths = [self.programmed.len(), self.erases.len(), self.placements.len()];
        self.oob.is_like(&built.oob)
            && lengths.iter().all(|length| *length as u64 == blocks)
            && self.stamps.as_ref().is_none_or(|stamps| stamps.is_of(built.oob.len(), blocks))
    }

    /// Returns whether no out-of-band area of a range of slots was ever written.
    pub fn names_nothing(&self, slots: std::ops::Range<u64>) -> bool {
        self.oob.is_untouched(slots)
    }

    /// Returns whether out-of-band areas only name units below `units`, and no block exceeds the limits of programs and
    /// erases.
    pub fn is_within(&self, geo: &Geometry, units: u64) -> bool {
        self.oob.written_words().all(|(_, word)| word <= units)
            && self.programmed.iter().all(|count| *count <= geo.programs_per_block)
            && self.erases.iter().all(|count| *count < u32::MAX / 2)
            && self.skips.as_ref().is_none_or(|skips| skips.is_empty())
    }

    /// Returns the logical address in a unit's out-of-band area. The base state answers for blocks that were never
    /// erased.
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

    /// Loads the out-of-band area that the next program of this unit writes.
    #[inline]
    pub fn load_register(&mut self, slot: Slot, lpn: Option<Lpn>) {
        self.oob.set(slot.0, lpn.map_or(NOTHING, |l| l.0 + 1));
    }

    /// Programs the program unit that starts at `slot`.
    ///
    /// # Panics
    /// If it is not the next one of its block after the skipped ones: NAND blocks are programmed in order.
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

    /// Tears the program unit at `slot`, after a power cut during its program: it is used up and unreadable.
    pub fn tear_program(&mut self, slot: Slot, geo: &Geometry) {
        self.program(slot, geo);
        (slot.0..slot.0 + u64::from(geo.units_per_program)).for_each(|n| self.load_register(Slot(n), None));
    }

    /// Tears a block, after a power cut during its erase: it is unreadable, and must be erased again.
    pub fn tear_block(&mut self, block: u64, geo: &Geometry) {
        let first = geo.first_slot(block).0;
        let units = self.programmed[block as usize] * geo.units_per_program;
        (first..first + u64::from(units)).for_each(|n| self.load_register(Slot(n), None));
        if let Some(stamps) = &mut self.stamps {
            stamps.tear(block, geo);
        }
    }

    /// Returns whether the unit at `slot` has been programmed since its block was erased.
    #[inline]
    pub fn is_programmed(&self, slot: Slot, geo: &Geometry) -> bool {
        let (block, unit) = geo.block_of_slot(slot);
        unit < self.programmed[block as usize] * geo.units_per_program
            && !(self.skips.is_some() && self.is_skipped(block, unit / geo.units_per_program))
    }

    /// Prefetches the out-of-band word of a slot.
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

    /// Returns the number of program units of a block used since it was erased: they hold data, or were skipped.
    pub fn programs(&self, block: u64) -> u32 {
        self.programmed[block as usize]
    }

    /// Returns the erase count of a block.
    #[inline]
    pub fn erases(&self, block: u64) -> u32 {
        self.erases[block as usize]
    }

    /// Writes the placement of a block's data into its out-of-band area.
    #[inline]
    pub fn place(&mut self, block: u64, placement: u8) {
        self.placements[block as usize] = placement;
    }

    /// Returns the placement of a block's data.
    pub fn placement(&self, block: u64) -> u8 {
        self.placements[block as usize]
    }

    /// Returns the erase counts of all blocks.
    pub fn all_erases(&self) -> &[u32] {
        &self.erases
    }

    /// Returns the number of program units of all blocks that hold data since their block was erased.
    pub fn all_programs(&self) -> u64 {
        self.programmed.iter().map(|n| u64::from(*n)).sum::<u64>() - self.used_by_skips()
    }

    /// Returns the number of bytes allocated.
    pub fn bytes(&self) -> u64 {
        self.oob.bytes()
            + (size_of_val(&*self.programmed) + size_of_val(&*self.erases) + self.placements.len()) as u64
    }

    /// Declares the first `programs` program units of a block programmed: preconditioning to an implicit state.
    pub fn assume_programmed(&mut self, block: u64, programs: u32) {
        self.programmed[block as usize] = programs;
    }
}

// Skipped pages.

/// Program units without data although later ones of their block have been or will be programmed.
///
/// A block is used up to a program unit; skipped ones after that are pending, because programs before them are in
/// flight.
#[derive(Clone, Debug)]
pub(crate) struct Skips {
    /// Program units per block.
    per_block: u32,
    bits: Bits,
    /// Number of skipped program units that are not pending.
    used: u64,
}

engine::snapshot!(Skips { per_block, bits, used });

impl Skips {
    /// Returns whether nothing was skipped.
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0 && self.bits.words().all(|word| word == 0)
    }

    /// Returns whether these skips can replace built ones.
    fn is_like(&self, built: &Skips) -> bool {
        self.per_block == built.per_block && self.bits.is_like(&built.bits)
    }

    fn at(&self, block: u64, program: u32) -> u64 {
        block * u64::from(self.per_block) + u64::from(program)
    }

    /// Returns the bit range of program units of a block.
    fn of(&self, block: u64, programs: Range<u32>) -> Range<u64> {
        self.at(block, programs.start)..self.at(block, programs.end)
    }

    fn count(&self, block: u64, programs: Range<u32>) -> u64 {
        self.bits.ones(self.of(block, programs), 0).count() as u64
    }
}

impl NandArray {
    /// Allows pages to be skipped from now on.
    pub fn keep_skips(&mut self, geo: &Geometry) {
        let bits = Bits::new(geo.block_count * u64::from(geo.programs_per_block));
        self.skips = Some(Box::new(Skips { per_block: geo.programs_per_block, bits, used: 0 }));
    }

    /// Skips the program unit at `slot`: it will not be programmed before its block is erased.
    pub fn skip(&mut self, slot: Slot, geo: &Geometry) {
        (slot.0..slot.0 + u64::from(geo.units_per_program)).for_each(|n| self.load_register(Slot(n), None));
        let (block, unit) = geo.block_of_slot(slot);
        if let Some(skips) = &mut self.skips {
            let at = skips.at(block, unit / geo.units_per_program);
            debug_assert!(!skips.bits.get(at), "program unit skipped twice");
            skips.bits.flip(at);
        }
        self.pass_skipped(block);
    }

    /// Moves the end of a block's used part past skipped program units.
    #[cold]
    fn pass_skipped(&mut self, block: u64) {
        let Some(skips) = &mut self.skips else { return };
        let used = &mut self.programmed[block as usize];
        while *used < skips.per_block && skips.bits.get(skips.at(block, *used)) {
            *used += 1;
            skips.used += 1;
        }
    }

    /// Returns whether a program unit was skipped.
    #[inline]
    fn is_skipped(&self, block: u64, program: u32) -> bool {
        self.skips.as_ref().is_some_and(|skips| skips.bits.get(skips.at(block, program)))
    }

    /// Clears all skips of a block.
    #[cold]
    fn clear_skips(&mut self, block: u64) {
        let used = self.programmed[block as usize];
        if let Some(skips) = &mut self.skips {
            skips.used -= skips.count(block, 0..used);
            let all = skips.of(block, 0..skips.per_block);
            skips.bits.clear(all);
        }
    }

    /// Returns the number of program units of a block skipped after programs in flight.
    pub fn pending_skips(&self, block: u64) -> u32 {
        let used = self.programmed[block as usize];
        self.skips.as_ref().map_or(0, |skips| skips.count(block, used..skips.per_block) as u32)
    }

    /// Drops pending skips after a power cut: they have not happened.
    pub fn forget_pending_skips(&mut self) {
        let Some(skips) = &mut self.skips else { return };
        for (block, used) in (0u64..).zip(&self.programmed) {
            let pending = skips.of(block, *used..skips.per_block);
            skips.bits.clear(pending);
        }
    }

    /// Returns whether a block has skipped pages.
    pub fn has_skips(&self, block: u64) -> bool {
        self.skips.as_ref().is_some_and(|skips| skips.count(block, 0..skips.per_block) > 0)
    }

    /// Appends the skips.
    pub fn save_skips(&self, out: &mut Vec<u8>) {
        self.skips.save(out);
    }

    /// Restores the skips that [`NandArray::save_skips`] appended; `None` if they are truncated or malformed, or of a
    /// different shape.
    pub fn load_skips(&mut self, input: &mut &[u8], geo: &Geometry) -> Option<()> {
        let skips: Option<Box<Skips>> = Snapshot::load(input)?;
        let is_like = |skips: &Skips| self.skips.as_ref().is_none_or(|built| skips.is_like(built));
        self.skips = Some(skips.filter(|skips| skips.per_block == geo.programs_per_block && is_like(skips))?);
        Some(())
    }

    /// Returns the number of used program units without data.
    fn used_by_skips(&self) -> u64 {
        self.skips.as_ref().map_or(0, |skips| skips.used)
    }
}

// Sequence numbers in the out-of-band area: they tell which of two copies of a unit is the newer one.

/// Maximum number of moves of a copy that are distinguished.
const MOVES: u64 = 255;

/// Age of a copy; among two copies of a unit the greater stamp wins.
///
/// A stamp is the number of the program that brought the data to flash, and stays with the data when it is moved. A
/// moved copy loses against its source: wherever a power cut interrupts garbage collection, the victim is still
/// complete, and the copies made so far are waste.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stamp(u64);

impl Stamp {
    /// Stamp of a unit that is not a copy of anything: erased, padding, torn, or refused by the map.
    pub const VOID: Stamp = Stamp(0);

    fn new(sequence: u64) -> Stamp {
        Stamp(sequence << 8 | MOVES)
    }
    /// Returns the stamp of a copy made of this one.
    pub fn moved(self) -> Stamp {
        if self.0 & MOVES == 0 { self } else { Stamp(self.0 - 1) }
    }
    /// Returns the number of the program.
    pub fn sequence(self) -> u64 {
        self.0 >> 8
    }
}

/// Sequence numbers of a device's copies. Memory grows with the blocks that are touched.
#[derive(Clone, Debug)]
pub struct Stamps {
    by_slot: Table,
    /// Number of the first program since a block was erased; 0 if none.
    opened: Vec<u64>,
    /// Blocks whose erase was interrupted: they are unreadable.
    unreadable: BTreeSet<u64>,
    /// Number of the last program.
    last: u64,
}

engine::snapshot!(Stamps { by_slot, opened, unreadable, last });

impl Stamps {
    /// Creates stamps without numbers; the next program's number is greater than `last`.
    pub fn new(geo: &Geometry, last: u64) -> Stamps {
        Stamps {
            by_slot: Table::new(geo.slots, u64::MAX),
            opened: vec![0; geo.block_count as usize],
            unreadable: BTreeSet::new(),
            last,
        }
    }

    /// Returns whether these stamps belong to an array of that many slots and blocks.
    pub fn is_of(&self, slots: u64, blocks: u64) -> bool {
        self.by_slot.len() == slots
            && self.opened.len() as u64 == blocks
            && self.unreadable.iter().all(|block| *block < blocks)
    }

    /// Returns the number of the last program.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Registers a program; returns the stamp of its data.
    pub fn issue(&mut self) -> Stamp {
        self.last += 1;
        Stamp::new(self.last)
    }

    /// Returns the stamp of data from before numbers were kept.
    pub fn present(&self) -> Stamp {
        Stamp::new(self.last)
    }

    /// Returns the stamp of a copy.
    pub fn get(&self, slot: Slot) -> Stamp {
        self.by_slot.get(slot.0).map_or(Stamp::VOID, Stamp)
    }

    /// Writes the stamp of a copy.
    pub fn set(&mut self, slot: Slot, stamp: Stamp) {
        self.by_slot.set(slot.0, stamp.0);
    }

    /// Registers a program in a block.
    pub fn open(&mut self, block: u64) {
        if self.opened[block as usize] == 0 {
            self.opened[block as usize] = self.last;
        }
    }

    /// Registers that a block was opened before numbers were kept.
    pub fn assume_opened(&mut self, block: u64, sequence: u64) {
        self.opened[block as usize] = sequence;
    }

    /// Returns the number of the first program since a block was erased.
    pub fn opened(&self, block: u64) -> u64 {
        self.opened[block as usize]
    }

    /// Registers the erase of a block.
    pub fn erase(&mut self, block: u64, geo: &Geometry) {
        self.void(block, geo);
        self.opened[block as usize] = 0;
        self.unreadable.remove(&block);
    }

    /// Registers an interrupted erase of a block.
    pub fn tear(&mut self, block: u64, geo: &Geometry) {
        self.void(block, geo);
        self.unreadable.insert(block);
    }

    /// Returns whether the erase of a block was interrupted.
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
