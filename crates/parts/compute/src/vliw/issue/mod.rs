//! How long a core issues a loop: the bounds of modulo scheduling (Rau, "Iterative modulo scheduling", 1994; Lam, "Software pipelining", 1988).
//!
//! An innermost loop begins an iteration every II cycles, the larger of two bounds. **ResMII**: no kind of unit begins more operations than it has units. **RecMII**: a value
//! that an iteration needs from an earlier one is there in time. The loop is left when the last iteration is through, which takes as long as the longest chain of operations in it. A
//! loop around others has its own operations once an iteration, and waits for them; what is in it follows one after another.

mod chains;
#[cfg(test)]
mod tests;

use super::spec::{CoreSpec, ExpansionSpec};
use nest::{Counts, Kernel, Microblock, OPERATIONS_OF_AN_ITERATION, Piece};

/// Operations by the kind of unit that begins them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByUnit {
    /// Loads and stores.
    pub memory: u64,
    /// Multiplications.
    pub multiply: u64,
    /// All others.
    pub general: u64,
}

/// Cycles of a loop without the loops in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopCycles {
    /// From an iteration to the next, by the units.
    pub resources: u64,
    /// The same by values that go from one iteration to a later one; zero if there are none, or if other loops are in it.
    pub recurrence: u64,
    /// The longest chain of operations of one iteration.
    pub chain: u64,
    /// Whether no loop is in it: its iterations overlap.
    pub overlaps: bool,
}

impl LoopCycles {
    /// From an iteration to the next.
    pub fn interval(&self) -> u64 {
        if self.overlaps { self.resources.max(self.recurrence) } else { self.resources.max(self.chain) }
    }

    /// What is left of the last iteration when the next would begin.
    pub fn drain(&self) -> u64 {
        if self.overlaps { self.chain.saturating_sub(self.interval()) } else { 0 }
    }
}

impl CoreSpec {
    /// Cycles of each loop of a microblock, by its number, and of what stands outside all.
    pub fn loops(&self, microblock: &Microblock) -> Vec<LoopCycles> {
        let loops = (0..microblock.loops.len()).map(Some);
        loops.chain([None]).map(|around| self.of_loop(microblock, around)).collect()
    }

    fn of_loop(&self, microblock: &Microblock, around: Option<usize>) -> LoopCycles {
        let overlaps = around.is_some_and(|id| microblock.loops[id].is_innermost());
        let chains = chains::Chains::of(microblock, around, &self.latency);
        LoopCycles {
            resources: self.resources(&self.by_unit(&microblock.own(around))),
            recurrence: if overlaps { chains.recurrence() } else { 0 },
            chain: chains.longest(),
            overlaps,
        }
    }

    /// The units that operations need; divisions and roots are what they are made of.
    pub fn by_unit(&self, counts: &Counts) -> ByUnit {
        let made = |of: fn(&ExpansionSpec) -> u32| {
            u64::from(of(&self.divide)) * counts.divides
                + u64::from(of(&self.square_root)) * counts.square_roots
        };
        let overhead = OPERATIONS_OF_AN_ITERATION * counts.iterations;
        ByUnit {
            memory: counts.loads + counts.stores,
            multiply: counts.multiplies + made(|each| each.multiply),
            general: counts.adds + counts.compares + counts.addresses + overhead + made(|each| each.general),
        }
    }

    /// The cycles that units need to begin all of these operations.
    pub fn resources(&self, operations: &ByUnit) -> u64 {
        let each = [
            operations.memory.div_ceil(u64::from(self.units.memory)),
            operations.multiply.div_ceil(u64::from(self.units.multiply)),
            operations.general.div_ceil(u64::from(self.units.general)),
        ];
        each.into_iter().max().unwrap_or(0)
    }

    /// Cycles in which a core issues a piece, all its data being in the first-level cache. `loops` are those of its microblock; `scratch` is overwritten.
    pub fn cycles(
        &self,
        kernel: &Kernel,
        piece: &Piece,
        loops: &[LoopCycles],
        scratch: &mut Vec<u64>,
    ) -> u64 {
        kernel.iterations(piece, scratch);
        let microblock = &kernel.microblocks()[piece.microblock];
        let (own, outside) = loops.split_at(scratch.len());
        let mut cycles = outside.iter().map(LoopCycles::interval).sum();
        for (id, (one, iterations)) in own.iter().zip(scratch.iter()).enumerate() {
            cycles += iterations * one.interval();
            // It is entered once an iteration of the loop around it.
            let around = microblock.loops[id].parent.map_or(1, |parent| scratch[parent].max(1));
            cycles += around.min(*iterations) * one.drain();
        }
        cycles
    }
}
