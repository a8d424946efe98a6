//! Products of a vector with a matrix, which replace matrix products of a single row.

use super::{At, Matrix, PIECE, SHUFFLES, Warp, blocks, packed, such};
use crate::program::{Emit, Kernel, cost};

/// A vector of k elements times a k x n matrix, `batch` times.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Gemv {
    pub(crate) batch: u64,
    pub(crate) n: u64,
    pub(crate) k: u64,
    /// The vector; its elements are `column` apart.
    pub(crate) vector: Matrix,
    pub(crate) matrix: Matrix,
    pub(crate) bias: Option<At>,
    pub(crate) target: At,
    /// Elements between the results of two batches.
    pub(crate) target_batch: u64,
    pub(crate) width: u8,
}

/// Threads per block if a warp computes one element: four warps.
const DOT_THREADS: u32 = 128;
/// Threads per block if a lane computes one element, and eight warps share k.
const SUM_THREADS: u32 = 256;
const SUM_WARPS: u64 = 8;
/// Rows of the matrix that a warp processes per step.
const UNROLL: u64 = 4;

impl Gemv {
    /// Returns true if an element's factors are contiguous, so that a warp reads along k.
    fn is_dot(&self) -> bool {
        self.matrix.row == 1 && self.matrix.column != 1
    }

    pub(super) fn kernel(&self) -> Kernel {
        let name = match (self.is_dot(), self.batch > 1) {
            (true, false) => "gemv_t",
            (true, true) => "gemv_t_batched",
            (false, false) => "gemv_n",
            (false, true) => "gemv_n_batched",
        };
        if self.is_dot() {
            let warps = u64::from(DOT_THREADS / 32);
            let grid = blocks(self.n.div_ceil(warps) * self.batch);
            return Kernel { name, blocks: grid, threads: DOT_THREADS, registers: 32, shared: 0 };
        }
        let grid = blocks(self.n.div_ceil(32) * self.batch);
        let shared = SUM_THREADS * u32::from(self.width).max(4);
        Kernel { name, blocks: grid, threads: SUM_THREADS, registers: 32, shared }
    }

    pub(super) fn operands(&mut self) -> (Vec<&mut At>, &mut At) {
        let read = [&mut self.vector.at, &mut self.matrix.at].into_iter().chain(self.bias.as_mut()).collect();
        (read, &mut self.target)
    }

    pub(super) fn step(&self, warp: &mut Warp, e: &mut Emit) -> bool {
        if self.is_dot() { self.dot(warp, e) } else { self.sum(warp, e) }
    }

    /// Returns the addresses of the first element of the vector and of the matrix.
    fn bases(&self, batch: u64) -> [u64; 2] {
        [self.vector, self.matrix].map(|m| m.at.element(batch * m.batch, self.width))
    }

    /// Computes one element per warp: lanes along k, four at once if alignment allows.
    fn dot(&self, warp: &mut Warp, e: &mut Emit) -> bool {
        let warps = u64::from(DOT_THREADS / 32);
        let groups = self.n.div_ceil(warps);
        let block = u64::from(warp.at.block);
        let (batch, column) = (block / groups, block % groups * warps + u64::from(warp.at.warp));
        if column >= self.n {
            e.alu(cost::THREAD + cost::IF, 1, []);
            e.exit();
            return false;
        }
        let (bytes, [vector, matrix]) = (u64::from(self.width), self.bases(batch));
        let fours = [self.k, self.matrix.column, self.matrix.batch, self.vector.batch]
            .iter()
            .all(|n| n.is_multiple_of(PIECE))
            && self.vector.column == 1
            && [vector, matrix].iter().all(|base| base.is_multiple_of(PIECE * bytes));
        let wide = if fours { PIECE } else { 1 };
        let k = |lane: usize| u64::from(warp.turn) * 32 * wide + lane as u64 * wide;
        e.block(0);
        if warp.turn == 0 {
            e.alu(cost::THREAD + cost::IF + 2 * cost::ADDRESS, 1, []);
        }
        let inside = such(warp.at.mask, |lane| k(lane) < self.k);
        if inside != 0 {
            e.block(1);
            e.alu(2 + cost::LOOP, 1, [1]);
            e.lanes(inside);
            let width = wide as u8 * self.width;
            e.load_at(width, 10, [1], |lane| vector + k(lane) * self.vector.column * bytes);
            e.load_at(width, 11, [1], |lane| matrix + (column * self.matrix.column + k(lane)) * bytes);
            e.alu(packed(wide, self.width), 12, [10, 11, 12]);
            warp.turn += 1;
            return true;
        }
        e.block(2);
        e.alu(SHUFFLES, 12, [12]);
        e.lanes(1);
        self.finish(batch, |_| column, e);
        e.lanes(warp.at.mask);
        e.exit();
        false
    }

    /// Computes one element per lane: the warps of a block take every eighth row each.
    fn sum(&self, warp: &mut Warp, e: &mut Emit) -> bool {
        let groups = self.n.div_ceil(32);
        let block = u64::from(warp.at.block);
        let (batch, first) = (block / groups, block % groups * 32);
        let column = |lane: usize| first + lane as u64;
        let inside = such(warp.at.mask, |lane| column(lane) < self.n);
        let (bytes, [vector, matrix]) = (u64::from(self.width), self.bases(batch));
        if warp.part == 1 {
            e.block(3);
            if warp.at.warp == 0 {
                e.lanes(inside);
                for other in 0..SUM_WARPS {
                    e.shared_load(4, 13, [1], |lane| other * 128 + lane as u64 * 4);
                    e.alu(1, 12, [12, 13]);
                }
                self.finish(batch, column, e);
                e.lanes(warp.at.mask);
            }
            e.block(4);
            e.exit();
            return false;
        }
        if warp.turn == 0 {
            e.alu(cost::THREAD + cost::IF + 2 * cost::ADDRESS, 1, []);
        }
        let row = |part: u64| (u64::from(warp.turn) * UNROLL + part) * SUM_WARPS + u64::from(warp.at.warp);
        e.block(1);
        e.lanes(inside);
        let rows = (0..UNROLL).filter(|part| row(*part) < self.k).count() as u64;
        if rows == 0 {
            e.lanes(warp.at.mask);
            e.block(2);
            e.shared_store(4, [12], |lane| u64::from(warp.at.warp) * 128 + lane as u64 * 4);
            e.barrier();
            warp.next_part();
            return true;
        }
        e.alu(2 + cost::LOOP, 1, [1]);
        for part in 0..rows {
            let to = 20 + 2 * part as u8;
            e.load_at(self.width, to, [1], |_| vector + row(part) * self.vector.column * bytes);
            e.load_at(self.width, to + 1, [1], |lane| {
                matrix + (row(part) * self.matrix.row + column(lane) * self.matrix.column) * bytes
            });
        }
        for part in 0..rows {
            let from = 20 + 2 * part as u8;
            e.alu(1, 12, [from, from + 1, 12]);
        }
        warp.turn += 1;
        true
    }

    fn finish(&self, batch: u64, column: impl Fn(usize) -> u64, e: &mut Emit) {
        if let Some(bias) = self.bias {
            e.load_at(self.width, 14, [1], |lane| bias.element(column(lane), self.width));
            e.alu(1, 12, [12, 14]);
        }
        let first = batch * self.target_batch;
        e.store_at(self.width, [1, 12], |lane| self.target.element(first + column(lane), self.width));
    }
}
