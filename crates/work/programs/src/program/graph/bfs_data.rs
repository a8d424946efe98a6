//! Breadth-first search over a worklist: each level visits the vertices pushed by the previous one, a thread each
//! (`bfs_data_thread_centric.cu`) or a 32nd of a warp (`bfs_data_warp_centric.cu`).

use std::sync::Arc;

use super::INFINITY;
use super::bfs_topo::grid;
use super::sweep::{Csr, OWN_BLOCKS, Sweep, Warp, Worklists, by_thread, by_warp, lanes, lanes_where, reg};
use crate::graph::Graph;
use crate::program::{Array, Code, Emit, Kernel, Space, WarpAt, cost};

/// Capacity of a thread's local list before it pushes.
const LOCAL_SIZE: u32 = 128;
/// Arithmetic counted for gathering a vertex: its place in local memory, the store, the count.
const LOCAL: u16 = 4;

/// The program.
#[derive(Clone)]
pub(super) struct BfsData {
    name: &'static str,
    by_warp: bool,
    space: Space,
    csr: Csr,
    level_of: Array,
    worklists: Worklists,
    pub(super) levels: Vec<u32>,
    current: u32,
    begun: bool,
}

impl BfsData {
    /// Creates a search from `root`; `by_warp` selects the warp-centric variant.
    pub(super) fn new(name: &'static str, graph: Arc<Graph>, root: usize, by_warp: bool) -> BfsData {
        let mut space = Space::default();
        let vertices = graph.vertices();
        let level_of = space.array("vpl", 4, vertices);
        let worklists = Worklists::new(&mut space, vertices, vec![root as u32]);
        let csr = Csr::new(graph, &mut space);
        let mut levels = vec![INFINITY; vertices];
        levels[root] = 0;
        BfsData { name, by_warp, space, csr, level_of, worklists, levels, current: 0, begun: false }
    }
}

impl Code for BfsData {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        self.name
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        if self.begun {
            self.worklists.swap();
            self.current += 1;
        }
        self.begun = true;
        (self.items() > 0).then(|| grid("kernel", self.items(), self.by_warp))
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        Warp::new(at)
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        if self.by_warp { by_warp(self, warp, e) } else { by_thread(self, warp, e) }
    }
}

impl Sweep for BfsData {
    fn block(&self) -> u32 {
        0
    }

    fn csr(&self) -> &Csr {
        &self.csr
    }

    fn items(&self) -> usize {
        self.worklists.len()
    }

    fn begin(&self, e: &mut Emit) {
        self.worklists.load_end(e);
    }

    fn vertices(&self, e: &mut Emit, item: impl Fn(usize) -> usize, warp: &mut Warp) {
        self.worklists.load(e, item, warp);
    }

    fn enter(&mut self, e: &mut Emit, _warp: &mut Warp) -> u32 {
        e.mask()
    }

    fn before(&mut self, e: &mut Emit, warp: &mut Warp) {
        // In the other variant, the level is an argument.
        if !self.by_warp {
            e.load(&self.level_of, reg::OWN, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
        }
    }

    fn edge(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::DEST]);
        e.load(&self.level_of, reg::THEIRS, [reg::ADDRESS], |lane| warp.dest[lane] as usize);
        e.alu(cost::IF, 0, [reg::THEIRS]);
        let mut found = 0;
        for lane in lanes(e.mask()) {
            let level = &mut self.levels[warp.dest[lane] as usize];
            if *level == INFINITY {
                *level = self.current + 1;
                found |= 1 << lane;
                warp.pushes.push((lane as u8, warp.dest[lane]));
                warp.kept[lane] += 1;
            }
        }
        if found != 0 {
            e.block(OWN_BLOCKS);
            e.lanes(found);
            e.alu(1, reg::VALUE, [reg::OWN]);
            e.store(&self.level_of, [reg::VALUE, reg::ADDRESS], |lane| warp.dest[lane] as usize);
            e.alu(LOCAL + cost::IF, reg::KEPT, [reg::KEPT]);
            let full = lanes_where(found, |lane| warp.kept[lane] == LOCAL_SIZE);
            if full != 0 {
                e.lanes(full);
                self.worklists.push(e, OWN_BLOCKS + 1, warp);
                lanes(full).for_each(|lane| warp.kept[lane] = 0);
            }
        }
        0
    }

    fn finish(&mut self, e: &mut Emit, warp: &mut Warp) {
        self.worklists.push(e, OWN_BLOCKS + 3, warp);
    }
}
