//! A warp in its slot.

use proto::simt::{Inst, InstKind, Tape};

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
pub(super) struct Warp {
    /// A piece of its program.
    pub tape: Tape,
    /// Place of its next instruction on the tape.
    pub next: usize,
    /// That instruction. A copy: it is looked at several times, and the tape is far away each time.
    pub inst: Inst,
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
    /// A slot without a warp.
    pub(super) fn none() -> Warp {
        let (kind, from) = (InstKind::Alu, [0; 3]);
        let inst = Inst { kind, width: 0, to: 0, from, count: 1, pc: 0, mask: 0, addresses: 0 };
        Warp {
            tape: Tape::default(),
            next: 0,
            inst,
            left: 0,
            goes_on: false,
            over: true,
            blocked: false,
            app: 0,
            block: 0,
            pending: Registers::default(),
            loading: Registers::default(),
            outstanding: 0,
        }
    }

    /// The addresses of the lanes at work in its next instruction.
    #[inline]
    pub(super) fn addresses(&self) -> &[u64] {
        let first = self.inst.addresses as usize;
        &self.tape.addresses[first..first + self.inst.mask.count_ones() as usize]
    }

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
