//! Reclaim units, their states, free lists and frontiers.

use super::index::{Index, NONE};
use crate::array::NandArray;
use crate::geometry::Geometry;
use proto::Slot;
use std::collections::{BTreeSet, VecDeque};

/// Who writes. Each stream has its own frontier in each group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Units moved by garbage collection and wear levelling.
    Gc,
    /// Mapping pages.
    Map,
    /// Host data with a placement hint.
    Host(u8),
}

impl Stream {
    #[inline]
    pub(crate) fn index(self) -> usize {
        match self {
            Stream::Gc => 0,
            Stream::Map => 1,
            Stream::Host(placement) => 2 + placement as usize,
        }
    }
}

/// Where a reclaim unit stands in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuState {
    /// Erased, on a free list.
    Free,
    /// A frontier: takes program units.
    Open,
    /// All program units given out, some not yet programmed.
    Full,
    /// All programmed; a candidate for reclaiming.
    Closed,
    /// Being reclaimed.
    Collecting,
    /// Out of use.
    Bad,
}

impl kernel::Snapshot for RuState {
    fn save(&self, out: &mut Vec<u8>) {
        (*self as u8).save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        use RuState::*;
        [Free, Open, Full, Closed, Collecting, Bad].get(u8::load(input)? as usize).copied()
    }
}

/// A reclaim unit as the FTL sees it: hot data, 16 bytes.
#[derive(Clone, Debug)]
pub struct Ru {
    /// Valid map units.
    pub valid: u32,
    /// Reads under way: it must not be erased before they end.
    pub readers: u32,
    /// Program units given out and not yet programmed.
    pub inflight: u32,
    /// Where it stands.
    pub state: RuState,
    /// Whether unwritten table entries of it follow the implicit base.
    pub follows_base: bool,
}
kernel::snapshot!(Ru { valid, readers, inflight, state, follows_base });

#[derive(Clone, Debug)]
enum FreeList {
    FirstFreed(VecDeque<u32>),
    LeastWorn(BTreeSet<(u32, u32)>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Frontier {
    ru: u32,
    next: u32,
}
kernel::snapshot!(Frontier { ru, next });

/// Reclaim units of one group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) rus: Vec<Ru>,
    pub(crate) closed_at: Vec<u64>,
    pub(crate) index: Index,
    free: FreeList,
    pub(crate) frontiers: Vec<Frontier>,
    /// Fewest free units since the last reset.
    pub(crate) free_min: u32,
    /// Erases since the beginning: when wear is looked at.
    pub(crate) wear_clock: u32,
    /// Valid map units.
    pub(crate) valid: u64,
}

impl kernel::Snapshot for FreeList {
    fn save(&self, out: &mut Vec<u8>) {
        match self {
            FreeList::FirstFreed(list) => (0u8, list.iter().copied().collect::<Vec<u32>>()).save(out),
            FreeList::LeastWorn(set) => (1u8, set.clone()).save(out),
        }
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        match u8::load(input)? {
            0 => Some(FreeList::FirstFreed(Vec::load(input)?.into())),
            1 => Some(FreeList::LeastWorn(BTreeSet::load(input)?)),
            _ => None,
        }
    }
}
kernel::snapshot!(Group { rus, closed_at, index, free, frontiers, free_min, wear_clock, valid });

impl Group {
    /// All units free. With `least_worn`, the least erased free unit is opened next (dynamic wear levelling); without,
    /// the one freed first.
    pub(crate) fn new(geo: &Geometry, streams: usize, least_worn: bool) -> Group {
        let count = geo.shape.blocks;
        let fresh = Ru { valid: 0, readers: 0, inflight: 0, state: RuState::Free, follows_base: false };
        Group {
            rus: vec![fresh; count as usize],
            closed_at: vec![0; count as usize],
            index: Index::new(count, geo.units_per_ru),
            free: if least_worn {
                FreeList::LeastWorn((0..count).map(|r| (0, r)).collect())
            } else {
                FreeList::FirstFreed((0..count).collect())
            },
            frontiers: vec![Frontier { ru: NONE, next: 0 }; streams],
            free_min: count,
            wear_clock: 0,
            valid: 0,
        }
    }

    #[inline]
    pub(crate) fn free(&self) -> u32 {
        match &self.free {
            FreeList::FirstFreed(list) => list.len() as u32,
            FreeList::LeastWorn(set) => set.len() as u32,
        }
    }

    /// Whether `stream` can reserve a program unit while `keep` free units stay untouched.
    #[inline]
    pub(crate) fn can_reserve(&self, stream: Stream, keep: u32) -> bool {
        self.frontiers[stream.index()].ru != NONE || self.free() > keep
    }

    /// Takes the next program unit of a frontier, opening a free unit if there is none: (unit, program unit of it).
    #[inline]
    pub(crate) fn reserve(&mut self, stream: Stream, keep: u32, programs_per_ru: u32) -> Option<(u32, u32)> {
        let mut frontier = self.frontiers[stream.index()];
        if frontier.ru == NONE {
            if self.free() <= keep {
                return None;
            }
            frontier = Frontier { ru: self.take_free()?, next: 0 };
            self.rus[frontier.ru as usize].state = RuState::Open;
        }
        let taken = (frontier.ru, frontier.next);
        let ru = &mut self.rus[frontier.ru as usize];
        ru.inflight += 1;
        frontier.next += 1;
        if frontier.next == programs_per_ru {
            ru.state = RuState::Full;
            frontier.ru = NONE;
        }
        self.frontiers[stream.index()] = frontier;
        Some(taken)
    }

    fn take_free(&mut self) -> Option<u32> {
        let ru = match &mut self.free {
            FreeList::FirstFreed(list) => list.pop_front(),
            FreeList::LeastWorn(set) => set.pop_first().map(|(_, ru)| ru),
        };
        self.free_min = self.free_min.min(self.free());
        ru
    }

    /// A program unit has been programmed.
    #[inline]
    pub(crate) fn programmed(&mut self, ru: u32, clock: u64) {
        let unit = &mut self.rus[ru as usize];
        unit.inflight -= 1;
        if unit.state == RuState::Full && unit.inflight == 0 {
            unit.state = RuState::Closed;
            let valid = unit.valid;
            self.closed_at[ru as usize] = clock;
            self.index.insert(ru, valid);
        }
    }

    /// Starts reclaiming a closed unit.
    pub(crate) fn collect(&mut self, ru: u32) {
        debug_assert_eq!(self.rus[ru as usize].state, RuState::Closed);
        self.index.remove(ru);
        self.rus[ru as usize].state = RuState::Collecting;
    }

    /// A unit has been erased and is free again.
    pub(crate) fn release(&mut self, ru: u32, erases: u32) {
        let unit = &mut self.rus[ru as usize];
        debug_assert!(unit.valid == 0 && unit.readers == 0 && unit.inflight == 0, "erased while in use");
        unit.state = RuState::Free;
        unit.follows_base = false;
        match &mut self.free {
            FreeList::FirstFreed(list) => list.push_back(ru),
            FreeList::LeastWorn(set) => {
                set.insert((erases, ru));
            }
        }
    }

    /// Takes a free unit out of use for good.
    pub(crate) fn retire(&mut self, ru: u32, erases: u32) {
        let was_free = match &mut self.free {
            FreeList::FirstFreed(list) => {
                let before = list.len();
                list.retain(|r| *r != ru);
                list.len() < before
            }
            FreeList::LeastWorn(set) => set.remove(&(erases, ru)),
        };
        debug_assert!(was_free, "only a free unit can be retired");
        self.rus[ru as usize].state = RuState::Bad;
    }

    /// The frontiers' units, with the program units taken from each.
    pub(crate) fn open_units(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.frontiers.iter().filter(|f| f.ru != NONE).map(|f| (f.ru, f.next))
    }

    /// Program units taken from a stream's open unit, if it has one: (unit, program units).
    pub(crate) fn open(&self, stream: Stream) -> Option<(u32, u32)> {
        let frontier = self.frontiers[stream.index()];
        (frontier.ru != NONE).then_some((frontier.ru, frontier.next))
    }
}

/// Erases every block of a reclaim unit in the array; returns the highest erase count.
pub(crate) fn erase_blocks(array: &mut NandArray, geo: &Geometry, ru: u64) -> u32 {
    (0..geo.lanes)
        .map(|lane| {
            let block = geo.block_of_ru(ru, lane);
            array.erase(block);
            array.erases(block)
        })
        .max()
        .unwrap_or(0)
}

/// First slots of the blocks of a reclaim unit.
pub(crate) fn block_starts(geo: &Geometry, ru: u64) -> impl Iterator<Item = Slot> + '_ {
    (0..geo.lanes).map(move |lane| geo.first_slot(geo.block_of_ru(ru, lane)))
}
