//! A warp in its slot.

use proto::simt::{Inst, Tape};

/// A set of registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Registers([u64; 4]);

impl Registers {
    #[inline]
    pub(super) fn set(&mut self, register: u8) {
        self.0[usize::from(register >> 6)] |= 1 << (register & 63);
    }
    #[inline]
    pub(super) fn clear(&mut self, register: u8) {
        self.0[usize::from(register >> 6)] &= !(1 << (register & 63));
    }
    #[inline]
    fn has(&self, register: u8) -> bool {
        self.0[usize::from(register >> 6)] >> (register & 63) & 1 == 1
    }
    /// Whether an instruction reads or writes one of them. Register 0 stands for none and is never in a set.
    #[inline]
    pub(super) fn hold_up(&self, inst: &Inst) -> bool {
        let [a, b, c] = inst.from;
        self.has(a) | self.has(b) | self.has(c) | self.has(inst.to)
    }
}

/// A warp. Its slot is given away when everything that it has begun has ended.
#[derive(Default)]
pub(super) struct Warp {
    /// What it executes next.
    pub tape: Tape,
    /// The next instruction on the tape.
    pub next: usize,
    /// How often that has still to be issued; zero before it is issued first.
    pub left: u16,
    /// Whether the program goes on behind the tape.
    pub goes_on: bool,
    /// Whether its last instruction has been issued.
    pub over: bool,
    /// Whether its next instruction waits for a register.
    pub blocked: bool,
    /// The application.
    pub app: u8,
    /// Its block, by the number in the multiprocessor.
    pub block: u32,
    /// Registers that will be written.
    pub pending: Registers,
    /// Those of them whose values come from global memory.
    pub loading: Registers,
    /// Results and answers that are still to come.
    pub outstanding: u32,
}

impl Warp {
    /// A warp begins; the tape keeps its memory.
    pub(super) fn begin(&mut self, app: u8, block: u32) {
        debug_assert_eq!(self.outstanding, 0, "a slot was given away too early");
        self.tape.clear();
        self.next = 0;
        self.left = 0;
        self.goes_on = true;
        self.over = false;
        self.blocked = false;
        self.app = app;
        self.block = block;
    }
}
