//! Miss status holding registers: lines on their way to the first-level cache, and who waits for each.

use engine::{List, Lists, Time};

/// End of a bucket.
const LAST: u16 = u16::MAX;
/// Buckets of lines. Few registers are in use at once, whatever their number, and every multiprocessor has a table: all
/// of them together have to stay in the processor's cache.
const BUCKETS: usize = 2048;

/// A request that waits for a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    /// The instruction, by its number in the load-store unit.
    pub op: u32,
    /// Its latest milestone; the first waiter's travels with the access.
    pub since: Time,
}

/// One register.
#[derive(Clone, Copy, Debug)]
struct Register {
    line: u64,
    /// The page that the line belongs to.
    key: u64,
    waiters: List,
    /// Waiters beside the first.
    merged: u32,
    /// Whether the line enters the cache: not if it has been changed meanwhile.
    keep: bool,
    /// The next register of its bucket.
    beside: u16,
}

/// A line that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub line: u64,
    pub key: u64,
    pub keep: bool,
    waiters: List,
}

#[inline]
fn bucket(line: u64) -> usize {
    // Fibonacci hashing (Knuth, volume 3, 6.4): neighbours spread.
    (line.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (BUCKETS - 1)
}

/// All registers of a multiprocessor.
pub(super) struct Misses {
    registers: Vec<Register>,
    free: Vec<u16>,
    /// The first register in use of each bucket of lines.
    buckets: Box<[u16]>,
    waiters: Lists<Waiter>,
    merges: u32,
}

impl Misses {
    pub(super) fn new(registers: u16, merges: u16) -> Misses {
        let empty = Register { line: 0, key: 0, waiters: List::EMPTY, merged: 0, keep: false, beside: LAST };
        Misses {
            registers: vec![empty; registers.into()],
            free: (0..registers).rev().collect(),
            buckets: vec![LAST; BUCKETS].into(),
            waiters: Lists::default(),
            merges: merges.into(),
        }
    }

    /// The register of a line that is on its way.
    #[inline]
    pub(super) fn find(&self, line: u64) -> Option<u16> {
        let mut register = self.buckets[bucket(line)];
        while register != LAST && self.registers[usize::from(register)].line != line {
            register = self.registers[usize::from(register)].beside;
        }
        (register != LAST).then_some(register)
    }

    /// The line of a register will be there soon.
    #[inline]
    pub(super) fn expect(&self, register: u16) {
        engine::prefetch(&self.registers[usize::from(register)]);
    }

    /// A register for a line that is not on its way, with its first waiter; none if all are taken.
    #[inline]
    pub(super) fn open(&mut self, line: u64, key: u64, op: u32, since: Time) -> Option<u16> {
        let register = self.free.pop()?;
        let mut waiters = List::EMPTY;
        self.waiters.push(&mut waiters, Waiter { op, since });
        let beside = std::mem::replace(&mut self.buckets[bucket(line)], register);
        self.registers[usize::from(register)] =
            Register { line, key, waiters, merged: 0, keep: true, beside };
        Some(register)
    }

    /// Lets another request wait; false if as many wait as may.
    #[inline]
    pub(super) fn merge(&mut self, register: u16, op: u32, since: Time) -> bool {
        let register = &mut self.registers[usize::from(register)];
        if register.merged == self.merges {
            return false;
        }
        self.waiters.push(&mut register.waiters, Waiter { op, since });
        register.merged += 1;
        true
    }

    /// The line of a register has arrived, and the register is free. [`Misses::next_waiter`] gives who waited.
    #[inline]
    pub(super) fn close(&mut self, register: u16) -> Arrived {
        let Register { line, key, waiters, keep, beside, .. } = self.registers[usize::from(register)];
        debug_assert_eq!(self.find(line), Some(register), "an answer that nobody asked for");
        let mut before = self.buckets[bucket(line)];
        if before == register {
            self.buckets[bucket(line)] = beside;
        } else {
            while self.registers[usize::from(before)].beside != register {
                before = self.registers[usize::from(before)].beside;
            }
            self.registers[usize::from(before)].beside = beside;
        }
        self.free.push(register);
        Arrived { line, key, keep, waiters }
    }

    /// Takes the next waiter of a line that has arrived, in the order in which they came.
    #[inline]
    pub(super) fn next_waiter(&mut self, arrived: &mut Arrived) -> Option<Waiter> {
        self.waiters.pop(&mut arrived.waiters)
    }

    /// A line has been changed: what is on its way will not be kept.
    #[inline]
    pub(super) fn spoil(&mut self, line: u64) {
        if let Some(register) = self.find(line) {
            self.registers[usize::from(register)].keep = false;
        }
    }

    /// As [`Misses::spoil`], for every line of a page.
    pub(super) fn spoil_page(&mut self, key: u64) {
        for register in self.registers.iter_mut().filter(|r| r.key == key) {
            register.keep = false;
        }
    }

    /// Registers in use.
    pub(super) fn in_use(&self) -> usize {
        self.registers.len() - self.free.len()
    }
}
