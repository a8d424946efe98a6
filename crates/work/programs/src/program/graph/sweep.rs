//! Sweeps over edges as in GraphBIG's kernels, one thread or one warp per vertex, and the worklists of vertices that
//! they visit.

use std::sync::Arc;

use proto::simt::LANES;

use crate::graph::Graph;
use crate::program::{Array, Emit, Space, WarpAt, cost};

/// One value per lane.
pub(super) type Lanes = [u32; LANES];

/// Registers, by content.
pub(super) mod reg {
    /// Vertex, or number of the work item.
    pub(crate) const VERTEX: u8 = 1;
    /// An address.
    pub(crate) const ADDRESS: u8 = 2;
    /// Property of the vertex.
    pub(crate) const OWN: u8 = 3;
    /// Number of the edge.
    pub(crate) const EDGE: u8 = 4;
    /// End of the vertex's edges.
    pub(crate) const END: u8 = 5;
    /// Target of the edge.
    pub(crate) const DEST: u8 = 6;
    /// Property of the target.
    pub(crate) const THEIRS: u8 = 7;
    /// Computed value.
    pub(crate) const VALUE: u8 = 8;
    /// A second value.
    pub(crate) const OTHER: u8 = 9;
    /// Value that the thread keeps over the loop.
    pub(crate) const KEPT: u8 = 10;
}

/// Returns the lanes of a mask.
#[inline]
pub(super) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}

/// Returns the lanes of a mask for which a condition holds.
#[inline]
pub(super) fn lanes_where(mask: u32, mut holds: impl FnMut(usize) -> bool) -> u32 {
    lanes(mask).fold(0, |found, lane| found | u32::from(holds(lane)) << lane)
}

/// GraphBIG's `cudaGraph`: rows and targets of 64 bits each (`vlist`, `elist`).
#[derive(Clone)]
pub(super) struct Csr {
    pub(super) graph: Arc<Graph>,
    pub(super) rows: Array,
    pub(super) targets: Array,
}

impl Csr {
    pub(super) fn new(graph: Arc<Graph>, space: &mut Space) -> Csr {
        let rows = space.array("vlist", 8, graph.vertices() + 1);
        let targets = space.array("elist", 8, graph.edges());
        Csr { graph, rows, targets }
    }
}

/// State of a warp during a sweep.
#[derive(Default)]
pub(super) struct Warp {
    pub(super) at: WarpAt,
    stage: Stage,
    /// Lanes that entered: each with its own vertex, or all with one.
    entered: u32,
    /// Lanes in the loop.
    looping: u32,
    /// Vertex of each lane, its current edge, the end of its edges, and the target of the edge.
    pub(super) vertex: Lanes,
    pub(super) edge: Lanes,
    end: Lanes,
    pub(super) dest: Lanes,
    /// Value that the program keeps for each lane.
    pub(super) kept: Lanes,
    /// Lanes that left the loop early.
    pub(super) broken: u32,
    /// Current work item of the warp, and the end of its items, if a warp has a vertex.
    item: u32,
    items: u32,
    /// Vertices that each lane will push, lane by lane in the order of pushing.
    pub(super) pushes: Vec<(u8, u32)>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Begin,
    Item,
    Edges,
}

impl Warp {
    pub(super) fn new(at: WarpAt) -> Warp {
        Warp { at, ..Warp::default() }
    }
}

/// A kernel that sweeps the edges of vertices. Basic blocks from `block() + OWN_BLOCKS` on are its own.
pub(super) trait Sweep {
    /// Returns the first basic block.
    fn block(&self) -> u32;
    /// Returns the graph.
    fn csr(&self) -> &Csr;
    /// Returns the number of work items: vertices, or entries of a worklist.
    fn items(&self) -> usize;
    /// Begins the threads; a worklist's length is loaded here.
    fn begin(&self, _e: &mut Emit) {}
    /// Returns the vertex of a work item, loaded from a worklist if there is one. `item` gives the items of the
    /// lanes.
    fn vertices(&self, _e: &mut Emit, item: impl Fn(usize) -> usize, warp: &mut Warp) {
        for lane in lanes(_e.mask()) {
            warp.vertex[lane] = item(lane) as u32;
        }
    }
    /// Evaluates the condition on vertices, for the active lanes; returns those for which it holds.
    fn enter(&mut self, e: &mut Emit, warp: &mut Warp) -> u32;
    /// Runs after the loads of the edges' range, before the loop.
    fn before(&mut self, _e: &mut Emit, _warp: &mut Warp) {}
    /// Processes one edge of each active lane; `warp.dest` is loaded. Returns the lanes that leave the loop.
    fn edge(&mut self, e: &mut Emit, warp: &mut Warp) -> u32;
    /// Runs after the loop, for the lanes that entered.
    fn after(&mut self, _e: &mut Emit, _warp: &mut Warp) {}
    /// Runs before the threads end.
    fn finish(&mut self, _e: &mut Emit, _warp: &mut Warp) {}
}

/// Offset of a sweep's own basic blocks.
pub(super) const OWN_BLOCKS: u32 = 8;
/// Number of basic blocks of a sweep.
pub(super) const BLOCKS: u32 = 24;
/// Work items per warp, if a warp has a vertex (`CHUNK_SZ`).
pub(super) const CHUNK: usize = 32;

/// Sweeps with one thread per vertex. One step is the entry or one iteration of the loop over edges.
pub(super) fn by_thread<S: Sweep>(sweep: &mut S, warp: &mut Warp, e: &mut Emit) -> bool {
    let block = sweep.block();
    if warp.stage == Stage::Begin {
        warp.stage = Stage::Edges;
        let at = warp.at;
        e.block(block);
        e.lanes(at.mask);
        e.alu(cost::THREAD, reg::VERTEX, []);
        sweep.begin(e);
        e.alu(cost::IF_LONG, 0, [reg::VERTEX]);
        let inside = at.below(sweep.items());
        if inside != 0 {
            e.block(block + 1);
            e.lanes(inside);
            sweep.vertices(e, |lane| at.thread() + lane, warp);
            warp.entered = sweep.enter(e, warp);
        }
        if warp.entered == 0 {
            return end(block, warp, e);
        }
        e.lanes(warp.entered);
        range(sweep, warp, e);
        for lane in lanes(warp.entered) {
            let row = sweep.csr().graph.row(warp.vertex[lane] as usize);
            (warp.edge[lane], warp.end[lane]) = (row.start as u32, row.end as u32);
        }
        warp.looping = lanes_where(warp.entered, |lane| warp.edge[lane] < warp.end[lane]);
        if warp.looping != 0 {
            return true;
        }
    } else {
        let left = edge(sweep, warp, e);
        warp.looping &= !left;
        if warp.looping != 0 {
            e.block(block + 4);
            e.lanes(warp.looping);
            e.alu(cost::LOOP_LONG, reg::EDGE, [reg::EDGE, reg::END]);
            for lane in lanes(warp.looping) {
                warp.edge[lane] += 1;
            }
            warp.looping = lanes_where(warp.looping, |lane| warp.edge[lane] < warp.end[lane]);
        }
        if warp.looping != 0 {
            return true;
        }
    }
    e.lanes(warp.entered);
    sweep.after(e, warp);
    e.lanes(warp.entered);
    sweep.finish(e, warp);
    end(block, warp, e)
}

/// Sweeps with one warp per vertex: it visits 32 work items, and its lanes share the edges of each. One step is the
/// entry to an item or one iteration of the loop over its edges.
pub(super) fn by_warp<S: Sweep>(sweep: &mut S, warp: &mut Warp, e: &mut Emit) -> bool {
    let block = sweep.block();
    e.lanes(warp.at.mask);
    match warp.stage {
        Stage::Begin => {
            e.block(block);
            e.alu(cost::THREAD + cost::ADDRESS, reg::VERTEX, []);
            sweep.begin(e);
            e.alu(cost::IF_LONG, 0, [reg::VERTEX]);
            let first = warp.at.thread() / LANES * CHUNK;
            if first >= sweep.items() {
                return end(block, warp, e);
            }
            warp.item = first as u32;
            warp.items = sweep.items().min(first + CHUNK) as u32;
            warp.stage = Stage::Item;
            return true;
        }
        Stage::Item => {
            e.block(block + 1);
            let item = warp.item as usize;
            sweep.vertices(e, |_| item, warp);
            warp.entered = sweep.enter(e, warp);
            if warp.entered != 0 {
                range(sweep, warp, e);
                let row = sweep.csr().graph.row(warp.vertex[0] as usize);
                for lane in lanes(warp.entered) {
                    (warp.edge[lane], warp.end[lane]) = ((row.start + lane) as u32, row.end as u32);
                }
                warp.looping = lanes_where(warp.entered, |lane| warp.edge[lane] < warp.end[lane]);
                warp.stage = Stage::Edges;
                if warp.looping != 0 {
                    return true;
                }
            }
        }
        Stage::Edges => {
            let left = edge(sweep, warp, e);
            warp.looping &= !left;
            if warp.looping != 0 {
                e.block(block + 4);
                e.lanes(warp.looping);
                e.alu(cost::LOOP_LONG, reg::EDGE, [reg::EDGE, reg::END]);
                for lane in lanes(warp.looping) {
                    warp.edge[lane] += LANES as u32;
                }
                warp.looping = lanes_where(warp.looping, |lane| warp.edge[lane] < warp.end[lane]);
            }
            if warp.looping != 0 {
                return true;
            }
        }
    }
    if warp.entered != 0 {
        e.lanes(warp.entered);
        sweep.after(e, warp);
    }
    warp.entered = 0;
    warp.broken = 0;
    warp.item += 1;
    warp.stage = Stage::Item;
    e.lanes(warp.at.mask);
    e.block(block + 5);
    e.alu(cost::LOOP_LONG, reg::VERTEX, [reg::VERTEX]);
    if warp.item < warp.items {
        return true;
    }
    sweep.finish(e, warp);
    end(block, warp, e)
}

/// Loads the range of a vertex's edges; returns whether there are any.
fn range<S: Sweep>(sweep: &mut S, warp: &mut Warp, e: &mut Emit) {
    e.block(sweep.block() + 2);
    e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
    e.load(&sweep.csr().rows, reg::EDGE, [reg::ADDRESS], |lane| warp.vertex[lane] as usize);
    e.load(&sweep.csr().rows, reg::END, [reg::ADDRESS], |lane| warp.vertex[lane] as usize + 1);
    sweep.before(e, warp);
    e.alu(cost::ADDRESS + cost::IF_LONG, reg::EDGE, [reg::EDGE, reg::END]);
}

fn edge<S: Sweep>(sweep: &mut S, warp: &mut Warp, e: &mut Emit) -> u32 {
    e.block(sweep.block() + 3);
    e.lanes(warp.looping);
    e.load(&sweep.csr().targets, reg::DEST, [reg::EDGE], |lane| warp.edge[lane] as usize);
    let targets = sweep.csr().graph.targets();
    for lane in lanes(warp.looping) {
        warp.dest[lane] = targets[warp.edge[lane] as usize];
    }
    let left = sweep.edge(e, warp);
    warp.broken |= left;
    left
}

fn end(block: u32, warp: &Warp, e: &mut Emit) -> bool {
    e.block(block + 6);
    e.lanes(warp.at.mask);
    e.exit();
    false
}

// The pair of worklists of a data-driven kernel: one is read while the other is filled.

/// GraphBIG's `my_worklist`, twice: vertices of 64 bits, and their number of 32.
#[derive(Clone)]
pub(super) struct Worklists {
    items: [Array; 2],
    ends: [Array; 2],
    lists: [Vec<u32>; 2],
    /// Index of the list that is read.
    reading: usize,
}

impl Worklists {
    /// Creates lists with room for `room` vertices; the first contains `first`.
    pub(super) fn new(space: &mut Space, room: usize, first: Vec<u32>) -> Worklists {
        Worklists {
            items: [space.array("worklist1", 8, room), space.array("worklist2", 8, room)],
            ends: [space.array("worklist1.end", 4, 1), space.array("worklist2.end", 4, 1)],
            lists: [first, Vec::with_capacity(room)],
            reading: 0,
        }
    }

    /// Returns the number of items to be read.
    pub(super) fn len(&self) -> usize {
        self.lists[self.reading].len()
    }

    /// Swaps the lists: the filled one is read next, and the other is emptied.
    pub(super) fn swap(&mut self) {
        self.lists[self.reading].clear();
        self.reading = 1 - self.reading;
    }

    /// Loads the number of items.
    pub(super) fn load_end(&self, e: &mut Emit) {
        e.load(&self.ends[self.reading], reg::VALUE, [], |_| 0);
    }

    /// Loads each lane's item, and with it its vertex.
    pub(super) fn load(&self, e: &mut Emit, item: impl Fn(usize) -> usize, warp: &mut Warp) {
        e.alu(cost::ADDRESS, reg::ADDRESS, [reg::VERTEX]);
        e.load(&self.items[self.reading], reg::VERTEX, [reg::ADDRESS], &item);
        for lane in lanes(e.mask()) {
            warp.vertex[lane] = self.lists[self.reading][item(lane)];
        }
    }

    /// Executes `pushRange`: the active lanes reserve places for the vertices they have gathered, if any, and store
    /// them. `block` and the next are its basic blocks.
    pub(super) fn push(&mut self, e: &mut Emit, block: u32, warp: &mut Warp) {
        let writing = 1 - self.reading;
        let mask = e.mask();
        let mut counts = [0_usize; 32];
        for (lane, _) in &warp.pushes {
            counts[usize::from(*lane)] += (mask >> lane & 1) as usize;
        }
        let mut places = [0_usize; 32];
        let mut end = self.lists[writing].len();
        for lane in lanes(mask) {
            places[lane] = end;
            end += counts[lane];
        }
        self.lists[writing].resize(end, 0);
        let mut next = places;
        let list = &mut self.lists[writing];
        warp.pushes.retain(|&(lane, vertex)| {
            let pushed = mask >> lane & 1 == 1;
            if pushed {
                list[next[usize::from(lane)]] = vertex;
                next[usize::from(lane)] += 1;
            }
            !pushed
        });
        e.block(block);
        e.atomic(&self.ends[writing], reg::OTHER, [reg::VALUE], |_| 0);
        e.alu(cost::IF, 0, [reg::VALUE]);
        let mut n = 0;
        loop {
            let pushing = lanes_where(mask, |lane| n < counts[lane]);
            if pushing == 0 {
                e.lanes(mask);
                return;
            }
            e.block(block + 1);
            e.lanes(pushing);
            e.alu(cost::ADDRESS, reg::ADDRESS, [reg::OTHER]);
            e.store(&self.items[writing], [reg::VERTEX, reg::ADDRESS], |lane| places[lane] + n);
            e.alu(cost::LOOP, reg::OTHER, [reg::OTHER, reg::VALUE]);
            n += 1;
        }
    }
}
