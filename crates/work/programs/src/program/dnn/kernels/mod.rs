//! Kernels of neural networks: what each thread loads, stores and counts. Values are not computed.
//!
//! A kernel's operands are [`At`]: a byte of a tensor while a pass is recorded, a virtual address once memory is laid out.

mod gather;
mod gemm;
mod gemv;
mod map;
mod pool;
mod rows;
mod tile;

pub(super) use gather::{Gather, Ids};
pub(super) use gemm::{Bias, Gemm, Image, Right, Target};
pub(super) use gemv::Gemv;
pub(super) use map::{Map, Operand, RANK};
pub(super) use pool::Pool;
pub(super) use rows::{Columns, Rows, Sweep};
pub(super) use tile::Matrix;

use crate::program::{Emit, Kernel, WarpAt};

/// Where an operand begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct At {
    /// Number of its tensor in the pass.
    pub(crate) tensor: u32,
    /// First byte: within the tensor, and from [`Task::bind`] on in the address space.
    pub(crate) address: u64,
}

impl At {
    /// Address of element `n` of `width` bytes.
    #[inline]
    pub(super) fn element(&self, n: u64, width: u8) -> u64 {
        self.address + n * u64::from(width)
    }
}

/// A warp at work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Warp {
    /// Where it stands in its grid.
    pub(super) at: WarpAt,
    /// Which part of the kernel it is in.
    pub(super) part: u32,
    /// Which iteration of the part.
    pub(super) turn: u32,
    /// Where its block works: a product's batch, row and column.
    pub(super) place: [u32; 3],
}

impl Warp {
    pub(super) fn new(at: WarpAt) -> Warp {
        Warp { at, ..Warp::default() }
    }
    /// Number of a lane's thread in its block.
    #[inline]
    pub(super) fn thread(&self, lane: usize) -> usize {
        self.at.warp as usize * 32 + lane
    }
    /// Goes on with the first iteration of the next part.
    pub(super) fn next_part(&mut self) {
        self.part += 1;
        self.turn = 0;
    }
}

/// A kernel with its operands.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Task {
    Gemm(Gemm),
    Gemv(Gemv),
    Rows(Rows),
    Columns(Columns),
    Map(Map),
    Gather(Gather),
    Pool(Pool),
}

impl Task {
    /// Grid, block and needs.
    pub(crate) fn kernel(&self) -> Kernel {
        match self {
            Task::Gemm(task) => task.kernel(),
            Task::Gemv(task) => task.kernel(),
            Task::Rows(task) => task.kernel(),
            Task::Columns(task) => task.kernel(),
            Task::Map(task) => task.kernel(),
            Task::Gather(task) => task.kernel(),
            Task::Pool(task) => task.kernel(),
        }
    }

    /// What it reads, then what it writes.
    pub(crate) fn operands(&mut self) -> (Vec<&mut At>, &mut At) {
        match self {
            Task::Gemm(task) => task.operands(),
            Task::Gemv(task) => task.operands(),
            Task::Rows(task) => task.operands(),
            Task::Columns(task) => (vec![&mut task.input], &mut task.output),
            Task::Map(task) => task.operands(),
            Task::Gather(task) => task.operands(),
            Task::Pool(task) => (vec![&mut task.input], &mut task.output),
        }
    }

    /// Adds the address at which each operand's tensor begins.
    pub(crate) fn bind(&mut self, base: impl Fn(u32) -> u64) {
        let (read, written) = self.operands();
        for at in read.into_iter().chain([written]) {
            at.address += base(at.tensor);
        }
    }

    /// Multiply-adds of matrix products and convolutions; zero for all others.
    #[cfg(test)]
    pub(crate) fn multiply_adds(&self) -> u64 {
        match self {
            Task::Gemm(task) => task.batch * task.m * task.n * task.k,
            Task::Gemv(task) => task.batch * task.n * task.k,
            _ => 0,
        }
    }

    /// Executes a warp a little further. `rows` are the rows that a gather picks.
    pub(crate) fn step(&self, warp: &mut Warp, rows: &[u32], e: &mut Emit) -> bool {
        e.lanes(warp.at.mask);
        match self {
            Task::Gemm(task) => task.step(warp, e),
            Task::Gemv(task) => task.step(warp, e),
            Task::Rows(task) => task.step(warp, e),
            Task::Columns(task) => task.step(warp, e),
            Task::Map(task) => task.step(warp, e),
            Task::Gather(task) => task.step(warp, rows, e),
            Task::Pool(task) => task.step(warp, e),
        }
    }
}

/// Arithmetic instructions for `count` operations on elements: two halves fit a 32-bit register and are worked on at once.
pub(super) fn packed(count: u64, width: u8) -> u16 {
    let count = if width == 2 { count.div_ceil(2) } else { count };
    u16::try_from(count.max(1)).expect("a step's arithmetic is short")
}

/// Exchanges between the lanes of a warp until one has the sum of all: five shuffles and five operations.
pub(super) const SHUFFLES: u16 = 10;

/// A grid's blocks.
pub(super) fn blocks(count: u64) -> u32 {
    u32::try_from(count.max(1)).expect("a grid has less than 2^32 blocks")
}

/// The lanes of `mask` for which something holds.
#[inline]
pub(super) fn such(mask: u32, mut holds: impl FnMut(usize) -> bool) -> u32 {
    let mut found = 0;
    for lane in 0..32 {
        found |= u32::from(holds(lane)) << lane;
    }
    found & mask
}
