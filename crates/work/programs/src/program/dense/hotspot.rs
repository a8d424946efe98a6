//! Hotspot: the temperature of a chip's cells over time. Each block computes several time steps of its tile in shared
//! memory, on a base that exceeds the tile by a border for each step: a pyramid.

use rustc_hash::FxHashMap;

use super::{LIVES, lanes, such, uniform};
use crate::program::dense::gaussian::divide;
use crate::program::{
    Array, Code, Emit, Entry, Inputs, Kernel, Key, Params, Program, Slots, Space, WarpAt, cost,
};

/// Entry in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "hotspot",
    suite: "Rodinia",
    what: "thermal simulation of a chip: a stencil, several time steps per kernel in shared memory",
    table: None,
    keys: &[
        Key { name: "rows", what: "rows of the grid", default: "1024" },
        Key { name: "cols", what: "columns of the grid", default: "1024" },
        Key { name: "steps", what: "time steps", default: "4" },
        Key {
            name: "pyramid",
            what: "time steps per kernel, 1 to 7; each takes a border off a block's tile",
            default: "2",
        },
    ],
    build,
};

fn build(params: &Params, _: &mut Inputs) -> Result<Box<dyn Program>, config::Diagnostic> {
    let side = |name| params.integer(name, 1..=32_768).map(|side| side as usize);
    let (rows, columns) = (side("rows")?, side("cols")?);
    let steps = params.integer("steps", 1..=1_000_000)? as usize;
    let pyramid = params.integer("pyramid", 1..=(SIDE as u64 - 1) / 2)? as usize;
    Ok(Box::new(Slots::new(Hotspot::new([rows, columns], steps, pyramid))))
}

/// Threads of a block along either side: `BLOCK_SIZE`.
const SIDE: usize = 16;
const CELLS: usize = SIDE * SIDE;
/// Bytes of a block's shared memory: `temp_on_cuda`, `power_on_cuda` and `temp_t`.
const SHARED: u32 = (3 * CELLS * 4) as u32;
/// Chosen: indices, ranges and the constants of the loop in double precision.
const REGISTERS: u32 = 32;

/// Heating and cooling of a cell: `compute_tran_temp` and the head of the kernel, in single precision as in the
/// source.
#[derive(Clone, Copy, Debug)]
struct Chip {
    /// Time step over heat capacity.
    step: f32,
    /// Conductances to the sides, above and below, and to the ambient.
    x: f32,
    y: f32,
    z: f32,
}

/// Temperature around the chip.
const AMBIENT: f32 = 80.0;

impl Chip {
    fn new([rows, columns]: [usize; 2]) -> Chip {
        // Metres; watts a metre and kelvin; joules a cubic metre and kelvin; watts a square metre; kelvin a step.
        let (thick, side) = (0.0005_f32, 0.016_f32);
        let (conductivity, heat, fitting) = (100.0_f64, 1.75e6, 0.5);
        let (most_power, precision) = (3.0e6, 0.001);
        let (height, width) = (side / rows as f32, side / columns as f32);
        let [t, h, w] = [thick, height, width].map(f64::from);
        let capacity = (fitting * heat * t * w * h) as f32;
        let (x, y) = ((w / (2.0 * conductivity * t * h)) as f32, (h / (2.0 * conductivity * t * w)) as f32);
        let z = thick / (conductivity as f32 * height * width);
        let slope = (most_power / (fitting * t * heat)) as f32;
        let step = (precision / f64::from(slope)) as f32;
        Chip { step: step / capacity, x: 1.0 / x, y: 1.0 / y, z: 1.0 / z }
    }

    /// Returns a cell's temperature one step later. The constant 2.0 has double precision in the source, and so do
    /// all operations on it.
    fn later(&self, own: f32, power: f32, [above, below]: [f32; 2], [left, right]: [f32; 2]) -> f32 {
        let bend = |sum: f32, by: f32| (f64::from(sum) - 2.0 * f64::from(own)) * f64::from(by);
        let flow = f64::from(power) + bend(below + above, self.y) + bend(right + left, self.x);
        let flow = flow + f64::from((AMBIENT - own) * self.z);
        (f64::from(own) + f64::from(self.step) * flow) as f32
    }
}

/// Shared memory of an active block.
#[derive(Clone)]
struct Shared {
    temperature: [f32; CELLS],
    power: [f32; CELLS],
    next: [f32; CELLS],
    /// Number of warps that have not ended.
    live: u32,
}

/// Offsets of the arrays in shared memory.
const TEMPERATURE: u64 = 0;
const POWER: u64 = (CELLS * 4) as u64;
const NEXT: u64 = (2 * CELLS * 4) as u64;

/// The application.
#[derive(Clone)]
pub(super) struct Hotspot {
    /// Rows and columns.
    sides: [usize; 2],
    steps: usize,
    pyramid: usize,
    launched: usize,
    chip: Chip,
    space: Space,
    /// `MatrixTemp[0]`, `MatrixTemp[1]`, `MatrixPower`.
    arrays: [Array; 3],
    /// Temperatures: each kernel reads one and writes the other, the first reads the first.
    pub(super) temperature: [Vec<f32>; 2],
    /// Power that each cell dissipates.
    pub(super) power: Vec<f32>,
    shared: FxHashMap<u32, Shared>,
}

/// Index of the power among the arrays.
const MATRIX_POWER: usize = 2;

/// An active warp: two rows of its block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Warp {
    at: WarpAt,
    /// Grid row and column of the block's first thread; in the border, outside the grid.
    corner: [isize; 2],
    /// First and last row, first and last column of the block that are in the grid.
    valid: [[isize; 2]; 2],
    /// Number of barriers passed.
    step: usize,
    /// Lanes that computed a cell in the latest time step.
    computed: u32,
}

impl Warp {
    /// Returns row and column of a lane in its block.
    #[inline]
    fn thread(&self, lane: usize) -> [usize; 2] {
        let thread = self.at.warp as usize * 32 + lane;
        [thread / SIDE, thread % SIDE]
    }

    /// Returns the index of a lane's cell in an array of shared memory.
    #[inline]
    fn cell(&self, lane: usize) -> usize {
        self.at.warp as usize * 32 + lane
    }

    /// Returns the index of a lane's cell in a grid with this many columns.
    #[inline]
    fn index(&self, lane: usize, columns: usize) -> usize {
        let [row, column] = self.thread(lane);
        let (row, column) = (self.corner[0] + row as isize, self.corner[1] + column as isize);
        row as usize * columns + column as usize
    }

    /// Returns true if a lane's cell is in the grid, at least `border` cells inside the block.
    #[inline]
    fn inside(&self, lane: usize, border: usize) -> bool {
        self.thread(lane).iter().zip(&self.valid).all(|(at, [first, last])| {
            (border..SIDE - border).contains(at) && (*first..=*last).contains(&(*at as isize))
        })
    }

    /// Returns the indices of the cells above and below a lane's, or left and right: its own at the edge of the grid.
    #[inline]
    fn beside(&self, lane: usize, axis: usize) -> [usize; 2] {
        let (at, [first, last]) = (self.thread(lane)[axis], self.valid[axis]);
        let of = |at: isize| {
            let mut cell = self.thread(lane);
            cell[axis] = at as usize;
            cell[0] * SIDE + cell[1]
        };
        [of((at as isize - 1).max(first)), of((at as isize + 1).min(last))]
    }
}

/// Returns the byte offset of a cell of an array in shared memory.
fn byte(array: u64, cell: usize) -> u64 {
    array + cell as u64 * 4
}

impl Hotspot {
    pub(super) fn new(sides: [usize; 2], steps: usize, pyramid: usize) -> Hotspot {
        let (mut space, cells) = (Space::default(), sides[0] * sides[1]);
        let names = ["MatrixTemp[0]", "MatrixTemp[1]", "MatrixPower"];
        let arrays = names.map(|name| space.array(name, 4, cells));
        // Rodinia's inputs are above 323 degrees; the power is chosen so that a step shows it.
        let start = (0..cells).map(|n| 323.0 + 20.0 * uniform(1, n)).collect();
        let power = (0..cells).map(|n| uniform(2, n)).collect();
        let temperature = [start, vec![0.0; cells]];
        let (chip, shared) = (Chip::new(sides), FxHashMap::default());
        Hotspot { sides, steps, pyramid, launched: 0, chip, space, arrays, temperature, power, shared }
    }

    /// Returns the time steps of the current kernel: the last may have fewer.
    fn iterations(&self) -> usize {
        self.pyramid.min(self.steps - (self.launched - 1) * self.pyramid)
    }

    /// Returns the index of the temperatures that the current kernel reads.
    fn source(&self) -> usize {
        (self.launched - 1) % 2
    }

    /// Loads the block's part of the grid, border included.
    fn load(&mut self, warp: &Warp, e: &mut Emit) {
        e.block(0);
        // Block and thread numbers, constants, the range of the block, the cell.
        e.alu(cost::THREAD, 1, []);
        for register in 20..24 {
            divide(e, register, [24, 25]);
        }
        e.alu(9, 2, [1]);
        e.alu(4 + 1, 0, [2]);
        let mask = such(warp.at.mask, |lane| warp.inside(lane, 0));
        if mask != 0 {
            let (source, columns) = (self.source(), self.sides[1]);
            let place = |lane: usize| warp.index(lane, columns);
            e.block(1);
            e.lanes(mask);
            e.alu(cost::ADDRESS, 3, [2]);
            e.load(&self.arrays[source], 4, [3], place);
            e.shared_store(4, [1, 4], |lane| byte(TEMPERATURE, warp.cell(lane)));
            e.alu(cost::ADDRESS, 5, [2]);
            e.load(&self.arrays[MATRIX_POWER], 6, [5], place);
            e.shared_store(4, [1, 6], |lane| byte(POWER, warp.cell(lane)));
            let shared = self.shared.get_mut(&warp.at.block).expect(LIVES);
            for lane in lanes(mask) {
                let (cell, place) = (warp.cell(lane), place(lane));
                shared.temperature[cell] = self.temperature[source][place];
                shared.power[cell] = self.power[place];
            }
        }
        // The barrier has a separate place after the omitted code.
        e.block(2);
        e.lanes(warp.at.mask);
    }

    /// Computes a time step: its cells are a border further inside than those of the previous step.
    fn compute(&mut self, warp: &mut Warp, iteration: usize, e: &mut Emit) {
        if iteration == 0 {
            // The valid ranges, three each; the neighbours, two each.
            e.block(3);
            e.alu(4 * 3 + 4 * 2, 7, [2]);
        }
        e.block(4);
        e.alu(cost::LOOP, 8, [8]);
        e.alu(2 + 8 + 1, 0, [1, 7, 8]);
        let mask = such(warp.at.mask, |lane| warp.inside(lane, iteration + 1));
        warp.computed = mask;
        if mask != 0 {
            let warp = &*warp;
            e.block(5);
            e.lanes(mask);
            e.shared_load(4, 9, [1], |lane| byte(TEMPERATURE, warp.cell(lane)));
            e.shared_load(4, 10, [1], |lane| byte(POWER, warp.cell(lane)));
            for (axis, register) in [(0, 11), (1, 13)] {
                for side in [1, 0] {
                    let to = register + side as u8;
                    e.shared_load(4, to, [7], |lane| byte(TEMPERATURE, warp.beside(lane, axis)[side]));
                }
            }
            // Sums of the neighbours, conversions to double precision, a multiply-add that takes twice the cell off, one
            // that adds the flow; the ambient's; the step and the conversion back.
            e.alu(2, 15, [9, 10]);
            e.alu(3, 11, [11, 12, 15]);
            e.alu(3, 13, [13, 14, 15]);
            e.alu(1, 16, [11, 15]);
            e.alu(1, 16, [13, 16]);
            e.alu(3, 17, [9]);
            e.alu(1, 16, [16, 17]);
            e.alu(2, 18, [15, 16]);
            e.shared_store(4, [1, 18], |lane| byte(NEXT, warp.cell(lane)));
            let (chip, shared) = (self.chip, self.shared.get_mut(&warp.at.block).expect(LIVES));
            for lane in lanes(mask) {
                let (own, at) = (warp.cell(lane), |cell: usize| shared.temperature[cell]);
                let [vertical, horizontal] = [0, 1].map(|axis| warp.beside(lane, axis).map(at));
                let later = chip.later(at(own), shared.power[own], vertical, horizontal);
                shared.next[own] = later;
            }
        }
        e.block(6);
        e.lanes(warp.at.mask);
    }

    /// Makes the computed values the input of the next time step.
    fn advance(&mut self, warp: &Warp, e: &mut Emit) {
        e.block(7);
        e.alu(cost::IF + 1, 0, [8]);
        if warp.computed != 0 {
            e.block(8);
            e.lanes(warp.computed);
            e.shared_load(4, 18, [1], |lane| byte(NEXT, warp.cell(lane)));
            e.shared_store(4, [1, 18], |lane| byte(TEMPERATURE, warp.cell(lane)));
            let shared = self.shared.get_mut(&warp.at.block).expect(LIVES);
            for lane in lanes(warp.computed) {
                let cell = warp.cell(lane);
                shared.temperature[cell] = shared.next[cell];
            }
        }
        e.block(9);
        e.lanes(warp.at.mask);
    }

    /// Stores the cells that the last time step computed: the block's tile.
    fn store(&mut self, warp: &Warp, e: &mut Emit) {
        e.block(10);
        e.alu(cost::IF + 1, 0, [8]);
        let (target, columns) = (1 - self.source(), self.sides[1]);
        let shared = self.shared.get_mut(&warp.at.block).expect(LIVES);
        if warp.computed != 0 {
            let place = |lane: usize| warp.index(lane, columns);
            e.block(11);
            e.lanes(warp.computed);
            e.shared_load(4, 18, [1], |lane| byte(NEXT, warp.cell(lane)));
            e.alu(cost::ADDRESS, 19, [2]);
            e.store(&self.arrays[target], [19, 18], place);
            for lane in lanes(warp.computed) {
                self.temperature[target][place(lane)] = shared.next[warp.cell(lane)];
            }
        }
        shared.live -= 1;
        if shared.live == 0 {
            self.shared.remove(&warp.at.block);
        }
        e.block(12);
        e.lanes(warp.at.mask);
        e.exit();
    }
}

impl Code for Hotspot {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        if self.launched == self.steps.div_ceil(self.pyramid) {
            return None;
        }
        self.launched += 1;
        let tile = SIDE - 2 * self.pyramid;
        let blocks: usize = self.sides.iter().map(|side| side.div_ceil(tile)).product();
        let (blocks, threads) = (blocks as u32, CELLS as u32);
        Some(Kernel { name: "calculate_temp", blocks, threads, registers: REGISTERS, shared: SHARED })
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        let zero = [0.0; CELLS];
        let live = CELLS as u32 / 32;
        self.shared.entry(at.block).or_insert(Shared { temperature: zero, power: zero, next: zero, live });
        // The grid of blocks and the border are those of a whole pyramid; tiles of a kernel with fewer time steps are
        // larger, and more than cover the grid.
        let across = self.sides[1].div_ceil(SIDE - 2 * self.pyramid);
        let (tile, block) = (SIDE - 2 * self.iterations(), at.block as usize);
        let corner = [block / across, block % across].map(|n| (tile * n) as isize - self.pyramid as isize);
        let last = SIDE as isize - 1;
        let valid = [0, 1]
            .map(|axis| [(-corner[axis]).max(0), last.min(self.sides[axis] as isize - 1 - corner[axis])]);
        Warp { at, corner, valid, step: 0, computed: 0 }
    }

    /// Executes from one barrier to the next.
    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        e.lanes(warp.at.mask);
        // Barriers: one after the loads, two after each time step but the last, which has one.
        let iterations = self.iterations();
        match warp.step {
            0 => self.load(warp, e),
            step if step == 2 * iterations => {
                self.store(warp, e);
                return false;
            }
            step if step % 2 == 1 => self.compute(warp, step / 2, e),
            _ => self.advance(warp, e),
        }
        e.barrier();
        warp.step += 1;
        true
    }
}
