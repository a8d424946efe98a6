//! Kernels with arrays and microblocks: loops, and statements in them.

use crate::counts::Held;
use crate::domain::{Affine, DEPTH, Point};
use serde::Deserialize;

/// A microblock, which runs after the previous one has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Microblock {
    /// Description of the work.
    pub about: String,
    /// Entry of the kernel's text from which it was read; repetitions of an entry share it.
    pub text: usize,
    /// Nodes outside all loops.
    pub body: Vec<Node>,
    /// Loops; their numbers elsewhere are indices into this list. An outer loop comes before its inner ones.
    pub loops: Vec<Loop>,
    /// Statements, in the order of the text; their numbers elsewhere are indices into this list.
    pub statements: Vec<Statement>,
    /// Split loop, if its iterations are distributed as screens.
    pub split: Option<Split>,
    /// Elements that loops keep in registers: none in a kernel as it was read
    /// ([`Kernel::with_sums_in_registers`](crate::Kernel::with_sums_in_registers)).
    pub held: Vec<Held>,
    /// References by array and subscripts, each once for adjacent statements.
    pub(crate) sites: Vec<Site>,
    /// Index of each statement in its body.
    pub(crate) place: Vec<usize>,
}

/// Loops whose iterations are distributed as screens: all of the same name and bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Name of their variable.
    pub name: String,
    /// Number of iterations.
    pub trips: u64,
}

/// Node of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A loop, by number.
    Loop(usize),
    /// A statement, by number.
    Statement(usize),
}

/// A loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Name of its variable.
    pub name: String,
    /// Number of the enclosing loop.
    pub parent: Option<usize>,
    /// Number of enclosing loops.
    pub level: usize,
    /// Value of its variable.
    pub value: Affine,
    /// Number of iterations, given the current iterations of the enclosing loops.
    pub trips: Affine,
    /// Second limit on the iterations: the other argument of `min`.
    pub most: Option<Affine>,
    /// True if its iterations are distributed as screens.
    pub is_split: bool,
    /// Nodes in the loop.
    pub body: Vec<Node>,
    /// Index in its body.
    pub(crate) node: usize,
}

impl Loop {
    /// Returns the number of iterations, given the current iterations of the enclosing loops.
    #[inline]
    pub fn trips_at(&self, point: &Point) -> i64 {
        let trips = self.trips.at(point);
        self.most.map_or(trips, |most| trips.min(most.at(point)))
    }

    /// Returns true if it contains no loop.
    pub fn is_innermost(&self) -> bool {
        self.body.iter().all(|node| matches!(node, Node::Statement(_)))
    }
}

/// A statement: assigns the value of an expression to one element.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Number of the innermost loop around it.
    pub parent: Option<usize>,
    /// Elements that it names, each once. The first is the one assigned.
    pub references: Vec<Reference>,
    /// Expression, operands before operators; the last term is its value. In `x += e` it is `x + e`.
    pub terms: Vec<Term>,
    /// Line of the text, counted from one.
    pub line: u64,
}

/// An element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Array number.
    pub array: usize,
    /// Subscripts, from the outermost dimension.
    pub subscripts: Vec<Affine>,
    /// Byte offset of the element in the array.
    pub byte: Affine,
    /// Source text.
    pub text: String,
    /// Register that holds it while the loop around it runs, by index into the microblock's held elements.
    pub register: Option<usize>,
}

/// An operation or operand; operands are indices of earlier terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Term {
    /// Value of an element, by index into the statement's references.
    Load(usize),
    /// A literal, a scalar or a size.
    Constant(f64),
    /// Value of a loop variable, or a sum of them.
    Index(Affine),
    /// An operation with one operand.
    Unary(Unary, usize),
    /// An operation with two operands.
    Binary(Binary, usize, usize),
    /// Second operand if the comparison (the first operand, not zero) holds, else the third; both are computed.
    Select(usize, usize, usize),
}

/// An operation with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-x`
    Negate,
    /// `sqrt(x)`
    SquareRoot,
    /// `abs(x)`
    Absolute,
}

/// An operation with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`
    Divide,
    /// `min(a, b)`
    Minimum,
    /// `max(a, b)`
    Maximum,
    /// `a < b`: 1 or 0
    Less,
    /// `a <= b`: 1 or 0
    LessOrEqual,
    /// `a == b`: 1 or 0
    Equal,
}

/// A reference with its enclosing loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) array: usize,
    pub(crate) subscripts: Vec<Affine>,
    /// Innermost loop around it.
    pub(crate) parent: Option<usize>,
    /// First and last of the adjacent statements that name it, by index in the body.
    pub(crate) nodes: (usize, usize),
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

impl Microblock {
    /// Returns the nodes of a loop, or those outside all.
    pub fn inside(&self, around: Option<usize>) -> &[Node] {
        around.map_or(&self.body, |id| &self.loops[id].body)
    }

    /// Returns the loops around a place, from the outermost, and their number.
    pub(crate) fn chain(&self, innermost: Option<usize>) -> ([usize; DEPTH], usize) {
        let mut chain = [0; DEPTH];
        let mut next = innermost;
        while let Some(id) = next {
            chain[self.loops[id].level] = id;
            next = self.loops[id].parent;
        }
        (chain, innermost.map_or(0, |id| self.loops[id].level + 1))
    }
}

// Dependences of an iteration of a loop on earlier ones.

/// Value that one statement stores and a statement of the same loop loads.
///
/// The chain of operations from that load to the store of `to` is on the path of terms between them. A recurrence is
/// a cycle of such dependences: it takes the time of its chains for as many iterations as their distances add up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// Number of the storing statement.
    pub from: usize,
    /// Number of the loading statement.
    pub to: usize,
    /// Loaded reference, by index into the statement's references.
    pub load: usize,
    /// Distance in iterations; 0 for the same one.
    pub distance: u64,
}

impl Microblock {
    /// Returns the dependences between the statements directly in a loop, within one execution of it.
    ///
    /// If subscripts do not determine the distance between two references to an array, it is 1, as a compiler would
    /// assume.
    pub fn dependences(&self, id: usize) -> Vec<Dependence> {
        let one = &self.loops[id];
        let own: Vec<usize> = one
            .body
            .iter()
            .filter_map(|node| match node {
                Node::Statement(id) => Some(*id),
                Node::Loop(_) => None,
            })
            .collect();
        let mut found = Vec::new();
        for from in &own {
            let stored = &self.statements[*from].references[0];
            for to in &own {
                let statement = &self.statements[*to];
                for (load, reference) in statement.references.iter().enumerate() {
                    let is_loaded = statement.terms.contains(&Term::Load(load));
                    if !is_loaded || reference.array != stored.array {
                        continue;
                    }
                    if let Some(distance) = distance(stored, reference, one.level, from < to) {
                        found.push(Dependence { from: *from, to: *to, load, distance });
                    }
                }
            }
        }
        found
    }
}

/// Returns how many iterations after the store the same element is loaded; none if never.
fn distance(stored: &Reference, loaded: &Reference, level: usize, is_before: bool) -> Option<u64> {
    // Distance required by each dimension; dimensions that the loop does not change require none.
    let mut asked: Option<i64> = None;
    for (store, load) in stored.subscripts.iter().zip(&loaded.subscripts) {
        let apart = store.minus(load);
        if apart.deepest().is_some() {
            return Some(1);
        }
        let by = store.by[level];
        match (by, apart.constant) {
            (0, 0) => {}
            (0, _) => return None,
            (_, apart) if apart % by != 0 || asked.is_some_and(|own| own != apart / by) => return None,
            (_, apart) => asked = Some(apart / by),
        }
    }
    match asked {
        None => Some(u64::from(!is_before)),
        Some(0) => is_before.then_some(0),
        Some(distance) => u64::try_from(distance).ok(),
    }
}

// A kernel and its arrays.

/// Type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Element {
    /// A real number of 4 B.
    F32,
    /// A real number of 8 B.
    F64,
    /// A whole number of 4 B; it wraps.
    I32,
}

impl Element {
    /// Returns the bytes of an element.
    pub fn bytes(self) -> u64 {
        match self {
            Element::F32 | Element::I32 => 4,
            Element::F64 => 8,
        }
    }
}

/// Data section of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// Read only: shared by the instances of a kernel.
    Input,
    /// Written before it is read, if it is read.
    Output,
    /// Read, then written.
    Inout,
    /// Used between microblocks: not needed afterwards.
    Scratch,
}

/// An array: row-major, dense, in a separate address space that begins at zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Name of the array.
    pub name: String,
    /// Number of elements by dimension, from the outermost.
    pub shape: Vec<u64>,
    /// Type of the elements.
    pub element: Element,
    /// Data section.
    pub section: Section,
}

impl Array {
    /// Returns the number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> u64 {
        self.elements() * self.element.bytes()
    }
}

/// Values of a paper for the kernel, shown beside those derived from the nest.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Share of loads and stores in all instructions, in per cent.
    pub ldst: f64,
    /// Input bytes per thousand instructions.
    pub bki: f64,
    /// Input in MB.
    pub input: f64,
    /// Microblocks.
    pub microblocks: usize,
    /// Microblocks without screens.
    pub serial: usize,
}

/// A kernel: arrays, and microblocks that work on them one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) sizes: Vec<(String, i64)>,
    pub(crate) arrays: Vec<Array>,
    pub(crate) microblocks: Vec<Microblock>,
    pub(crate) paper: Option<Paper>,
}

impl Kernel {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description of the computation.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Returns the sizes as they were read, in the order of their names.
    pub fn sizes(&self) -> &[(String, i64)] {
        &self.sizes
    }

    /// Returns the arrays, in the order of their names. Their numbers elsewhere are indices into this list.
    pub fn arrays(&self) -> &[Array] {
        &self.arrays
    }

    /// Returns the microblocks, in the order in which they run.
    pub fn microblocks(&self) -> &[Microblock] {
        &self.microblocks
    }

    /// Returns the values of a paper.
    pub fn paper(&self) -> Option<&Paper> {
        self.paper.as_ref()
    }

    /// Returns the bytes present before it starts: of its input, and of what it reads and then writes.
    pub fn input_bytes(&self) -> u64 {
        self.bytes_of(|section| matches!(section, Section::Input | Section::Inout))
    }

    /// Returns the bytes that it leaves behind.
    pub fn output_bytes(&self) -> u64 {
        self.bytes_of(|section| matches!(section, Section::Output | Section::Inout))
    }

    fn bytes_of(&self, is_meant: impl Fn(Section) -> bool) -> u64 {
        self.arrays.iter().filter(|array| is_meant(array.section)).map(Array::bytes).sum()
    }
}
