//! Writing the operations of a job.
//!
//! Instructions are counted as a compiler for ARMv8 makes them of the loop in C: a comparison and its branch are two, an
//! address computed from an index one (shift and add in one instruction), a load or store of up to 16 bytes one (the width of
//! the load and store pipes of the Cortex-A76; a longer one is an operation that counts as many instructions).

use proto::cpu::{NEEDS, Op, OpKind};

/// Bytes of a line, which no access crosses.
pub(crate) const LINE: u64 = 64;
/// Bytes that one instruction loads or stores.
const ACCESS: u64 = 16;
/// Bytes of text of a basic block; an instruction takes four.
pub(crate) const BLOCK: u32 = 256;

/// The result of an operation of the same job, also of an earlier piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Value(u32);

impl Value {
    /// A constant, or what has been in a register for long.
    pub(crate) const READY: Value = Value(0);
}

/// Writes operations to a tape and keeps the distances of what they need.
pub(crate) struct Emit<'a> {
    tape: &'a mut Vec<Op>,
    /// Operations that the job has written so far: the number of the last.
    written: &'a mut u32,
    frame: u64,
    pc: u32,
    end: u32,
}

impl<'a> Emit<'a> {
    /// At the beginning of block 0. `written` counts the job's operations over its pieces, from zero; `frame` is the address
    /// of the [`FRAME`](super::served::FRAME) bytes of memory that the job's thread has for itself.
    pub(crate) fn new(tape: &'a mut Vec<Op>, written: &'a mut u32, frame: u64) -> Emit<'a> {
        Emit { tape, written, frame, pc: 0, end: BLOCK }
    }

    /// What follows is basic block `n` of the program, which begins at `n * 256`. A block is written from its beginning each
    /// time.
    pub(crate) fn block(&mut self, n: u32) {
        self.blocks(n, 1);
    }

    /// What follows is one basic block in the place of `n`, from `first`.
    pub(crate) fn blocks(&mut self, first: u32, n: u32) {
        self.pc = first * BLOCK;
        self.end = self.pc + n * BLOCK;
    }

    /// Address of the memory that the job's thread has for itself.
    pub(crate) fn frame(&self) -> u64 {
        self.frame
    }

    fn push<const N: usize>(
        &mut self,
        kind: OpKind,
        address: u64,
        width: u64,
        count: u16,
        from: [Value; N],
    ) -> Value {
        const { assert!(N <= 2, "an operation needs two results at most") };
        debug_assert!(count > 0 && address % LINE + width <= LINE);
        *self.written += 1;
        let mut needs = [0; 2];
        for (need, value) in needs.iter_mut().zip(from) {
            let away = *self.written - value.0;
            *need = if value.0 == 0 || away > u32::from(NEEDS) { 0 } else { away as u16 };
        }
        self.pc += 4 * u32::from(count);
        self.tape.push(Op { kind, width: width as u8, count, needs, pc: self.pc - 4, address });
        debug_assert!(self.pc <= self.end, "a basic block of more than {BLOCK} bytes");
        Value(*self.written)
    }

    /// `count` instructions that touch no memory; only the last needs `from`.
    pub(crate) fn compute<const N: usize>(&mut self, count: u16, from: [Value; N]) -> Value {
        self.push(OpKind::Compute, 0, 0, count, from)
    }

    /// `count` instructions that touch no memory: the first needs `from`, each other one the one before.
    pub(crate) fn chain<const N: usize>(&mut self, count: u16, from: [Value; N]) -> Value {
        self.push(OpKind::Chain, 0, 0, count, from)
    }

    /// Comparison and conditional branch.
    pub(crate) fn branch<const N: usize>(&mut self, taken: bool, from: [Value; N]) {
        let kind = if taken { OpKind::Taken } else { OpKind::NotTaken };
        self.push(kind, 0, 0, 2, from);
    }

    /// Load of `bytes` bytes within a line.
    pub(crate) fn load<const N: usize>(&mut self, address: u64, bytes: u64, from: [Value; N]) -> Value {
        self.push(OpKind::Load, address, bytes, bytes.div_ceil(ACCESS) as u16, from)
    }

    /// Load of `bytes` bytes wherever they lie: one load for each line, and what is needed to wait for all of them.
    pub(crate) fn read(&mut self, address: u64, bytes: u64, from: Value) -> Value {
        let end = address + bytes;
        let line_end = (address + 1).next_multiple_of(LINE).min(end);
        let mut all = self.load(address, line_end - address, [from]);
        let mut at = line_end;
        while at < end {
            let part = self.load(at, LINE.min(end - at), [from]);
            all = self.compute(1, [all, part]);
            at += LINE;
        }
        all
    }

    /// Store of `bytes` bytes within a line.
    pub(crate) fn store<const N: usize>(&mut self, address: u64, bytes: u64, from: [Value; N]) {
        self.push(OpKind::Store, address, bytes, bytes.div_ceil(ACCESS) as u16, from);
    }

    /// Compare-and-swap, swap or the like of eight bytes: takes a lock.
    pub(crate) fn atomic<const N: usize>(&mut self, address: u64, from: [Value; N]) -> Value {
        self.push(OpKind::Atomic, address, 8, 1, from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_split_at_lines_and_waits_for_all_of_them() {
        let (mut tape, mut written) = (Vec::new(), 0);
        let mut e = Emit::new(&mut tape, &mut written, 0);
        let pointer = e.load(0, 8, [Value::READY]);
        e.read(100, 100, pointer);
        let loads: Vec<(u64, u8)> =
            tape.iter().filter(|op| op.width > 0).map(|op| (op.address, op.width)).collect();
        assert_eq!(loads, [(0, 8), (100, 28), (128, 64), (192, 8)]);
        let needs: Vec<[u16; 2]> = tape.iter().map(|op| op.needs).collect();
        assert_eq!(needs, [[0, 0], [1, 0], [2, 0], [2, 1], [4, 0], [2, 1]]);
    }

    #[test]
    fn needs_reach_over_pieces_up_to_the_window() {
        let (mut tape, mut written) = (Vec::new(), 0);
        let first = Emit::new(&mut tape, &mut written, 0).load(64, 8, [Value::READY]);
        let mut e = Emit::new(&mut tape, &mut written, 0);
        let second = e.compute(3, [first]);
        e.branch(true, [second, first]);
        for _ in 3..NEEDS {
            e.block(0);
            e.compute(1, [Value::READY]);
        }
        e.block(0);
        e.store(128, 64, [first]);
        e.store(0, 8, [first, second]);
        let needs: Vec<[u16; 2]> = tape.iter().map(|op| op.needs).collect();
        assert_eq!(needs[..4], [[0, 0], [1, 0], [1, 2], [0, 0]]);
        assert_eq!(needs[1024..], [[1024, 0], [0, 1024]]);
        assert_eq!((tape[2].kind, tape[2].count, tape[2].pc), (OpKind::Taken, 2, 16));
        assert_eq!((tape[1024].width, tape[1024].count, tape[1025].pc), (64, 4, 16));
    }
}
