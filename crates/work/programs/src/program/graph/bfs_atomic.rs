//! Breadth-first search without frontiers (`bfs_topo_atomic.cu`, after LonestarGPU's `bfs_ls`): every kernel visits
//! all edges and lowers levels by `atomicMin`, until one changes nothing.

use std::sync::Arc;

use super::sweep::{Csr, OWN_BLOCKS, Sweep, Warp, by_thread, lanes, lanes_where, reg};
use super::{BLOCK, INFINITY, REGISTERS};
use crate::graph::Graph;
use crate::program::{Array, Code, Emit, Kernel, Space, WarpAt, cost};

/// The program.
#[derive(Clone)]
pub(super) struct BfsAtomic {
    space: Space,
    csr: Csr,
    level_of: Array,
    changed_at: Array,
    pub(super) levels: Vec<u32>,
    changed: bool,
}

impl BfsAtomic {
    /// Creates a search from `root`.
    pub(super) fn new(graph: Arc<Graph>, root: usize) -> BfsAtomic {
        let mut space = Space::default();
        let level_of = space.array("vpl", 4, graph.vertices());
        let changed_at = space.array("changed", 1, 1);
        let csr = Csr::new(graph, &mut space);
        let mut levels = vec![INFINITY; csr.graph.vertices()];
        levels[root] = 0;
        BfsAtomic { space, csr, level_of, changed_at, levels, changed: true }
    }
}

impl Code for BfsAtomic {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        "bfs6"
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        let more = std::mem::replace(&mut self.changed, false);
        more.then(|| Kernel::over("kernel", self.items(), BLOCK, REGISTERS))
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        Warp::new(at)
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        by_thread(self, warp, e)
    }
}

impl Sweep for BfsAtomic {
    fn block(&self) -> u32 {
        0
    }

    fn csr(&self) -> &Csr {
        &self.csr
    }

    fn items(&self) -> usize {
        self.csr.graph.vertices()
    }

    fn enter(&mut self, e: &mut Emit, _warp: &mut Warp) -> u32 {
        e.mask()
    }

    fn edge(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        // The vertex's level is loaded for each edge: an atomic operation in between may have changed it.
        e.load(&self.level_of, reg::OWN, [reg::VERTEX], |lane| warp.vertex[lane] as usize);
        e.alu(1 + cost::ADDRESS, reg::ADDRESS, [reg::DEST, reg::OWN]);
        e.load(&self.level_of, reg::THEIRS, [reg::ADDRESS], |lane| warp.dest[lane] as usize);
        e.alu(cost::IF, 0, [reg::THEIRS, reg::OWN]);
        let mut mine = [0; 32];
        lanes(e.mask()).for_each(|lane| mine[lane] = self.levels[warp.vertex[lane] as usize] + 1);
        let lower = lanes_where(e.mask(), |lane| mine[lane] < self.levels[warp.dest[lane] as usize]);
        if lower != 0 {
            e.block(OWN_BLOCKS);
            e.lanes(lower);
            e.atomic(&self.level_of, reg::OTHER, [reg::OWN, reg::ADDRESS], |lane| warp.dest[lane] as usize);
            e.alu(cost::IF, reg::KEPT, [reg::OTHER, reg::OWN]);
            for lane in lanes(lower) {
                let level = &mut self.levels[warp.dest[lane] as usize];
                if mine[lane] < *level {
                    *level = mine[lane];
                    warp.kept[lane] = 1;
                }
            }
        }
        0
    }

    fn after(&mut self, e: &mut Emit, warp: &mut Warp) {
        e.block(OWN_BLOCKS + 1);
        e.alu(cost::IF, 0, [reg::KEPT]);
        let changed = lanes_where(e.mask(), |lane| warp.kept[lane] != 0);
        if changed != 0 {
            e.block(OWN_BLOCKS + 2);
            e.lanes(changed);
            e.store(&self.changed_at, [], |_| 0);
            self.changed = true;
        }
    }
}
