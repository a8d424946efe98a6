//! The pair of worklists of a data-driven kernel: one is read while the other is filled.

use super::sweep::{Warp, lanes, lanes_where, reg};
use crate::program::{Array, Emit, Space, cost};

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
