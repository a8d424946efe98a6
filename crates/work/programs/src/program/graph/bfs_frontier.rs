//! Breadth-first search with frontiers as bit masks and two kernels per level (`bfs_topo_frontier.cu`, after Harish
//! and Narayanan, HiPC 2007): one marks the vertices reached from the frontier, the other turns the marks into the
//! next frontier.

use std::sync::Arc;

use super::sweep::{BLOCKS, Csr, OWN_BLOCKS, Sweep, Warp, by_thread, lanes, lanes_where, reg};
use super::{BLOCK, INFINITY, REGISTERS};
use crate::graph::Graph;
use crate::program::{Array, Code, Emit, Kernel, Space, WarpAt, cost};

/// The program.
#[derive(Clone)]
pub(super) struct BfsFrontier {
    space: Space,
    csr: Csr,
    arrays: Arrays,
    pub(super) levels: Vec<u32>,
    marks: Vec<u8>,
    over: bool,
    launched: u32,
}

#[derive(Clone)]
struct Arrays {
    levels: Array,
    frontier: Array,
    updating: Array,
    visited: Array,
    over: Array,
}

/// Marks of a vertex.
const FRONTIER: u8 = 1;
const UPDATING: u8 = 2;
const VISITED: u8 = 4;

impl BfsFrontier {
    /// Creates a search from `root`.
    pub(super) fn new(graph: Arc<Graph>, root: usize) -> BfsFrontier {
        let mut space = Space::default();
        let vertices = graph.vertices();
        let arrays = Arrays {
            levels: space.array("vpl", 4, vertices),
            frontier: space.array("frontier", 1, vertices),
            updating: space.array("updating_frontier", 1, vertices),
            visited: space.array("visited", 1, vertices),
            over: space.array("over", 1, 1),
        };
        let csr = Csr::new(graph, &mut space);
        let mut levels = vec![INFINITY; vertices];
        levels[root] = 0;
        let mut marks = vec![0; vertices];
        marks[root] = FRONTIER | VISITED;
        BfsFrontier { space, csr, arrays, levels, marks, over: false, launched: 0 }
    }

    /// Returns true if the current kernel is the second of its level.
    fn second(&self) -> bool {
        self.launched.is_multiple_of(2)
    }

    /// `BFS_kernel_2`.
    fn advance(&mut self, at: WarpAt, e: &mut Emit) -> bool {
        let inside = at.below(self.marks.len());
        e.block(BLOCKS);
        e.lanes(at.mask);
        e.alu(cost::THREAD + cost::IF_LONG, reg::VERTEX, []);
        if inside != 0 {
            e.lanes(inside);
            e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
            e.load(&self.arrays.updating, reg::OWN, [reg::ADDRESS], |lane| at.thread() + lane);
            e.alu(cost::IF, 0, [reg::OWN]);
            let marked = lanes_where(inside, |lane| self.marks[at.thread() + lane] & UPDATING != 0);
            if marked != 0 {
                e.block(BLOCKS + 1);
                e.lanes(marked);
                e.alu(2 * cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
                for array in [&self.arrays.frontier, &self.arrays.visited, &self.arrays.updating] {
                    e.store(array, [reg::ADDRESS], |lane| at.thread() + lane);
                }
                e.store(&self.arrays.over, [], |_| 0);
                lanes(marked).for_each(|lane| self.marks[at.thread() + lane] = FRONTIER | VISITED);
                self.over = false;
            }
        }
        e.block(BLOCKS + 2);
        e.lanes(at.mask);
        e.exit();
        false
    }
}

impl Code for BfsFrontier {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        "bfs3"
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        if self.second() {
            if self.over {
                return None;
            }
            self.over = true;
        }
        self.launched += 1;
        let name = if self.second() { "BFS_kernel_2" } else { "BFS_kernel_1" };
        Some(Kernel::over(name, self.marks.len(), BLOCK, REGISTERS))
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        Warp::new(at)
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        if self.second() { self.advance(warp.at, e) } else { by_thread(self, warp, e) }
    }
}

impl Sweep for BfsFrontier {
    fn block(&self) -> u32 {
        0
    }

    fn csr(&self) -> &Csr {
        &self.csr
    }

    fn items(&self) -> usize {
        self.marks.len()
    }

    fn enter(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
        e.load(&self.arrays.frontier, reg::OWN, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
        e.alu(cost::IF, 0, [reg::OWN]);
        let entered = lanes_where(e.mask(), |lane| self.marks[warp.vertex[lane] as usize] & FRONTIER != 0);
        if entered != 0 {
            e.block(OWN_BLOCKS);
            e.lanes(entered);
            e.store(&self.arrays.frontier, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
            lanes(entered).for_each(|lane| self.marks[warp.vertex[lane] as usize] &= !FRONTIER);
        }
        entered
    }

    fn edge(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::DEST]);
        e.load(&self.arrays.visited, reg::THEIRS, [reg::ADDRESS], |lane| warp.dest[lane] as usize);
        e.alu(cost::IF, 0, [reg::THEIRS]);
        let fresh = lanes_where(e.mask(), |lane| self.marks[warp.dest[lane] as usize] & VISITED == 0);
        if fresh != 0 {
            e.block(OWN_BLOCKS + 1);
            e.lanes(fresh);
            // Loaded for each edge: the compiler cannot know that the stores are to other vertices.
            e.load(&self.arrays.levels, reg::OWN, [reg::VERTEX], |lane| warp.vertex[lane] as usize);
            e.alu(1 + 2 * cost::ADDRESS, reg::VALUE, [reg::OWN, reg::DEST]);
            e.store(&self.arrays.levels, [reg::VALUE], |lane| warp.dest[lane] as usize);
            e.store(&self.arrays.updating, [reg::VALUE], |lane| warp.dest[lane] as usize);
            for lane in lanes(fresh) {
                let (from, to) = (warp.vertex[lane] as usize, warp.dest[lane] as usize);
                self.levels[to] = self.levels[from] + 1;
                self.marks[to] |= UPDATING;
            }
        }
        0
    }
}
