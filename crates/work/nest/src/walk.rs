//! Going through a piece iteration by iteration, in its true order.

use crate::affine::{DEPTH, Point};
use crate::kernel::Kernel;
use crate::microblock::{Microblock, Node, Statement, Term};
use crate::piece::{Piece, nodes};
use crate::registers::Held;

/// An access to an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The array, by number.
    pub array: usize,
    /// Where the element begins in the array's addresses.
    pub byte: u64,
    /// Whether it is a store.
    pub write: bool,
    /// The innermost loop around it, by number.
    pub within: Option<usize>,
}

/// What looks on.
pub(crate) trait Visit {
    /// An iteration of a loop begins.
    fn iteration(&mut self, id: usize);
    /// A statement is executed.
    fn statement(&mut self, statement: &Statement, point: &Point);
    /// A loop begins or ends that keeps an element in a register, by number: it is loaded or stored.
    fn register(&mut self, register: usize, edge: Edge, point: &Point);
}

/// Where in a loop's time a register meets memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Begins,
    Ends,
}

/// Goes through a piece.
pub(crate) fn walk(microblock: &Microblock, piece: &Piece, visit: &mut impl Visit) {
    let mut point = [0; DEPTH];
    let fixed = piece.fixed();
    for (at, step) in piece.path()[..fixed].iter().enumerate() {
        point[at] = step.from as i64;
        if piece.is_opened(at) {
            visit.iteration(step.id);
        }
    }
    let own = nodes(microblock, piece);
    match piece.path().get(fixed) {
        Some(last) => {
            let range = (last.from as i64, last.below as i64);
            pass(microblock, piece, last.id, range, &mut point, visit);
        }
        None => {
            // Statements in one iteration of a loop: its registers are loaded and stored for them alone.
            let within = fixed.checked_sub(1).map(|at| piece.path()[at].id).filter(|_| !own.is_empty());
            registers(microblock, within, Edge::Begins, &point, visit);
            all(microblock, piece, own, &mut point, visit);
            registers(microblock, within, Edge::Ends, &point, visit);
        }
    }
}

/// Loads or stores the registers of a loop.
#[inline]
fn registers(
    microblock: &Microblock,
    within: Option<usize>,
    edge: Edge,
    point: &Point,
    visit: &mut impl Visit,
) {
    for (register, held) in microblock.held.iter().enumerate() {
        if Some(held.within) == within {
            visit.register(register, edge, point);
        }
    }
}

fn all(microblock: &Microblock, piece: &Piece, nodes: &[Node], point: &mut Point, visit: &mut impl Visit) {
    for node in nodes {
        match *node {
            Node::Statement(id) => visit.statement(&microblock.statements[id], point),
            Node::Loop(id) => {
                let one = &microblock.loops[id];
                let range = match piece.screen {
                    Some((from, below)) if one.is_split => (from as i64, below as i64),
                    _ => (0, one.trips_at(point)),
                };
                pass(microblock, piece, id, range, point, visit);
            }
        }
    }
}

fn pass(
    microblock: &Microblock,
    piece: &Piece,
    id: usize,
    (from, below): (i64, i64),
    point: &mut Point,
    visit: &mut impl Visit,
) {
    let one = &microblock.loops[id];
    let held = Some(id).filter(|_| from < below);
    registers(microblock, held, Edge::Begins, point, visit);
    for t in from..below {
        point[one.level] = t;
        visit.iteration(id);
        all(microblock, piece, &one.body, point, visit);
    }
    registers(microblock, held, Edge::Ends, point, visit);
    point[one.level] = 0;
}

/// Tells of each access.
struct Accesses<'f, F>(&'f Microblock, &'f mut F);

impl<F: FnMut(Access)> Visit for Accesses<'_, F> {
    fn iteration(&mut self, _: usize) {}

    #[inline]
    fn statement(&mut self, statement: &Statement, point: &Point) {
        let access = |reference: usize, write| {
            let one = &statement.references[reference];
            let byte = one.byte.at(point) as u64;
            Access { array: one.array, byte, write, within: statement.parent }
        };
        for term in &statement.terms {
            if let Term::Load(reference) = term
                && statement.references[*reference].register.is_none()
            {
                (self.1)(access(*reference, false));
            }
        }
        if statement.references[0].register.is_none() {
            (self.1)(access(0, true));
        }
    }

    fn register(&mut self, register: usize, edge: Edge, point: &Point) {
        let Held { within, reference } = &self.0.held[register];
        let byte = reference.byte.at(point) as u64;
        let within = self.0.loops[*within].parent;
        (self.1)(Access { array: reference.array, byte, write: edge == Edge::Ends, within });
    }
}

impl Kernel {
    /// Calls with every access of a piece, in the order of a sequential execution: of each statement the loads from left to right
    /// (in `+=` and its kin that of the target first), then the store. What a loop keeps in a register is loaded before it and stored behind it, which belongs to the loop around.
    pub fn accesses(&self, piece: &Piece, call: &mut impl FnMut(Access)) {
        let microblock = self.of(piece);
        walk(microblock, piece, &mut Accesses(microblock, call));
    }
}
