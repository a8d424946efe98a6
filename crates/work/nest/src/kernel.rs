//! A kernel and its arrays, and its microblocks: loops, and statements in them.

use crate::counts::Held;
use crate::domain::{Affine, DEPTH, Point};
use serde::Deserialize;

/// A microblock: runs after the one before it has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Microblock {
    /// What it does.
    pub about: String,
    /// The entry of the kernel's text that it was read from: those that it is repeated as have the same.
    pub text: usize,
    /// What stands outside all loops.
    pub body: Vec<Node>,
    /// All its loops; their numbers elsewhere are places in this list. An outer loop stands before its inner ones.
    pub loops: Vec<Loop>,
    /// All its statements, in the order of the text; their numbers elsewhere are places in this list.
    pub statements: Vec<Statement>,
    /// The split loop, if its iterations are dealt out as screens.
    pub split: Option<Split>,
    /// Elements that loops keep in registers: none in a kernel as it was read ([`Kernel::with_sums_in_registers`](crate::Kernel::with_sums_in_registers)).
    pub held: Vec<Held>,
    /// References by array and subscripts, each once for statements beside each other.
    pub(crate) sites: Vec<Site>,
    /// The place of each statement in the body it stands in.
    pub(crate) place: Vec<usize>,
}

/// The loops whose iterations are dealt out as screens: all of the same name and bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The name of their variable.
    pub name: String,
    /// How many iterations there are.
    pub trips: u64,
}

/// What stands in a body.
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
    /// The name of its variable.
    pub name: String,
    /// The loop around it, by number.
    pub parent: Option<usize>,
    /// How many loops are around it.
    pub level: usize,
    /// The value of its variable.
    pub value: Affine,
    /// How many iterations it has, while the loops around it are in theirs.
    pub trips: Affine,
    /// It has no more than this either: the other argument of `min`.
    pub most: Option<Affine>,
    /// Whether its iterations are dealt out as screens.
    pub is_split: bool,
    /// What stands in it.
    pub body: Vec<Node>,
    /// Its place in the body it stands in.
    pub(crate) node: usize,
}

impl Loop {
    /// How many iterations it has, while the loops around it are in theirs.
    #[inline]
    pub fn trips_at(&self, point: &Point) -> i64 {
        let trips = self.trips.at(point);
        self.most.map_or(trips, |most| trips.min(most.at(point)))
    }

    /// Whether no loop stands in it.
    pub fn is_innermost(&self) -> bool {
        self.body.iter().all(|node| matches!(node, Node::Statement(_)))
    }
}

/// A statement: one element gets the value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The innermost loop around it, by number.
    pub parent: Option<usize>,
    /// The elements that it names, each once. The first is the one that gets the value.
    pub references: Vec<Reference>,
    /// The expression, operands before operators; the last term is its value. In `x += e` it is `x + e`.
    pub terms: Vec<Term>,
    /// Line of the text, counted from one.
    pub line: u64,
}

/// An element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The array, by number.
    pub array: usize,
    /// Its subscripts, from the outermost dimension.
    pub subscripts: Vec<Affine>,
    /// Where the element begins in the array's addresses.
    pub byte: Affine,
    /// As it was written.
    pub text: String,
    /// The register that has it while the loop around it runs, by its place in what the microblock holds.
    pub register: Option<usize>,
}

/// An operation or operand; operands are places of earlier terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Term {
    /// The value of an element, by its place in the statement's references.
    Load(usize),
    /// A literal, a scalar or a size.
    Constant(f64),
    /// The value of a loop variable, or a sum of them.
    Index(Affine),
    /// An operation with one operand.
    Unary(Unary, usize),
    /// An operation with two operands.
    Binary(Binary, usize, usize),
    /// The second if the comparison (the first operand, not zero) holds, else the third; both are computed.
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

/// A reference with the loops around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) array: usize,
    pub(crate) subscripts: Vec<Affine>,
    /// The innermost loop around it.
    pub(crate) parent: Option<usize>,
    /// The first and the last of the statements beside each other that name it, by their places in the body.
    pub(crate) nodes: (usize, usize),
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

impl Microblock {
    /// What stands in a loop, or outside all.
    pub fn inside(&self, around: Option<usize>) -> &[Node] {
        around.map_or(&self.body, |id| &self.loops[id].body)
    }

    /// The loops around a place, from the outermost, and how many there are.
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

// What an iteration of a loop needs of an earlier one.

/// A value that one statement stores and another loads, in the same loop.
///
/// The chain of operations from that load to the store of `to` is on the path of terms between them: a recurrence is a circle of such
/// dependences, and lasts as long as its chains for as many iterations as their distances make together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// The statement that stores, by number.
    pub from: usize,
    /// The statement that loads, by number.
    pub to: usize,
    /// What it loads, by its place in its references.
    pub load: usize,
    /// So many iterations later; 0 in the same one.
    pub distance: u64,
}

impl Microblock {
    /// The dependences between the statements that stand directly in a loop, inside one passing of it.
    ///
    /// Where subscripts do not say how far apart two references to an array are, the distance is 1, as a compiler would assume.
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

/// How many iterations after the store the same element is loaded; nothing if never.
fn distance(stored: &Reference, loaded: &Reference, level: usize, is_before: bool) -> Option<u64> {
    // The distance that each dimension asks for; those that the loop does not change ask for none.
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

/// What an element of an array is.
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
    /// Bytes of one.
    pub fn bytes(self) -> u64 {
        match self {
            Element::F32 | Element::I32 => 4,
            Element::F64 => 8,
        }
    }
}

/// Which data section an array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// Read only: instances of a kernel share it.
    Input,
    /// Written, and not read before that.
    Output,
    /// Read, then written.
    Inout,
    /// Between microblocks: nobody asks for it afterwards.
    Scratch,
}

/// An array: row-major, dense, alone in its own addresses, which begin at zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// Elements by dimension, from the outermost.
    pub shape: Vec<u64>,
    /// What an element is.
    pub element: Element,
    /// Which data section it is.
    pub section: Section,
}

impl Array {
    /// How many elements it has.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.elements() * self.element.bytes()
    }
}

/// What a paper says of the kernel, to be shown beside what follows from the nest.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Loads and stores of all instructions, in per cent.
    pub ldst: f64,
    /// Input bytes a thousand instructions.
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
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it computes.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Its sizes as they were read, in the order of their names.
    pub fn sizes(&self) -> &[(String, i64)] {
        &self.sizes
    }

    /// Its arrays, in the order of their names. Their numbers elsewhere are places in this list.
    pub fn arrays(&self) -> &[Array] {
        &self.arrays
    }

    /// Its microblocks, in the order in which they run.
    pub fn microblocks(&self) -> &[Microblock] {
        &self.microblocks
    }

    /// What a paper says of it.
    pub fn paper(&self) -> Option<&Paper> {
        self.paper.as_ref()
    }

    /// Bytes that are there before it starts: of its input, and of what it reads and then writes.
    pub fn input_bytes(&self) -> u64 {
        self.bytes_of(|section| matches!(section, Section::Input | Section::Inout))
    }

    /// Bytes that it leaves behind.
    pub fn output_bytes(&self) -> u64 {
        self.bytes_of(|section| matches!(section, Section::Output | Section::Inout))
    }

    fn bytes_of(&self, is_meant: impl Fn(Section) -> bool) -> u64 {
        self.arrays.iter().filter(|array| is_meant(array.section)).map(Array::bytes).sum()
    }
}
