//! Operation counts in closed form, and sums kept in a register, which load and store less often.

use crate::domain::{Domain, Level, points};
use crate::kernel::{Binary, Kernel, Loop, Microblock, Reference, Statement, Term, Unary};
use crate::piece::Piece;
use std::ops::AddAssign;

/// Operations per iteration of a loop: the variable is incremented and compared, and the branch is taken.
pub const OPERATIONS_OF_AN_ITERATION: u64 = 3;

/// Operations by kind.
///
/// | source text | counts as |
/// |---|---|
/// | an element on the right-hand side | a load |
/// | the element that is assigned | a store; in `+=` and similar a load too: no accumulator is kept in a register |
/// | `a + b`, `a - b`, `-a` | an addition |
/// | `a * b` | a multiplication |
/// | `a / b` | a division |
/// | `sqrt(a)` | a square root |
/// | a comparison, `min`, `max`, `abs`; the choice between the two arms of `? :`, which are both computed | a comparison |
/// | an element with two or more subscripts, once per statement | an address operation |
/// | one iteration of a loop | an iteration, which is [`OPERATIONS_OF_AN_ITERATION`] operations |
///
/// An element kept in a register costs none of these in its loop: [`Held::counts`](crate::Held::counts) has its cost
/// each time the loop is entered.
///
/// Literals, scalars, sizes and loop variables cost nothing. By this table, the inner loop of
/// `C[i][j] += alpha * A[i][k] * B[k][j]` has 4 loads and stores in 13 operations, the 30.77 % of GEMM in Table 2
/// of the FlashAbacus paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Additions and subtractions.
    pub adds: u64,
    /// Multiplications.
    pub multiplies: u64,
    /// Divisions.
    pub divides: u64,
    /// Square roots.
    pub square_roots: u64,
    /// Comparisons and choices.
    pub compares: u64,
    /// Address operations.
    pub addresses: u64,
    /// Iterations of loops.
    pub iterations: u64,
}

impl Counts {
    /// Returns all operations.
    pub fn operations(&self) -> u64 {
        self.loads + self.stores + self.arithmetic() + self.addresses + self.overhead()
    }

    /// Returns the operations on values.
    pub fn arithmetic(&self) -> u64 {
        self.adds + self.multiplies + self.divides + self.square_roots + self.compares
    }

    /// Returns the operations caused by loops.
    pub fn overhead(&self) -> u64 {
        OPERATIONS_OF_AN_ITERATION * self.iterations
    }

    /// Returns the share of loads and stores in all operations, from 0 to 1; 0 without operations.
    pub fn ldst(&self) -> f64 {
        (self.loads + self.stores) as f64 / self.operations().max(1) as f64
    }

    /// Returns the counts times a factor.
    #[must_use]
    pub fn times(mut self, times: u64) -> Counts {
        for count in self.each() {
            *count *= times;
        }
        self
    }

    fn each(&mut self) -> [&mut u64; 9] {
        [
            &mut self.loads,
            &mut self.stores,
            &mut self.adds,
            &mut self.multiplies,
            &mut self.divides,
            &mut self.square_roots,
            &mut self.compares,
            &mut self.addresses,
            &mut self.iterations,
        ]
    }

    /// Returns the count that a term adds to.
    pub(crate) fn of(&mut self, term: &Term) -> Option<&mut u64> {
        match term {
            Term::Load(_) => Some(&mut self.loads),
            Term::Constant(_) | Term::Index(_) => None,
            Term::Unary(Unary::Negate, _) => Some(&mut self.adds),
            Term::Unary(Unary::SquareRoot, _) => Some(&mut self.square_roots),
            Term::Binary(Binary::Add | Binary::Subtract, ..) => Some(&mut self.adds),
            Term::Binary(Binary::Multiply, ..) => Some(&mut self.multiplies),
            Term::Binary(Binary::Divide, ..) => Some(&mut self.divides),
            Term::Unary(Unary::Absolute, _) | Term::Binary(..) | Term::Select(..) => Some(&mut self.compares),
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, mut other: Counts) {
        for (own, more) in self.each().into_iter().zip(other.each()) {
            *own += *more;
        }
    }
}

impl Statement {
    /// Returns true if a term takes its value from a register.
    pub fn is_in_register(&self, term: &Term) -> bool {
        matches!(term, Term::Load(reference) if self.references[*reference].register.is_some())
    }

    /// Returns the cost of executing it once.
    pub fn counts(&self) -> Counts {
        let stores = u64::from(self.references[0].register.is_none());
        let mut counts = Counts { stores, ..Counts::default() };
        for term in self.terms.iter().filter(|term| !self.is_in_register(term)) {
            if let Some(count) = counts.of(term) {
                *count += 1;
            }
        }
        let in_memory = self.references.iter().filter(|one| one.register.is_none());
        counts.addresses = in_memory.filter(|one| one.subscripts.len() > 1).count() as u64;
        counts
    }
}

impl Microblock {
    /// Returns the cost of one iteration of a loop without its inner loops, but with their loads into registers and
    /// stores from them; without a loop, the cost of what is outside all loops.
    pub fn own(&self, around: Option<usize>) -> Counts {
        let mut own = Counts { iterations: u64::from(around.is_some()), ..Counts::default() };
        self.statements.iter().filter(|one| one.parent == around).for_each(|one| own += one.counts());
        self.held_inside(around).for_each(|one| own += one.counts());
        own
    }

    /// Returns the elements that the loops directly inside a loop, or outside all, keep in registers.
    pub fn held_inside(&self, around: Option<usize>) -> impl Iterator<Item = &Held> {
        self.held.iter().filter(move |one| self.loops[one.within].parent == around)
    }
}

impl Kernel {
    /// Returns the operations that a piece executes, in time independent of their number.
    pub fn counts(&self, piece: &Piece) -> Counts {
        let microblock = self.of(piece);
        let mut counts = Counts::default();
        for (id, one) in microblock.statements.iter().enumerate() {
            let node = Some((microblock.place[id], microblock.place[id]));
            counts += one.counts().times(times(microblock, piece, one.parent, node));
        }
        for one in &microblock.held {
            counts += one.counts().times(microblock.entries(piece, one.within));
        }
        for (id, one) in microblock.loops.iter().enumerate() {
            counts.iterations += iterations(microblock, piece, id, one);
        }
        counts
    }

    /// Counts the iterations of each loop that begin in a piece, by loop number; the buffer is overwritten.
    pub fn iterations(&self, piece: &Piece, by_loop: &mut Vec<u64>) {
        let microblock = self.of(piece);
        by_loop.clear();
        let loops = microblock.loops.iter().enumerate();
        by_loop.extend(loops.map(|(id, one)| iterations(microblock, piece, id, one)));
    }
}

/// Returns the iterations of a loop that begin in a piece.
fn iterations(microblock: &Microblock, piece: &Piece, id: usize, one: &Loop) -> u64 {
    match piece.path().get(one.level) {
        // Iterations that only lead to the piece began with the first of them.
        Some(step) if one.level < piece.fixed() => u64::from(step.id == id && piece.is_opened(one.level)),
        _ => times(microblock, piece, Some(id), None),
    }
}

/// Returns how often a place is passed.
fn times(
    microblock: &Microblock,
    piece: &Piece,
    innermost: Option<usize>,
    nodes: Option<(usize, usize)>,
) -> u64 {
    let Some(domain) = piece.domain(microblock, innermost, nodes) else { return 0 };
    let mut sum = 0;
    domain.each(&mut |one| sum += points(one));
    sum
}

// Sums that stay in a register while the innermost loop around them runs.
//
// This is scalar replacement (Callahan, Carr and Kennedy, "Improving register allocation for subscripted variables",
// 1990), as optimising compilers do it. An element that a loop adds to, and that does not change with the loop's
// variable, is loaded once before the loop and stored once after it. A loop without iterations does neither.

/// Element that a loop keeps in a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Loop number: no other loop is in it.
    pub within: usize,
    /// Reference to the element.
    pub reference: Reference,
}

impl Held {
    /// Returns the operations each time the loop is entered: a load before it, a store after it, and their address.
    pub fn counts(&self) -> Counts {
        let addresses = u64::from(self.reference.subscripts.len() > 1);
        Counts { loads: 1, stores: 1, addresses, ..Counts::default() }
    }
}

impl Kernel {
    /// Returns the kernel as compiled with sums kept in registers.
    ///
    /// An element that a statement of an innermost loop loads and stores (`+=` and similar) is kept if the loop
    /// changes none of its subscripts, and if every other element of its array in the loop is either the same or
    /// surely different. It stays in memory if the loop's number of entries has no closed form.
    #[must_use]
    pub fn with_sums_in_registers(mut self) -> Kernel {
        self.microblocks.iter_mut().for_each(Microblock::hold_sums);
        self
    }
}

impl Microblock {
    fn hold_sums(&mut self) {
        for within in 0..self.loops.len() {
            if !self.loops[within].is_innermost() || !self.entries_are_known(within) {
                continue;
            }
            for at in 0..self.statements.len() {
                let statement = &self.statements[at];
                let target = &statement.references[0];
                let is_sum = statement.parent == Some(within) && statement.terms.contains(&Term::Load(0));
                if is_sum && target.register.is_none() && self.stays(target, within) {
                    self.hold(target.clone(), within);
                }
            }
        }
    }

    /// Returns true if a loop does not move an element and touches it under this name only.
    fn stays(&self, target: &Reference, within: usize) -> bool {
        let level = self.loops[within].level;
        let is_apart = |other: &Reference| {
            let subscripts = target.subscripts.iter().zip(&other.subscripts);
            subscripts.into_iter().any(|(own, other)| own.minus(other).as_number().is_some_and(|by| by != 0))
        };
        let inside = self.statements.iter().filter(|one| one.parent == Some(within));
        let mut others = inside.flat_map(|one| &one.references).filter(|one| one.array == target.array);
        target.subscripts.iter().all(|one| one.by[level] == 0)
            && others.all(|other| other.subscripts == target.subscripts || is_apart(other))
    }

    fn hold(&mut self, target: Reference, within: usize) {
        let register = Some(self.held.len());
        let inside = self.statements.iter_mut().filter(|one| one.parent == Some(within));
        for other in inside.flat_map(|one| &mut one.references) {
            if other.array == target.array && other.subscripts == target.subscripts {
                other.register = register;
            }
        }
        self.held.push(Held { within, reference: target });
    }

    fn entries_are_known(&self, within: usize) -> bool {
        let Some(domain) = Piece::whole(0).domain(self, Some(within), None) else { return true };
        let mut known = true;
        domain.each(&mut |side| known &= domain_entries(side).1);
        known
    }

    /// Returns how often a piece enters a loop that then has at least one iteration.
    pub(crate) fn entries(&self, piece: &Piece, within: usize) -> u64 {
        let Some(domain) = piece.domain(self, Some(within), None) else { return 0 };
        let mut sum = 0;
        domain.each(&mut |side| sum += domain_entries(side).0);
        sum
    }
}

/// Returns how often the innermost loop of a domain has at least one iteration, and whether that is exact. Without
/// `most`.
fn domain_entries(domain: &Domain) -> (u64, bool) {
    let mut own = *domain;
    if !own.tighten() {
        return (0, true);
    }
    // The rest has been cut to iterations in which the inner loops have some, as far as possible.
    let is_exact = (0..own.depth).all(|level| {
        let Level { from, below, .. } = own.levels[level];
        let least = Domain { depth: level, ..own }.range(below.minus(&from)).0;
        least >= i64::from(level + 1 == own.depth)
    });
    own.depth -= 1;
    (points(&own), is_exact)
}
