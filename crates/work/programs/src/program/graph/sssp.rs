//! Shortest paths from one vertex (`sssp_topo_thread_centric.cu`): one kernel lowers the tentative costs of the
//! neighbours of marked vertices, the other adopts them and marks the changed vertices.

use std::sync::Arc;

use super::sweep::{BLOCKS, Csr, OWN_BLOCKS, Sweep, Warp, by_thread, lanes, lanes_where, reg};
use super::{BLOCK, INFINITY, REGISTERS};
use crate::graph::Graph;
use crate::program::{Array, Code, Emit, Kernel, Space, WarpAt, cost};

/// The program.
#[derive(Clone)]
pub(super) struct Sssp {
    space: Space,
    csr: Csr,
    arrays: Arrays,
    pub(super) costs: Vec<u32>,
    updates: Vec<u32>,
    marked: Vec<bool>,
    changed: bool,
    launched: u32,
}

#[derive(Clone)]
struct Arrays {
    costs: Array,
    updates: Array,
    marked: Array,
    weights: Array,
    changed: Array,
}

impl Sssp {
    /// Creates a search from `root`, over the graph's weights, or 1 per edge.
    pub(super) fn new(graph: Arc<Graph>, root: usize) -> Sssp {
        let mut space = Space::default();
        let vertices = graph.vertices();
        let arrays = Arrays {
            costs: space.array("vpl", 4, vertices),
            marked: space.array("mask", 1, vertices),
            updates: space.array("update", 4, vertices),
            weights: space.array("epl", 4, graph.edges()),
            changed: space.array("over", 1, 1),
        };
        let csr = Csr::new(graph, &mut space);
        let mut costs = vec![INFINITY; vertices];
        costs[root] = 0;
        let mut marked = vec![false; vertices];
        marked[root] = true;
        let updates = vec![INFINITY; vertices];
        Sssp { space, csr, arrays, costs, updates, marked, changed: true, launched: 0 }
    }

    /// Returns true if the current kernel is the second of its round.
    fn second(&self) -> bool {
        self.launched.is_multiple_of(2)
    }

    /// `kernel2`.
    fn take_over(&mut self, at: WarpAt, e: &mut Emit) -> bool {
        let inside = at.below(self.costs.len());
        e.block(BLOCKS);
        e.lanes(at.mask);
        e.alu(cost::THREAD + cost::IF_LONG, reg::VERTEX, []);
        if inside != 0 {
            let first = at.thread();
            e.lanes(inside);
            e.alu(2 * cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
            e.load(&self.arrays.costs, reg::OWN, [reg::ADDRESS], |lane| first + lane);
            e.load(&self.arrays.updates, reg::VALUE, [reg::ADDRESS], |lane| first + lane);
            e.alu(cost::IF, 0, [reg::OWN, reg::VALUE]);
            let lower = lanes_where(inside, |lane| self.costs[first + lane] > self.updates[first + lane]);
            if lower != 0 {
                e.block(BLOCKS + 1);
                e.lanes(lower);
                e.store(&self.arrays.costs, [reg::VALUE, reg::ADDRESS], |lane| first + lane);
                e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
                e.store(&self.arrays.marked, [reg::ADDRESS], |lane| first + lane);
                e.store(&self.arrays.changed, [], |_| 0);
                for lane in lanes(lower) {
                    self.costs[first + lane] = self.updates[first + lane];
                    self.marked[first + lane] = true;
                }
                self.changed = true;
            }
            let others = inside & !lower;
            if others != 0 {
                e.block(BLOCKS + 2);
                e.lanes(others);
                e.store(&self.arrays.updates, [reg::OWN, reg::ADDRESS], |lane| first + lane);
                lanes(others).for_each(|lane| self.updates[first + lane] = self.costs[first + lane]);
            }
        }
        e.block(BLOCKS + 3);
        e.lanes(at.mask);
        e.exit();
        false
    }
}

impl Code for Sssp {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        "sssp3"
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        if self.second() && !std::mem::replace(&mut self.changed, false) {
            return None;
        }
        self.launched += 1;
        let name = if self.second() { "kernel2" } else { "kernel" };
        Some(Kernel::over(name, self.costs.len(), BLOCK, REGISTERS))
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        Warp::new(at)
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        if self.second() { self.take_over(warp.at, e) } else { by_thread(self, warp, e) }
    }
}

impl Sweep for Sssp {
    fn block(&self) -> u32 {
        0
    }

    fn csr(&self) -> &Csr {
        &self.csr
    }

    fn items(&self) -> usize {
        self.costs.len()
    }

    fn enter(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
        e.load(&self.arrays.marked, reg::OWN, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
        e.alu(cost::IF, 0, [reg::OWN]);
        lanes_where(e.mask(), |lane| self.marked[warp.vertex[lane] as usize])
    }

    fn before(&mut self, e: &mut Emit, warp: &mut Warp) {
        e.load(&self.arrays.costs, reg::KEPT, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
    }

    fn edge(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        e.load(&self.arrays.weights, reg::VALUE, [reg::EDGE], |lane| warp.edge[lane] as usize);
        e.alu(1 + cost::ADDRESS, reg::VALUE, [reg::VALUE, reg::KEPT, reg::DEST]);
        e.atomic(&self.arrays.updates, 0, [reg::VALUE], |lane| warp.dest[lane] as usize);
        for lane in lanes(e.mask()) {
            let weight = self.csr.graph.weights().map_or(1, |weights| weights[warp.edge[lane] as usize]);
            // Costs beyond 32 bits count as unreached.
            let through = self.costs[warp.vertex[lane] as usize].saturating_add(weight);
            let update = &mut self.updates[warp.dest[lane] as usize];
            *update = through.min(*update);
        }
        0
    }

    fn after(&mut self, e: &mut Emit, warp: &mut Warp) {
        e.block(OWN_BLOCKS);
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
        e.store(&self.arrays.marked, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
        lanes(e.mask()).for_each(|lane| self.marked[warp.vertex[lane] as usize] = false);
    }
}
