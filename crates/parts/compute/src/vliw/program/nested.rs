//! Programs that are loop nests: what their pieces cost follows from one text.

use super::sampled::sampled;
use super::table::Table;
use super::{Cost, Costing};
use crate::vliw::issue::LoopCycles;
use crate::vliw::spec::{AcceleratorSums, AcceleratorWork, CoreSpec};
use crate::vliw::stalls::Stalls;
use config::SpecError;
use nest::{Kernel, Piece};
use std::sync::Arc;

/// A kernel, with what its pieces cost.
pub(super) struct Nested {
    pub(super) kernel: Kernel,
    loops: Vec<Vec<LoopCycles>>,
    /// By microblock.
    stalls: Arc<[Stalls]>,
    /// Its work, if it is not what the kernel counts.
    table: Option<Table>,
}

impl Nested {
    /// A kernel of whose microblocks each is dealt out as at most so many screens.
    ///
    /// # Errors
    /// A cache that cannot be built; work by a table that says nothing of the kernel.
    pub(super) fn new(kernel: Kernel, by: &Costing<'_>, most: u64) -> Result<Nested, SpecError> {
        let kernel = match by.sums {
            AcceleratorSums::memory => kernel,
            AcceleratorSums::registers => kernel.with_sums_in_registers(),
        };
        let stalls = sampled(&kernel, by.core.caches(), by.sample, most)?;
        let table = match by.work {
            AcceleratorWork::nest => None,
            AcceleratorWork::table => Some(Table::of(&kernel)?),
        };
        let loops = kernel.microblocks().iter().map(|microblock| by.core.loops(microblock)).collect();
        Ok(Nested { kernel, loops, stalls, table })
    }

    /// What a piece costs; `begins` if caches are empty. `scratch` is overwritten.
    pub(super) fn cost(&self, piece: &Piece, begins: bool, core: &CoreSpec, scratch: &mut Vec<u64>) -> Cost {
        let loops = &self.loops[piece.microblock];
        let cycles = core.cycles(&self.kernel, piece, loops, scratch);
        let misses = self.stalls[piece.microblock].of(scratch, begins);
        let Some(table) = self.table else { return Cost::of(cycles, misses, core) };
        let counts = self.kernel.counts(piece);
        let cycles = table.cycles(&counts, core, cycles, (loops, scratch));
        Cost::of(cycles, table.misses(&counts, core, misses), core)
    }
}
