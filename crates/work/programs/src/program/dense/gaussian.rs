//! Gaussian elimination: two launches per pivot, `Fan1` for the column of multipliers, `Fan2` for all rows below.

use super::{lanes, rows, such, uniform};
use crate::program::{
    Array, Code, Emit, Entry, Inputs, Kernel, Key, Params, Program, Slots, Space, Table, WarpAt, cost,
};

/// Entry in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "gaus",
    suite: "Rodinia",
    what: "Gaussian elimination of a dense matrix, the first pivots",
    table: Some(Table { read_ratio: 0.66, kernels: 3 }),
    keys: &[
        Key { name: "n", what: "columns of the matrix", default: "2944" },
        Key { name: "rows", what: "rows of the matrix; default: as many as columns", default: "" },
        Key { name: "pivots", what: "number of pivots from the first, two kernels each", default: "1" },
        Key { name: "block", what: "threads of a block of Fan2 along either side", default: "4" },
    ],
    build,
};

fn build(params: &Params, _: &mut Inputs) -> Result<Box<dyn Program>, config::Diagnostic> {
    let n = params.integer("n", 2..=32_768)? as usize;
    let rows = rows(params, n)?;
    let pivots = params.integer("pivots", 1..=n.min(rows) as u64 - 1)? as usize;
    let block = params.integer("block", 1..=32)? as usize;
    Ok(Box::new(Slots::new(Gaussian::new([rows, n], pivots, block))))
}

/// Threads per block of `Fan1`: `MAXBLOCKSIZE`.
const FAN1_BLOCK: u32 = 512;
const REGISTERS: u32 = 16;
/// Value added to the diagonal of the matrix, in units of its side, to keep pivots from vanishing.
const DOMINANCE: f32 = 1.0;

/// The application.
#[derive(Clone)]
pub(super) struct Gaussian {
    rows: usize,
    /// Number of columns.
    n: usize,
    pivots: usize,
    block: usize,
    launched: usize,
    space: Space,
    arrays: [Array; 3],
    /// Multipliers.
    pub(super) m: Vec<f32>,
    /// The matrix.
    pub(super) a: Vec<f32>,
    /// The right-hand side.
    pub(super) b: Vec<f32>,
}

/// Indices of the arrays.
const M: usize = 0;
const A: usize = 1;
const B: usize = 2;

impl Gaussian {
    pub(super) fn new([rows, n]: [usize; 2], pivots: usize, block: usize) -> Gaussian {
        let mut space = Space::default();
        let all = rows * n;
        let arrays = [space.array("m", 4, all), space.array("a", 4, all), space.array("b", 4, rows)];
        let value = |k: usize| {
            let diagonal = if k / n == k % n { n as f32 * DOMINANCE } else { 0.0 };
            uniform(1, k) + diagonal
        };
        let (m, a, b) = (vec![0.0; all], (0..all).map(value).collect(), vec![1.0; rows]);
        Gaussian { rows, n, pivots, block, launched: 0, space, arrays, m, a, b }
    }

    /// Computes `m[row][t] = a[row][t] / a[t][t]`, one row per thread.
    fn fan1(&mut self, at: &WarpAt, t: usize, e: &mut Emit) {
        let n = self.n;
        e.block(0);
        e.lanes(at.mask);
        e.alu(cost::THREAD, 1, []);
        e.alu(1 + cost::IF, 0, [1]);
        let mask = at.below(self.rows - 1 - t);
        if mask != 0 {
            let first = at.thread() + t + 1;
            let place = |lane: usize| (first + lane) * n + t;
            e.block(1);
            e.lanes(mask);
            e.alu(2 + cost::ADDRESS, 2, [1]);
            e.load(&self.arrays[A], 3, [2], place);
            e.alu(1 + cost::ADDRESS, 4, []);
            e.load(&self.arrays[A], 5, [4], |_| t * n + t);
            divide(e, 6, [3, 5]);
            e.alu(cost::ADDRESS, 7, [1]);
            e.store(&self.arrays[M], [7, 6], place);
            for lane in lanes(mask) {
                self.m[place(lane)] = self.a[place(lane)] / self.a[t * n + t];
            }
        }
        e.block(2);
        e.lanes(at.mask);
        e.exit();
    }

    /// Computes `a[row][column] -= m[row][t] * a[t][column]`: the x of a thread is its row.
    fn fan2(&mut self, at: &WarpAt, t: usize, e: &mut Emit) {
        let (rows, n, side) = (self.rows, self.n, self.block);
        let across = rows.div_ceil(side);
        let block = at.block as usize;
        let (left, top) = (block % across * side, block / across * side);
        let thread = at.warp as usize * 32;
        let x = |lane: usize| left + (thread + lane) % side;
        let y = |lane: usize| top + (thread + lane) / side;
        e.block(3);
        e.lanes(at.mask);
        e.alu(cost::THREAD + 2, 1, []);
        e.alu(2 * (1 + cost::IF), 0, [1]);
        let mask = such(at.mask, |lane| x(lane) < rows - 1 - t && y(lane) < n - t);
        if mask != 0 {
            let row = |lane: usize| (x(lane) + 1 + t) * n;
            e.block(4);
            e.lanes(mask);
            e.alu(3 + cost::ADDRESS, 3, [1]);
            e.load(&self.arrays[M], 4, [3], |lane| row(lane) + t);
            e.alu(2 + cost::ADDRESS, 5, [1]);
            e.load(&self.arrays[A], 6, [5], |lane| t * n + y(lane) + t);
            e.alu(1 + cost::ADDRESS, 7, [1]);
            e.load(&self.arrays[A], 8, [7], |lane| row(lane) + y(lane) + t);
            e.alu(1, 9, [4, 6, 8]);
            e.store(&self.arrays[A], [7, 9], |lane| row(lane) + y(lane) + t);
            e.alu(cost::IF, 0, [2]);
            for lane in lanes(mask) {
                self.a[row(lane) + y(lane) + t] -= self.m[row(lane) + t] * self.a[t * n + y(lane) + t];
            }
            let first = such(mask, |lane| y(lane) == 0);
            if first != 0 {
                self.right_side(first, t, |lane| x(lane) + 1 + t, e);
            }
        }
        e.block(6);
        e.lanes(at.mask);
        e.exit();
    }

    /// Computes `b[row] -= m[row][t] * b[t]`, in the threads of the first column.
    fn right_side(&mut self, mask: u32, t: usize, row: impl Fn(usize) -> usize, e: &mut Emit) {
        let n = self.n;
        e.block(5);
        e.lanes(mask);
        // The store to `a` may have changed `m`, as far as the compiler knows.
        e.load(&self.arrays[M], 4, [3], |lane| row(lane) * n + t);
        e.alu(cost::ADDRESS, 10, []);
        e.load(&self.arrays[B], 11, [10], |_| t);
        e.alu(cost::ADDRESS, 12, [1]);
        e.load(&self.arrays[B], 13, [12], &row);
        e.alu(1, 14, [4, 11, 13]);
        e.store(&self.arrays[B], [12, 14], &row);
        for lane in lanes(mask) {
            self.b[row(lane)] -= self.m[row(lane) * n + t] * self.b[t];
        }
    }
}

/// Arithmetic of a correctly rounded division besides its reciprocal: `nvcc` emits two steps of Newton's method, and
/// the check for special values with its branch.
const DIVISION: u16 = 8;

/// Emits a division.
pub(in crate::program) fn divide(e: &mut Emit, to: u8, from: [u8; 2]) {
    e.sfu(1, to, [from[1]]);
    e.alu(DIVISION, to, [from[0], from[1], to]);
}

impl Code for Gaussian {
    type Warp = WarpAt;

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        if self.launched == 2 * self.pivots {
            return None;
        }
        self.launched += 1;
        let kernel = if self.launched % 2 == 1 {
            let blocks = self.rows.div_ceil(FAN1_BLOCK as usize) as u32;
            Kernel { name: "Fan1", blocks, threads: FAN1_BLOCK, registers: REGISTERS, shared: 0 }
        } else {
            let blocks = self.rows.div_ceil(self.block) * self.n.div_ceil(self.block);
            let threads = (self.block * self.block) as u32;
            Kernel { name: "Fan2", blocks: blocks as u32, threads, registers: REGISTERS, shared: 0 }
        };
        Some(kernel)
    }

    fn start(&mut self, at: WarpAt) -> WarpAt {
        at
    }

    fn step(&mut self, at: &mut WarpAt, e: &mut Emit) -> bool {
        let launch = self.launched - 1;
        if launch.is_multiple_of(2) {
            self.fan1(at, launch / 2, e);
        } else {
            self.fan2(at, launch / 2, e);
        }
        false
    }
}
