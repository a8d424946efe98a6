//! The two ways in which GraphBIG's kernels go over edges, a thread a vertex or a warp a vertex, and the worklists of
//! vertices that they go over.

use std::sync::Arc;

use proto::simt::LANES;

use crate::graph::Graph;
use crate::program::{Array, Emit, Space, WarpAt, cost};

/// A value of each lane.
pub(super) type Lanes = [u32; LANES];

/// Registers, by what they hold.
pub(super) mod reg {
    /// Vertex, or number of the work item.
    pub(crate) const VERTEX: u8 = 1;
    /// An address.
    pub(crate) const ADDRESS: u8 = 2;
    /// The vertex's property.
    pub(crate) const OWN: u8 = 3;
    /// Number of the edge.
    pub(crate) const EDGE: u8 = 4;
    /// Where the vertex's edges end.
    pub(crate) const END: u8 = 5;
    /// Where the edge goes.
    pub(crate) const DEST: u8 = 6;
    /// The destination's property.
    pub(crate) const THEIRS: u8 = 7;
    /// What is computed.
    pub(crate) const VALUE: u8 = 8;
    /// A second value.
    pub(crate) const OTHER: u8 = 9;
    /// What the thread keeps over the loop.
    pub(crate) const KEPT: u8 = 10;
}

/// The lanes of a mask.
#[inline]
pub(super) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}

/// The lanes of a mask for which something holds.
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

/// What a warp keeps while it goes over edges.
#[derive(Default)]
pub(super) struct Warp {
    pub(super) at: WarpAt,
    stage: Stage,
    /// Lanes that entered: a vertex of theirs, or for a warp a vertex all.
    entered: u32,
    /// Lanes in the loop.
    looping: u32,
    /// The vertex of each lane, the edge it is at, where its edges end, where the edge goes.
    pub(super) vertex: Lanes,
    pub(super) edge: Lanes,
    end: Lanes,
    pub(super) dest: Lanes,
    /// What the program keeps for each lane.
    pub(super) kept: Lanes,
    /// Lanes that left the loop early.
    pub(super) broken: u32,
    /// Work item that the warp is at, and the end of its items: for a warp a vertex.
    item: u32,
    items: u32,
    /// What each lane will push, lane by lane in the order of pushing.
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

/// A kernel that goes over the edges of vertices. Blocks of code from `block() + OWN_BLOCKS` on are its own.
pub(super) trait Sweep {
    /// Its first basic block.
    fn block(&self) -> u32;
    /// The graph.
    fn csr(&self) -> &Csr;
    /// Work items: vertices, or entries of a worklist.
    fn items(&self) -> usize;
    /// Begins the threads; those of a worklist load its length here.
    fn begin(&self, _e: &mut Emit) {}
    /// The vertex of a work item; loaded where there is a worklist. Lanes have the items that `item` gives.
    fn vertices(&self, _e: &mut Emit, item: impl Fn(usize) -> usize, warp: &mut Warp) {
        for lane in lanes(_e.mask()) {
            warp.vertex[lane] = item(lane) as u32;
        }
    }
    /// The condition on vertices, for the lanes at work: those that hold go on.
    fn enter(&mut self, e: &mut Emit, warp: &mut Warp) -> u32;
    /// Behind the loads of the edges' range, before the loop.
    fn before(&mut self, _e: &mut Emit, _warp: &mut Warp) {}
    /// One edge of each lane at work; `warp.dest` is loaded. Returns the lanes that leave the loop.
    fn edge(&mut self, e: &mut Emit, warp: &mut Warp) -> u32;
    /// Behind the loop, for the lanes that entered.
    fn after(&mut self, _e: &mut Emit, _warp: &mut Warp) {}
    /// Before the threads end.
    fn finish(&mut self, _e: &mut Emit, _warp: &mut Warp) {}
}

/// Where a sweep's own basic blocks begin.
pub(super) const OWN_BLOCKS: u32 = 8;
/// Basic blocks of a sweep.
pub(super) const BLOCKS: u32 = 24;
/// Work items of a warp, where a warp has a vertex (`CHUNK_SZ`).
pub(super) const CHUNK: usize = 32;

/// A thread a vertex. One step is the entrance or one iteration of the loop over edges.
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

/// A warp a vertex: it goes over 32 work items, and its lanes share the edges of each. One step is the entrance to an item
/// or one iteration of the loop over its edges.
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

/// The range of a vertex's edges, and whether there are any.
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
    /// Which one is read.
    reading: usize,
}

impl Worklists {
    /// Lists with room for `room` vertices; the first has `first`.
    pub(super) fn new(space: &mut Space, room: usize, first: Vec<u32>) -> Worklists {
        Worklists {
            items: [space.array("worklist1", 8, room), space.array("worklist2", 8, room)],
            ends: [space.array("worklist1.end", 4, 1), space.array("worklist2.end", 4, 1)],
            lists: [first, Vec::with_capacity(room)],
            reading: 0,
        }
    }

    /// Items to be read.
    pub(super) fn len(&self) -> usize {
        self.lists[self.reading].len()
    }

    /// The list that was filled is read next, and the other is emptied.
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

    /// `pushRange`: the lanes at work take places for what they have gathered, none too, and store it. `block` and the
    /// next are its basic blocks.
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
