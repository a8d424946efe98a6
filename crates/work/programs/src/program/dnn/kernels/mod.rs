//! Kernels of neural networks: loads, stores and operation counts of each thread. Values are not computed.
//!
//! A kernel's operands are [`At`]: a byte of a tensor while a pass is recorded, a virtual address once memory is laid out.

mod gemm;
mod gemv;
mod map;
mod rows;

pub(super) use gemm::{Bias, Gemm, Image, Right, Target};
pub(super) use gemv::Gemv;
pub(super) use map::{Map, Operand, RANK};
pub(super) use rows::{Columns, Gather, Ids, Rows, Sweep};

use crate::program::{Emit, Kernel, WarpAt, cost};

/// Start of an operand.
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

/// An active warp.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Warp {
    /// Position in its grid.
    pub(super) at: WarpAt,
    /// Current part of the kernel.
    pub(super) part: u32,
    /// Current iteration of the part.
    pub(super) turn: u32,
    /// Position of its block's work: a product's batch, row and column.
    pub(super) place: [u32; 3],
}

impl Warp {
    pub(super) fn new(at: WarpAt) -> Warp {
        Warp { at, ..Warp::default() }
    }
    /// Returns the number of a lane's thread in its block.
    #[inline]
    pub(super) fn thread(&self, lane: usize) -> usize {
        self.at.warp as usize * 32 + lane
    }
    /// Continues with the first iteration of the next part.
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
    /// Returns grid, block and resources.
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

    /// Returns its inputs, then its output.
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

    /// Adds the start address of each operand's tensor.
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

    /// Executes about one iteration of a warp. `rows` are the rows that a gather picks.
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

/// Returns the arithmetic instructions for `count` operations on elements: two half-precision values fit a 32-bit
/// register and are processed together.
pub(super) fn packed(count: u64, width: u8) -> u16 {
    let count = if width == 2 { count.div_ceil(2) } else { count };
    u16::try_from(count.max(1)).expect("a step's arithmetic is short")
}

/// Exchanges between the lanes of a warp until one has the sum of all: five shuffles and five operations.
pub(super) const SHUFFLES: u16 = 10;

/// Returns the number of blocks of a grid.
pub(super) fn blocks(count: u64) -> u32 {
    u32::try_from(count.max(1)).expect("a grid has less than 2^32 blocks")
}

/// Returns the lanes of `mask` for which a condition holds.
#[inline]
pub(super) fn such(mask: u32, mut holds: impl FnMut(usize) -> bool) -> u32 {
    let mut found = 0;
    for lane in 0..32 {
        found |= u32::from(holds(lane)) << lane;
    }
    found & mask
}

// Pooling: one thread per output pixel reads its window.

/// A pooling kernel.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Pool {
    pub(crate) name: &'static str,
    /// Images times channels.
    pub(crate) planes: u64,
    pub(crate) size: [u64; 2],
    pub(crate) window: [u64; 2],
    pub(crate) stride: [u64; 2],
    pub(crate) pad: [u64; 2],
    pub(crate) out: [u64; 2],
    pub(crate) input: At,
    pub(crate) output: At,
    pub(crate) width: u8,
}

/// Threads per block (`DilatedMaxPool2d.cu`, forward).
const THREADS: u32 = 256;

impl Pool {
    fn count(&self) -> usize {
        (self.planes * self.out[0] * self.out[1]) as usize
    }

    fn kernel(&self) -> Kernel {
        let blocks = self.count().div_ceil(THREADS as usize) as u32;
        Kernel { name: self.name, blocks, threads: THREADS, registers: 32, shared: 0 }
    }

    /// Processes one row of the window per step.
    fn step(&self, warp: &mut Warp, e: &mut Emit) -> bool {
        let (first, inside) = (warp.at.thread() as u64, warp.at.below(self.count()));
        if warp.turn == 0 {
            e.alu(cost::THREAD + cost::IF + 6, 1, []);
        }
        if inside == 0 {
            e.exit();
            return false;
        }
        let row = u64::from(warp.turn);
        if row == self.window[0] {
            e.block(2);
            e.lanes(inside);
            e.store_at(self.width, [1, 12], |lane| self.output.element(first + lane as u64, self.width));
            e.lanes(warp.at.mask);
            e.exit();
            return false;
        }
        let element = |lane: usize, column: u64| {
            let n = first + lane as u64;
            let (plane, pixel) = (n / (self.out[0] * self.out[1]), n % (self.out[0] * self.out[1]));
            let y = pixel / self.out[1] * self.stride[0] + row;
            let x = pixel % self.out[1] * self.stride[1] + column;
            let y = y.checked_sub(self.pad[0]).filter(|y| *y < self.size[0])?;
            let x = x.checked_sub(self.pad[1]).filter(|x| *x < self.size[1])?;
            Some((plane * self.size[0] + y) * self.size[1] + x)
        };
        e.block(1);
        e.lanes(inside);
        e.alu(cost::LOOP + cost::ADDRESS, 1, [1]);
        for column in 0..self.window[1] {
            // A wide window's columns come from the same code in each iteration of the loop.
            e.block(3);
            let mask = such(inside, |lane| element(lane, column).is_some());
            if mask == 0 {
                continue;
            }
            e.lanes(mask);
            e.load_at(self.width, 10, [1], |lane| {
                self.input.element(element(lane, column).unwrap_or_default(), self.width)
            });
            e.alu(2 + cost::LOOP, 12, [10, 12]);
        }
        warp.turn += 1;
        true
    }
}

// Tiles of matrices, staged through shared memory.

/// Depth of a tile: multiply-adds of a k-step per element of the result.
const DEPTH: u64 = 16;

/// Elements along either side of the piece of the result that a thread holds in registers.
const PIECE: u64 = 4;

/// Padding between two rows of a tile in shared memory, in elements: `float4` stays aligned and columns spread over
/// banks.
const PAD: u64 = 4;

/// A matrix in memory: element (r, c) of batch b is element `r * row + c * column + b * batch`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Matrix {
    pub(crate) at: At,
    pub(crate) row: u64,
    pub(crate) column: u64,
    pub(crate) batch: u64,
}

/// One side's tile of a k-step: `SIDE` rows (of A) or columns (of B) from `from`, `DEPTH` along k from `k`.
#[derive(Clone, Copy)]
struct Tile<const SIDE: u64> {
    from: u64,
    end: u64,
    k: u64,
    k_end: u64,
    /// First register of the loaded elements.
    register: u8,
    /// First byte in shared memory.
    shared: u64,
    /// Bytes of an element.
    width: u8,
}

/// Bytes of a tile in shared memory.
fn tile_bytes(side: u64, width: u8) -> u64 {
    DEPTH * (side + PAD) * u64::from(width)
}

impl<const SIDE: u64> Tile<SIDE> {
    /// Threads of the block.
    const THREADS: u64 = SIDE * SIDE / (PIECE * PIECE);
    /// Elements of the tile that a thread loads.
    const TURNS: u64 = SIDE * DEPTH / Self::THREADS;

    /// Loads the tile from a matrix whose strides are `along` (rows of A, columns of B) and `depth` (k). If alignment
    /// allows, a thread loads four neighbours at once.
    fn load(&self, base: u64, along: u64, depth: u64, even: bool, warp: &Warp, e: &mut Emit) {
        let by_four = |n: u64| n.is_multiple_of(PIECE);
        let across = SIDE / PIECE;
        if even && depth == 1 && by_four(along) && by_four(self.k_end) {
            let place = |quad: u64| (quad / PIECE, quad % PIECE * PIECE);
            self.global::<PIECE>(warp, e, base, place, [along, 1]);
            // Four neighbours along k belong to four rows of the tile.
            self.share(warp, e, place, 1, PIECE);
        } else if even && along == 1 && by_four(depth) && by_four(self.end) {
            let place = |quad: u64| (quad % across * PIECE, quad / across);
            self.global::<PIECE>(warp, e, base, place, [1, depth]);
            self.share(warp, e, place, PIECE, 1);
        } else if along == 1 {
            let place = |x: u64| (x % SIDE, x / SIDE);
            self.global::<1>(warp, e, base, place, [1, depth]);
            self.share(warp, e, place, 1, 1);
        } else {
            let place = |x: u64| (x / DEPTH, x % DEPTH);
            self.global::<1>(warp, e, base, place, [along, depth]);
            self.share(warp, e, place, 1, 1);
        }
    }

    /// Loads from global memory, `WIDE` elements per thread at a time. `place` returns the position in the tile of
    /// the first of them, for pieces of that many elements, which are numbered so that neighbours in memory are
    /// neighbouring threads.
    #[inline]
    fn global<const WIDE: u64>(
        &self,
        warp: &Warp,
        e: &mut Emit,
        base: u64,
        place: impl Fn(u64) -> (u64, u64),
        [along, depth]: [u64; 2],
    ) {
        let width = u64::from(self.width);
        let is_whole = self.from + SIDE <= self.end && self.k + DEPTH <= self.k_end;
        let first = base + (self.from * along + self.k * depth) * width;
        let (along, depth) = (along * width, depth * width);
        for turn in 0..Self::TURNS / WIDE {
            let own = |lane: usize| place(warp.thread(lane) as u64 + turn * Self::THREADS);
            let inside = |lane: usize| {
                let (o, k) = own(lane);
                self.from + o < self.end && self.k + k < self.k_end
            };
            let mask = if is_whole { warp.at.mask } else { such(warp.at.mask, inside) };
            if mask != 0 {
                e.lanes(mask);
                e.load_at(WIDE as u8 * self.width, self.register + turn as u8, [1], |lane| {
                    let (o, k) = own(lane);
                    first + o * along + k * depth
                });
            }
        }
        e.lanes(warp.at.mask);
    }

    /// Stores the loaded elements to shared memory, in rows of equal k: pieces of `wide` elements, `rows` of them
    /// each. All turns and rows have the same relation of banks, as whole rows are between them.
    #[inline]
    fn share(&self, warp: &Warp, e: &mut Emit, place: impl Fn(u64) -> (u64, u64), wide: u64, rows: u64) {
        let (bytes, width) = (wide as u8 * self.width, u64::from(self.width));
        let mark = e.mark();
        e.shared_store(bytes, [self.register], |lane| {
            let (o, k) = place(warp.thread(lane) as u64);
            self.shared + (k * (SIDE + PAD) + o) * width
        });
        for n in 1..Self::TURNS / wide {
            e.shared_store_like(mark, bytes, [self.register + (n / rows) as u8]);
        }
    }
}

/// Arithmetic for the addresses of a k-step: two running pointers and the loop.
const STEP_COST: u16 = 2 * cost::ADDRESS + cost::LOOP;
