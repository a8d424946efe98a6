//! Execution on values, with a count of every operation as it goes.

use crate::affine::Point;
use crate::counts::Counts;
use crate::kernel::{Array, Element, Kernel, Section};
use crate::microblock::{Binary, Reference, Statement, Term, Unary};
use crate::piece::Piece;
use crate::registers::Held;
use crate::walk::{Edge, Visit, walk};

/// The values of a kernel's arrays, row-major; each as precise as its element.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// By array, in the kernel's order.
    pub arrays: Vec<Vec<f64>>,
}

impl Data {
    /// Values to start with: inputs, and what is read and then written, between 1/4 and 1 (whole numbers: 1 to 16), drawn from `seed`;
    /// zeros elsewhere. Nothing divided by them gets large.
    ///
    /// The arrays are as large as the kernel says: read it with small sizes.
    pub fn generate(kernel: &Kernel, seed: u64) -> Data {
        let fill = |(id, array): (usize, &Array)| {
            let is_drawn = matches!(array.section, Section::Input | Section::Inout);
            let draw = |at: u64| match array.element {
                _ if !is_drawn => 0.0,
                Element::I32 => (1 + mixed(seed ^ mixed(id as u64, 0), at) % 16) as f64,
                // 53 bits, as a real number has.
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

/// Bits that look random, of two numbers (the finalizer of SplitMix64).
pub(crate) fn mixed(seed: u64, at: u64) -> u64 {
    let mut bits = seed.wrapping_add(at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// As an element holds it. Rounding a 64-bit sum, product, quotient or root to 32 bits is what 32-bit arithmetic gives.
fn rounded(element: Element, value: f64) -> f64 {
    match element {
        Element::F64 => value,
        Element::F32 => f64::from(value as f32),
        Element::I32 => f64::from(value as i32),
    }
}

impl Kernel {
    /// Executes all microblocks one after another on `data`, iteration by iteration, and counts what it does.
    ///
    /// Arithmetic is that of the element that gets the value; whole numbers wrap, and their division by zero gives zero.
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
    /// The value of each term of a statement.
    values: Vec<f64>,
}

impl Execution<'_> {
    /// The element's place in the values of its array.
    fn place(&self, one: &Reference, point: &Point) -> (usize, usize) {
        let shape = &self.kernel.arrays[one.array].shape;
        let subscripts = one.subscripts.iter().zip(shape);
        let place = subscripts.fold(0, |place, (subscript, n)| place * n + subscript.at(point) as u64);
        (one.array, place as usize)
    }

    /// The value of an element, from its register if one has it.
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
