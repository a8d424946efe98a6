//! FDTD-2D: a finite-difference time-domain kernel on three fields; three launches per time step.

use super::{lanes, rows, such, uniform};
use crate::program::{
    Array, Code, Emit, Entry, Inputs, Kernel, Key, Params, Program, Slots, Space, Table, WarpAt, cost,
};

/// Entry in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "FDT",
    suite: "PolyBench",
    what: "finite-difference time-domain stencil on three two-dimensional fields",
    table: Some(Table { read_ratio: 0.73, kernels: 1 }),
    keys: &[
        Key { name: "n", what: "columns of a field", default: "2560" },
        Key { name: "rows", what: "rows of a field; default: as many as columns", default: "" },
        Key { name: "launches", what: "number of kernels from the first, three per time step", default: "1" },
    ],
    build,
};

fn build(params: &Params, _: &mut Inputs) -> Result<Box<dyn Program>, config::Diagnostic> {
    let n = params.integer("n", 2..=32_768)? as usize;
    let rows = rows(params, n)?;
    let launches = params.integer("launches", 1..=1_500)? as usize;
    Ok(Box::new(Slots::new(Fdtd::new([rows, n], launches))))
}

/// Block shape of `fdtd2d.cuh`: 32 threads along a row, eight rows; a warp is a piece of a row.
const BLOCK_X: usize = 32;
const BLOCK_Y: usize = 8;
/// Value of `TMAX`.
const STEPS: usize = 500;
const REGISTERS: u32 = 16;

/// The application.
#[derive(Clone)]
pub(super) struct Fdtd {
    rows: usize,
    /// Number of columns.
    n: usize,
    launches: usize,
    launched: usize,
    space: Space,
    arrays: [Array; 4],
    pub(super) source: Vec<f32>,
    pub(super) ex: Vec<f32>,
    pub(super) ey: Vec<f32>,
    pub(super) hz: Vec<f32>,
}

/// Indices of the arrays.
const SOURCE: usize = 0;
const EX: usize = 1;
const EY: usize = 2;
const HZ: usize = 3;

impl Fdtd {
    pub(super) fn new([rows, n]: [usize; 2], launches: usize) -> Fdtd {
        let all = rows * n;
        let mut space = Space::default();
        let arrays = [
            space.array("_fict_", 4, STEPS),
            space.array("ex", 4, all),
            space.array("ey", 4, all),
            space.array("hz", 4, all),
        ];
        let field = |stream| (0..all).map(|k| uniform(stream, k)).collect();
        let source = (0..STEPS).map(|t| t as f32).collect();
        let (ex, ey, hz) = (field(1), field(2), field(3));
        Fdtd { rows, n, launches, launched: 0, space, arrays, source, ex, ey, hz }
    }

    /// Computes `ey -= 0.5 (hz - hz above)`; the first row is the source's.
    fn step1(&mut self, row: usize, column: usize, mask: u32, time: usize, e: &mut Emit) {
        let (n, first) = (self.n, row * self.n + column);
        e.block(1);
        e.lanes(mask);
        e.alu(cost::IF, 0, [2]);
        if row == 0 {
            e.block(2);
            e.alu(cost::ADDRESS, 4, []);
            e.load(&self.arrays[SOURCE], 5, [4], |_| time);
            e.alu(cost::ADDRESS, 6, [1]);
            e.store(&self.arrays[EY], [6, 5], |lane| column + lane);
            for lane in lanes(mask) {
                self.ey[column + lane] = self.source[time];
            }
            return;
        }
        e.block(3);
        index(e);
        e.alu(cost::ADDRESS, 6, [3]);
        e.load(&self.arrays[EY], 7, [6], |lane| first + lane);
        e.alu(cost::ADDRESS, 8, [3]);
        e.load(&self.arrays[HZ], 9, [8], |lane| first + lane);
        e.alu(1 + cost::ADDRESS, 10, [3]);
        e.load(&self.arrays[HZ], 11, [10], |lane| first + lane - n);
        e.alu(1, 12, [9, 11]);
        e.alu(1, 13, [12, 7]);
        e.store(&self.arrays[EY], [6, 13], |lane| first + lane);
        for lane in lanes(mask) {
            let k = first + lane;
            self.ey[k] -= 0.5 * (self.hz[k] - self.hz[k - n]);
        }
    }

    /// Computes `ex -= 0.5 (hz - hz to the left)`.
    fn step2(&mut self, row: usize, column: usize, mask: u32, e: &mut Emit) {
        let first = row * self.n + column;
        e.block(4);
        e.lanes(mask);
        index(e);
        e.alu(cost::ADDRESS, 6, [3]);
        e.load(&self.arrays[EX], 7, [6], |lane| first + lane);
        e.alu(cost::ADDRESS, 8, [3]);
        e.load(&self.arrays[HZ], 9, [8], |lane| first + lane);
        e.load(&self.arrays[HZ], 11, [8], |lane| first + lane - 1);
        e.alu(1, 12, [9, 11]);
        e.alu(1, 13, [12, 7]);
        e.store(&self.arrays[EX], [6, 13], |lane| first + lane);
        for lane in lanes(mask) {
            let k = first + lane;
            self.ex[k] -= 0.5 * (self.hz[k] - self.hz[k - 1]);
        }
    }

    /// Computes `hz -= 0.7 (ex to the right - ex + ey below - ey)`.
    fn step3(&mut self, row: usize, column: usize, mask: u32, e: &mut Emit) {
        let (n, first) = (self.n, row * self.n + column);
        e.block(5);
        e.lanes(mask);
        index(e);
        e.alu(cost::ADDRESS, 6, [3]);
        e.load(&self.arrays[HZ], 7, [6], |lane| first + lane);
        e.alu(cost::ADDRESS, 8, [3]);
        e.load(&self.arrays[EX], 9, [8], |lane| first + lane + 1);
        e.load(&self.arrays[EX], 10, [8], |lane| first + lane);
        e.alu(1 + cost::ADDRESS, 11, [3]);
        e.load(&self.arrays[EY], 12, [11], |lane| first + lane + n);
        e.alu(cost::ADDRESS, 13, [3]);
        e.load(&self.arrays[EY], 14, [13], |lane| first + lane);
        e.alu(1, 9, [9, 10]);
        e.alu(1, 9, [9, 12]);
        e.alu(1, 9, [9, 14]);
        e.alu(1, 15, [9, 7]);
        e.store(&self.arrays[HZ], [6, 15], |lane| first + lane);
        for lane in lanes(mask) {
            let k = first + lane;
            self.hz[k] -= 0.7 * (self.ex[k + 1] - self.ex[k] + self.ey[k + n] - self.ey[k]);
        }
    }
}

/// Emits row times columns plus column.
fn index(e: &mut Emit) {
    e.alu(1, 3, [1, 2]);
}

impl Code for Fdtd {
    type Warp = WarpAt;

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        if self.launched == self.launches {
            return None;
        }
        let name = ["fdtd_step1_kernel", "fdtd_step2_kernel", "fdtd_step3_kernel"][self.launched % 3];
        self.launched += 1;
        let blocks = self.n.div_ceil(BLOCK_X) * self.rows.div_ceil(BLOCK_Y);
        let (blocks, threads) = (blocks as u32, (BLOCK_X * BLOCK_Y) as u32);
        Some(Kernel { name, blocks, threads, registers: REGISTERS, shared: 0 })
    }

    fn start(&mut self, at: WarpAt) -> WarpAt {
        at
    }

    fn step(&mut self, at: &mut WarpAt, e: &mut Emit) -> bool {
        let across = self.n.div_ceil(BLOCK_X);
        let (block, rows, n) = (at.block as usize, self.rows, self.n);
        let row = block / across * BLOCK_Y + at.warp as usize;
        let column = block % across * BLOCK_X;
        let launch = self.launched - 1;
        let (time, part) = (launch / 3, launch % 3);
        // Two-dimensional thread number, then the tests that it is within the field.
        e.block(0);
        e.alu(cost::THREAD + 2, 1, []);
        e.alu(2 * cost::IF, 0, [1]);
        let inside = |from: usize, below: usize, columns: usize| {
            if row < below { such(at.mask, |lane| (from..columns).contains(&(column + lane))) } else { 0 }
        };
        let mask = match part {
            0 => inside(0, rows, n),
            1 => inside(1, rows, n),
            _ => inside(0, rows - 1, n - 1),
        };
        if mask != 0 {
            match part {
                0 => self.step1(row, column, mask, time, e),
                1 => self.step2(row, column, mask, e),
                _ => self.step3(row, column, mask, e),
            }
        }
        e.block(6);
        e.lanes(at.mask);
        e.exit();
        false
    }
}
