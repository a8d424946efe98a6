//! Tiles of matrices, staged through shared memory.

use super::{At, Warp, such};
use crate::program::{Emit, cost};

/// Depth of a tile: multiply-adds of a k-step for each element of the result.
pub(super) const DEPTH: u64 = 16;
/// Elements along either side of the piece of the result that a thread holds in registers.
pub(super) const PIECE: u64 = 4;
/// Elements between two rows of a tile in shared memory, beyond its side: `float4` stays aligned and columns spread over banks.
const PAD: u64 = 4;

/// A matrix in memory: element (r, c) of batch b is element `r * row + c * column + b * batch`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Matrix {
    pub(crate) at: At,
    pub(crate) row: u64,
    pub(crate) column: u64,
    pub(crate) batch: u64,
}

/// One side's tile of a k-step: `side` rows (of A) or columns (of B) from `from`, `DEPTH` along k from `k`.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub(super) side: u64,
    pub(super) from: u64,
    pub(super) end: u64,
    pub(super) k: u64,
    pub(super) k_end: u64,
    /// Threads that load it.
    pub(super) threads: u64,
    /// First register of what is loaded.
    pub(super) register: u8,
    /// First byte of it in shared memory.
    pub(super) shared: u64,
    /// Bytes of an element.
    pub(super) width: u8,
}

/// Bytes of a tile in shared memory.
pub(super) fn tile_bytes(side: u64, width: u8) -> u64 {
    DEPTH * (side + PAD) * u64::from(width)
}

impl Tile {
    /// Byte of shared memory of element (o, k) of the tile: rows of equal k.
    #[inline]
    pub(super) fn shared_at(&self, o: u64, k: u64) -> u64 {
        self.shared + (k * (self.side + PAD) + o) * u64::from(self.width)
    }

    /// Loads the tile from a matrix whose strides are `along` (rows of A, columns of B) and `depth` (k). Where memory allows,
    /// a thread loads four neighbours at once.
    pub(super) fn load(&self, base: u64, along: u64, depth: u64, even: bool, warp: &Warp, e: &mut Emit) {
        let by_four = |n: u64| n.is_multiple_of(PIECE);
        if even && depth == 1 && by_four(along) && by_four(self.k_end) {
            self.fours(warp, e, base, |quad| (quad / PIECE, quad % PIECE * PIECE), along, depth);
        } else if even && along == 1 && by_four(depth) && by_four(self.end) {
            let across = self.side / PIECE;
            self.fours(warp, e, base, |quad| (quad % across * PIECE, quad / across), along, depth);
        } else if along == 1 {
            self.singles(warp, e, base, |x| (x % self.side, x / self.side), along, depth);
        } else {
            self.singles(warp, e, base, |x| (x / DEPTH, x % DEPTH), along, depth);
        }
    }

    fn fours(
        &self,
        warp: &Warp,
        e: &mut Emit,
        base: u64,
        place: impl Fn(u64) -> (u64, u64),
        along: u64,
        depth: u64,
    ) {
        let width = u64::from(self.width);
        let turns = self.side * DEPTH / PIECE / self.threads;
        let own = |turn: u64, lane: usize| place(warp.thread(lane) as u64 + turn * self.threads);
        for turn in 0..turns {
            let inside = such(warp.at.mask, |lane| {
                let (o, k) = own(turn, lane);
                self.from + o < self.end && self.k + k < self.k_end
            });
            if inside != 0 {
                e.lanes(inside);
                let to = self.register + turn as u8;
                e.load_at(PIECE as u8 * self.width, to, [1], |lane| {
                    let (o, k) = own(turn, lane);
                    base + ((self.from + o) * along + (self.k + k) * depth) * width
                });
                e.lanes(warp.at.mask);
            }
        }
        for turn in 0..turns {
            let from = [self.register + turn as u8];
            // Rows of equal k take four neighbours at once, or one each of four rows.
            if along == 1 && depth != 1 {
                e.shared_store(PIECE as u8 * self.width, from, |lane| {
                    let (o, k) = own(turn, lane);
                    self.shared_at(o, k)
                });
                continue;
            }
            for part in 0..PIECE {
                e.shared_store(self.width, from, |lane| {
                    let (o, k) = own(turn, lane);
                    self.shared_at(o, k + part)
                });
            }
        }
    }

    /// Element by element: `place` numbers them so that neighbours in memory are neighbouring threads.
    fn singles(
        &self,
        warp: &Warp,
        e: &mut Emit,
        base: u64,
        place: impl Fn(u64) -> (u64, u64),
        along: u64,
        depth: u64,
    ) {
        let width = u64::from(self.width);
        let turns = self.side * DEPTH / self.threads;
        let own = |turn: u64, lane: usize| place(warp.thread(lane) as u64 + turn * self.threads);
        for turn in 0..turns {
            let mask = such(warp.at.mask, |lane| {
                let (o, k) = own(turn, lane);
                self.from + o < self.end && self.k + k < self.k_end
            });
            if mask != 0 {
                e.lanes(mask);
                e.load_at(self.width, self.register + turn as u8, [1], |lane| {
                    let (o, k) = own(turn, lane);
                    base + ((self.from + o) * along + (self.k + k) * depth) * width
                });
                e.lanes(warp.at.mask);
            }
        }
        for turn in 0..turns {
            e.shared_store(self.width, [self.register + turn as u8], |lane| {
                let (o, k) = own(turn, lane);
                self.shared_at(o, k)
            });
        }
    }
}

/// What the addresses of a k-step cost: two running pointers and the loop.
pub(super) const STEP_COST: u16 = 2 * cost::ADDRESS + cost::LOOP;
