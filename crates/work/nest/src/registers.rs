//! Sums that stay in a register while the innermost loop around them runs.
//!
//! That is scalar replacement (Callahan, Carr and Kennedy, "Improving register allocation for subscripted variables", 1990), as optimising compilers do it: an element that a loop
//! adds to, and that does not change with the loop's variable, is loaded once before the loop and stored once behind it. A loop without iterations does neither.

use crate::counts::Counts;
use crate::domain::{Domain, Level};
use crate::kernel::Kernel;
use crate::microblock::{Microblock, Reference, Term};
use crate::piece::Piece;
use crate::polynomial::points;

/// An element that a loop keeps in a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The loop, by number: none is in it.
    pub within: usize,
    /// The element.
    pub reference: Reference,
}

impl Held {
    /// Operations each time that the loop is entered: a load before it, a store behind it, and the address of both.
    pub fn counts(&self) -> Counts {
        let addresses = u64::from(self.reference.subscripts.len() > 1);
        Counts { loads: 1, stores: 1, addresses, ..Counts::default() }
    }
}

impl Kernel {
    /// The kernel as a compiler makes it that keeps sums in registers.
    ///
    /// An element that a statement of an innermost loop loads and stores (`+=` and its kin) is kept if the loop changes none of its subscripts, and if every other
    /// element of its array in the loop is the same one or surely another. It stays in memory where it cannot be said in closed form how often the loop is entered.
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

    /// Whether a loop leaves an element where it is, and touches it under this name alone.
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
        domain.each(&mut |side| known &= entries(side).1);
        known
    }

    /// How often a piece enters a loop that then has an iteration at least.
    pub(crate) fn entries(&self, piece: &Piece, within: usize) -> u64 {
        let Some(domain) = piece.domain(self, Some(within), None) else { return 0 };
        let mut sum = 0;
        domain.each(&mut |side| sum += entries(side).0);
        sum
    }
}

/// How often the innermost loop of a domain has an iteration at least, and whether that is exact. Without `most`.
fn entries(domain: &Domain) -> (u64, bool) {
    let mut own = *domain;
    if !own.tighten() {
        return (0, true);
    }
    // What is left over has been cut to iterations in which the loops inside have some, as far as that is possible.
    let is_exact = (0..own.depth).all(|level| {
        let Level { from, below, .. } = own.levels[level];
        let least = Domain { depth: level, ..own }.range(below.minus(&from)).0;
        least >= i64::from(level + 1 == own.depth)
    });
    own.depth -= 1;
    (points(&own), is_exact)
}
