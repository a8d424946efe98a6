//! Walks through a piece iteration by iteration, and its execution on values with a count of every operation.

use crate::counts::{Counts, Held};
use crate::domain::{DEPTH, Point};
use crate::kernel::{
    Array, Binary, Element, Kernel, Microblock, Node, Reference, Section, Statement, Term, Unary,
};
use crate::piece::{Piece, nodes};

/// Values of a kernel's arrays, row-major; each with the precision of its element.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// Values by array, in the kernel's order.
    pub arrays: Vec<Vec<f64>>,
}

impl Data {
    /// Generates initial values: inputs, and arrays that are read and then written, get values between 1/4 and 1
    /// (whole numbers: 1 to 16), drawn from `seed`; all others are zero. Divisions by them stay small.
    ///
    /// The arrays have the sizes of the kernel: read it with small sizes.
    pub fn generate(kernel: &Kernel, seed: u64) -> Data {
        let fill = |(id, array): (usize, &Array)| {
            let is_drawn = matches!(array.section, Section::Input | Section::Inout);
            let draw = |at: u64| match array.element {
                _ if !is_drawn => 0.0,
                Element::I32 => (1 + mixed(seed ^ mixed(id as u64, 0), at) % 16) as f64,
                // 53 bits, the precision of a real number.
                Element::F32 | Element::F64 => {
                    let bits = mixed(seed ^ mixed(id as u64, 0), at) >> 11;
                    rounded(array.element, 0.25 + 0.75 * (bits as f64 / (1u64 << 53) as f64))
                }
            };
            (0..array.elements()).map(draw).collect()
        };
        Data { arrays: kernel.arrays().iter().enumerate().map(fill).collect() }
    }
}

/// Mixes two numbers to random-looking bits (the finalizer of SplitMix64).
pub(crate) fn mixed(seed: u64, at: u64) -> u64 {
    let mut bits = seed.wrapping_add(at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Rounds a value to the precision of an element. Rounding a 64-bit sum, product, quotient or root to 32 bits gives
/// the result of 32-bit arithmetic.
fn rounded(element: Element, value: f64) -> f64 {
    match element {
        Element::F64 => value,
        Element::F32 => f64::from(value as f32),
        Element::I32 => f64::from(value as i32),
    }
}

impl Kernel {
    /// Executes all microblocks one after another on `data`, iteration by iteration, and counts the operations.
    ///
    /// Arithmetic is that of the element that is assigned; whole numbers wrap, and their division by zero gives zero.
    pub fn execute(&self, data: &mut Data) -> Counts {
        let mut counts = Counts::default();
        for microblock in 0..self.microblocks().len() {
            counts += self.execute_piece(&Piece::whole(microblock), data);
        }
        counts
    }

    /// Executes one piece on `data`, as [`Kernel::execute`] does.
    pub fn execute_piece(&self, piece: &Piece, data: &mut Data) -> Counts {
        let held = &self.of(piece).held;
        let mut execution = Execution {
            kernel: self,
            held,
            data,
            counts: Counts::default(),
            registers: vec![0.0; held.len()],
            values: Vec::new(),
        };
        walk(self.of(piece), piece, &mut execution);
        execution.counts
    }
}

struct Execution<'e> {
    kernel: &'e Kernel,
    held: &'e [Held],
    data: &'e mut Data,
    counts: Counts,
    registers: Vec<f64>,
    /// Values of the terms of a statement.
    values: Vec<f64>,
}

impl Execution<'_> {
    /// Returns the element's index in the values of its array.
    fn place(&self, one: &Reference, point: &Point) -> (usize, usize) {
        let shape = &self.kernel.arrays[one.array].shape;
        let subscripts = one.subscripts.iter().zip(shape);
        let place = subscripts.fold(0, |place, (subscript, n)| place * n + subscript.at(point) as u64);
        (one.array, place as usize)
    }

    /// Returns the value of an element, from its register if it has one.
    fn load(&self, one: &Reference, point: &Point) -> f64 {
        if let Some(register) = one.register {
            return self.registers[register];
        }
        let (array, place) = self.place(one, point);
        self.data.arrays[array][place]
    }
}

impl Visit for Execution<'_> {
    fn iteration(&mut self, _: usize) {
        self.counts.iterations += 1;
    }

    fn statement(&mut self, statement: &Statement, point: &Point) {
        let target = &statement.references[0];
        let kind = self.kernel.arrays[target.array].element;
        self.values.clear();
        for term in &statement.terms {
            if !statement.is_in_register(term)
                && let Some(count) = self.counts.of(term)
            {
                *count += 1;
            }
            let value = match *term {
                Term::Load(reference) => rounded(kind, self.load(&statement.references[reference], point)),
                Term::Constant(number) => rounded(kind, number),
                Term::Index(sum) => rounded(kind, sum.at(point) as f64),
                Term::Unary(operation, a) => unary(kind, operation, self.values[a]),
                Term::Binary(operation, a, b) => binary(kind, operation, self.values[a], self.values[b]),
                Term::Select(condition, yes, no) => {
                    self.values[if self.values[condition] != 0.0 { yes } else { no }]
                }
            };
            self.values.push(value);
        }
        for reference in statement.references.iter().filter(|one| one.register.is_none()) {
            self.counts.addresses += u64::from(reference.subscripts.len() > 1);
        }
        let value = self.values[self.values.len() - 1];
        if let Some(register) = target.register {
            self.registers[register] = value;
            return;
        }
        let (array, element) = self.place(target, point);
        self.counts.stores += 1;
        self.data.arrays[array][element] = value;
    }

    fn register(&mut self, register: usize, edge: Edge, point: &Point) {
        let reference = &self.held[register].reference;
        let (array, element) = self.place(reference, point);
        match edge {
            Edge::Begins => {
                self.counts.loads += 1;
                self.counts.addresses += u64::from(reference.subscripts.len() > 1);
                self.registers[register] = self.data.arrays[array][element];
            }
            Edge::Ends => {
                self.counts.stores += 1;
                self.data.arrays[array][element] = self.registers[register];
            }
        }
    }
}

fn unary(kind: Element, operation: Unary, a: f64) -> f64 {
    let value = match operation {
        Unary::Negate if kind == Element::I32 => f64::from((a as i32).wrapping_neg()),
        Unary::Negate => -a,
        Unary::SquareRoot => libm::sqrt(a),
        Unary::Absolute => libm::fabs(a),
    };
    rounded(kind, value)
}

fn binary(kind: Element, operation: Binary, a: f64, b: f64) -> f64 {
    let truth = |holds: bool| f64::from(u8::from(holds));
    let value = match operation {
        Binary::Minimum => libm::fmin(a, b),
        Binary::Maximum => libm::fmax(a, b),
        Binary::Less => truth(a < b),
        Binary::LessOrEqual => truth(a <= b),
        Binary::Equal => truth(a == b),
        _ if kind == Element::I32 => {
            let (a, b) = (a as i32, b as i32);
            f64::from(match operation {
                Binary::Add => a.wrapping_add(b),
                Binary::Subtract => a.wrapping_sub(b),
                Binary::Multiply => a.wrapping_mul(b),
                _ if b == 0 => 0,
                _ => a.wrapping_div(b),
            })
        }
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
    };
    rounded(kind, value)
}

// Walks through a piece iteration by iteration, in sequential order.

/// Access to an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Array number.
    pub array: usize,
    /// Byte offset of the element in the array.
    pub byte: u64,
    /// True for a store.
    pub write: bool,
    /// Number of the innermost loop around it.
    pub within: Option<usize>,
}

/// Visitor of a walk.
pub(crate) trait Visit {
    /// An iteration of a loop begins.
    fn iteration(&mut self, id: usize);
    /// A statement is executed.
    fn statement(&mut self, statement: &Statement, point: &Point);
    /// Reports that a loop begins or ends that keeps an element in a register, by number: it is loaded or stored.
    fn register(&mut self, register: usize, edge: Edge, point: &Point);
}

/// Point in a loop's execution at which a register is loaded or stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Begins,
    Ends,
}

/// Walks through a piece.
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
            walk_loop(microblock, piece, last.id, range, &mut point, visit);
        }
        None => {
            // Statements in one iteration of a loop: its registers are loaded and stored for them alone.
            let within = fixed.checked_sub(1).map(|at| piece.path()[at].id).filter(|_| !own.is_empty());
            walk_registers(microblock, within, Edge::Begins, &point, visit);
            walk_nodes(microblock, piece, own, &mut point, visit);
            walk_registers(microblock, within, Edge::Ends, &point, visit);
        }
    }
}

/// Loads or stores the registers of a loop.
#[inline]
fn walk_registers(
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

fn walk_nodes(
    microblock: &Microblock,
    piece: &Piece,
    nodes: &[Node],
    point: &mut Point,
    visit: &mut impl Visit,
) {
    for node in nodes {
        match *node {
            Node::Statement(id) => visit.statement(&microblock.statements[id], point),
            Node::Loop(id) => {
                let one = &microblock.loops[id];
                let range = match piece.screen {
                    Some((from, below)) if one.is_split => (from as i64, below as i64),
                    _ => (0, one.trips_at(point)),
                };
                walk_loop(microblock, piece, id, range, point, visit);
            }
        }
    }
}

fn walk_loop(
    microblock: &Microblock,
    piece: &Piece,
    id: usize,
    (from, below): (i64, i64),
    point: &mut Point,
    visit: &mut impl Visit,
) {
    let one = &microblock.loops[id];
    let held = Some(id).filter(|_| from < below);
    walk_registers(microblock, held, Edge::Begins, point, visit);
    for t in from..below {
        point[one.level] = t;
        visit.iteration(id);
        walk_nodes(microblock, piece, &one.body, point, visit);
    }
    walk_registers(microblock, held, Edge::Ends, point, visit);
    point[one.level] = 0;
}

/// Visitor that reports each access.
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
    /// Calls with every access of a piece, in the order of a sequential execution: for each statement the loads from
    /// left to right (in `+=` and similar the target's first), then the store. An element kept in a register is
    /// loaded before its loop and stored after it; these accesses belong to the enclosing loop.
    pub fn accesses(&self, piece: &Piece, call: &mut impl FnMut(Access)) {
        let microblock = self.of(piece);
        walk(microblock, piece, &mut Accesses(microblock, call));
    }
}
