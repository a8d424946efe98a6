//! What an accelerator knows of a kernel before it runs.

use super::table::Table;
use crate::vliw::issue::{Issue, LoopCycles};
use crate::vliw::spec::{AcceleratorSpec, AcceleratorWork};
use crate::vliw::stalls::Stalls;
use config::SpecError;
use kernel::Time;
use nest::{Kernel, Piece, Section};

/// A kernel, with what its pieces cost.
pub(super) struct Program {
    pub(super) kernel: Kernel,
    /// Screens of each microblock.
    pub(super) screens: Vec<u32>,
    /// How many screens a microblock is dealt out as at most.
    most: u64,
    loops: Vec<Vec<LoopCycles>>,
    stalls: Vec<Stalls>,
    /// Its work, if it is not what the kernel counts.
    table: Option<Table>,
    /// Where each input array begins, in page groups: instances share it.
    pub(super) inputs: Vec<Option<u32>>,
}

/// What a piece takes of its core and of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    /// Cycles in which it issues.
    pub(super) issue: u64,
    /// Cycles for which it waits for its caches.
    pub(super) stall: u64,
    /// Bytes between its caches and memory.
    pub(super) bytes: u64,
}

impl Program {
    /// # Errors
    /// A cache that cannot be built; work by a table that says nothing of the kernel.
    pub(super) fn new(
        kernel: Kernel,
        spec: &AcceleratorSpec,
        issue: &Issue,
        splits: bool,
    ) -> Result<Program, SpecError> {
        let most = if splits { u64::from(spec.workers) } else { 1 };
        let mut program = Program {
            screens: Vec::new(),
            most,
            loops: kernel.microblocks().iter().map(|microblock| issue.of(microblock)).collect(),
            stalls: Vec::new(),
            table: match spec.work {
                AcceleratorWork::Nest => None,
                AcceleratorWork::Table => Some(Table::of(&kernel)?),
            },
            inputs: vec![None; kernel.arrays().len()],
            kernel,
        };
        let caches = (&spec.l1, &spec.l2);
        for alike in program.kernel.microblocks().chunk_by(|one, next| one.text == next.text) {
            // Those of one text have the same loops around the same accesses: the middle one stands for all.
            let first = program.screens.len();
            let middle = program.screens_of(first + alike.len() / 2);
            let stalls = Stalls::sample(&program.kernel, middle[middle.len() / 2], caches, spec.sample)?;
            for microblock in first..first + alike.len() {
                program.screens.push(program.screens_of(microblock).len() as u32);
                program.stalls.push(stalls.clone());
            }
        }
        Ok(program)
    }

    fn screens_of(&self, microblock: usize) -> Vec<Piece> {
        self.kernel.screens(microblock, self.most).collect()
    }

    /// A screen of a microblock.
    pub(super) fn screen(&self, microblock: u32, screen: u32) -> Piece {
        let mut screens = self.kernel.screens(microblock as usize, self.most);
        screens.nth(screen as usize).expect("a screen of the chain")
    }

    /// What a piece costs; `begins` if caches are empty. `scratch` is overwritten.
    pub(super) fn cost(
        &self,
        piece: &Piece,
        begins: bool,
        spec: &AcceleratorSpec,
        issue: &Issue,
        scratch: &mut Vec<u64>,
    ) -> Cost {
        let loops = &self.loops[piece.microblock];
        let cycles = issue.cycles(&self.kernel, piece, loops, scratch);
        let cycles = self.table.map_or(cycles, |table| {
            table.cycles(&self.kernel.counts(piece), issue, cycles, (loops, scratch))
        });
        let misses = self.stalls[piece.microblock].of(scratch, begins);
        let stall = misses.first * u64::from(spec.l1.miss) + misses.second * u64::from(spec.l2.miss);
        Cost { issue: cycles, stall, bytes: (misses.second + misses.written) * spec.l2.line.get() }
    }

    /// Whether an array is shared by all instances.
    pub(super) fn is_shared(&self, array: usize) -> bool {
        self.kernel.arrays()[array].section == Section::Input
    }
}

/// Cycles as time.
pub(super) fn time(cycles: u64, spec: &AcceleratorSpec) -> Time {
    let ps = u128::from(cycles) * 1_000_000_000_000 / u128::from(spec.clock.hz());
    Time::from_ps(ps as u64)
}
