//! Which operation of a loop waits for which, and for how long.

use crate::vliw::spec::LatencySpec;
use nest::{Binary, Microblock, Statement, Term, Unary};

/// An operation waits for another, of the same iteration or of one that was so many iterations earlier.
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: usize,
    to: usize,
    latency: u64,
    distance: u64,
}

/// The operations that stand in a loop, beside the loops in it, or outside all.
pub(super) struct Chains {
    nodes: usize,
    edges: Vec<Edge>,
    /// Stores, and their cycles.
    last: Vec<(usize, u64)>,
}

impl Chains {
    pub(super) fn of(microblock: &Microblock, around: Option<usize>, latency: &LatencySpec) -> Chains {
        let mut chains = Chains { nodes: 0, edges: Vec::new(), last: Vec::new() };
        // The first operation of each statement that stands there, by number.
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
            // A load before the loop, a store behind it; what is between them is the loop.
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

    /// The terms of a statement, then its store.
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

    /// The longest chain of one iteration.
    pub(super) fn longest(&self) -> u64 {
        let mut begins = vec![0; self.nodes];
        self.relax(&mut begins, 0, |edge| edge.distance == 0);
        self.last.iter().map(|(store, cycles)| begins[*store] + cycles).max().unwrap_or(0)
    }

    /// RecMII: the least interval in which every value that goes round comes in time.
    pub(super) fn recurrence(&self) -> u64 {
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

    /// The earliest beginnings that these edges allow if iterations begin an interval apart; whether there are any.
    fn relax(&self, begins: &mut [u64], interval: u64, counts: impl Fn(&Edge) -> bool) -> bool {
        // A path has fewer edges than there are operations: what changes after that goes round.
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

/// Cycles until a load sees what a statement stores: none of a register.
fn cycles_to_store(statement: &Statement, latency: &LatencySpec) -> u64 {
    if statement.references[0].register.is_some() { 0 } else { latency.store.into() }
}

/// Cycles of an operation. What is no operation is there from the start.
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
