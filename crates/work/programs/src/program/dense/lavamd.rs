//! LavaMD: forces between the particles of a box and those of the boxes around it. Each block handles a box, and
//! loads one neighbour after another into shared memory.

use rustc_hash::FxHashMap;

use super::{LIVES, lanes, such, uniform};
use crate::program::{
    Array, Code, Emit, Entry, Inputs, Kernel, Key, Params, Program, Slots, Space, WarpAt, cost,
};

/// Entry in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "lavamd",
    suite: "Rodinia",
    what: "molecular dynamics: forces between particles of the same and of neighbouring boxes",
    table: None,
    keys: &[
        Key { name: "boxes1d", what: "boxes along each of the three sides of the space", default: "6" },
        Key { name: "particles", what: "particles of a box", default: "100" },
    ],
    build,
};

fn build(params: &Params, _: &mut Inputs) -> Result<Box<dyn Program>, config::Diagnostic> {
    let side = params.integer("boxes1d", 1..=128)? as usize;
    let particles = params.integer("particles", 1..=512)? as usize;
    Ok(Box::new(Slots::new(LavaMd::new(side, particles))))
}

/// `NUMBER_THREADS`.
const THREADS: usize = 128;
/// Chosen: a pair of registers for each number of double precision.
const REGISTERS: u32 = 32;
/// Maximum number of neighbours of a box.
const NEIGHBOURS: usize = 26;
/// Words of 4 B of a `box_str`: place and number, offset, number of neighbours with padding, the neighbours.
const BOX_WORDS: usize = 4 + 2 + 2 + NEIGHBOURS * NEIGHBOUR_WORDS;
/// Words of a `nei_str`: place and number, offset.
const NEIGHBOUR_WORDS: usize = 4 + 2;
/// Words of a `box_str` before the offset, the number of neighbours, and the number of the first neighbour.
const OFFSET: usize = 4;
const COUNT: usize = 6;
const FIRST: usize = 8 + 3;
/// Numbers of a `FOUR_VECTOR`: v, x, y, z.
const FOUR: usize = 4;
/// `alpha`.
pub(super) const ALPHA: f64 = 0.5;
/// Arithmetic of an exponential in double precision: reduction of the argument, a polynomial of degree eleven, scaling by
/// a power of two.
const EXPONENTIAL: u16 = 22;

/// Shared memory of an active block: `rA_shared`, `rB_shared`, `qB_shared`.
#[derive(Clone)]
struct Shared {
    home: Vec<[f64; FOUR]>,
    neighbour: Vec<[f64; FOUR]>,
    charge: Vec<f64>,
    /// Number of warps that have not ended.
    live: u32,
}

/// The application.
#[derive(Clone)]
pub(super) struct LavaMd {
    particles: usize,
    launched: bool,
    space: Space,
    boxes: Array,
    places: Array,
    charges: Array,
    forces: Array,
    /// Numbers of each box's neighbours.
    neighbours: Vec<Vec<u32>>,
    /// v and coordinates of each particle.
    pub(super) place: Vec<[f64; FOUR]>,
    /// Charge of each particle.
    pub(super) charge: Vec<f64>,
    /// Potential of each particle, and the force on it.
    pub(super) force: Vec<[f64; FOUR]>,
    shared: FxHashMap<u32, Shared>,
}

/// Position of a warp in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    /// Before the first barrier: the home box is loaded.
    #[default]
    Home,
    /// At the head of the loop over boxes: the next is loaded, up to a barrier.
    Bring,
    /// Before the loop over the particles of the box: a lane's own particle is read.
    Own,
    /// In that loop.
    Pair,
}

/// An active warp.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Warp {
    at: WarpAt,
    phase: Phase,
    /// Number of boxes done: the home box is the first.
    boxes: usize,
    /// First particle of the lanes' current round: there may be fewer threads than particles.
    round: usize,
    /// Index of the neighbour's particle.
    particle: usize,
}

impl Warp {
    /// Returns a lane's particle in a round.
    #[inline]
    fn particle(&self, round: usize, lane: usize) -> usize {
        round + self.at.warp as usize * 32 + lane
    }
}

/// Returns the boxes around one, as the host lists them: x runs fastest, then y, then z.
fn around(side: usize, number: usize) -> Vec<u32> {
    let place = [number / (side * side), number / side % side, number % side];
    let mut found = Vec::new();
    for step in 0..27_usize {
        let beside = |axis: usize, step: usize| (place[axis] + step).checked_sub(1).filter(|at| *at < side);
        let (z, y, x) = (beside(0, step / 9), beside(1, step / 3 % 3), beside(2, step % 3));
        if let (Some(z), Some(y), Some(x), true) = (z, y, x, step != 13) {
            found.push(((z * side + y) * side + x) as u32);
        }
    }
    found
}

impl LavaMd {
    pub(super) fn new(side: usize, particles: usize) -> LavaMd {
        let (mut space, boxes) = (Space::default(), side * side * side);
        let all = boxes * particles;
        // A tenth to one, in tenths.
        let tenths = |stream, n| f64::from((uniform(stream, n) * 10.0).floor() + 1.0) / 10.0;
        LavaMd {
            particles,
            launched: false,
            boxes: space.array("d_box_gpu", 4, boxes * BOX_WORDS),
            places: space.array("d_rv_gpu", 8, all * FOUR),
            charges: space.array("d_qv_gpu", 8, all),
            forces: space.array("d_fv_gpu", 8, all * FOUR),
            space,
            neighbours: (0..boxes).map(|number| around(side, number)).collect(),
            place: (0..all).map(|n| [0, 1, 2, 3].map(|axis| tenths(1, n * FOUR + axis))).collect(),
            charge: (0..all).map(|n| tenths(2, n)).collect(),
            force: vec![[0.0; FOUR]; all],
            shared: FxHashMap::default(),
        }
    }

    /// Returns the byte offset in shared memory of a number of a home box particle.
    fn home(&self, particle: usize, axis: usize) -> u64 {
        ((particle * FOUR + axis) * 8) as u64
    }

    /// Returns the byte offset in shared memory of a number of a neighbour's particle.
    fn neighbour(&self, particle: usize, axis: usize) -> u64 {
        self.home(self.particles + particle, axis)
    }

    /// Returns the byte offset in shared memory of a neighbour's charge.
    fn charge_at(&self, particle: usize) -> u64 {
        self.home(2 * self.particles, 0) + particle as u64 * 8
    }

    /// Returns the bytes of a block's shared memory.
    fn shared_bytes(&self) -> u32 {
        self.charge_at(self.particles) as u32
    }

    /// Returns the lanes that have a particle in a round.
    fn busy(&self, warp: &Warp, round: usize) -> u32 {
        such(warp.at.mask, |lane| warp.particle(round, lane) < self.particles)
    }

    /// Returns the next box whose particles act on the block's, if any.
    fn acting(&self, warp: &Warp) -> Option<usize> {
        let home = warp.at.block as usize;
        match warp.boxes {
            0 => Some(home),
            n => self.neighbours[home].get(n - 1).map(|number| *number as usize),
        }
    }

    /// Loads the particles of the home box.
    fn begin(&mut self, warp: &Warp, e: &mut Emit) {
        let (home, words) = (warp.at.block as usize, self.boxes.as_words(8));
        e.block(0);
        e.alu(cost::THREAD + cost::IF + 1, 1, []);
        e.alu(cost::ADDRESS, 2, [1]);
        e.load(&words, 3, [2], |_| (home * BOX_WORDS + OFFSET) / 2);
        e.alu(2 * cost::ADDRESS, 4, [3]);
        for round in (0..self.particles).step_by(THREADS) {
            let mask = self.busy(warp, round);
            e.block(1);
            e.alu(cost::LOOP, 5, [5]);
            if mask != 0 {
                e.block(2);
                e.lanes(mask);
                self.bring(warp, home, round, 0, e);
                let first = home * self.particles;
                let shared = self.shared.get_mut(&warp.at.block).expect(LIVES);
                for lane in lanes(mask) {
                    let particle = warp.particle(round, lane);
                    shared.home[particle] = self.place[first + particle];
                }
            }
            e.lanes(warp.at.mask);
        }
        e.block(3);
        e.barrier();
    }

    /// Copies the lanes' particles of a box into shared memory, number by number: structures of doubles are aligned
    /// to eight bytes. `behind` is the start of the array there, in particles.
    fn bring(&self, warp: &Warp, from: usize, round: usize, behind: usize, e: &mut Emit) {
        let first = from * self.particles;
        for axis in 0..FOUR {
            let to = 6 + axis as u8;
            e.load(&self.places, to, [4], |lane| (first + warp.particle(round, lane)) * FOUR + axis);
        }
        for axis in 0..FOUR {
            e.shared_store(8, [5, 6 + axis as u8], |lane| {
                self.home(behind + warp.particle(round, lane), axis)
            });
        }
    }

    /// Executes the head of the loop over boxes: loads the particles of the next, or ends.
    fn next_box(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        let home = warp.at.block as usize;
        e.block(4);
        // Loaded each time: the forces stored may have changed it, as far as the compiler knows.
        e.load(&self.boxes, 10, [2], |_| home * BOX_WORDS + COUNT);
        e.alu(cost::LOOP + 1, 11, [10, 11]);
        let Some(from) = self.acting(warp) else {
            e.block(5);
            e.exit();
            let shared = self.shared.get_mut(&warp.at.block).expect(LIVES);
            shared.live -= 1;
            if shared.live == 0 {
                self.shared.remove(&warp.at.block);
            }
            return false;
        };
        e.block(6);
        e.alu(cost::IF, 0, [11]);
        if warp.boxes > 0 {
            e.block(7);
            let number = home * BOX_WORDS + FIRST + (warp.boxes - 1) * NEIGHBOUR_WORDS;
            e.load(&self.boxes, 12, [2], |_| number);
        }
        e.block(8);
        e.alu(cost::ADDRESS, 13, [12]);
        e.load(&self.boxes.as_words(8), 3, [13], |_| (from * BOX_WORDS + OFFSET) / 2);
        e.alu(2 * cost::ADDRESS, 4, [3]);
        for round in (0..self.particles).step_by(THREADS) {
            let mask = self.busy(warp, round);
            e.block(9);
            e.alu(cost::LOOP, 5, [5]);
            if mask != 0 {
                e.block(10);
                e.lanes(mask);
                self.bring(warp, from, round, self.particles, e);
                let first = from * self.particles;
                e.load(&self.charges, 14, [4], |lane| first + warp.particle(round, lane));
                e.shared_store(8, [5, 14], |lane| self.charge_at(warp.particle(round, lane)));
                let shared = self.shared.get_mut(&warp.at.block).expect(LIVES);
                for lane in lanes(mask) {
                    let particle = warp.particle(round, lane);
                    shared.neighbour[particle] = self.place[first + particle];
                    shared.charge[particle] = self.charge[first + particle];
                }
            }
            e.lanes(warp.at.mask);
        }
        e.block(11);
        e.barrier();
        (warp.phase, warp.round) = (Phase::Own, 0);
        true
    }

    /// Executes the head of a round: the lanes' own values stay in registers for the loop. After the last round comes
    /// the barrier before the next box.
    fn own(&mut self, warp: &mut Warp, e: &mut Emit) {
        let mask = self.busy(warp, warp.round);
        e.block(12);
        e.alu(cost::LOOP, 5, [5]);
        if warp.round >= self.particles || mask == 0 {
            e.block(13);
            e.barrier();
            (warp.phase, warp.boxes) = (Phase::Bring, warp.boxes + 1);
            return;
        }
        e.block(14);
        e.lanes(mask);
        for axis in 0..FOUR {
            e.shared_load(8, 16 + axis as u8, [5], |lane| self.home(warp.particle(warp.round, lane), axis));
        }
        for axis in 0..FOUR {
            e.load(&self.forces, 20 + axis as u8, [15], |lane| self.force_at(warp, lane, axis));
        }
        (warp.phase, warp.particle) = (Phase::Pair, 0);
    }

    /// Returns the index of a number of a lane's force.
    fn force_at(&self, warp: &Warp, lane: usize, axis: usize) -> usize {
        let first = warp.at.block as usize * self.particles;
        (first + warp.particle(warp.round, lane)) * FOUR + axis
    }

    /// Applies one particle of the neighbour to the lanes' own. After the last, the sums go to memory; until then
    /// they are in registers, as nothing else in the loop may alias them.
    fn pair(&mut self, warp: &mut Warp, e: &mut Emit) {
        let (mask, particle) = (self.busy(warp, warp.round), warp.particle);
        e.block(15);
        e.lanes(mask);
        for axis in 0..FOUR {
            e.shared_load(8, 24 + axis as u8, [28], |_| self.neighbour(particle, axis));
        }
        e.shared_load(8, 29, [28], |_| self.charge_at(particle));
        // The square of the distance, times the constant; the exponential; twice it; for each axis the difference, its
        // product and the sum; the sum of the potential.
        e.alu(2, 30, [16, 24]);
        e.alu(3, 30, [17, 25, 30]);
        e.alu(1, 30, [30]);
        e.alu(EXPONENTIAL, 31, [30]);
        e.alu(1, 32, [31]);
        e.alu(3, 33, [17, 25]);
        e.alu(3, 33, [32, 33]);
        e.alu(1 + 1, 20, [20, 29, 31]);
        e.alu(3, 21, [21, 29, 33]);
        e.alu(cost::LOOP, 28, [28]);
        let first = warp.at.block as usize * self.particles;
        let shared = &self.shared[&warp.at.block];
        let (other, charge) = (shared.neighbour[particle], shared.charge[particle]);
        for lane in lanes(mask) {
            let place = warp.particle(warp.round, lane);
            act(&shared.home[place], &other, charge, &mut self.force[first + place]);
        }
        warp.particle += 1;
        if warp.particle == self.particles {
            e.block(16);
            for axis in 0..FOUR {
                e.store(&self.forces, [15, 20 + axis as u8], |lane| self.force_at(warp, lane, axis));
            }
            (warp.phase, warp.round) = (Phase::Own, warp.round + THREADS);
        }
    }
}

/// Adds the effect of one particle on a different one: a Gaussian of their distance, and its slope along each axis.
#[inline]
fn act(own: &[f64; FOUR], other: &[f64; FOUR], charge: f64, force: &mut [f64; FOUR]) {
    let product = own[1] * other[1] + own[2] * other[2] + own[3] * other[3];
    let distance = own[0] + other[0] - product;
    let potential = libm::exp(-(2.0 * ALPHA * ALPHA * distance));
    force[0] += charge * potential;
    for axis in 1..FOUR {
        force[axis] += charge * (2.0 * potential * (own[axis] - other[axis]));
    }
}

impl Code for LavaMd {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        if self.launched {
            return None;
        }
        self.launched = true;
        let (blocks, threads) = (self.neighbours.len() as u32, THREADS as u32);
        let shared = self.shared_bytes();
        Some(Kernel { name: "kernel_gpu_cuda", blocks, threads, registers: REGISTERS, shared })
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        let particles = self.particles;
        let empty = || Shared {
            home: vec![[0.0; FOUR]; particles],
            neighbour: vec![[0.0; FOUR]; particles],
            charge: vec![0.0; particles],
            live: (THREADS / 32) as u32,
        };
        self.shared.entry(at.block).or_insert_with(empty);
        Warp { at, ..Warp::default() }
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        e.lanes(warp.at.mask);
        match warp.phase {
            Phase::Home => {
                self.begin(warp, e);
                warp.phase = Phase::Bring;
            }
            Phase::Bring => return self.next_box(warp, e),
            Phase::Own => self.own(warp, e),
            Phase::Pair => self.pair(warp, e),
        }
        true
    }
}
