//! Back-propagation: one training step of a network with 16 hidden units; the GPU computes the input layer forward
//! and adjusts its weights, the host does the rest in between.

use rustc_hash::FxHashMap;

use super::{LIVES, lanes, such, uniform};
use crate::program::{
    Array, Code, Emit, Entry, Inputs, Kernel, Key, Params, Program, Slots, Space, Table, WarpAt, cost,
};

/// Entry in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "back",
    suite: "Rodinia",
    what: "back-propagation: a layer of a neural network forward, and its weights adjusted",
    table: Some(Table { read_ratio: 0.57, kernels: 1 }),
    keys: &[
        Key { name: "n", what: "input units, a multiple of 16", default: "491520" },
        Key {
            name: "launches",
            what: "number of kernels from the first: 1 forward, 2 also adjustment",
            default: "2",
        },
    ],
    build,
};

fn build(params: &Params, _: &mut Inputs) -> Result<Box<dyn Program>, config::Diagnostic> {
    let n = params.integer("n", 16..=1 << 26)? as usize;
    if !n.is_multiple_of(SIDE) {
        return Err(params.refused("n", vec!["a multiple of 16".to_owned()]));
    }
    let launches = params.integer("launches", 1..=2)? as usize;
    Ok(Box::new(Slots::new(Backprop::new(n, launches))))
}

/// `HEIGHT` and `WIDTH`: threads of a block along either side; hidden units.
pub(super) const SIDE: usize = 16;
/// Weights per input unit: one for each hidden unit, and one for the threshold.
pub(super) const ROW: usize = SIDE + 1;
pub(super) const ETA: f32 = 0.3;
pub(super) const MOMENTUM: f32 = 0.3;
const THREADS: u32 = (SIDE * SIDE) as u32;
/// Bytes of a block's shared memory: `input_node` and `weight_matrix`.
const SHARED: u32 = ((SIDE + SIDE * SIDE) * 4) as u32;
const REGISTERS: u32 = 16;
/// Bias: the value of unit 0 of a layer.
const BIAS: f32 = 1.0;

/// Shared memory of an active block.
#[derive(Clone)]
struct Shared {
    node: [f32; SIDE],
    weight: [[f32; SIDE]; SIDE],
    /// Number of warps that have not ended.
    live: u32,
}

/// The application.
#[derive(Clone)]
pub(super) struct Backprop {
    inputs: usize,
    launches: usize,
    launched: usize,
    space: Space,
    arrays: [Array; 6],
    /// Input units.
    pub(super) units: Vec<f32>,
    /// Weights from input to hidden units, a row of 17 for each input unit.
    pub(super) weights: Vec<f32>,
    /// Latest changes of the weights.
    pub(super) changes: Vec<f32>,
    /// Sums over 16 input units, for each hidden unit.
    pub(super) partial: Vec<f32>,
    /// Errors of the hidden units.
    pub(super) delta: [f32; ROW],
    shared: FxHashMap<u32, Shared>,
}

/// Indices of the arrays.
const UNITS: usize = 0;
const WEIGHTS: usize = 2;
const PARTIAL: usize = 3;
const DELTA: usize = 4;
const CHANGES: usize = 5;

/// An active warp: two rows of its block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Warp {
    at: WarpAt,
    /// Number of steps done.
    step: usize,
}

impl Warp {
    /// Returns the input unit of a lane, counted in its block.
    fn ty(&self, lane: usize) -> usize {
        (self.at.warp as usize * 32 + lane) / SIDE
    }

    /// Returns the hidden unit of a lane.
    fn tx(lane: usize) -> usize {
        lane % SIDE
    }

    /// Returns the index of a lane's weight.
    fn index(&self, lane: usize) -> usize {
        ROW * (self.unit(lane)) + Warp::tx(lane) + 1
    }

    /// Returns a lane's input unit; unit 0 is the threshold.
    fn unit(&self, lane: usize) -> usize {
        SIDE * self.at.block as usize + self.ty(lane) + 1
    }
}

/// Returns the byte offset of `input_node[ty]` in shared memory.
fn node_at(ty: usize) -> u64 {
    ty as u64 * 4
}

/// Returns the byte offset of `weight_matrix[ty][tx]` in shared memory.
fn weight_at(ty: usize, tx: usize) -> u64 {
    ((SIDE + ty * SIDE + tx) * 4) as u64
}

/// Returns an initial weight, in [0, 1) as from `bpnn_randomize_weights`, scaled down so that sums over all input
/// units do not saturate the hidden units.
pub(super) fn weight(inputs: usize, n: usize) -> f32 {
    (uniform(2, n) - 0.5) / inputs as f32
}

impl Backprop {
    pub(super) fn new(inputs: usize, launches: usize) -> Backprop {
        let (mut space, rows) = (Space::default(), inputs + 1);
        let arrays = [
            space.array("input_cuda", 4, rows),
            space.array("output_hidden_cuda", 4, ROW),
            space.array("input_hidden_cuda", 4, rows * ROW),
            space.array("hidden_partial_sum", 4, inputs),
            space.array("hidden_delta_cuda", 4, ROW),
            space.array("input_prev_weights_cuda", 4, rows * ROW),
        ];
        let mut units: Vec<f32> = (0..rows).map(|n| uniform(1, n)).collect();
        units[0] = BIAS;
        Backprop {
            inputs,
            launches,
            launched: 0,
            space,
            arrays,
            units,
            weights: (0..rows * ROW).map(|n| weight(inputs, n)).collect(),
            changes: vec![0.0; rows * ROW],
            partial: vec![0.0; inputs],
            delta: [0.0; ROW],
            shared: FxHashMap::default(),
        }
    }

    /// Executes the host code between the two kernels: hidden units, one output unit, their errors. The weights,
    /// which the first kernel has overwritten with sums, are copied to the device again.
    fn host(&mut self) {
        let mut hidden = [BIAS; ROW];
        for (j, unit) in hidden.iter_mut().enumerate().skip(1) {
            let sum: f32 = self.partial.chunks_exact(SIDE).map(|sums| sums[j - 1]).sum();
            *unit = squash(sum + weight(self.inputs, j));
        }
        let outer = |j| uniform(3, j) - 0.5;
        let output = squash((0..ROW).map(|j| outer(j) * hidden[j]).sum());
        let target = uniform(4, 0);
        let error = output * (1.0 - output) * (target - output);
        for (j, unit) in hidden.iter().enumerate().skip(1) {
            self.delta[j] = unit * (1.0 - unit) * error * outer(j);
        }
        for (n, value) in self.weights.iter_mut().enumerate() {
            *value = weight(self.inputs, n);
        }
    }

    fn shared(&mut self, warp: &Warp) -> &mut Shared {
        self.shared.get_mut(&warp.at.block).expect(LIVES)
    }

    /// Executes `bpnn_layerforward_CUDA`, from one barrier to the next.
    fn forward(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        e.block(warp.step as u32);
        match warp.step {
            0 => self.load_units(warp, e),
            1 => self.load_weights(warp, e),
            2 => self.multiply(warp, e),
            3..=6 => self.halve(warp, warp.step - 2, e),
            7 => self.store_weights(warp, e),
            _ => {
                self.store_sums(warp, e);
                return false;
            }
        }
        e.lanes(warp.at.mask);
        e.barrier();
        warp.step += 1;
        true
    }

    fn load_units(&mut self, warp: &Warp, e: &mut Emit) {
        e.alu(cost::THREAD + 4, 1, []);
        e.alu(cost::IF, 0, [1]);
        let first = such(warp.at.mask, |lane| Warp::tx(lane) == 0);
        e.lanes(first);
        e.alu(cost::ADDRESS, 2, [1]);
        e.load(&self.arrays[UNITS], 3, [2], |lane| warp.unit(lane));
        e.shared_store(4, [1, 3], |lane| node_at(warp.ty(lane)));
        for lane in lanes(first) {
            let value = self.units[warp.unit(lane)];
            self.shared(warp).node[warp.ty(lane)] = value;
        }
    }

    fn load_weights(&mut self, warp: &Warp, e: &mut Emit) {
        e.alu(cost::ADDRESS, 4, [1]);
        e.load(&self.arrays[WEIGHTS], 5, [4], |lane| warp.index(lane));
        e.shared_store(4, [1, 5], |lane| weight_at(warp.ty(lane), Warp::tx(lane)));
        for lane in lanes(warp.at.mask) {
            let value = self.weights[warp.index(lane)];
            self.shared(warp).weight[warp.ty(lane)][Warp::tx(lane)] = value;
        }
    }

    fn multiply(&mut self, warp: &Warp, e: &mut Emit) {
        let own = |lane: usize| weight_at(warp.ty(lane), Warp::tx(lane));
        e.shared_load(4, 5, [1], own);
        e.shared_load(4, 6, [1], |lane| node_at(warp.ty(lane)));
        e.alu(1, 5, [5, 6]);
        e.shared_store(4, [1, 5], own);
        let shared = self.shared(warp);
        for lane in lanes(warp.at.mask) {
            let ty = warp.ty(lane);
            shared.weight[ty][Warp::tx(lane)] *= shared.node[ty];
        }
    }

    /// Adds rows at half of `2^level` distance. The powers are constants of the unrolled loop.
    fn halve(&mut self, warp: &Warp, level: usize, e: &mut Emit) {
        let power = 1 << level;
        let mask = such(warp.at.mask, |lane| warp.ty(lane).is_multiple_of(power));
        e.alu(cost::IF, 0, [1]);
        if mask == 0 {
            // The barrier has a separate place after the omitted code.
            e.block((8 + level) as u32);
            return;
        }
        let own = |lane: usize| weight_at(warp.ty(lane), Warp::tx(lane));
        e.lanes(mask);
        e.shared_load(4, 5, [1], own);
        e.shared_load(4, 6, [1], |lane| weight_at(warp.ty(lane) + power / 2, Warp::tx(lane)));
        e.alu(1, 5, [5, 6]);
        e.shared_store(4, [1, 5], own);
        let shared = self.shared(warp);
        for lane in lanes(mask) {
            let (ty, tx) = (warp.ty(lane), Warp::tx(lane));
            shared.weight[ty][tx] += shared.weight[ty + power / 2][tx];
        }
        e.block((8 + level) as u32);
    }

    fn store_weights(&mut self, warp: &Warp, e: &mut Emit) {
        e.shared_load(4, 5, [1], |lane| weight_at(warp.ty(lane), Warp::tx(lane)));
        e.store(&self.arrays[WEIGHTS], [4, 5], |lane| warp.index(lane));
        for lane in lanes(warp.at.mask) {
            self.weights[warp.index(lane)] = self.shared(warp).weight[warp.ty(lane)][Warp::tx(lane)];
        }
    }

    /// Stores the sums of the first row, by the threads of the first column.
    fn store_sums(&mut self, warp: &Warp, e: &mut Emit) {
        e.block(13);
        e.alu(cost::IF, 0, [1]);
        let first = such(warp.at.mask, |lane| Warp::tx(lane) == 0);
        let place = |lane: usize| warp.at.block as usize * SIDE + warp.ty(lane);
        e.lanes(first);
        e.shared_load(4, 5, [1], |lane| weight_at(0, warp.ty(lane)));
        e.alu(1 + cost::ADDRESS, 6, [1]);
        e.store(&self.arrays[PARTIAL], [6, 5], place);
        for lane in lanes(first) {
            self.partial[place(lane)] = self.shared(warp).weight[0][warp.ty(lane)];
        }
        e.lanes(warp.at.mask);
        e.exit();
        let shared = self.shared(warp);
        shared.live -= 1;
        if shared.live == 0 {
            self.shared.remove(&warp.at.block);
        }
    }

    /// Executes `bpnn_adjust_weights_cuda`, up to its barrier and after it.
    fn adjust(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        if warp.step == 0 {
            self.adjust_rows(warp, e);
            e.barrier();
            warp.step = 1;
            return true;
        }
        e.block(16);
        e.alu(2 * cost::IF, 0, [1]);
        let mask = if warp.at.block == 0 { such(warp.at.mask, |lane| warp.ty(lane) == 0) } else { 0 };
        if mask != 0 {
            self.adjust_threshold(mask, e);
        }
        e.block(18);
        e.lanes(warp.at.mask);
        e.exit();
        false
    }

    /// Executes `w += eta delta ly + momentum oldw`, `oldw = eta delta ly + momentum oldw`. The second statement
    /// loads its operands again: as far as the compiler knows, the store of the first may have changed them.
    fn adjust_rows(&mut self, warp: &Warp, e: &mut Emit) {
        let index = |lane: usize| warp.index(lane);
        e.block(15);
        e.alu(cost::THREAD + 4, 1, []);
        e.alu(cost::ADDRESS, 2, [1]);
        e.load(&self.arrays[DELTA], 3, [2], |lane| Warp::tx(lane) + 1);
        e.alu(cost::ADDRESS, 4, [1]);
        e.load(&self.arrays[UNITS], 5, [4], |lane| warp.unit(lane));
        e.alu(cost::ADDRESS, 6, [1]);
        e.load(&self.arrays[CHANGES], 7, [6], index);
        e.alu(cost::ADDRESS, 8, [1]);
        e.load(&self.arrays[WEIGHTS], 9, [8], index);
        e.alu(2, 10, [3, 5]);
        e.alu(2, 10, [10, 7, 9]);
        e.store(&self.arrays[WEIGHTS], [8, 10], index);
        e.load(&self.arrays[DELTA], 3, [2], |lane| Warp::tx(lane) + 1);
        e.load(&self.arrays[UNITS], 5, [4], |lane| warp.unit(lane));
        e.load(&self.arrays[CHANGES], 7, [6], index);
        e.alu(2, 10, [3, 5]);
        e.alu(1, 10, [10, 7]);
        e.store(&self.arrays[CHANGES], [6, 10], index);
        for lane in lanes(warp.at.mask) {
            let k = index(lane);
            let change = ETA * self.delta[Warp::tx(lane) + 1] * self.units[warp.unit(lane)]
                + MOMENTUM * self.changes[k];
            self.weights[k] += change;
            self.changes[k] = change;
        }
    }

    /// Adjusts the weights of the threshold, by one row of the first block.
    fn adjust_threshold(&mut self, mask: u32, e: &mut Emit) {
        let index = |lane: usize| Warp::tx(lane) + 1;
        e.block(17);
        e.lanes(mask);
        e.load(&self.arrays[DELTA], 3, [2], index);
        e.alu(2 * cost::ADDRESS, 6, [1]);
        e.load(&self.arrays[CHANGES], 7, [6], index);
        e.load(&self.arrays[WEIGHTS], 9, [8], index);
        e.alu(3, 10, [3, 7, 9]);
        e.store(&self.arrays[WEIGHTS], [8, 10], index);
        e.load(&self.arrays[DELTA], 3, [2], index);
        e.load(&self.arrays[CHANGES], 7, [6], index);
        e.alu(2, 10, [3, 7]);
        e.store(&self.arrays[CHANGES], [6, 10], index);
        for lane in lanes(mask) {
            let k = index(lane);
            let change = ETA * self.delta[k] + MOMENTUM * self.changes[k];
            self.weights[k] += change;
            self.changes[k] = change;
        }
    }
}

/// Returns the squashing function of a unit.
pub(super) fn squash(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}

impl Code for Backprop {
    type Warp = Warp;

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
        if self.launched == 1 {
            self.host();
        }
        let (name, shared) =
            [("bpnn_layerforward_CUDA", SHARED), ("bpnn_adjust_weights_cuda", 0)][self.launched];
        self.launched += 1;
        let blocks = (self.inputs / SIDE) as u32;
        Some(Kernel { name, blocks, threads: THREADS, registers: REGISTERS, shared })
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        if self.launched == 1 {
            let live = THREADS / 32;
            let empty = Shared { node: [0.0; SIDE], weight: [[0.0; SIDE]; SIDE], live };
            self.shared.entry(at.block).or_insert(empty);
        }
        Warp { at, step: 0 }
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        if self.launched == 1 { self.forward(warp, e) } else { self.adjust(warp, e) }
    }
}
