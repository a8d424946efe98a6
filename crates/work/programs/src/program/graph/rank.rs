//! PageRank. GraphBIG has none for GPUs; this is the usual pull form on its data structure: one kernel divides each
//! rank by the vertex's out-degree, the other sums over the incoming edges.

use std::sync::Arc;

use super::sweep::{BLOCKS, Csr, OWN_BLOCKS, Sweep, Warp, by_thread, lanes, lanes_where, reg};
use super::{BLOCK, REGISTERS};
use crate::graph::Graph;
use crate::program::{Array, Code, Emit, Kernel, Space, WarpAt, cost};

/// Damping (Brin and Page, 1998).
pub(super) const DAMPING: f32 = 0.85;

/// The program.
#[derive(Clone)]
pub(super) struct Rank {
    space: Space,
    /// Reversed graph: the edges into each vertex.
    csr: Csr,
    arrays: Arrays,
    degrees: Vec<u32>,
    pub(super) ranks: Vec<f32>,
    shares: Vec<f32>,
    /// Number of kernels left.
    left: u32,
}

#[derive(Clone)]
struct Arrays {
    ranks: Array,
    shares: Array,
    degrees: Array,
}

impl Rank {
    /// Creates this many iterations from equal ranks. The rank of a vertex without outgoing edges is lost.
    pub(super) fn new(graph: &Arc<Graph>, iterations: u32) -> Rank {
        let vertices = graph.vertices();
        let mut space = Space::default();
        let arrays = Arrays {
            ranks: space.array("rank", 4, vertices),
            shares: space.array("share", 4, vertices),
            degrees: space.array("degree", 4, vertices),
        };
        let degrees: Vec<u32> = (0..vertices).map(|v| graph.degree(v) as u32).collect();
        let turned = Arc::new(graph.reversed());
        // An undirected graph is its own reverse: one copy is enough.
        let inward = if turned.targets() == graph.targets() { Arc::clone(graph) } else { turned };
        let csr = Csr::new(inward, &mut space);
        let (ranks, shares) = (vec![1.0 / vertices.max(1) as f32; vertices], vec![0.0; vertices]);
        Rank { space, csr, arrays, degrees, ranks, shares, left: 2 * iterations }
    }

    /// Returns true if the current kernel divides: it is the first of its iteration.
    fn divides(&self) -> bool {
        !self.left.is_multiple_of(2)
    }

    /// Executes the first kernel.
    fn divide(&mut self, at: WarpAt, e: &mut Emit) -> bool {
        let (first, inside) = (at.thread(), at.below(self.ranks.len()));
        e.block(BLOCKS);
        e.lanes(at.mask);
        e.alu(cost::THREAD + cost::IF_LONG, reg::VERTEX, []);
        if inside != 0 {
            e.lanes(inside);
            e.alu(2 * cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
            e.load(&self.arrays.degrees, reg::OWN, [reg::ADDRESS], |lane| first + lane);
            e.alu(cost::IF, 0, [reg::OWN]);
            let some = lanes_where(inside, |lane| self.degrees[first + lane] != 0);
            if some != 0 {
                e.block(BLOCKS + 1);
                e.lanes(some);
                e.load(&self.arrays.ranks, reg::VALUE, [reg::ADDRESS], |lane| first + lane);
                e.sfu(1, reg::VALUE, [reg::VALUE, reg::OWN]);
                e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
                e.store(&self.arrays.shares, [reg::VALUE, reg::ADDRESS], |lane| first + lane);
            }
            for v in lanes(some).map(|lane| first + lane) {
                self.shares[v] = self.ranks[v] / self.degrees[v] as f32;
            }
        }
        e.block(BLOCKS + 2);
        e.lanes(at.mask);
        e.exit();
        false
    }
}

impl Code for Rank {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        "pr"
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        self.left = self.left.checked_sub(1)?;
        let name = if self.divides() { "divide" } else { "gather" };
        Some(Kernel::over(name, self.ranks.len(), BLOCK, REGISTERS))
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        Warp::new(at)
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        if self.divides() { self.divide(warp.at, e) } else { by_thread(self, warp, e) }
    }
}

impl Sweep for Rank {
    fn block(&self) -> u32 {
        0
    }

    fn csr(&self) -> &Csr {
        &self.csr
    }

    fn items(&self) -> usize {
        self.ranks.len()
    }

    fn enter(&mut self, e: &mut Emit, _warp: &mut Warp) -> u32 {
        e.mask()
    }

    fn edge(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::DEST]);
        e.load(&self.arrays.shares, reg::VALUE, [reg::ADDRESS], |lane| warp.dest[lane] as usize);
        e.alu(1, reg::KEPT, [reg::KEPT, reg::VALUE]);
        for lane in lanes(e.mask()) {
            let sum = f32::from_bits(warp.kept[lane]) + self.shares[warp.dest[lane] as usize];
            warp.kept[lane] = sum.to_bits();
        }
        0
    }

    fn after(&mut self, e: &mut Emit, warp: &mut Warp) {
        e.block(OWN_BLOCKS);
        e.alu(2 + cost::ADDRESS, reg::VALUE, [reg::KEPT]);
        e.store(&self.arrays.ranks, [reg::VALUE, reg::ADDRESS], |lane| warp.vertex[lane] as usize);
        let base = (1.0 - DAMPING) / self.ranks.len() as f32;
        for lane in lanes(e.mask()) {
            self.ranks[warp.vertex[lane] as usize] = base + DAMPING * f32::from_bits(warp.kept[lane]);
        }
    }
}
