//! The instructions of a nest's code.

use nest::{Binary, Microblock, Span, Statement, Term, Unary};

use crate::program::dense::{divide, root};
use crate::program::emit::BLOCK_INSTS;
use crate::program::{Array, Emit, cost};

/// The register of the thread's number.
pub(super) const INDEX: u8 = 1;
/// That of addresses.
const ADDRESSES: u8 = 2;
/// The first of values.
const VALUES: u8 = 3;

/// Where the code of a microblock lies: it begins with the threads' numbers and ends with their end.
#[derive(Clone)]
pub(super) struct Text {
    /// The kernel's name.
    pub(super) name: &'static str,
    /// The first basic block.
    first: u32,
    /// That of each statement; loops stand before.
    statements: Vec<u32>,
    end: u32,
}

/// Static instructions of a term at most: a division is two.
const OF_A_TERM: u32 = 2;

/// Basic blocks that a statement takes: addresses, terms, the store.
fn blocks(statement: &Statement) -> u32 {
    let terms = (BLOCK_INSTS - 2) / OF_A_TERM;
    (statement.terms.len() as u32).div_ceil(terms)
}

impl Text {
    /// The code of a microblock, from a basic block on.
    pub(super) fn new(microblock: &Microblock, first: u32, name: &'static str) -> Text {
        let mut next = first + 1 + microblock.loops.len() as u32;
        let place = |statement: &Statement| {
            let own = next;
            next += blocks(statement);
            own
        };
        let statements = microblock.statements.iter().map(place).collect();
        Text { name, first, statements, end: next + 1 }
    }

    /// The basic block that it begins with.
    pub(super) fn begin(&self) -> u32 {
        self.first
    }

    /// The basic block behind it.
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    /// An iteration of a loop.
    pub(super) fn iteration(&self, id: usize, mask: u32, e: &mut Emit) {
        e.block(self.first + 1 + id as u32);
        e.lanes(mask);
        e.alu(cost::LOOP, INDEX, [INDEX]);
    }

    /// A statement; `bytes` says of a reference which array it is, and where in it each lane's element begins.
    pub(super) fn statement<'a>(
        &self,
        statement: &Statement,
        id: usize,
        mask: u32,
        bytes: impl Fn(usize) -> (&'a Array, Span),
        e: &mut Emit,
    ) {
        e.block(self.statements[id]);
        e.lanes(mask);
        let addresses = statement.counts().addresses as u16;
        if addresses > 0 {
            e.alu(addresses, ADDRESSES, [INDEX]);
        }
        let each = ((BLOCK_INSTS - 2) / OF_A_TERM) as usize;
        for (at, term) in statement.terms.iter().enumerate() {
            if at > 0 && at.is_multiple_of(each) {
                e.block(self.statements[id] + (at / each) as u32);
            }
            let to = register(at);
            match *term {
                Term::Constant(_) | Term::Index(_) => {}
                Term::Load(reference) => {
                    let (array, span) = bytes(reference);
                    e.load_at(array.width(), to, [ADDRESSES], |lane| array.address(0) + span.of(lane) as u64);
                }
                Term::Unary(Unary::SquareRoot, a) => root(e, to, register(a)),
                Term::Unary(_, a) => e.alu(1, to, [register(a)]),
                Term::Binary(Binary::Divide, a, b) => divide(e, to, [register(a), register(b)]),
                Term::Binary(_, a, b) => e.alu(1, to, [register(a), register(b)]),
                Term::Select(condition, yes, no) => {
                    e.alu(1, to, [register(condition), register(yes), register(no)]);
                }
            }
        }
        let (array, span) = bytes(0);
        let value = register(statement.terms.len() - 1);
        e.store_at(array.width(), [ADDRESSES, value], |lane| array.address(0) + span.of(lane) as u64);
    }
}

/// The register of a term; those of long expressions are taken again.
fn register(term: usize) -> u8 {
    VALUES + (term % usize::from(u8::MAX - VALUES)) as u8
}
