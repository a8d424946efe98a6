//! The work that a paper's table says a program has, in place of what its nest counts (FlashAbacus, Table 2).
//!
//! The table has a program's input, its bytes a thousand instructions, and the share of loads and stores; so many instructions are spread over its pieces in proportion to the nest's own
//! operations. What the table does not say stays the nest's: how the other instructions divide between multipliers and general units, how much longer than its units dependences make a
//! loop, and which share of accesses caches miss.

use crate::vliw::caches::Misses;
use crate::vliw::issue::{ByUnit, LoopCycles};
use crate::vliw::spec::CoreSpec;
use config::SpecError;
use nest::{Counts, Kernel, Paper, Piece};

/// Bytes of a MB in the table.
const MB: f64 = 1e6;
/// Shares are counted in millionths.
const WHOLE: u64 = 1_000_000;

/// A program's work by a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::vliw) struct Table {
    /// Instructions of an instance.
    instructions: u64,
    /// Loads and stores of them, in millionths.
    ldst: u64,
    /// Operations that the nest has in their place.
    operations: u64,
}

impl Table {
    /// # Errors
    /// A program of which the table says nothing, or nothing that can be.
    pub(in crate::vliw) fn of(kernel: &Kernel) -> Result<Table, SpecError> {
        let Some(Paper { ldst, bki, input, .. }) = kernel.paper().copied() else {
            let what =
                format!("`{}` has no table `paper`, so that its work by that is not known", kernel.name());
            return Err(SpecError::new("work", what).help("`work = \"nest\"` takes what the program counts"));
        };
        let instructions = input * MB / bki * 1000.0;
        if !(0.0..=100.0).contains(&ldst) || !(1.0..=1e15).contains(&instructions) {
            let what =
                format!("{input} MB at {bki} B a thousand instructions, {ldst} % of them loads and stores");
            return Err(SpecError::new("work", format!("`paper` of `{}` has {what}", kernel.name()))
                .help("1 to 10^15 instructions, 0 to 100 % loads and stores"));
        }
        let mut counts = Counts::default();
        (0..kernel.microblocks().len()).for_each(|at| counts += kernel.counts(&Piece::whole(at)));
        Ok(Table {
            instructions: instructions.round() as u64,
            ldst: (ldst * WHOLE as f64 / 100.0).round() as u64,
            operations: counts.operations().max(1),
        })
    }

    /// The instructions of a part of the program, by unit.
    pub(in crate::vliw) fn by_unit(&self, counts: &Counts, core: &CoreSpec) -> ByUnit {
        let instructions = share(self.instructions, counts.operations(), self.operations);
        let memory = share(instructions, self.ldst, WHOLE);
        let ByUnit { multiply, general, .. } = core.by_unit(counts);
        let multiply = share(instructions - memory, multiply, (multiply + general).max(1));
        ByUnit { memory, multiply, general: instructions - memory - multiply }
    }

    /// Cycles in which a core issues a part that takes it `nest` cycles as its nest is written. `iterations` are those of its loops.
    pub(super) fn cycles(
        &self,
        counts: &Counts,
        core: &CoreSpec,
        nest: u64,
        (loops, iterations): (&[LoopCycles], &[u64]),
    ) -> u64 {
        let times = iterations.iter().chain([&1]);
        let units: u64 = loops.iter().zip(times).map(|(one, times)| one.resources * times).sum();
        share(core.resources(&self.by_unit(counts, core)), nest, units.max(1))
    }

    /// Misses of a part whose nest misses `nest`: as many an access as the nest has.
    pub(super) fn misses(&self, counts: &Counts, core: &CoreSpec, nest: Misses) -> Misses {
        let (accesses, of) = (self.by_unit(counts, core).memory, core.by_unit(counts).memory.max(1));
        let Misses { first, second, ahead, written } = nest;
        let [first, second, ahead, written] =
            [first, second, ahead, written].map(|misses| share(misses, accesses, of));
        Misses { first, second, ahead, written }
    }
}

/// `whole * part / of`, rounded.
fn share(whole: u64, part: u64, of: u64) -> u64 {
    ((u128::from(whole) * u128::from(part) + u128::from(of) / 2) / u128::from(of)) as u64
}
