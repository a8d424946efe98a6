//! An application: what it launches, and what its warps do.

use proto::simt::{LANES, Tape};

use crate::program::{Emit, Space};

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

#[cfg(test)]
mod tests {
    use super::{Kernel, WarpAt};

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
}
