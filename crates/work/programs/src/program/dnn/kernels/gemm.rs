//! Matrix products and convolutions: a block computes a tile of the result, staging tiles of both factors through
//! shared memory, sixteen deep; a thread holds 4x4 elements of the result.
//!
//! A convolution is the product of the filters, a row for each output channel, with a matrix that is never formed: column
//! n is output pixel n, row k is filter element k (implicit GEMM; Chetlur et al., cuDNN, 2014).

use super::{At, DEPTH, Matrix, PIECE, STEP_COST, Tile, Warp, blocks, packed, such, tile_bytes};
use crate::program::{Emit, Kernel, cost};

/// The image matrix of a convolution, in the order batch, channel, row, column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Image {
    pub(crate) at: At,
    /// Channels of a group, and of the whole image.
    pub(crate) channels: u64,
    pub(crate) all_channels: u64,
    pub(crate) height: u64,
    pub(crate) width: u64,
    /// Rows and columns of the filter.
    pub(crate) filter: [u64; 2],
    pub(crate) stride: [u64; 2],
    pub(crate) dilation: [u64; 2],
    /// Padding rows above and columns to the left.
    pub(crate) pad: [u64; 2],
    /// Rows and columns of the output.
    pub(crate) out: [u64; 2],
}

impl Image {
    /// Returns the number of the element that filter element (channel, row, column) reads for output pixel n; none in
    /// the padding.
    #[inline]
    fn element(&self, corner: &Corner, k: [u64; 3], group: u64) -> Option<u64> {
        let y = (corner.y + k[1] * self.dilation[0]).checked_sub(self.pad[0]).filter(|y| *y < self.height)?;
        let x = (corner.x + k[2] * self.dilation[1]).checked_sub(self.pad[1]).filter(|x| *x < self.width)?;
        let plane = corner.image * self.all_channels + group * self.channels + k[0];
        Some((plane * self.height + y) * self.width + x)
    }

    /// Returns the position of the filter for output pixel n, padding included.
    fn corner(&self, n: u64) -> Corner {
        let [rows, columns] = self.out;
        let (image, rest) = (n / (rows * columns), n % (rows * columns));
        Corner { image, y: rest / columns * self.stride[0], x: rest % columns * self.stride[1] }
    }
}

#[derive(Clone, Copy, Default)]
struct Corner {
    image: u64,
    y: u64,
    x: u64,
}

/// The right factor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Right {
    Matrix(Matrix),
    Image(Image),
}

/// The result: element (r, c) of batch b is element `r * row + c + b * batch`, and columns come in pieces of `run` at
/// distances of `jump` (the pixels of an image).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub(crate) at: At,
    pub(crate) row: u64,
    pub(crate) batch: u64,
    pub(crate) run: u64,
    pub(crate) jump: u64,
}

/// Bias added to the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bias {
    /// One value per row.
    Row(At),
    /// One value per column.
    Column(At),
}

/// A product of an m x k and a k x n matrix, `batch` times.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Gemm {
    pub(crate) batch: u64,
    pub(crate) m: u64,
    pub(crate) n: u64,
    pub(crate) k: u64,
    pub(crate) left: Matrix,
    pub(crate) right: Right,
    pub(crate) bias: Option<Bias>,
    pub(crate) target: Target,
    /// Bytes of an element.
    pub(crate) width: u8,
}

/// Number of blocks of 64 x 64 below which tiles are 32 x 32: fewer would leave most of any GPU idle. Vendors'
/// libraries choose by their own tables, which are not public.
const FEW_BLOCKS: u64 = 32;

impl Gemm {
    /// Side of a tile of the result.
    fn side(&self) -> u64 {
        let tiles = self.m.div_ceil(64) * self.n.div_ceil(64) * self.batch;
        if tiles < FEW_BLOCKS { 32 } else { 64 }
    }

    fn name(&self, side: u64) -> &'static str {
        match (&self.right, self.batch > 1, side) {
            (Right::Image(image), ..) => match (image.filter, side) {
                ([1, 1], 64) => "conv_1x1_64x64",
                ([1, 1], _) => "conv_1x1_32x32",
                (_, 64) => "implicit_conv_64x64",
                _ => "implicit_conv_32x32",
            },
            (Right::Matrix(right), false, 64) if right.column == 1 => "gemm_64x64_nn",
            (Right::Matrix(right), false, _) if right.column == 1 => "gemm_32x32_nn",
            (Right::Matrix(_), false, 64) => "gemm_64x64_nt",
            (Right::Matrix(_), false, _) => "gemm_32x32_nt",
            (Right::Matrix(right), true, 64) if right.column == 1 => "bgemm_64x64_nn",
            (Right::Matrix(right), true, _) if right.column == 1 => "bgemm_32x32_nn",
            (Right::Matrix(_), true, 64) => "bgemm_64x64_nt",
            (Right::Matrix(_), true, _) => "bgemm_32x32_nt",
        }
    }

    pub(super) fn kernel(&self) -> Kernel {
        let side = self.side();
        Kernel {
            name: self.name(side),
            blocks: blocks(self.m.div_ceil(side) * self.n.div_ceil(side) * self.batch),
            threads: (side * side / (PIECE * PIECE)) as u32,
            registers: 64,
            shared: 2 * tile_bytes(side, self.width) as u32,
        }
    }

    pub(super) fn operands(&mut self) -> (Vec<&mut At>, &mut At) {
        let right = match &mut self.right {
            Right::Matrix(matrix) => &mut matrix.at,
            Right::Image(image) => &mut image.at,
        };
        let bias = self.bias.as_mut().map(|bias| match bias {
            Bias::Row(at) | Bias::Column(at) => at,
        });
        let read = [&mut self.left.at, right].into_iter().chain(bias).collect();
        (read, &mut self.target.at)
    }

    pub(super) fn step(&self, warp: &mut Warp, e: &mut Emit) -> bool {
        if warp.at.threads == 64 { self.step_of::<32>(warp, e) } else { self.step_of::<64>(warp, e) }
    }

    fn step_of<const SIDE: u64>(&self, warp: &mut Warp, e: &mut Emit) -> bool {
        if warp.part == 0 && warp.turn == 0 {
            let (across, down) = (self.n.div_ceil(SIDE), self.m.div_ceil(SIDE));
            let block = u64::from(warp.at.block);
            let place = [block / (across * down), block / across % down * SIDE, block % across * SIDE];
            warp.place = place.map(|n| n as u32);
            e.alu(cost::THREAD + 12, 1, []);
        }
        match warp.part {
            0 => {
                self.load::<SIDE>(warp, e);
                e.barrier();
                warp.part = 1;
            }
            1 => {
                self.multiply::<SIDE>(warp, e);
                warp.turn += 1;
                if u64::from(warp.turn) * DEPTH < self.k {
                    e.barrier();
                    warp.part = 0;
                } else {
                    warp.next_part();
                }
            }
            _ => {
                self.store::<SIDE>(warp, e);
                e.lanes(warp.at.mask);
                e.exit();
                return false;
            }
        }
        true
    }

    /// Loads both tiles of a k-step into shared memory.
    fn load<const SIDE: u64>(&self, warp: &Warp, e: &mut Emit) {
        let [batch, row, column] = warp.place.map(u64::from);
        let (k, width) = (u64::from(warp.turn) * DEPTH, self.width);
        e.block(1);
        e.alu(STEP_COST, 1, [1]);
        let a: Tile<SIDE> = Tile { from: row, end: self.m, k, k_end: self.k, register: 10, shared: 0, width };
        let left = self.left.at.element(batch * self.left.batch, width);
        a.load(left, self.left.row, self.left.column, even(left, self.left.batch, width), warp, e);
        let shared = tile_bytes(SIDE, width);
        let b = Tile { from: column, end: self.n, register: 30, shared, ..a };
        match &self.right {
            Right::Matrix(right) => {
                let base = right.at.element(batch * right.batch, width);
                b.load(base, right.column, right.row, even(base, right.batch, width), warp, e);
            }
            Right::Image(image) => load_image(image, &b, batch, warp, e),
        }
    }

    /// Emits sixteen multiply-adds for each element that a thread holds.
    fn multiply<const SIDE: u64>(&self, warp: &Warp, e: &mut Emit) {
        let pieces = SIDE / PIECE;
        let (width, bytes) = (self.width, u64::from(self.width));
        let own = |lane: usize| {
            let thread = warp.thread(lane) as u64;
            (thread / pieces * PIECE, thread % pieces * PIECE)
        };
        let four = PIECE as u8 * width;
        let shared = tile_bytes(SIDE, width);
        e.block(2);
        let a = e.mark();
        e.shared_load(four, 60, [1], |lane| own(lane).0 * bytes);
        let b = e.mark();
        e.shared_load(four, 61, [1], |lane| shared + own(lane).1 * bytes);
        let sums = packed(PIECE * PIECE, width);
        e.alu(sums, 62, [60, 61, 62]);
        // The other fifteen rows of both tiles use the same banks, shifted by a whole row.
        for k in 1..DEPTH as u8 {
            let pair = 60 + k % 2 * 4;
            e.shared_load_like(a, four, pair, [1]);
            e.shared_load_like(b, four, pair + 1, [1]);
            e.alu(sums, 62, [pair, pair + 1, 62]);
        }
    }

    /// Adds the bias and stores the threads' elements, row by row.
    fn store<const SIDE: u64>(&self, warp: &Warp, e: &mut Emit) {
        let [batch, row, column] = warp.place.map(u64::from);
        let (target, width) = (&self.target, self.width);
        let pieces = SIDE / PIECE;
        let own = |lane: usize| {
            let thread = warp.thread(lane) as u64;
            (row + thread / pieces * PIECE, column + thread % pieces * PIECE)
        };
        let fours = [target.row, target.run, target.jump, self.n].iter().all(|n| n.is_multiple_of(PIECE))
            && even(target.at.address, target.batch, width);
        let wide = if fours { PIECE } else { 1 };
        let address = |r: u64, c: u64| {
            let place = r * target.row + c / target.run * target.jump + c % target.run + batch * target.batch;
            target.at.element(place, width)
        };
        e.block(3);
        e.alu(2 * cost::ADDRESS + cost::IF, 2, [1]);
        if let Some(Bias::Column(at)) = self.bias {
            for part in (0..PIECE).step_by(wide as usize) {
                let inside = such(warp.at.mask, |lane| own(lane).1 + part < self.n);
                if inside != 0 {
                    e.lanes(inside);
                    e.load_at(wide as u8 * width, 70, [2], |lane| at.element(own(lane).1 + part, width));
                }
            }
        }
        for i in 0..PIECE {
            let here = such(warp.at.mask, |lane| own(lane).0 + i < self.m);
            e.block(4 + i as u32);
            if here == 0 {
                break;
            }
            e.lanes(here);
            if let Some(Bias::Row(at)) = self.bias {
                e.load_at(width, 70, [2], |lane| at.element(batch * self.m + own(lane).0 + i, width));
            }
            if self.bias.is_some() {
                e.alu(packed(PIECE, width), 62, [62, 70]);
            }
            e.alu(cost::ADDRESS, 2, [2]);
            for part in (0..PIECE).step_by(wide as usize) {
                let inside = such(here, |lane| own(lane).1 + part < self.n);
                if inside != 0 {
                    e.lanes(inside);
                    e.store_at(wide as u8 * width, [2, 62], |lane| {
                        let (r, c) = own(lane);
                        address(r + i, c + part)
                    });
                }
            }
        }
        e.block(8);
    }
}

/// Returns true if groups of four elements are aligned in every batch.
fn even(base: u64, batch: u64, width: u8) -> bool {
    base.is_multiple_of(PIECE * u64::from(width)) && batch.is_multiple_of(PIECE)
}

/// Loads the tile of an image matrix: neighbouring threads read neighbouring pixels for one filter element.
fn load_image<const SIDE: u64>(image: &Image, tile: &Tile<SIDE>, group: u64, warp: &Warp, e: &mut Emit) {
    // A thread's pixel is the same in all its turns, since a turn covers whole rows of the tile.
    let mut corners = [Corner::default(); 32];
    for (lane, corner) in corners.iter_mut().enumerate() {
        *corner = image.corner(tile.from + warp.thread(lane) as u64 % SIDE);
    }
    let area = image.filter[0] * image.filter[1];
    e.alu(4 * Tile::<SIDE>::TURNS as u16, 2, [1]);
    for turn in 0..Tile::<SIDE>::TURNS {
        // A warp is within one row of the tile, which means at one filter element.
        let first = warp.thread(0) as u64 + turn * Tile::<SIDE>::THREADS;
        let k = tile.k + first / SIDE;
        if k >= tile.k_end {
            break;
        }
        let filter = [k / area, k % area / image.filter[1], k % image.filter[1]];
        let (mut addresses, mut inside) = ([0; 32], 0);
        for (lane, corner) in corners.iter().enumerate() {
            let is_column = tile.from + (first + lane as u64) % SIDE < tile.end;
            if let Some(n) = image.element(corner, filter, group).filter(|_| is_column) {
                addresses[lane] = image.at.element(n, tile.width);
                inside |= 1 << lane;
            }
        }
        if inside != 0 {
            e.lanes(inside);
            e.load_at(tile.width, tile.register + turn as u8, [1], |lane| addresses[lane]);
            e.lanes(warp.at.mask);
        }
    }
    tile.share(warp, e, |x| (x % SIDE, x / SIDE), 1, 1);
}
