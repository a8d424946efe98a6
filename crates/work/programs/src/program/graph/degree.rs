//! Degree centrality (`degree_centr.cu`): every edge adds one to its target vertex.

use std::sync::Arc;

use super::sweep::{Csr, Sweep, Warp, by_thread, lanes, reg};
use super::{BLOCK, REGISTERS};
use crate::graph::Graph;
use crate::program::{Array, Code, Emit, Kernel, Space, WarpAt, cost};

/// The program.
#[derive(Clone)]
pub(super) struct Degree {
    space: Space,
    csr: Csr,
    degree_of: Array,
    pub(super) degrees: Vec<u32>,
    launched: bool,
}

impl Degree {
    pub(super) fn new(graph: Arc<Graph>) -> Degree {
        let mut space = Space::default();
        let degree_of = space.array("vpl", 4, graph.vertices());
        let degrees = vec![0; graph.vertices()];
        let csr = Csr::new(graph, &mut space);
        Degree { space, csr, degree_of, degrees, launched: false }
    }
}

impl Code for Degree {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        "deg"
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        let first = !std::mem::replace(&mut self.launched, true);
        first.then(|| Kernel::over("kernel", self.items(), BLOCK, REGISTERS))
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        Warp::new(at)
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        by_thread(self, warp, e)
    }
}

impl Sweep for Degree {
    fn block(&self) -> u32 {
        0
    }

    fn csr(&self) -> &Csr {
        &self.csr
    }

    fn items(&self) -> usize {
        self.degrees.len()
    }

    fn enter(&mut self, e: &mut Emit, _warp: &mut Warp) -> u32 {
        e.mask()
    }

    fn edge(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::DEST]);
        e.atomic(&self.degree_of, 0, [reg::ADDRESS], |lane| warp.dest[lane] as usize);
        lanes(e.mask()).for_each(|lane| self.degrees[warp.dest[lane] as usize] += 1);
        0
    }
}
