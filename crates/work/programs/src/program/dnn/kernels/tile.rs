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

/// One side's tile of a k-step: `SIDE` rows (of A) or columns (of B) from `from`, `DEPTH` along k from `k`.
#[derive(Clone, Copy)]
pub(super) struct Tile<const SIDE: u64> {
    pub(super) from: u64,
    pub(super) end: u64,
    pub(super) k: u64,
    pub(super) k_end: u64,
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

impl<const SIDE: u64> Tile<SIDE> {
    /// Threads of the block.
    pub(super) const THREADS: u64 = SIDE * SIDE / (PIECE * PIECE);
    /// Elements of the tile that a thread loads.
    pub(super) const TURNS: u64 = SIDE * DEPTH / Self::THREADS;

    /// Loads the tile from a matrix whose strides are `along` (rows of A, columns of B) and `depth` (k). Where memory allows,
    /// a thread loads four neighbours at once.
    pub(super) fn load(&self, base: u64, along: u64, depth: u64, even: bool, warp: &Warp, e: &mut Emit) {
        let by_four = |n: u64| n.is_multiple_of(PIECE);
        let across = SIDE / PIECE;
        if even && depth == 1 && by_four(along) && by_four(self.k_end) {
            let place = |quad: u64| (quad / PIECE, quad % PIECE * PIECE);
            self.global::<PIECE>(warp, e, base, place, [along, 1]);
            // Four neighbours along k belong into four rows of the tile.
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

    /// Loads from global memory, `WIDE` elements a thread at a time. `place` says where in the tile the first of them is, for
    /// pieces of that many elements, which are numbered so that neighbours in memory are neighbouring threads.
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

    /// Stores what has been loaded to shared memory, in rows of equal k: pieces of `wide` elements, `rows` of them each. All
    /// turns and rows lie in the same banks relative to each other, as whole rows lie between them.
    #[inline]
    pub(super) fn share(
        &self,
        warp: &Warp,
        e: &mut Emit,
        place: impl Fn(u64) -> (u64, u64),
        wide: u64,
        rows: u64,
    ) {
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

/// What the addresses of a k-step cost: two running pointers and the loop.
pub(super) const STEP_COST: u16 = 2 * cost::ADDRESS + cost::LOOP;
