//! Issue time of a loop on a core: the bounds of modulo scheduling (Rau, "Iterative modulo scheduling", 1994; Lam,
//! "Software pipelining", 1988).
//!
//! An innermost loop begins an iteration every II cycles, the larger of two bounds. **ResMII**: no kind of unit begins
//! more operations than it has units. **RecMII**: a value that an iteration needs from an earlier one is available in
//! time. The loop ends when the last iteration is through, which takes as long as its longest chain of operations. A
//! loop around others has its own operations once per iteration, and waits for them; the parts in it follow one after
//! another.

use super::spec::{CoreSpec, ExpansionSpec};
use crate::vliw::spec::LatencySpec;
use nest::{Binary, Counts, Kernel, Microblock, OPERATIONS_OF_AN_ITERATION, Piece, Statement, Term, Unary};

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

/// Cycles of a loop without its inner loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopCycles {
    /// Cycles between iterations, by the units.
    pub resources: u64,
    /// Cycles between iterations, by values that go from one iteration to a later one; zero if there are none, or if
    /// the loop has inner loops.
    pub recurrence: u64,
    /// Longest chain of operations of one iteration, cycles.
    pub chain: u64,
    /// True for an innermost loop, whose iterations overlap.
    pub overlaps: bool,
}

impl LoopCycles {
    /// Cycles between iterations.
    pub fn interval(&self) -> u64 {
        if self.overlaps { self.resources.max(self.recurrence) } else { self.resources.max(self.chain) }
    }

    /// Remaining cycles of the last iteration when the next would begin.
    pub fn drain(&self) -> u64 {
        if self.overlaps { self.chain.saturating_sub(self.interval()) } else { 0 }
    }
}

impl CoreSpec {
    /// Cycles of each loop of a microblock, by loop number, and of the code outside all loops.
    pub fn loops(&self, microblock: &Microblock) -> Vec<LoopCycles> {
        let loops = (0..microblock.loops.len()).map(Some);
        loops.chain([None]).map(|around| self.of_loop(microblock, around)).collect()
    }

    fn of_loop(&self, microblock: &Microblock, around: Option<usize>) -> LoopCycles {
        let overlaps = around.is_some_and(|id| microblock.loops[id].is_innermost());
        let chains = Chains::of(microblock, around, &self.latency);
        LoopCycles {
            resources: self.resources(&self.by_unit(&microblock.own(around))),
            recurrence: if overlaps { chains.recurrence() } else { 0 },
            chain: chains.longest(),
            overlaps,
        }
    }

    /// Units that operations need; divisions and square roots count as their expansions.
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

    /// Cycles that units need to begin all of these operations.
    pub fn resources(&self, operations: &ByUnit) -> u64 {
        let each = [
            operations.memory.div_ceil(u64::from(self.units.memory)),
            operations.multiply.div_ceil(u64::from(self.units.multiply)),
            operations.general.div_ceil(u64::from(self.units.general)),
        ];
        each.into_iter().max().unwrap_or(0)
    }

    /// Cycles in which a core issues a piece, if all its data hit the first-level cache. `loops` are those of its
    /// microblock; `scratch` is overwritten.
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
            // An inner loop is entered once per iteration of the loop around it.
            let around = microblock.loops[id].parent.map_or(1, |parent| scratch[parent].max(1));
            cycles += around.min(*iterations) * one.drain();
        }
        cycles
    }
}

// Dependences between operations of a loop, with their latencies.

/// Dependence of an operation on another, of the same iteration or of an earlier one at a fixed distance.
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: usize,
    to: usize,
    latency: u64,
    distance: u64,
}

/// Operations directly in a loop, or outside all loops.
struct Chains {
    nodes: usize,
    edges: Vec<Edge>,
    /// Stores, and their cycles.
    last: Vec<(usize, u64)>,
}

impl Chains {
    fn of(microblock: &Microblock, around: Option<usize>, latency: &LatencySpec) -> Chains {
        let mut chains = Chains { nodes: 0, edges: Vec::new(), last: Vec::new() };
        // First operation of each statement here, by number.
        let mut first = vec![None; microblock.statements.len()];
        for (id, statement) in microblock.statements.iter().enumerate() {
            if statement.parent == around {
                first[id] = Some(chains.nodes);
                chains.statement(statement, latency);
            }
        }
        for one in around.map_or_else(Vec::new, |id| microblock.dependences(id)) {
            let (Some(from), Some(to)) = (first[one.from], first[one.to]) else { continue };
            let statement = &microblock.statements[one.from];
            let store = from + statement.terms.len();
            for (at, term) in microblock.statements[one.to].terms.iter().enumerate() {
                if *term == Term::Load(one.load) {
                    chains.wait(store, to + at, cycles_to_store(statement, latency), one.distance);
                }
            }
        }
        for _ in microblock.held_inside(around) {
            // A load before the loop, a store behind it; between them is the loop.
            let load = chains.nodes;
            chains.wait(load, load + 1, latency.load.into(), 0);
            chains.last.push((load + 1, latency.store.into()));
            chains.nodes += 2;
        }
        chains
    }

    fn wait(&mut self, from: usize, to: usize, latency: u64, distance: u64) {
        self.edges.push(Edge { from, to, latency, distance });
    }

    /// Adds the terms of a statement, then its store.
    fn statement(&mut self, statement: &Statement, latency: &LatencySpec) {
        let first = self.nodes;
        let cycles = |term: usize| match &statement.terms[term] {
            term if statement.is_in_register(term) => 0,
            term => cycles(term, latency),
        };
        for (at, term) in statement.terms.iter().enumerate() {
            let operands: &[usize] = match term {
                Term::Load(_) | Term::Constant(_) | Term::Index(_) => &[],
                Term::Unary(_, of) => &[*of],
                Term::Binary(_, left, right) => &[*left, *right],
                Term::Select(test, yes, no) => &[*test, *yes, *no],
            };
            for operand in operands {
                self.wait(first + operand, first + at, cycles(*operand), 0);
            }
        }
        let store = first + statement.terms.len();
        if let Some(value) = statement.terms.len().checked_sub(1) {
            self.wait(first + value, store, cycles(value), 0);
        }
        self.last.push((store, cycles_to_store(statement, latency)));
        self.nodes = store + 1;
    }

    /// Longest chain of one iteration.
    fn longest(&self) -> u64 {
        let mut begins = vec![0; self.nodes];
        self.relax(&mut begins, 0, |edge| edge.distance == 0);
        self.last.iter().map(|(store, cycles)| begins[*store] + cycles).max().unwrap_or(0)
    }

    /// RecMII: the least interval in which every value carried between iterations comes in time.
    fn recurrence(&self) -> u64 {
        let (mut least, mut most) = (0, self.edges.iter().map(|edge| edge.latency).sum());
        while least < most {
            let interval = least + (most - least) / 2;
            if self.relax(&mut vec![0; self.nodes], interval, |_| true) {
                most = interval;
            } else {
                least = interval + 1;
            }
        }
        least
    }

    /// Computes the earliest starts that these edges allow if iterations begin an interval apart; returns whether they
    /// exist.
    fn relax(&self, begins: &mut [u64], interval: u64, counts: impl Fn(&Edge) -> bool) -> bool {
        // A path has fewer edges than there are operations: a change after that is a cycle.
        for _ in 0..=self.nodes {
            let mut changed = false;
            for edge in self.edges.iter().filter(|edge| counts(edge)) {
                let earliest = (begins[edge.from] + edge.latency).saturating_sub(interval * edge.distance);
                if begins[edge.to] < earliest {
                    begins[edge.to] = earliest;
                    changed = true;
                }
            }
            if !changed {
                return true;
            }
        }
        false
    }
}

/// Cycles until a load sees a statement's store: zero for a register.
fn cycles_to_store(statement: &Statement, latency: &LatencySpec) -> u64 {
    if statement.references[0].register.is_some() { 0 } else { latency.store.into() }
}

/// Cycles of an operation. Terms that are not operations are available from the start.
fn cycles(term: &Term, latency: &LatencySpec) -> u64 {
    let cycles = match term {
        Term::Load(_) => latency.load,
        Term::Constant(_) | Term::Index(_) => 0,
        Term::Unary(Unary::SquareRoot, _) => latency.square_root,
        Term::Unary(Unary::Negate, _) | Term::Binary(Binary::Add | Binary::Subtract, ..) => latency.add,
        Term::Binary(Binary::Multiply, ..) => latency.multiply,
        Term::Binary(Binary::Divide, ..) => latency.divide,
        Term::Unary(Unary::Absolute, _) | Term::Binary(..) | Term::Select(..) => latency.compare,
    };
    cycles.into()
}

#[cfg(test)]
mod tests {
    // Intervals worked out by hand. Units and latencies are those of a C66x core: two multipliers, four general units, two for memory; a load takes 5 cycles, a
    // multiplication 4, an addition 3.
    use super::*;
    use crate::vliw::spec::LatencySpec;

    fn core() -> CoreSpec {
        let c66x = crate::vliw::testing::core();
        let latency = LatencySpec { divide: 28, square_root: 33, ..c66x.latency };
        let divide = ExpansionSpec { multiply: 4, general: 3 };
        CoreSpec { latency, divide, square_root: ExpansionSpec { multiply: 7, general: 3 }, ..c66x }
    }

    fn kernel(arrays: &[(&str, &str, &str)], code: &str) -> Kernel {
        let arrays: String = arrays
            .iter()
            .map(|(name, shape, section)| {
                format!("[arrays.{name}]\nshape = [{shape}]\nelement = \"f32\"\nsection = \"{section}\"\n")
            })
            .collect();
        let text = format!(
            "name = \"test\"\nabout = \"a test\"\n[sizes]\nn = 64\n[scalars]\na = 2.0\n{arrays}[[microblocks]]\ncode = \"\"\"\n{code}\n\"\"\"\n"
        );
        Kernel::read(&text, "test.toml", &[]).expect("a kernel")
    }

    const MATRICES: &[(&str, &str, &str)] =
        &[("A", "\"n\", \"n\"", "input"), ("B", "\"n\", \"n\"", "input"), ("C", "\"n\", \"n\"", "inout")];

    fn innermost(kernel: &Kernel) -> LoopCycles {
        let microblock = &kernel.microblocks()[0];
        let at = microblock.loops.iter().position(|one| one.is_innermost()).expect("a loop");
        core().loops(microblock)[at]
    }

    /// `C[i][j] += a * A[i][k] * B[k][j]` over `k`: 4 loads and stores on two units, 2 multiplications on two, 1 addition, 3 addresses and 3 of the loop on four: two cycles by
    /// units. The sum is in memory: load 5, add 3, store 1 cycle, then the next: 9.
    #[test]
    fn a_sum_in_memory_waits_for_itself() {
        let code = "for i in 0..n { for j in 0..n { for k in 0..n { C[i][j] += a * A[i][k] * B[k][j]; } } }";
        let found = innermost(&kernel(MATRICES, code));
        assert_eq!((found.resources, found.recurrence, found.interval()), (2, 9, 9));
        // Load 5, multiply 4, multiply 4, add 3, store 1.
        assert_eq!((found.chain, found.drain()), (17, 8));
    }

    /// A sum over `j` in the innermost loop: each iteration has an element of its own, and units alone bound it.
    #[test]
    fn independent_iterations_are_bound_by_units() {
        let code = "for i in 0..n { for k in 0..n { for j in 0..n { C[i][j] += a * A[i][k] * B[k][j]; } } }";
        let found = innermost(&kernel(MATRICES, code));
        assert_eq!((found.resources, found.recurrence, found.interval()), (2, 0, 2));
    }

    /// `x[i] = x[i - 2] * a`: load 5, multiply 4, store 1 go round in two iterations: 5 cycles each.
    #[test]
    fn a_longer_distance_divides_the_chain() {
        let found = innermost(&kernel(&[("x", "\"n\"", "inout")], "for i in 2..n { x[i] = x[i-2] * a; }"));
        assert_eq!((found.resources, found.recurrence), (1, 5));
    }

    /// Through two statements: `y[i] = x[i-1] + a` then `x[i] = y[i] * a`: 5 + 3 + 1 and 5 + 4 + 1 in one iteration.
    #[test]
    fn a_chain_goes_through_statements() {
        let code = "for i in 1..n { y[i] = x[i-1] + a; x[i] = y[i] * a; }";
        let found = innermost(&kernel(&[("x", "\"n\"", "inout"), ("y", "\"n\"", "output")], code));
        assert_eq!((found.recurrence, found.chain), (19, 19));
    }

    /// A division has no unit: 4 multiplications and 3 other operations each, its latency in the chain.
    #[test]
    fn a_division_is_a_sequence() {
        let found = innermost(&kernel(
            &[("x", "\"n\"", "input"), ("y", "\"n\"", "output")],
            "for i in 0..n { y[i] = x[i] / a; }",
        ));
        // Two of memory; 4 multiplications on two units; 3 and 3 on four.
        assert_eq!((found.resources, found.chain), (2, 5 + 28 + 1));
    }

    /// A piece: 64 x 64 x 64 iterations of 9 cycles; 64 x 64 times the innermost loop is left, after 8 more. Around it nothing but loops: 3 operations on four units.
    #[test]
    fn a_piece_is_the_sum_of_its_loops() {
        let code = "for i in 0..n { for j in 0..n { for k in 0..n { C[i][j] += a * A[i][k] * B[k][j]; } } }";
        let kernel = kernel(MATRICES, code);
        let loops = core().loops(&kernel.microblocks()[0]);
        let cycles = core().cycles(&kernel, &Piece::whole(0), &loops, &mut Vec::new());
        let n = 64_u64;
        assert_eq!(cycles, n * n * n * 9 + n * n * 8 + n * n + n);
    }

    /// A sum in a register: loads of `A` and `B` on two units, 2 multiplications, 1 addition, 2 addresses and 3 of the loop on four: two cycles by units. The next iteration waits for the addition alone, 3
    /// cycles. The last is through when its addition is: 5, 4, 4 and 3 cycles. Around the loop stand a load and a store of `C`, 5 and 1 cycles one behind the other.
    #[test]
    fn a_sum_in_a_register_waits_for_its_addition() {
        let code = "for i in 0..n { for j in 0..n { for k in 0..n { C[i][j] += a * A[i][k] * B[k][j]; } } }";
        let kernel = kernel(MATRICES, code).with_sums_in_registers();
        let found = innermost(&kernel);
        assert_eq!((found.resources, found.recurrence, found.interval()), (2, 3, 3));
        assert_eq!((found.chain, found.drain()), (16, 13));
        let loops = core().loops(&kernel.microblocks()[0]);
        let around = LoopCycles { resources: 1, recurrence: 0, chain: 6, overlaps: false };
        assert_eq!((loops[1], loops[1].interval()), (around, 6));
        let cycles = core().cycles(&kernel, &Piece::whole(0), &loops, &mut Vec::new());
        let n = 64_u64;
        assert_eq!(cycles, n * n * n * 3 + n * n * 13 + n * n * 6 + n);
    }

    /// Over `j` in the innermost loop the sum's address changes: nothing is kept, and loops are what they were.
    #[test]
    fn a_sum_whose_loop_is_not_innermost_stays_in_memory() {
        let code = "for i in 0..n { for k in 0..n { for j in 0..n { C[i][j] += a * A[i][k] * B[k][j]; } } }";
        let memory = kernel(MATRICES, code);
        assert_eq!(memory.clone().with_sums_in_registers(), memory);
    }

    /// A sum that another statement of its loop reads: 3 cycles from one addition to the next, and no load of `y[0]` in front of the multiplication.
    #[test]
    fn what_reads_a_kept_sum_reads_the_register() {
        let arrays = &[("x", "\"n\"", "input"), ("y", "\"n\"", "inout"), ("z", "\"n\"", "output")];
        let kernel =
            kernel(arrays, "for i in 0..n { y[0] += x[i]; z[i] = y[0] * a; }").with_sums_in_registers();
        let found = innermost(&kernel);
        // A load and a store; the sum, 3 of the loop; load 5, add 3, multiply 4, store 1.
        assert_eq!((found.resources, found.recurrence, found.chain), (1, 3, 13));
    }
}
