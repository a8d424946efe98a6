//! Gram-Schmidt: three launches per column, for its norm, its direction, and the projection of the columns after it.

use super::{lanes, rows, such, uniform};
use crate::program::dense::gaussian::divide;
use crate::program::{
    Array, Code, Emit, Entry, Inputs, Kernel, Key, Params, Program, Slots, Space, Table, WarpAt, cost,
};

/// Entry in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "gram",
    suite: "PolyBench",
    what: "Gram-Schmidt factorisation of a dense matrix, the first columns",
    table: Some(Table { read_ratio: 0.75, kernels: 3 }),
    keys: &[
        Key { name: "n", what: "columns of the matrix", default: "2560" },
        Key { name: "rows", what: "rows of the matrix; default: as many as columns", default: "" },
        Key { name: "columns", what: "number of columns from the first, three kernels each", default: "1" },
    ],
    build,
};

fn build(params: &Params, _: &mut Inputs) -> Result<Box<dyn Program>, config::Diagnostic> {
    let n = params.integer("n", 2..=32_768)? as usize;
    let rows = rows(params, n)?;
    let columns = params.integer("columns", 1..=n.min(rows) as u64)? as usize;
    Ok(Box::new(Slots::new(GramSchmidt::new([rows, n], columns))))
}

/// `DIM_THREAD_BLOCK_X`; blocks are one-dimensional.
const BLOCK: usize = 256;
const REGISTERS: u32 = 16;
/// Arithmetic of a correctly rounded square root besides its reciprocal square root.
const ROOT: u16 = 6;

/// The application.
#[derive(Clone)]
pub(super) struct GramSchmidt {
    rows: usize,
    /// Number of columns of the matrix, of which the first `columns` are processed.
    n: usize,
    columns: usize,
    launched: usize,
    space: Space,
    arrays: [Array; 3],
    pub(super) a: Vec<f32>,
    pub(super) r: Vec<f32>,
    pub(super) q: Vec<f32>,
}

/// Indices of the arrays.
const A: usize = 0;
const R: usize = 1;
const Q: usize = 2;

/// Position of a warp in its kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    #[default]
    Begin,
    /// Sums the norm, or the projection's length.
    Sum,
    /// Subtracts the projection.
    Subtract,
    End,
}

/// An active warp.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Warp {
    at: WarpAt,
    phase: Phase,
    /// Lanes with work.
    mask: u32,
    /// Row of the next iteration.
    row: usize,
    /// Current sum, in the kernel with one thread.
    sum: f32,
}

impl GramSchmidt {
    pub(super) fn new([rows, n]: [usize; 2], columns: usize) -> GramSchmidt {
        let mut space = Space::default();
        // At most as many columns as rows are independent.
        let (all, upper) = (rows * n, rows.min(n) * n);
        let arrays = [space.array("a", 4, all), space.array("r", 4, upper), space.array("q", 4, all)];
        let a = (0..all).map(|k| uniform(1, k)).collect();
        let (r, q) = (vec![0.0; upper], vec![0.0; all]);
        GramSchmidt { rows, n, columns, launched: 0, space, arrays, a, r, q }
    }

    /// Computes `r[k][k] = sqrt(sum of a[i][k]²)` in thread 0.
    fn norm(&mut self, warp: &mut Warp, k: usize, e: &mut Emit) -> bool {
        let n = self.n;
        match warp.phase {
            Phase::Begin => {
                e.block(0);
                e.lanes(warp.at.mask);
                e.alu(cost::THREAD, 1, []);
                e.alu(cost::IF, 0, [1]);
                let first = warp.at.thread() == 0;
                (warp.mask, warp.phase) = (1, if first { Phase::Sum } else { Phase::End });
            }
            Phase::Sum if warp.row < self.rows => {
                let place = warp.row * n + k;
                e.block(1);
                e.lanes(warp.mask);
                e.load(&self.arrays[A], 3, [2], |_| place);
                e.alu(1, 4, [3, 4]);
                e.alu(cost::ADDRESS + cost::LOOP, 2, [2]);
                warp.sum += self.a[place] * self.a[place];
                warp.row += 1;
            }
            Phase::Sum | Phase::Subtract => {
                e.block(2);
                e.lanes(warp.mask);
                root(e, 5, 4);
                e.alu(1 + cost::ADDRESS, 6, []);
                e.store(&self.arrays[R], [6, 5], |_| k * n + k);
                self.r[k * n + k] = warp.sum.sqrt();
                warp.phase = Phase::End;
            }
            Phase::End => return exit(warp, e),
        }
        true
    }

    /// Computes `q[i][k] = a[i][k] / r[k][k]`, one row per thread.
    fn direction(&mut self, warp: &mut Warp, k: usize, e: &mut Emit) -> bool {
        let n = self.n;
        e.block(4);
        e.lanes(warp.at.mask);
        e.alu(cost::THREAD, 1, []);
        e.alu(cost::IF, 0, [1]);
        let mask = warp.at.below(self.rows);
        if mask != 0 {
            let first = warp.at.thread();
            let place = |lane: usize| (first + lane) * n + k;
            e.block(5);
            e.lanes(mask);
            e.alu(1 + cost::ADDRESS, 2, [1]);
            e.load(&self.arrays[A], 3, [2], place);
            e.alu(1 + cost::ADDRESS, 4, []);
            e.load(&self.arrays[R], 5, [4], |_| k * n + k);
            divide(e, 6, [3, 5]);
            e.alu(cost::ADDRESS, 7, [1]);
            e.store(&self.arrays[Q], [7, 6], place);
            for lane in lanes(mask) {
                self.q[place(lane)] = self.a[place(lane)] / self.r[k * n + k];
            }
        }
        exit(warp, e)
    }

    /// Computes `r[k][j] = sum of q[i][k] a[i][j]`, then `a[i][j] -= q[i][k] r[k][j]`, one thread for each column j
    /// after k.
    fn project(&mut self, warp: &mut Warp, k: usize, e: &mut Emit) -> bool {
        let (n, first) = (self.n, warp.at.thread());
        let row = warp.row;
        match warp.phase {
            Phase::Begin => {
                e.block(6);
                e.lanes(warp.at.mask);
                e.alu(cost::THREAD, 1, []);
                e.alu(2 * cost::IF, 0, [1]);
                warp.mask = such(warp.at.below(n), |lane| first + lane > k);
                if warp.mask == 0 {
                    return exit(warp, e);
                }
                e.block(7);
                e.lanes(warp.mask);
                e.alu(1 + cost::ADDRESS, 2, [1]);
                e.store(&self.arrays[R], [2], |lane| k * n + first + lane);
                for lane in lanes(warp.mask) {
                    self.r[k * n + first + lane] = 0.0;
                }
                warp.phase = Phase::Sum;
            }
            Phase::Sum => {
                e.block(8);
                e.lanes(warp.mask);
                e.load(&self.arrays[Q], 5, [3], |_| row * n + k);
                e.load(&self.arrays[A], 6, [4], |lane| row * n + first + lane);
                e.alu(1, 7, [5, 6, 7]);
                // The sum stays in a register, but as far as the compiler knows, its store may alias `q` and `a`.
                e.store(&self.arrays[R], [2, 7], |lane| k * n + first + lane);
                e.alu(2 * cost::ADDRESS + cost::LOOP, 3, [3]);
                for lane in lanes(warp.mask) {
                    self.r[k * n + first + lane] += self.q[row * n + k] * self.a[row * n + first + lane];
                }
                warp.row += 1;
                if warp.row == self.rows {
                    (warp.row, warp.phase) = (0, Phase::Subtract);
                }
            }
            Phase::Subtract => {
                e.block(9);
                e.lanes(warp.mask);
                e.load(&self.arrays[Q], 5, [3], |_| row * n + k);
                // Loaded each time, as the store to `a` may have changed it.
                e.load(&self.arrays[R], 8, [2], |lane| k * n + first + lane);
                e.load(&self.arrays[A], 6, [4], |lane| row * n + first + lane);
                e.alu(1, 9, [5, 8, 6]);
                e.store(&self.arrays[A], [4, 9], |lane| row * n + first + lane);
                e.alu(2 * cost::ADDRESS + cost::LOOP, 3, [3]);
                for lane in lanes(warp.mask) {
                    self.a[row * n + first + lane] -= self.q[row * n + k] * self.r[k * n + first + lane];
                }
                warp.row += 1;
                if warp.row == self.rows {
                    warp.phase = Phase::End;
                }
            }
            Phase::End => return exit(warp, e),
        }
        true
    }
}

/// Emits a square root.
pub(in crate::program) fn root(e: &mut Emit, to: u8, from: u8) {
    e.sfu(1, to, [from]);
    e.alu(ROOT, to, [from, to]);
}

fn exit(warp: &Warp, e: &mut Emit) -> bool {
    e.block(10);
    e.lanes(warp.at.mask);
    e.exit();
    false
}

impl Code for GramSchmidt {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        if self.launched == 3 * self.columns {
            return None;
        }
        let part = self.launched % 3;
        self.launched += 1;
        let name = ["gramschmidt_kernel1", "gramschmidt_kernel2", "gramschmidt_kernel3"][part];
        let blocks = [1, self.rows.div_ceil(BLOCK), self.n.div_ceil(BLOCK)][part] as u32;
        Some(Kernel { name, blocks, threads: BLOCK as u32, registers: REGISTERS, shared: 0 })
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        Warp { at, ..Warp::default() }
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        let launch = self.launched - 1;
        match launch % 3 {
            0 => self.norm(warp, launch / 3, e),
            1 => self.direction(warp, launch / 3, e),
            _ => self.project(warp, launch / 3, e),
        }
    }
}
