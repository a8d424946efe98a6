//! An application: its launches, its warps, and writing the instructions of a warp's step.

use proto::simt::{Inst, InstKind, LANES, Tape};

use crate::program::{Array, Space};

/// A kernel that host logic launches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// Its name in the source.
    pub name: &'static str,
    /// Blocks of the grid, at least one.
    pub blocks: u32,
    /// Threads a block, at least one.
    pub threads: u32,
    /// Registers a thread.
    pub registers: u32,
    /// Shared memory a block, bytes.
    pub shared: u32,
}

impl Kernel {
    /// A one-dimensional grid of at least `threads` threads in blocks of `block`, without shared memory. A grid smaller
    /// than one block has a block of that many threads, as GraphBIG's host code makes it.
    pub fn over(name: &'static str, threads: usize, block: u32, registers: u32) -> Kernel {
        let threads = threads.max(1);
        let block = block.min(u32::try_from(threads).unwrap_or(u32::MAX));
        let blocks =
            u32::try_from(threads.div_ceil(block as usize)).expect("a grid has less than 2^32 blocks");
        Kernel { name, blocks, threads: block, registers, shared: 0 }
    }
}

/// Where a warp stands in its grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WarpAt {
    /// Block of the grid.
    pub block: u32,
    /// Warp of the block.
    pub warp: u32,
    /// Threads a block.
    pub threads: u32,
    /// The lanes that have a thread: the last warp of a block may have fewer than 32.
    pub mask: u32,
}

impl WarpAt {
    /// A warp of a grid whose blocks have this many threads.
    pub fn new(block: u32, warp: u32, threads: u32) -> WarpAt {
        let here = threads.saturating_sub(warp * LANES as u32).min(LANES as u32);
        let mask = if here == LANES as u32 { u32::MAX } else { (1 << here) - 1 };
        WarpAt { block, warp, threads, mask }
    }
    /// Number of lane 0's thread over the whole grid.
    #[inline]
    pub fn thread(&self) -> usize {
        self.block as usize * self.threads as usize + self.warp as usize * LANES
    }
    /// The lanes whose thread is below `end`.
    #[inline]
    pub fn below(&self, end: usize) -> u32 {
        let left = end.saturating_sub(self.thread());
        if left >= LANES { self.mask } else { self.mask & ((1 << left) - 1) }
    }
}

/// What an application's author writes: data, host logic, and the code of its kernels. One that is repeated begins again with a
/// copy of what it was before its first launch.
pub trait Code: Clone + 'static {
    /// What a warp keeps between two steps: loop counters of its lanes, lanes at work, where in the code it is.
    type Warp: Default;

    /// Its name in the list of programs.
    fn name(&self) -> &'static str;
    /// Its arrays.
    fn space(&self) -> &Space;
    /// Host logic between kernels: all warps of the kernel before have ended. None when the application is done.
    fn launch(&mut self) -> Option<Kernel>;
    /// A warp of the present kernel begins. Called at most once for a warp, in any order of blocks and warps.
    fn start(&mut self, at: WarpAt) -> Self::Warp;
    /// Executes the warp a little further, about one iteration of its loop, and writes that piece's instructions; returns
    /// whether it goes on. A step that writes nothing and goes on is followed by the next at once.
    fn step(&mut self, warp: &mut Self::Warp, emit: &mut Emit) -> bool;
}

/// An application as the machine holds it: warps are named by slots.
pub trait Program {
    /// Its name in the list of programs.
    fn name(&self) -> &'static str;
    /// Its arrays.
    fn space(&self) -> &Space;
    /// Another one, in the state of this one. No warp may be running.
    fn copy(&self) -> Box<dyn Program>;
    /// Takes what a user must know of its inputs.
    fn tell(&mut self, _notes: Vec<String>) {}
    /// What a user must know of its inputs.
    fn notes(&self) -> &[String] {
        &[]
    }
    /// The next kernel; every warp of the one before has ended.
    fn launch(&mut self) -> Option<Kernel>;
    /// A warp of the present kernel begins in `slot`.
    fn start(&mut self, slot: u32, at: WarpAt);
    /// Executes the warp in `slot` further; at least one instruction is written unless it ends. `origin` is added to the
    /// addresses of instructions.
    fn step(&mut self, slot: u32, origin: u32, tape: &mut Tape) -> bool;
}

/// Gives an application the slots of its warps.
pub struct Slots<C: Code> {
    code: C,
    warps: Vec<C::Warp>,
    notes: Vec<String>,
}

impl<C: Code> Slots<C> {
    /// An application that no warp runs yet.
    pub fn new(code: C) -> Slots<C> {
        Slots { code, warps: Vec::new(), notes: Vec::new() }
    }
    /// The application.
    pub fn code(&self) -> &C {
        &self.code
    }
}

impl<C: Code> Program for Slots<C> {
    fn name(&self) -> &'static str {
        self.code.name()
    }

    fn space(&self) -> &Space {
        self.code.space()
    }

    fn copy(&self) -> Box<dyn Program> {
        Box::new(Slots { code: self.code.clone(), warps: Vec::new(), notes: self.notes.clone() })
    }

    fn tell(&mut self, notes: Vec<String>) {
        self.notes = notes;
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn launch(&mut self) -> Option<Kernel> {
        self.code.launch()
    }

    fn start(&mut self, slot: u32, at: WarpAt) {
        let warp = self.code.start(at);
        let slot = slot as usize;
        if slot >= self.warps.len() {
            self.warps.resize_with(slot + 1, C::Warp::default);
        }
        self.warps[slot] = warp;
    }

    fn step(&mut self, slot: u32, origin: u32, tape: &mut Tape) -> bool {
        let before = tape.insts.len();
        let warp = &mut self.warps[slot as usize];
        loop {
            let more = self.code.step(warp, &mut Emit::new(tape, origin));
            if !more || tape.insts.len() > before {
                return more;
            }
        }
    }
}

// Writing the instructions of a warp's step.
//
// The arithmetic that is counted, for all programs, is that which `nvcc` makes of the same CUDA source for a machine of 32-bit integer
// units, without loop unrolling. `cost` has the pieces. A loop's body counts its increment, its comparison and its
// branch; an `if` its comparison and its branch, whether or not a lane takes it; a memory access the arithmetic of its
// address unless the compiler would keep a running pointer.

/// Arithmetic instructions of common pieces of a kernel.
pub mod cost {
    /// Global thread index from block and thread numbers: three special registers, one multiply-add.
    pub const THREAD: u16 = 4;
    /// Address of an array's element from its 64-bit index: the low and the high half of a multiply-add.
    pub const ADDRESS: u16 = 2;
    /// Comparison of 32-bit values and the branch on it.
    pub const IF: u16 = 2;
    /// Comparison of 64-bit values (both halves) and the branch on it.
    pub const IF_LONG: u16 = 3;
    /// Increment of a 64-bit loop counter, its comparison, the branch back.
    pub const LOOP_LONG: u16 = 5;
    /// Increment of a 32-bit loop counter, its comparison, the branch back.
    pub const LOOP: u16 = 3;
    /// End of the thread.
    pub const EXIT: u16 = 1;
}

/// Static instructions of a basic block at most: each has an address of its own.
pub(super) const BLOCK_INSTS: u32 = 64;

/// Writes instructions to a tape. Lanes at work and the place in the code hold until they are changed.
pub struct Emit<'a> {
    tape: &'a mut Tape,
    origin: u32,
    pc: u32,
    end: u32,
    mask: u32,
}

/// Registers that an instruction reads: up to three.
#[inline]
fn registers<const N: usize>(from: [u8; N]) -> [u8; 3] {
    const { assert!(N <= 3, "an instruction reads three registers at most") };
    let mut all = [0; 3];
    all[..N].copy_from_slice(&from);
    all
}

impl<'a> Emit<'a> {
    /// At the beginning of basic block 0, with all lanes; `origin` is the address of the program's first instruction.
    #[inline]
    pub fn new(tape: &'a mut Tape, origin: u32) -> Emit<'a> {
        let mut emit = Emit { tape, origin, pc: 0, end: 0, mask: u32::MAX };
        emit.block(0);
        emit
    }

    /// What follows is basic block `n` of the program: its static instructions are numbered from `(n + 1) * 64`, so that
    /// none is zero. A block is emitted from its beginning each time; an instruction that only some of the passes execute
    /// begins its own.
    #[inline]
    pub fn block(&mut self, n: u32) {
        self.pc = self.origin + (n + 1) * BLOCK_INSTS;
        self.end = self.pc + BLOCK_INSTS;
    }

    /// What follows is executed by these lanes.
    #[inline]
    pub fn lanes(&mut self, mask: u32) {
        self.mask = mask;
    }

    /// The lanes at work.
    #[inline]
    pub fn mask(&self) -> u32 {
        self.mask
    }

    #[inline]
    fn push(&mut self, kind: InstKind, width: u8, to: u8, from: [u8; 3], count: u16) {
        debug_assert!(self.pc < self.end, "a basic block of more than {BLOCK_INSTS} instructions");
        debug_assert!(self.mask != 0, "an instruction for no lane");
        let addresses = self.tape.addresses.len() as u32;
        self.tape.insts.push(Inst { kind, width, to, from, count, pc: self.pc, mask: self.mask, addresses });
        self.pc += 1;
    }

    /// `count` arithmetic instructions in a row.
    #[inline]
    pub fn alu<const N: usize>(&mut self, count: u16, to: u8, from: [u8; N]) {
        debug_assert!(count > 0);
        self.push(InstKind::Alu, 0, to, registers(from), count);
    }

    /// `count` special-function instructions in a row.
    #[inline]
    pub fn sfu<const N: usize>(&mut self, count: u16, to: u8, from: [u8; N]) {
        for _ in 0..count {
            self.push(InstKind::Sfu, 0, to, registers(from), 1);
        }
    }

    /// Each lane loads an element, whose number `index` gives.
    #[inline]
    pub fn load<const N: usize>(
        &mut self,
        array: &Array,
        to: u8,
        from: [u8; N],
        index: impl FnMut(usize) -> usize,
    ) {
        self.push(InstKind::Load, array.width(), to, registers(from), 1);
        self.elements(array, index);
    }

    /// Each lane stores an element, whose number `index` gives.
    #[inline]
    pub fn store<const N: usize>(&mut self, array: &Array, from: [u8; N], index: impl FnMut(usize) -> usize) {
        self.push(InstKind::Store, array.width(), 0, registers(from), 1);
        self.elements(array, index);
    }

    /// Each lane reads and writes an element as one operation; `to` gets the old value, zero if it is not wanted.
    #[inline]
    pub fn atomic<const N: usize>(
        &mut self,
        array: &Array,
        to: u8,
        from: [u8; N],
        index: impl FnMut(usize) -> usize,
    ) {
        self.push(InstKind::Atomic, array.width(), to, registers(from), 1);
        self.elements(array, index);
    }

    /// Each lane loads `width` bytes of global memory from the address that `address` gives.
    #[inline]
    pub fn load_at<const N: usize>(
        &mut self,
        width: u8,
        to: u8,
        from: [u8; N],
        address: impl FnMut(usize) -> u64,
    ) {
        self.push(InstKind::Load, width, to, registers(from), 1);
        self.offsets(address);
    }

    /// Each lane stores `width` bytes to global memory at the address that `address` gives.
    #[inline]
    pub fn store_at<const N: usize>(&mut self, width: u8, from: [u8; N], address: impl FnMut(usize) -> u64) {
        self.push(InstKind::Store, width, 0, registers(from), 1);
        self.offsets(address);
    }

    /// Where the addresses of the next memory instruction will begin on the tape.
    #[inline]
    pub fn mark(&self) -> u32 {
        self.tape.addresses.len() as u32
    }

    /// As `shared_load`, from the places of an earlier instruction of this step, which had the same lanes at work and
    /// began at `mark`: they lie in the same banks, relative to each other, and are not written again.
    #[inline]
    pub fn shared_load_like<const N: usize>(&mut self, mark: u32, width: u8, to: u8, from: [u8; N]) {
        self.push(InstKind::SharedLoad, width, to, registers(from), 1);
        if let Some(inst) = self.tape.insts.last_mut() {
            inst.addresses = mark;
        }
    }

    /// As `shared_store`, to the places of an earlier instruction: see `shared_load_like`.
    #[inline]
    pub fn shared_store_like<const N: usize>(&mut self, mark: u32, width: u8, from: [u8; N]) {
        self.push(InstKind::SharedStore, width, 0, registers(from), 1);
        if let Some(inst) = self.tape.insts.last_mut() {
            inst.addresses = mark;
        }
    }

    /// Each lane loads `width` bytes from the block's shared memory at the byte that `offset` gives.
    #[inline]
    pub fn shared_load<const N: usize>(
        &mut self,
        width: u8,
        to: u8,
        from: [u8; N],
        offset: impl FnMut(usize) -> u64,
    ) {
        self.push(InstKind::SharedLoad, width, to, registers(from), 1);
        self.offsets(offset);
    }

    /// Each lane stores `width` bytes to the block's shared memory at the byte that `offset` gives.
    #[inline]
    pub fn shared_store<const N: usize>(
        &mut self,
        width: u8,
        from: [u8; N],
        offset: impl FnMut(usize) -> u64,
    ) {
        self.push(InstKind::SharedStore, width, 0, registers(from), 1);
        self.offsets(offset);
    }

    /// Waits for the other warps of the block. The step must end with it: what comes after must see their stores.
    #[inline]
    pub fn barrier(&mut self) {
        self.push(InstKind::Barrier, 0, 0, [0; 3], 1);
    }

    /// The threads at work end.
    #[inline]
    pub fn exit(&mut self) {
        self.alu(cost::EXIT, 0, []);
    }

    #[inline]
    fn elements(&mut self, array: &Array, mut index: impl FnMut(usize) -> usize) {
        self.offsets(|lane| array.address(index(lane)));
    }

    #[inline]
    fn offsets(&mut self, mut offset: impl FnMut(usize) -> u64) {
        let mut rest = self.mask;
        self.tape.addresses.reserve(rest.count_ones() as usize);
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            self.tape.addresses.push(offset(lane));
            rest &= rest - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Emit, Kernel, WarpAt};
    use crate::program::Space;
    use proto::simt::{InstKind, Tape};

    #[test]
    fn the_last_warp_has_the_lanes_that_are_left() {
        let at = |block, warp, threads| WarpAt::new(block, warp, threads);
        assert_eq!(at(0, 0, 64).mask, u32::MAX);
        assert_eq!(at(0, 1, 40).mask, 0xff);
        assert_eq!(at(3, 1, 40).thread(), 3 * 40 + 32);
        assert_eq!(at(3, 1, 40).below(155), 0b111);
        assert_eq!(at(3, 1, 40).below(10), 0);
        assert_eq!(at(0, 0, 64).below(32), u32::MAX);
    }

    #[test]
    fn grids_cover_their_threads() {
        let kernel = Kernel::over("k", 1025, 1024, 8);
        assert_eq!((kernel.blocks, kernel.threads), (2, 1024));
        let small = Kernel::over("k", 7, 1024, 8);
        assert_eq!((small.blocks, small.threads), (1, 7));
        assert_eq!(Kernel::over("k", 0, 1024, 8).threads, 1);
    }

    #[test]
    fn instructions_carry_their_lanes_and_addresses() {
        let mut space = Space::default();
        let (_, array) = (space.array("pad", 1, 10), space.array("a", 8, 100));
        let mut tape = Tape::default();
        let mut e = Emit::new(&mut tape, 0x1_0000);
        e.block(2);
        e.alu(3, 1, [2]);
        e.lanes(0x8000_0005);
        e.load(&array, 4, [1], |lane| lane * 2);
        e.store(&array, [4, 1], |lane| lane);
        e.lanes(1);
        e.shared_load(4, 5, [], |_| 12);
        e.barrier();
        let pcs: Vec<u32> = tape.insts.iter().map(|i| i.pc - 0x1_0000).collect();
        assert_eq!(pcs, [192, 193, 194, 195, 196]);
        assert_eq!(tape.insts[0].count, 3);
        assert_eq!((tape.insts[1].mask, tape.insts[1].width, tape.insts[1].addresses), (0x8000_0005, 8, 0));
        assert_eq!((tape.insts[2].from, tape.insts[2].to, tape.insts[2].addresses), ([4, 1, 0], 0, 3));
        assert_eq!(tape.addresses, [256, 256 + 32, 256 + 496, 256, 256 + 16, 256 + 248, 12]);
        assert_eq!(tape.insts[4].kind, InstKind::Barrier);
    }

    #[test]
    fn special_functions_in_a_row_are_an_instruction_each() {
        let mut tape = Tape::default();
        let mut e = Emit::new(&mut tape, 0);
        e.sfu(2, 1, [1]);
        e.exit();
        let all: Vec<_> = tape.insts.iter().map(|i| (i.kind, i.count, i.pc)).collect();
        assert_eq!(all, [(InstKind::Sfu, 1, 64), (InstKind::Sfu, 1, 65), (InstKind::Alu, 1, 66)]);
    }
}
