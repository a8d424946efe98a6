//! Kernels over rows: softmax, layer normalisation, reductions, and rows of a table picked by numbers. A row is
//! processed by a warp or a block, as in PyTorch's native kernels (`aten/src/ATen/native/cuda`:
//! `PersistentSoftmax.cuh`, `SoftMax.cu`, `layer_norm_kernel.cu`, `Reduce.cuh`).

use super::{At, SHUFFLES, Warp, blocks, packed, such};
use crate::program::{Emit, Kernel, cost};

/// Operation on a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sweep {
    Softmax,
    LayerNorm,
    /// One value per row, of this many bytes; the kernel's name.
    Reduce(&'static str, u8),
}

/// A kernel over contiguous rows of equal length.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Rows {
    pub(crate) sweep: Sweep,
    pub(crate) rows: u64,
    pub(crate) columns: u64,
    pub(crate) input: At,
    /// Factors and summands of the columns.
    pub(crate) affine: Option<[At; 2]>,
    pub(crate) output: At,
    pub(crate) width: u8,
}

/// Passes over a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Loads and processes each element: arithmetic and special functions per element.
    Read(u64, u16),
    /// Combines the results of the block's warps: up to the barrier.
    Combine,
    /// Writes each element: whether it is loaded again first.
    Write(bool, u64),
    /// Writes the row's value.
    Result,
}

/// Longest row that a warp's registers hold (`dim_size <= 1024`, `SoftMax.cu`).
const WARP_ROW: u64 = 1024;
/// Maximum length of rows that share a warp in pairs (`WARP_BATCH`, `PersistentSoftmax.cuh`).
const PAIRED_ROW: u64 = 128;
/// Threads per block whose warps have separate rows, in a softmax and in a reduction.
const SOFTMAX_THREADS: u32 = 128;
const REDUCE_THREADS: u32 = 512;
/// Threads that share a long row of a softmax (`SoftMax_getBlockSize`'s limit); a layer norm's block is 32 x 4.
const LONG_THREADS: u32 = 1024;
const NORM_THREADS: u32 = 128;
/// Loads in flight per step.
const UNROLL: u64 = 4;

impl Rows {
    /// Returns the threads that share a row; 32 if a warp has it alone.
    fn team(&self) -> u32 {
        match self.sweep {
            Sweep::LayerNorm => NORM_THREADS,
            _ if self.columns <= WARP_ROW => 32,
            Sweep::Softmax => LONG_THREADS,
            Sweep::Reduce(..) => REDUCE_THREADS,
        }
    }

    /// Returns the rows of a warp, if it has whole rows.
    fn paired(&self) -> u64 {
        if self.sweep == Sweep::Softmax && self.columns <= PAIRED_ROW { 2 } else { 1 }
    }

    fn phases(&self) -> &'static [Phase] {
        use Phase::{Combine, Read, Result, Write};
        match (self.sweep, self.team() == 32) {
            // Maximum, exponential, sum, product with the sum's reciprocal; the row stays in registers.
            (Sweep::Softmax, true) => &[Read(3, 1), Write(false, 1)],
            (Sweep::Softmax, false) => &[Read(1, 0), Combine, Read(2, 1), Combine, Write(true, 2)],
            // Welford's update: a division is a product with a reciprocal from a table of the loop counter.
            (Sweep::LayerNorm, _) => &[Read(5, 0), Combine, Write(true, 2)],
            (Sweep::Reduce(..), true) => &[Read(1, 0), Result],
            (Sweep::Reduce(..), false) => &[Read(1, 0), Combine, Result],
        }
    }

    pub(super) fn kernel(&self) -> Kernel {
        let (team, registers) = (self.team(), 32);
        let name = match (self.sweep, team) {
            (Sweep::Softmax, 32) => "softmax_warp_forward",
            (Sweep::Softmax, _) => "softmax_block_forward",
            (Sweep::LayerNorm, _) => "layer_norm",
            (Sweep::Reduce(name, _), _) => name,
        };
        if team == 32 {
            let threads = if self.sweep == Sweep::Softmax { SOFTMAX_THREADS } else { REDUCE_THREADS };
            let rows = u64::from(threads / 32) * self.paired();
            return Kernel { name, blocks: blocks(self.rows.div_ceil(rows)), threads, registers, shared: 0 };
        }
        let shared = team / 32 * 8;
        Kernel { name, blocks: blocks(self.rows), threads: team, registers, shared }
    }

    pub(super) fn operands(&mut self) -> (Vec<&mut At>, &mut At) {
        let affine = self.affine.iter_mut().flatten();
        ([&mut self.input].into_iter().chain(affine).collect(), &mut self.output)
    }

    /// Returns the elements that a lane of this kernel takes at once.
    fn wide(&self) -> u64 {
        let four = 4 * u64::from(self.width);
        let aligned = self.input.address.is_multiple_of(four) && self.output.address.is_multiple_of(four);
        // The softmax of a warp and the reductions read one element at a time.
        let scalar = self.team() == 32 || self.width > 4;
        if !scalar && aligned && self.columns.is_multiple_of(4) { 4 } else { 1 }
    }

    /// Returns the first row of a warp, and the number of its rows.
    fn own(&self, warp: &Warp) -> (u64, u64) {
        let block = u64::from(warp.at.block);
        if self.team() != 32 {
            return (block, 1);
        }
        let warps = u64::from(warp.at.threads / 32);
        let first = (block * warps + u64::from(warp.at.warp)) * self.paired();
        (first, self.rows.saturating_sub(first).min(self.paired()))
    }

    pub(super) fn step(&self, warp: &mut Warp, e: &mut Emit) -> bool {
        let (first, rows) = self.own(warp);
        let phases = self.phases();
        let n = warp.part as usize;
        e.block(0);
        if n == 0 && warp.turn == 0 {
            e.alu(cost::THREAD + cost::IF, 1, []);
        }
        if rows == 0 || n == phases.len() {
            e.exit();
            return false;
        }
        if n > 0 && warp.turn == 0 && phases[n - 1] == Phase::Combine {
            self.collect(warp, e);
        }
        e.block(4 + 4 * warp.part);
        match phases[n] {
            Phase::Read(alu, sfu) => self.read(warp, first, rows, [alu, u64::from(sfu)], e),
            Phase::Write(again, alu) => self.write(warp, first, rows, again, alu, e),
            Phase::Combine => {
                e.alu(SHUFFLES, 12, [12]);
                e.lanes(1);
                e.shared_store(8, [12], |_| u64::from(warp.at.warp) * 8);
                e.lanes(warp.at.mask);
                e.barrier();
                warp.next_part();
            }
            Phase::Result => self.result(warp, first, e),
        }
        true
    }

    /// Reads the results of the other warps from shared memory.
    fn collect(&self, warp: &Warp, e: &mut Emit) {
        let warps = warp.at.threads / 32;
        e.block(1 + warp.part * 4);
        e.lanes(such(warp.at.mask, |lane| (lane as u32) < warps));
        e.shared_load(8, 13, [1], |lane| lane as u64 * 8);
        e.lanes(warp.at.mask);
        e.alu(SHUFFLES, 12, [13]);
    }

    /// Returns the number in its row of the first element of a lane, for one of a step's loads.
    fn column(&self, warp: &Warp, lane: usize, part: u64) -> u64 {
        let (team, wide) = (u64::from(self.team()), self.wide());
        let thread = if team == 32 { lane as u64 } else { warp.thread(lane) as u64 };
        ((u64::from(warp.turn) * UNROLL + part) * team + thread) * wide
    }

    /// Returns the loads of this step in which a lane has an element: number and lanes.
    fn loads<'a>(&'a self, warp: &'a Warp) -> impl Iterator<Item = (u64, u32)> + 'a {
        (0..UNROLL).filter_map(move |part| {
            let inside = such(warp.at.mask, |lane| self.column(warp, lane, part) < self.columns);
            (inside != 0).then_some((part, inside))
        })
    }

    /// Moves to the next elements of the row, or to the next pass.
    fn advance(&self, warp: &mut Warp) {
        warp.turn += 1;
        if u64::from(warp.turn) * UNROLL * u64::from(self.team()) * self.wide() >= self.columns {
            warp.next_part();
        }
    }

    fn read(&self, warp: &mut Warp, first: u64, rows: u64, [alu, sfu]: [u64; 2], e: &mut Emit) {
        let wide = self.wide();
        e.alu(cost::LOOP + cost::ADDRESS, 1, [1]);
        for row in first..first + rows {
            for (part, inside) in self.loads(warp) {
                e.lanes(inside);
                let register = 20 + part as u8;
                e.load_at(wide as u8 * self.width, register, [1], |lane| {
                    self.input.element(row * self.columns + self.column(warp, lane, part), self.width)
                });
            }
        }
        e.lanes(warp.at.mask);
        let count = self.loads(warp).count() as u64 * rows * wide;
        for part in 0..self.loads(warp).count() {
            e.alu(packed(count * alu / self.loads(warp).count() as u64, 4), 12, [20 + part as u8, 12]);
        }
        if sfu > 0 {
            e.sfu((count * sfu) as u16, 14, [12]);
        }
        self.advance(warp);
        // A warp that has its row alone knows the row's value now.
        if warp.turn == 0 && self.team() == 32 {
            e.alu(2 * SHUFFLES, 12, [12]);
        }
    }

    fn write(&self, warp: &mut Warp, first: u64, rows: u64, again: bool, alu: u64, e: &mut Emit) {
        let wide = self.wide();
        let bytes = wide as u8 * self.width;
        e.alu(cost::LOOP + cost::ADDRESS, 1, [1]);
        for row in first..first + rows {
            let place = |lane, part| row * self.columns + self.column(warp, lane, part);
            for (part, inside) in self.loads(warp) {
                e.lanes(inside);
                let register = 20 + 4 * part as u8;
                if again {
                    e.load_at(bytes, register, [1], |lane| self.input.element(place(lane, part), self.width));
                }
                if let Some(affine) = self.affine {
                    for (n, at) in affine.into_iter().enumerate() {
                        let to = register + 1 + n as u8;
                        e.load_at(bytes, to, [1], |lane| {
                            at.element(self.column(warp, lane, part), self.width)
                        });
                    }
                }
                e.alu(packed(alu * wide, 4), register + 3, [register, register + 1, register + 2]);
                e.store_at(bytes, [1, register + 3], |lane| {
                    self.output.element(place(lane, part), self.width)
                });
            }
        }
        self.advance(warp);
    }

    fn result(&self, warp: &mut Warp, row: u64, e: &mut Emit) {
        let Sweep::Reduce(_, width) = self.sweep else {
            warp.next_part();
            return;
        };
        let writes = self.team() == 32 || warp.at.warp == 0;
        e.alu(cost::IF + 1, 12, [12]);
        if writes {
            e.lanes(1);
            e.store_at(width, [1, 12], |_| self.output.element(row, width));
        }
        warp.next_part();
    }
}

/// A reduction over dimensions other than the last: one thread per result.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Columns {
    /// Elements before, in and after the reduced dimensions.
    pub(crate) outer: u64,
    pub(crate) length: u64,
    pub(crate) inner: u64,
    pub(crate) input: At,
    pub(crate) output: At,
    pub(crate) width: u8,
}

/// Threads of a block.
const COLUMN_THREADS: u32 = 128;

impl Columns {
    pub(super) fn kernel(&self) -> Kernel {
        Kernel::over("reduce_columns", (self.outer * self.inner) as usize, COLUMN_THREADS, 32)
    }

    pub(super) fn step(&self, warp: &mut Warp, e: &mut Emit) -> bool {
        let first = warp.at.thread() as u64;
        let inside = warp.at.below((self.outer * self.inner) as usize);
        let element = |lane: usize, k: u64| {
            let n = first + lane as u64;
            (n / self.inner * self.length + k) * self.inner + n % self.inner
        };
        if warp.turn == 0 {
            e.alu(cost::THREAD + cost::IF, 1, []);
        }
        if inside == 0 {
            e.exit();
            return false;
        }
        e.lanes(inside);
        let from = u64::from(warp.turn) * UNROLL;
        e.block(1);
        if from < self.length {
            e.alu(cost::LOOP + cost::ADDRESS, 1, [1]);
            for k in from..(from + UNROLL).min(self.length) {
                let to = 20 + (k % UNROLL) as u8;
                e.load_at(self.width, to, [1], |lane| self.input.element(element(lane, k), self.width));
                e.alu(1, 12, [12, to]);
            }
            warp.turn += 1;
            return true;
        }
        e.block(2);
        e.store_at(self.width, [1, 12], |lane| self.output.element(first + lane as u64, self.width));
        e.lanes(warp.at.mask);
        e.exit();
        false
    }
}

// Rows of a table, picked by numbers: embeddings.

/// Choice of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ids {
    /// Words of a text: random, with frequency 1/n for the n-th (Zipf), since vocabularies are ordered by frequency.
    Words,
    /// Every row from this one on.
    From(u32),
    /// Row 0 for the first half, row 1 for the second: premise and hypothesis.
    Halves,
}

/// A kernel that copies `picked` rows of `columns` elements.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Gather {
    pub(crate) ids: Ids,
    /// Rows of the table.
    pub(crate) rows: u64,
    pub(crate) picked: u64,
    pub(crate) columns: u64,
    pub(crate) numbers: At,
    pub(crate) table: At,
    pub(crate) output: At,
    pub(crate) width: u8,
}

/// Threads per block, one element each (`indexSelectLargeIndex`).
const GATHER_THREADS: u32 = 128;

/// Bytes of a row's number.
const ID_BYTES: u8 = 8;

impl Gather {
    pub(super) fn kernel(&self) -> Kernel {
        let grid = blocks((self.picked * self.columns).div_ceil(u64::from(GATHER_THREADS)));
        Kernel { name: "index_select", blocks: grid, threads: GATHER_THREADS, registers: 32, shared: 0 }
    }

    pub(super) fn operands(&mut self) -> (Vec<&mut At>, &mut At) {
        (vec![&mut self.numbers, &mut self.table], &mut self.output)
    }

    /// Returns the picked rows; `stream` numbers the input.
    pub(crate) fn pick(&self, stream: u64) -> Vec<u32> {
        let last = self.rows.saturating_sub(1);
        let row = |n: u64| match self.ids {
            Ids::Words => draw_word(stream, n, self.rows),
            Ids::From(first) => u64::from(first) + n,
            Ids::Halves => u64::from(2 * n >= self.picked),
        };
        (0..self.picked).map(|n| row(n).min(last) as u32).collect()
    }

    pub(super) fn step(&self, warp: &mut Warp, rows: &[u32], e: &mut Emit) -> bool {
        let first = warp.at.thread() as u64;
        let count = self.picked * self.columns;
        let inside = such(warp.at.mask, |lane| first + (lane as u64) < count);
        e.alu(cost::THREAD + cost::IF, 1, []);
        if inside != 0 {
            let n = |lane: usize| first + lane as u64;
            e.block(1);
            e.lanes(inside);
            e.alu(2 + cost::ADDRESS, 2, [1]);
            e.load_at(ID_BYTES, 3, [2], |lane| self.numbers.element(n(lane) / self.columns, ID_BYTES));
            e.alu(1 + cost::ADDRESS, 4, [3, 1]);
            e.load_at(self.width, 5, [4], |lane| {
                let row = u64::from(rows[(n(lane) / self.columns) as usize]);
                self.table.element(row * self.columns + n(lane) % self.columns, self.width)
            });
            e.alu(cost::ADDRESS, 6, [1]);
            e.store_at(self.width, [6, 5], |lane| self.output.element(n(lane), self.width));
        }
        e.block(2);
        e.lanes(warp.at.mask);
        e.exit();
        false
    }
}

/// Returns word `n` of an input: log-uniform over the vocabulary, which is Zipf's law with exponent one.
fn draw_word(stream: u64, n: u64, rows: u64) -> u64 {
    // SplitMix64 (Steele, Lea, Flood 2014).
    let mut z =
        (stream.wrapping_mul(0x0100_0000_01b3) ^ n).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let uniform = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
    libm::pow(rows as f64 + 1.0, uniform) as u64 - 1
}
