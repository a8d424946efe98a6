//! What a multiprocessor executes: kernels, and the instructions of their warps.
//!
//! The workload executes a warp a little further on its data each time it is asked ([`Programs::step`]) and writes the
//! instructions of that piece to a tape; the multiprocessor gives them their time. So addresses, divergence and loop
//! counts come from the data, in the order in which the machine gets there.

/// Threads of a warp.
pub const LANES: usize = 32;

/// What an instruction does.
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
    /// Waits for all warps of the block that have not ended.
    Barrier,
}

/// An instruction, or several like ones in a row, of one warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inst {
    /// What it does.
    pub kind: InstKind,
    /// Bytes that each lane accesses: 1 to 16; zero if it does not access memory.
    pub width: u8,
    /// Register that it writes; zero for none.
    pub to: u8,
    /// Registers that it reads; zero for none.
    pub from: [u8; 3],
    /// How many instructions it stands for, at least one; more than one only for arithmetic. They depend on each other
    /// one after another only through what `to` and `from` say, that is, not among themselves.
    pub count: u16,
    /// Address of the instruction, unique in its program.
    pub pc: u32,
    /// Lanes at work.
    pub mask: u32,
    /// Where its lanes' addresses begin on the tape, one for each lane at work, lowest lane first.
    pub addresses: u32,
}

/// A piece of a warp's instructions, in program order.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// The instructions.
    pub insts: Vec<Inst>,
    /// Byte addresses of memory instructions: virtual for global memory, offsets in the block's scratchpad for shared.
    pub addresses: Vec<u64>,
}

impl Tape {
    /// Forgets everything; keeps its memory.
    pub fn clear(&mut self) {
        self.insts.clear();
        self.addresses.clear();
    }
}

/// A kernel as it is launched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launch {
    /// Which launch of the application it is, counted from zero.
    pub number: u32,
    /// Blocks of the grid.
    pub blocks: u32,
    /// Threads a block.
    pub threads: u32,
    /// Registers a thread.
    pub registers: u32,
    /// Shared memory a block, bytes.
    pub shared: u32,
}

/// A warp of a block that a multiprocessor has taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WarpStart {
    /// The application.
    pub app: u8,
    /// Block of the grid.
    pub block: u32,
    /// Warp of the block.
    pub warp: u32,
}

/// The applications on a GPU, as the multiprocessors see them.
pub trait Programs {
    /// How many there are; they are numbered from zero.
    fn apps(&self) -> u8;
    /// The application's next kernel, once every block of the one before has ended; none when it is done.
    fn launch(&mut self, app: u8) -> Option<Launch>;
    /// The application, every block of whose kernels has ended, is to begin anew, with its data as they were at first.
    fn restart(&mut self, app: u8);
    /// A warp of the application's present kernel begins in `slot`, a number that no running warp has: below the number
    /// of multiprocessors times warps of each.
    fn start(&mut self, slot: u32, warp: WarpStart);
    /// Executes the warp in `slot` further and appends its instructions to the tape; at least one, unless the warp ends.
    /// Returns whether the warp goes on. It is asked again only when every instruction of the piece before has been issued,
    /// and, if the piece ended with a barrier, when the barrier has been passed.
    fn step(&mut self, slot: u32, tape: &mut Tape) -> bool;
}
