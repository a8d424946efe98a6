//! An application: its launches, its warps, and the emission of the instructions of a warp's step.

use proto::simt::{Inst, InstKind, LANES, Tape};

use crate::program::{Array, Space};

/// A kernel launched by host logic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// Name in the source.
    pub name: &'static str,
    /// Number of blocks of the grid, at least one.
    pub blocks: u32,
    /// Threads per block, at least one.
    pub threads: u32,
    /// Registers per thread.
    pub registers: u32,
    /// Shared memory per block, in bytes.
    pub shared: u32,
}

impl Kernel {
    /// Returns a one-dimensional grid of at least `threads` threads in blocks of `block`, without shared memory. A
    /// grid smaller than one block has a block of that many threads, as in GraphBIG's host code.
    pub fn over(name: &'static str, threads: usize, block: u32, registers: u32) -> Kernel {
        let threads = threads.max(1);
        let block = block.min(u32::try_from(threads).unwrap_or(u32::MAX));
        let blocks =
            u32::try_from(threads.div_ceil(block as usize)).expect("a grid has less than 2^32 blocks");
        Kernel { name, blocks, threads: block, registers, shared: 0 }
    }
}

/// Position of a warp in its grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WarpAt {
    /// Block of the grid.
    pub block: u32,
    /// Warp of the block.
    pub warp: u32,
    /// Threads per block.
    pub threads: u32,
    /// Lanes with a thread: the last warp of a block may have fewer than 32.
    pub mask: u32,
}

impl WarpAt {
    /// Creates a warp of a grid whose blocks have this many threads.
    pub fn new(block: u32, warp: u32, threads: u32) -> WarpAt {
        let here = threads.saturating_sub(warp * LANES as u32).min(LANES as u32);
        let mask = if here == LANES as u32 { u32::MAX } else { (1 << here) - 1 };
        WarpAt { block, warp, threads, mask }
    }
    /// Returns the number of lane 0's thread over the whole grid.
    #[inline]
    pub fn thread(&self) -> usize {
        self.block as usize * self.threads as usize + self.warp as usize * LANES
    }
    /// Returns the lanes whose thread is below `end`.
    #[inline]
    pub fn below(&self, end: usize) -> u32 {
        let left = end.saturating_sub(self.thread());
        if left >= LANES { self.mask } else { self.mask & ((1 << left) - 1) }
    }
}

/// Code of an application, written by its author: data, host logic, and kernels. A repeated application starts over
/// with a copy of its state before the first launch.
pub trait Code: Clone + 'static {
    /// State that a warp keeps between two steps: loop counters of its lanes, active lanes, position in the code.
    type Warp: Default;

    /// Returns the name in the list of programs.
    fn name(&self) -> &'static str;
    /// Returns the arrays.
    fn space(&self) -> &Space;
    /// Runs host logic between kernels: all warps of the previous kernel have ended. Returns none when the
    /// application is done.
    fn launch(&mut self) -> Option<Kernel>;
    /// Starts a warp of the current kernel. Called at most once per warp, in any order of blocks and warps.
    fn start(&mut self, at: WarpAt) -> Self::Warp;
    /// Executes about one iteration of the warp's loop and writes its instructions; returns whether the warp
    /// continues. A step that writes nothing and continues is followed by the next at once.
    fn step(&mut self, warp: &mut Self::Warp, emit: &mut Emit) -> bool;
}

/// An application as the machine sees it: warps are identified by slots.
pub trait Program {
    /// Returns the name in the list of programs.
    fn name(&self) -> &'static str;
    /// Returns the arrays.
    fn space(&self) -> &Space;
    /// Returns a copy in the same state. No warp may be running.
    fn copy(&self) -> Box<dyn Program>;
    /// Takes notes about its inputs for the user.
    fn tell(&mut self, _notes: Vec<String>) {}
    /// Returns notes about its inputs for the user.
    fn notes(&self) -> &[String] {
        &[]
    }
    /// Launches the next kernel; every warp of the previous one has ended.
    fn launch(&mut self) -> Option<Kernel>;
    /// Starts a warp of the current kernel in `slot`.
    fn start(&mut self, slot: u32, at: WarpAt);
    /// Executes the warp in `slot` further; at least one instruction is written unless it ends. `origin` is added to
    /// the addresses of instructions.
    fn step(&mut self, slot: u32, origin: u32, tape: &mut Tape) -> bool;
}

/// Application with the slots of its warps.
pub struct Slots<C: Code> {
    code: C,
    warps: Vec<C::Warp>,
    notes: Vec<String>,
}

impl<C: Code> Slots<C> {
    /// Creates an application without running warps.
    pub fn new(code: C) -> Slots<C> {
        Slots { code, warps: Vec::new(), notes: Vec::new() }
    }
    /// Returns the application.
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

// Emission of the instructions of a warp's step.
//
// For all programs, arithmetic is counted as `nvcc` compiles the same CUDA source for a machine of 32-bit integer
// units, without loop unrolling. `cost` has the pieces. A loop's body counts its increment, its comparison and its
// branch; an `if` its comparison and its branch, whether or not a lane takes it; a memory access the arithmetic of
// its address unless the compiler would keep a running pointer.
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

/// Maximum number of static instructions per basic block: each has a unique address.
pub(super) const BLOCK_INSTS: u32 = 64;

/// Writer of instructions to a tape. Active lanes and the position in the code hold until they are changed.
pub struct Emit<'a> {
    tape: &'a mut Tape,
    origin: u32,
    pc: u32,
    end: u32,
    mask: u32,
}

/// Returns the registers that an instruction reads: up to three.
#[inline]
fn registers<const N: usize>(from: [u8; N]) -> [u8; 3] {
    const { assert!(N <= 3, "an instruction reads three registers at most") };
    let mut all = [0; 3];
    all[..N].copy_from_slice(&from);
    all
}

impl<'a> Emit<'a> {
    /// Creates a writer at the beginning of basic block 0, with all lanes; `origin` is the address of the program's
    /// first instruction.
    #[inline]
    pub fn new(tape: &'a mut Tape, origin: u32) -> Emit<'a> {
        let mut emit = Emit { tape, origin, pc: 0, end: 0, mask: u32::MAX };
        emit.block(0);
        emit
    }

    /// Switches to basic block `n` of the program: its static instructions are numbered from `(n + 1) * 64`, so that
    /// none is zero. A block is emitted from its beginning each time; an instruction that only some of the passes
    /// execute begins a separate one.
    #[inline]
    pub fn block(&mut self, n: u32) {
        self.pc = self.origin + (n + 1) * BLOCK_INSTS;
        self.end = self.pc + BLOCK_INSTS;
    }

    /// Sets the active lanes.
    #[inline]
    pub fn lanes(&mut self, mask: u32) {
        self.mask = mask;
    }

    /// Returns the active lanes.
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

    /// Emits `count` consecutive arithmetic instructions.
    #[inline]
    pub fn alu<const N: usize>(&mut self, count: u16, to: u8, from: [u8; N]) {
        debug_assert!(count > 0);
        self.push(InstKind::Alu, 0, to, registers(from), count);
    }

    /// Emits `count` consecutive special-function instructions.
    #[inline]
    pub fn sfu<const N: usize>(&mut self, count: u16, to: u8, from: [u8; N]) {
        for _ in 0..count {
            self.push(InstKind::Sfu, 0, to, registers(from), 1);
        }
    }

    /// Loads an element in each lane, with its number given by `index`.
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

    /// Stores an element in each lane, with its number given by `index`.
    #[inline]
    pub fn store<const N: usize>(&mut self, array: &Array, from: [u8; N], index: impl FnMut(usize) -> usize) {
        self.push(InstKind::Store, array.width(), 0, registers(from), 1);
        self.elements(array, index);
    }

    /// Reads and writes an element atomically in each lane; `to` gets the old value, zero if it is not wanted.
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

    /// Loads `width` bytes of global memory in each lane, from the address given by `address`.
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

    /// Stores `width` bytes to global memory in each lane, at the address given by `address`.
    #[inline]
    pub fn store_at<const N: usize>(&mut self, width: u8, from: [u8; N], address: impl FnMut(usize) -> u64) {
        self.push(InstKind::Store, width, 0, registers(from), 1);
        self.offsets(address);
    }

    /// Returns where the addresses of the next memory instruction will begin on the tape.
    #[inline]
    pub fn mark(&self) -> u32 {
        self.tape.addresses.len() as u32
    }

    /// Loads as `shared_load`, from the places of an earlier instruction of this step with the same active lanes,
    /// which began at `mark`: their banks have the same relation, and they are not written again.
    #[inline]
    pub fn shared_load_like<const N: usize>(&mut self, mark: u32, width: u8, to: u8, from: [u8; N]) {
        self.push(InstKind::SharedLoad, width, to, registers(from), 1);
        if let Some(inst) = self.tape.insts.last_mut() {
            inst.addresses = mark;
        }
    }

    /// Stores as `shared_store`, to the places of an earlier instruction: see `shared_load_like`.
    #[inline]
    pub fn shared_store_like<const N: usize>(&mut self, mark: u32, width: u8, from: [u8; N]) {
        self.push(InstKind::SharedStore, width, 0, registers(from), 1);
        if let Some(inst) = self.tape.insts.last_mut() {
            inst.addresses = mark;
        }
    }

    /// Loads `width` bytes of the block's shared memory in each lane, from the byte given by `offset`.
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

    /// Stores `width` bytes to the block's shared memory in each lane, at the byte given by `offset`.
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

    /// Waits for the other warps of the block. The step must end with it: later code must see their stores.
    #[inline]
    pub fn barrier(&mut self) {
        self.push(InstKind::Barrier, 0, 0, [0; 3], 1);
    }

    /// Ends the active threads.
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
