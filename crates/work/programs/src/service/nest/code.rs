//! The operations of a nest's code.

use nest::{Microblock, Statement, Term};

use crate::service::emit::{BLOCK, Emit, Value};

/// Stores of which a load knows where they went.
const RECENT: usize = 4;

/// The latest stores of a job: where they went, and what they stored.
#[derive(Clone, Copy, Default)]
pub(super) struct Recent {
    stores: [(u64, Value); RECENT],
    next: usize,
}

impl Recent {
    /// What was stored last at an address; nothing that is waited for if that is long ago.
    fn at(&self, address: u64) -> Value {
        let stores = (1..=RECENT).map(|back| self.stores[(self.next + RECENT - back) % RECENT]);
        let mut same = stores.filter(|(stored, _)| *stored == address);
        same.next().map_or(Value::READY, |(_, value)| value)
    }

    fn store(&mut self, address: u64, value: Value) {
        self.stores[self.next] = (address, value);
        self.next = (self.next + 1) % RECENT;
    }
}

/// Where the code of a microblock lies.
pub(super) struct Text {
    /// The basic block of its first loop.
    loops: u32,
    /// First basic block of each statement, and how many it has.
    statements: Vec<(u32, u32)>,
}

impl Text {
    /// The code of a microblock; `next` is the basic block behind all so far.
    pub(super) fn new(microblock: &Microblock, next: &mut u32) -> Text {
        let loops = *next;
        *next += microblock.loops.len() as u32;
        let place = |statement: &Statement| {
            let own = statement.counts();
            let instructions = own.operations() as u32;
            let place = (*next, (4 * instructions).div_ceil(BLOCK));
            *next += place.1;
            place
        };
        Text { loops, statements: microblock.statements.iter().map(place).collect() }
    }

    /// An iteration of a loop: the variable goes on, is compared, the branch is taken.
    pub(super) fn iteration(&self, id: usize, e: &mut Emit<'_>) {
        e.block(self.loops + id as u32);
        let variable = e.compute(1, []);
        e.branch(true, [variable]);
    }

    /// A statement; `address` says where the element of a reference is, and how many bytes it has.
    pub(super) fn statement(
        &self,
        (statement, id): (&Statement, usize),
        address: impl Fn(usize) -> (u64, u64),
        values: &mut Vec<Value>,
        recent: &mut Recent,
        e: &mut Emit<'_>,
    ) {
        let (first, blocks) = self.statements[id];
        e.blocks(first, blocks);
        let addresses = statement.counts().addresses as u16;
        let index = if addresses > 0 { e.compute(addresses, []) } else { Value::READY };
        values.clear();
        for term in &statement.terms {
            let value = match *term {
                Term::Constant(_) | Term::Index(_) => Value::READY,
                Term::Load(reference) => {
                    let (address, bytes) = address(reference);
                    e.load(address, bytes, [index, recent.at(address)])
                }
                Term::Unary(_, a) => e.compute(1, [values[a]]),
                Term::Binary(_, a, b) => e.compute(1, [values[a], values[b]]),
                // The condition has been computed before both arms, or with them.
                Term::Select(condition, yes, no) => {
                    let arm = if values[yes] == Value::READY { no } else { yes };
                    e.compute(1, [values[condition], values[arm]])
                }
            };
            values.push(value);
        }
        let value = values.last().copied().unwrap_or(Value::READY);
        let (address, bytes) = address(0);
        e.store(address, bytes, [index, value]);
        recent.store(address, value);
    }
}
