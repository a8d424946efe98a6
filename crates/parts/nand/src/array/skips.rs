//! Pages that were passed over.

use super::NandArray;
use crate::geometry::Geometry;
use crate::sparse::Bits;
use engine::Snapshot;
use proto::Slot;
use std::ops::Range;

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
    pub(super) fn pass_skipped(&mut self, block: u64) {
        let Some(skips) = &mut self.skips else { return };
        let used = &mut self.programmed[block as usize];
        while *used < skips.per_block && skips.bits.get(skips.at(block, *used)) {
            *used += 1;
            skips.used += 1;
        }
    }

    /// Whether a program unit was skipped.
    #[inline]
    pub(super) fn is_skipped(&self, block: u64, program: u32) -> bool {
        self.skips.as_ref().is_some_and(|skips| skips.bits.get(skips.at(block, program)))
    }

    /// Nothing of a block is skipped any more.
    #[cold]
    pub(super) fn clear_skips(&mut self, block: u64) {
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
    pub(super) fn used_by_skips(&self) -> u64 {
        self.skips.as_ref().map_or(0, |skips| skips.used)
    }
}
