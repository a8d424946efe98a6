//! Breadth-first search over all vertices: each level launches a thread (`bfs_topo_thread_centric.cu`) or a 32nd of a
//! warp (`bfs_topo_warp_centric.cu`) for every vertex, and those of the current level visit their edges.

use std::sync::Arc;

use super::sweep::{Csr, OWN_BLOCKS, Sweep, Warp, by_thread, by_warp, lanes, lanes_where, reg};
use super::{BLOCK, INFINITY, REGISTERS};
use crate::graph::Graph;
use crate::program::{Array, Code, Emit, Kernel, Space, WarpAt, cost};

/// The program.
#[derive(Clone)]
pub(super) struct BfsTopo {
    name: &'static str,
    by_warp: bool,
    space: Space,
    csr: Csr,
    level_of: Array,
    changed: Array,
    pub(super) levels: Vec<u32>,
    /// Level from which the current kernel starts; none before the first.
    current: Option<u32>,
    over: bool,
}

impl BfsTopo {
    /// Creates a search from `root`; `by_warp` selects the warp-centric variant.
    pub(super) fn new(name: &'static str, graph: Arc<Graph>, root: usize, by_warp: bool) -> BfsTopo {
        let mut space = Space::default();
        let level_of = space.array("vpl", 4, graph.vertices());
        let changed = space.array("changed", 1, 1);
        let csr = Csr::new(graph, &mut space);
        let mut levels = vec![INFINITY; csr.graph.vertices()];
        levels[root] = 0;
        BfsTopo { name, by_warp, space, csr, level_of, changed, levels, current: None, over: false }
    }
}

impl Code for BfsTopo {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        self.name
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        if self.over {
            return None;
        }
        self.current = Some(self.current.map_or(0, |level| level + 1));
        self.over = true;
        Some(grid("kernel", self.items(), self.by_warp))
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        Warp::new(at)
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        if self.by_warp { by_warp(self, warp, e) } else { by_thread(self, warp, e) }
    }
}

/// Returns a grid of one thread per item; if a warp has a chunk of items, of GraphBIG's whole number of 32 blocks.
pub(super) fn grid(name: &'static str, items: usize, by_warp: bool) -> Kernel {
    let mut kernel = Kernel::over(name, items, BLOCK, REGISTERS);
    if by_warp {
        kernel.threads = kernel.threads.next_multiple_of(32);
        kernel.blocks = kernel.blocks.next_multiple_of(32);
    }
    kernel
}

impl Sweep for BfsTopo {
    fn block(&self) -> u32 {
        0
    }

    fn csr(&self) -> &Csr {
        &self.csr
    }

    fn items(&self) -> usize {
        self.csr.graph.vertices()
    }

    fn enter(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
        e.load(&self.level_of, reg::OWN, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
        e.alu(cost::IF, 0, [reg::OWN]);
        lanes_where(e.mask(), |lane| Some(self.levels[warp.vertex[lane] as usize]) == self.current)
    }

    fn edge(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::DEST]);
        e.load(&self.level_of, reg::THEIRS, [reg::ADDRESS], |lane| warp.dest[lane] as usize);
        e.alu(cost::IF, 0, [reg::THEIRS]);
        let found = lanes_where(e.mask(), |lane| self.levels[warp.dest[lane] as usize] == INFINITY);
        if found != 0 {
            e.block(OWN_BLOCKS);
            e.lanes(found);
            e.store(&self.changed, [], |_| 0);
            e.store(&self.level_of, [reg::VALUE, reg::ADDRESS], |lane| warp.dest[lane] as usize);
            let next = self.current.map_or(0, |level| level + 1);
            lanes(found).for_each(|lane| self.levels[warp.dest[lane] as usize] = next);
            self.over = false;
        }
        0
    }
}
