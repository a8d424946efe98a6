//! Betweenness centrality (`betweenness.cu`, Brandes' algorithm): for each source, levels outwards, counting shortest
//! paths, then backwards, summing dependencies. GraphBIG takes every vertex as a source; here their number is a
//! parameter.

use std::sync::Arc;

use super::sweep::{BLOCKS, Csr, OWN_BLOCKS, Sweep, Warp, by_thread, lanes, lanes_where, reg};
use super::{BLOCK, INFINITY, REGISTERS};
use crate::graph::Graph;
use crate::program::{Array, Code, Emit, Kernel, Space, WarpAt, cost};

/// Arithmetic of a dependency: conversions, two multiplications and two additions in double precision.
const DEPENDENCY: u16 = 8;

/// The program.
#[derive(Clone)]
pub(super) struct Betweenness {
    space: Space,
    csr: Csr,
    arrays: Arrays,
    pub(super) centrality: Vec<f32>,
    pub(super) delta: Vec<f32>,
    pub(super) distance: Vec<u32>,
    /// Number of shortest paths from the source, wrapping in 32 bits as on the machine.
    pub(super) sigma: Vec<u32>,
    sources: Vec<u32>,
    /// Number of sources begun.
    begun: usize,
    phase: Phase,
    /// Level that the current kernel works on.
    level: u32,
    over: bool,
}

#[derive(Clone)]
struct Arrays {
    centrality: Array,
    delta: Array,
    distance: Array,
    sigma: Array,
    over: Array,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Init,
    Forward,
    Backward,
    Sum,
}

impl Betweenness {
    /// Creates the program for these sources, one after another.
    pub(super) fn new(graph: Arc<Graph>, sources: Vec<u32>) -> Betweenness {
        let mut space = Space::default();
        let vertices = graph.vertices();
        let arrays = Arrays {
            centrality: space.array("BC", 4, vertices),
            delta: space.array("delta", 4, vertices),
            distance: space.array("dist", 4, vertices),
            sigma: space.array("sigma", 4, vertices),
            over: space.array("over", 1, 1),
        };
        let csr = Csr::new(graph, &mut space);
        Betweenness {
            space,
            csr,
            arrays,
            centrality: vec![0.0; vertices],
            delta: vec![0.0; vertices],
            distance: vec![INFINITY; vertices],
            sigma: vec![0; vertices],
            sources,
            begun: 0,
            phase: Phase::Idle,
            level: 0,
            over: true,
        }
    }

    fn source(&self) -> usize {
        self.sources[self.begun - 1] as usize
    }

    fn next_phase(&mut self) -> Phase {
        match self.phase {
            Phase::Init => {
                self.level = 0;
                self.over = true;
                Phase::Forward
            }
            Phase::Forward if !self.over => {
                self.level += 1;
                self.over = true;
                Phase::Forward
            }
            // The host counts levels up after the last forward kernel, then down before each backward one while more
            // than one is left: the first backward kernel works on the last level from which forward ones began.
            Phase::Forward if self.level > 0 => Phase::Backward,
            Phase::Backward if self.level > 1 => {
                self.level -= 1;
                Phase::Backward
            }
            Phase::Forward | Phase::Backward => Phase::Sum,
            Phase::Idle | Phase::Sum if self.begun < self.sources.len() => {
                self.begun += 1;
                Phase::Init
            }
            Phase::Idle | Phase::Sum => Phase::Idle,
        }
    }

    /// `kernel_init`.
    fn init(&mut self, at: WarpAt, e: &mut Emit) -> bool {
        let (first, inside) = self.inside(2 * BLOCKS, at, e);
        if inside != 0 {
            e.alu(3 * cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
            e.store(&self.arrays.distance, [reg::ADDRESS], |lane| first + lane);
            e.store(&self.arrays.sigma, [reg::ADDRESS], |lane| first + lane);
            e.store(&self.arrays.delta, [reg::ADDRESS], |lane| first + lane);
            e.alu(cost::IF_LONG, 0, [reg::VERTEX]);
            let source = self.source();
            let root = lanes_where(inside, |lane| first + lane == source);
            if root != 0 {
                e.block(2 * BLOCKS + 2);
                e.lanes(root);
                e.store(&self.arrays.distance, [reg::ADDRESS], |lane| first + lane);
                e.store(&self.arrays.sigma, [reg::ADDRESS], |lane| first + lane);
            }
            for v in lanes(inside).map(|lane| first + lane) {
                let root = v == source;
                self.distance[v] = if root { 0 } else { INFINITY };
                self.sigma[v] = u32::from(root);
                self.delta[v] = 0.0;
            }
        }
        ended(2 * BLOCKS, at, e)
    }

    /// `kernel_backsum_phase`.
    fn sum(&mut self, at: WarpAt, e: &mut Emit) -> bool {
        let (first, inside) = self.inside(3 * BLOCKS, at, e);
        if inside != 0 {
            e.alu(cost::IF_LONG, 0, [reg::VERTEX]);
            let others = lanes_where(inside, |lane| first + lane != self.source());
            if others != 0 {
                e.lanes(others);
                e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
                e.load(&self.arrays.distance, reg::OWN, [reg::ADDRESS], |lane| first + lane);
                e.alu(cost::IF, 0, [reg::OWN]);
                let reached = lanes_where(others, |lane| self.distance[first + lane] != INFINITY);
                if reached != 0 {
                    e.block(3 * BLOCKS + 2);
                    e.lanes(reached);
                    e.alu(2 * cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
                    e.load(&self.arrays.centrality, reg::VALUE, [reg::ADDRESS], |lane| first + lane);
                    e.load(&self.arrays.delta, reg::OTHER, [reg::ADDRESS], |lane| first + lane);
                    e.alu(1, reg::VALUE, [reg::VALUE, reg::OTHER]);
                    e.store(&self.arrays.centrality, [reg::VALUE, reg::ADDRESS], |lane| first + lane);
                    lanes(reached).for_each(|lane| self.centrality[first + lane] += self.delta[first + lane]);
                }
            }
        }
        ended(3 * BLOCKS, at, e)
    }

    /// Sets the threads that have a vertex as active, and returns them.
    fn inside(&self, block: u32, at: WarpAt, e: &mut Emit) -> (usize, u32) {
        e.block(block);
        e.lanes(at.mask);
        e.alu(cost::THREAD + cost::IF_LONG, reg::VERTEX, []);
        let inside = at.below(self.distance.len());
        e.block(block + 1);
        e.lanes(inside);
        (at.thread(), inside)
    }
}

fn ended(block: u32, at: WarpAt, e: &mut Emit) -> bool {
    e.block(block + 3);
    e.lanes(at.mask);
    e.exit();
    false
}

impl Code for Betweenness {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        "betw"
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        self.phase = self.next_phase();
        let name = match self.phase {
            Phase::Idle => return None,
            Phase::Init => "kernel_init",
            Phase::Forward => "kernel_forward_phase",
            Phase::Backward => "kernel_backward_phase",
            Phase::Sum => "kernel_backsum_phase",
        };
        Some(Kernel::over(name, self.distance.len(), BLOCK, REGISTERS))
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        Warp::new(at)
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        match self.phase {
            Phase::Init => self.init(warp.at, e),
            Phase::Forward => by_thread(&mut Forward(self), warp, e),
            Phase::Backward => by_thread(&mut Backward(self), warp, e),
            Phase::Idle | Phase::Sum => self.sum(warp.at, e),
        }
    }
}

/// Selects the vertices of one level.
fn of_level(program: &Betweenness, level: u32, e: &mut Emit, warp: &Warp) -> u32 {
    e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
    e.load(&program.arrays.distance, reg::OWN, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
    e.alu(cost::IF, 0, [reg::OWN]);
    lanes_where(e.mask(), |lane| program.distance[warp.vertex[lane] as usize] == level)
}

/// `kernel_forward_phase`.
struct Forward<'a>(&'a mut Betweenness);

impl Sweep for Forward<'_> {
    fn block(&self) -> u32 {
        0
    }

    fn csr(&self) -> &Csr {
        &self.0.csr
    }

    fn items(&self) -> usize {
        self.0.distance.len()
    }

    fn enter(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        of_level(self.0, self.0.level, e, warp)
    }

    fn edge(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        let all = e.mask();
        let arrays = &self.0.arrays;
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::DEST]);
        e.load(&arrays.distance, reg::THEIRS, [reg::ADDRESS], |lane| warp.dest[lane] as usize);
        e.alu(cost::IF, 0, [reg::THEIRS]);
        let next = self.0.level + 1;
        let fresh = lanes_where(all, |lane| self.0.distance[warp.dest[lane] as usize] == INFINITY);
        if fresh != 0 {
            e.block(OWN_BLOCKS);
            e.lanes(fresh);
            e.store(&arrays.distance, [reg::VALUE, reg::ADDRESS], |lane| warp.dest[lane] as usize);
            e.store(&arrays.over, [], |_| 0);
            lanes(fresh).for_each(|lane| self.0.distance[warp.dest[lane] as usize] = next);
            self.0.over = false;
        }
        e.block(OWN_BLOCKS + 1);
        e.lanes(all);
        e.load(&arrays.distance, reg::THEIRS, [reg::ADDRESS], |lane| warp.dest[lane] as usize);
        e.alu(cost::IF, 0, [reg::THEIRS]);
        let onward = lanes_where(all, |lane| self.0.distance[warp.dest[lane] as usize] == next);
        if onward != 0 {
            e.block(OWN_BLOCKS + 2);
            e.lanes(onward);
            e.alu(2 * cost::ADDRESS, reg::ADDRESS, [reg::DEST, reg::VERTEX]);
            e.load(&arrays.sigma, reg::VALUE, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
            e.atomic(&arrays.sigma, 0, [reg::VALUE, reg::ADDRESS], |lane| warp.dest[lane] as usize);
            for lane in lanes(onward) {
                let paths = self.0.sigma[warp.vertex[lane] as usize];
                let sum = &mut self.0.sigma[warp.dest[lane] as usize];
                *sum = sum.wrapping_add(paths);
            }
        }
        0
    }
}

/// `kernel_backward_phase`.
struct Backward<'a>(&'a mut Betweenness);

impl Sweep for Backward<'_> {
    fn block(&self) -> u32 {
        BLOCKS
    }

    fn csr(&self) -> &Csr {
        &self.0.csr
    }

    fn items(&self) -> usize {
        self.0.distance.len()
    }

    fn enter(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        of_level(self.0, self.0.level - 1, e, warp)
    }

    fn edge(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        let arrays = &self.0.arrays;
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::DEST]);
        e.load(&arrays.distance, reg::THEIRS, [reg::ADDRESS], |lane| warp.dest[lane] as usize);
        e.alu(cost::IF, 0, [reg::THEIRS]);
        let level = self.0.level;
        let below = lanes_where(e.mask(), |lane| self.0.distance[warp.dest[lane] as usize] == level);
        if below != 0 {
            e.block(BLOCKS + OWN_BLOCKS);
            e.lanes(below);
            e.alu(3 * cost::ADDRESS, reg::ADDRESS, [reg::DEST, reg::VERTEX]);
            e.load(&arrays.sigma, reg::VALUE, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
            e.load(&arrays.sigma, reg::THEIRS, [reg::ADDRESS], |lane| warp.dest[lane] as usize);
            e.load(&arrays.delta, reg::OTHER, [reg::ADDRESS], |lane| warp.dest[lane] as usize);
            e.sfu(1, reg::VALUE, [reg::VALUE, reg::THEIRS]);
            e.alu(DEPENDENCY, reg::KEPT, [reg::VALUE, reg::OTHER, reg::KEPT]);
            for lane in lanes(below) {
                let (u, w) = (warp.vertex[lane] as usize, warp.dest[lane] as usize);
                let share = f64::from(self.0.sigma[u]) / f64::from(self.0.sigma[w]);
                let sum = f64::from(f32::from_bits(warp.kept[lane]));
                let sum = sum + share * (1.0 + f64::from(self.0.delta[w]));
                warp.kept[lane] = (sum as f32).to_bits();
            }
        }
        0
    }

    fn after(&mut self, e: &mut Emit, warp: &mut Warp) {
        let delta = self.0.arrays.delta;
        e.block(BLOCKS + OWN_BLOCKS + 1);
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
        e.load(&delta, reg::VALUE, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
        e.alu(1, reg::VALUE, [reg::VALUE, reg::KEPT]);
        e.store(&delta, [reg::VALUE, reg::ADDRESS], |lane| warp.vertex[lane] as usize);
        for lane in lanes(e.mask()) {
            self.0.delta[warp.vertex[lane] as usize] += f32::from_bits(warp.kept[lane]);
        }
    }
}
