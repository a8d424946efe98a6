//! Graph colouring over a worklist (`gc_data_thread_centric.cu`, `gc_data_warp_centric.cu`, after Grosset et al.):
//! each round gives its colour to the vertices whose random number is above those of all uncoloured neighbours, and
//! pushes the others.

use std::sync::Arc;

use engine::Rng;

use super::sweep::{
    CHUNK, Csr, OWN_BLOCKS, Sweep, Warp, Worklists, by_thread, by_warp, lanes, lanes_where, reg,
};
use super::{BLOCK, INFINITY, REGISTERS};
use crate::graph::Graph;
use crate::program::{Array, Code, Emit, Kernel, Space, WarpAt, cost};

/// The program.
#[derive(Clone)]
pub(super) struct Colour {
    by_warp: bool,
    space: Space,
    csr: Csr,
    colour_of: Array,
    random_of: Array,
    worklists: Worklists,
    pub(super) colours: Vec<u32>,
    randoms: Vec<u32>,
    /// Colour of the current round; none before the first.
    colour: Option<u32>,
    /// Maximum number of rounds.
    rounds: u32,
}

impl Colour {
    /// Creates a colouring with random numbers of `seed`, in at most `rounds` rounds; `by_warp` selects the
    /// warp-centric variant.
    pub(super) fn new(graph: Arc<Graph>, seed: u64, rounds: u32, by_warp: bool) -> Colour {
        let mut space = Space::default();
        let vertices = graph.vertices();
        let colour_of = space.array("vpl", 4, vertices);
        let random_of = space.array("rand", 4, vertices);
        let worklists = Worklists::new(&mut space, vertices, (0..vertices as u32).collect());
        let csr = Csr::new(graph, &mut space);
        let mut rng = Rng::stream(seed, "colour");
        // 31 bits, as from `rand()`.
        let randoms = (0..vertices).map(|_| (rng.next_u64() >> 33) as u32).collect();
        let colours = vec![INFINITY; vertices];
        Colour {
            by_warp,
            space,
            csr,
            colour_of,
            random_of,
            worklists,
            colours,
            randoms,
            colour: None,
            rounds,
        }
    }

    fn round(&self) -> u32 {
        self.colour.unwrap_or_default()
    }
}

impl Code for Colour {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        if self.by_warp { "gc2" } else { "gc1" }
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        if let Some(done) = self.colour {
            self.worklists.swap();
            self.colour = Some(done + 1);
        } else {
            self.colour = Some(0);
        }
        if self.items() == 0 || self.round() == self.rounds {
            return None;
        }
        // A warp has 32 vertices in both variants, so the grids are the same.
        const { assert!(CHUNK == 32) };
        let mut kernel = Kernel::over("kernel", self.items(), BLOCK, REGISTERS);
        if self.by_warp {
            kernel.threads = kernel.threads.next_multiple_of(32);
        }
        Some(kernel)
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        Warp::new(at)
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        if self.by_warp { by_warp(self, warp, e) } else { by_thread(self, warp, e) }
    }
}

impl Sweep for Colour {
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

    fn enter(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
        e.load(&self.colour_of, reg::OWN, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
        e.alu(cost::IF, 0, [reg::OWN]);
        lanes_where(e.mask(), |lane| self.colours[warp.vertex[lane] as usize] == INFINITY)
    }

    fn before(&mut self, e: &mut Emit, warp: &mut Warp) {
        e.load(&self.random_of, reg::KEPT, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
    }

    fn edge(&mut self, e: &mut Emit, warp: &mut Warp) -> u32 {
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::DEST]);
        e.load(&self.colour_of, reg::THEIRS, [reg::ADDRESS], |lane| warp.dest[lane] as usize);
        e.alu(cost::IF, 0, [reg::THEIRS]);
        let colour = self.round();
        let open = lanes_where(e.mask(), |lane| self.colours[warp.dest[lane] as usize] >= colour);
        if open == 0 {
            return 0;
        }
        e.block(OWN_BLOCKS);
        e.lanes(open);
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::DEST]);
        e.load(&self.random_of, reg::VALUE, [reg::ADDRESS], |lane| warp.dest[lane] as usize);
        e.alu(2 * cost::IF, 0, [reg::VALUE, reg::KEPT]);
        // The higher random number first; among equals, the lower vertex.
        let rank = |v: u32| (self.randoms[v as usize], std::cmp::Reverse(v));
        lanes_where(open, |lane| rank(warp.dest[lane]) > rank(warp.vertex[lane]))
    }

    fn after(&mut self, e: &mut Emit, warp: &mut Warp) {
        let all = e.mask();
        e.block(OWN_BLOCKS + 1);
        // For a warp, the vote of its lanes and the branch on it.
        e.alu(cost::IF, 0, [reg::VALUE]);
        let higher = if self.by_warp && warp.broken != 0 { all } else { warp.broken & all };
        let coloured = all & !higher;
        if coloured != 0 {
            e.block(OWN_BLOCKS + 2);
            e.lanes(coloured);
            e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
            e.store(&self.colour_of, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
            let colour = self.round();
            lanes(coloured).for_each(|lane| self.colours[warp.vertex[lane] as usize] = colour);
        }
        let pushing = if self.by_warp { higher & 1 } else { higher };
        if pushing != 0 {
            e.lanes(pushing);
            warp.pushes.extend(lanes(pushing).map(|lane| (lane as u8, warp.vertex[lane])));
            self.worklists.push(e, OWN_BLOCKS + 3, warp);
        }
    }
}
