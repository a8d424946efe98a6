//! Workload of a multiprocessor: kernels, and the instructions of their warps.
//!
//! Each call of [`Programs::step`] executes a warp a little further on its data, and writes the instructions of that
//! piece to a tape; the multiprocessor times them. Addresses, divergence and loop counts therefore come from the data,
//! in the order in which the machine gets there.

/// Threads of a warp.
pub const LANES: usize = 32;

/// Kind of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InstKind {
    /// Integer or floating-point arithmetic, comparison, branch.
    Alu,
    /// Special functions: square root, division, transcendental.
    Sfu,
    /// Load from global memory into a register.
    Load,
    /// Store to global memory.
    Store,
    /// Atomic operation on global memory.
    Atomic,
    /// Load from the block's shared memory.
    SharedLoad,
    /// Store to the block's shared memory.
    SharedStore,
    /// Barrier for all warps of the block that have not ended.
    Barrier,
}

/// Instruction of one warp, or several like ones in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inst {
    /// Kind of the instruction.
    pub kind: InstKind,
    /// Bytes that each lane accesses: 1 to 16; zero if it does not access memory.
    pub width: u8,
    /// Destination register; zero for none.
    pub to: u8,
    /// Source registers; zero for none.
    pub from: [u8; 3],
    /// Number of instructions that it represents, at least one; more than one only for arithmetic. They depend on
    /// earlier ones only through `to` and `from`, and not on each other.
    pub count: u16,
    /// Address of the instruction, unique in its program.
    pub pc: u32,
    /// Active lanes.
    pub mask: u32,
    /// Index of its lanes' addresses on the tape, one for each active lane, lowest lane first.
    pub addresses: u32,
}

/// Piece of a warp's instructions, in program order.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// Instructions of the piece.
    pub insts: Vec<Inst>,
    /// Byte addresses of memory instructions: virtual for global memory, offsets in the block's scratchpad for shared.
    pub addresses: Vec<u64>,
}

impl Tape {
    /// Clears the tape, but keeps its memory.
    pub fn clear(&mut self) {
        self.insts.clear();
        self.addresses.clear();
    }
}

/// Kernel launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launch {
    /// Number of the launch in its application, counted from zero.
    pub number: u32,
    /// Blocks of the grid.
    pub blocks: u32,
    /// Threads per block.
    pub threads: u32,
    /// Registers per thread.
    pub registers: u32,
    /// Shared memory per block, in bytes.
    pub shared: u32,
}

/// Warp of a block that a multiprocessor has taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WarpStart {
    /// Application.
    pub app: u8,
    /// Block of the grid.
    pub block: u32,
    /// Warp of the block.
    pub warp: u32,
}

/// Applications on a GPU, as seen by the multiprocessors.
pub trait Programs {
    /// Number of applications, which are numbered from zero.
    fn apps(&self) -> u8;
    /// Returns the application's next kernel, once every block of the one before has ended; `None` when it is done.
    fn launch(&mut self, app: u8) -> Option<Launch>;
    /// Restarts an application with its initial data, after every block of its kernels has ended.
    fn restart(&mut self, app: u8);
    /// Starts a warp of the application's current kernel in `slot`, a number not used by a running warp: below the
    /// number of multiprocessors times warps of each.
    fn start(&mut self, slot: u32, warp: WarpStart);
    /// Executes the warp in `slot` further and appends its instructions to the tape; at least one, unless the warp
    /// ends. Returns whether the warp goes on. It is called again only when every instruction of the piece before has
    /// been issued, and, after a barrier, when the barrier has been passed.
    fn step(&mut self, slot: u32, tape: &mut Tape) -> bool;
}
