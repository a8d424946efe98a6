//! Reclaim units, their states, free lists and frontiers.

mod restored;

pub(crate) use restored::{Recovered, erases_of, is_group_sound};

use super::closed::{ByWear, Pools, WearRule};
use super::units::{FRESH, Index, NONE, Ru, RuState};
use engine::{Mutant, planted_nth};
use nand::array::NandArray;
use nand::geometry::Geometry;
use proto::Slot;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// Writer of data. Each stream has its own frontier in each group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Mapping pages.
    Map,
    /// Units of a placement moved by garbage collection; if it mixes placements, the first one is used.
    Gc(u8),
    /// Units of a placement moved by static wear levelling, which opens the most worn free unit.
    Wear(u8),
    /// Host data with a placement hint.
    Host(u8),
}

impl Stream {
    #[inline]
    pub(crate) fn index(self) -> usize {
        match self {
            Stream::Map => 0,
            Stream::Host(placement) => 1 + 3 * placement as usize,
            Stream::Gc(placement) => 2 + 3 * placement as usize,
            Stream::Wear(placement) => 3 + 3 * placement as usize,
        }
    }

    /// Returns whether the stream of an index is one of [`Stream::Wear`].
    pub(crate) fn levels_wear(index: usize) -> bool {
        index > 0 && index.is_multiple_of(3)
    }

    /// Returns the placement of the data. Mapping pages are moved with the first placement's.
    #[inline]
    fn placement(self) -> u8 {
        match self {
            Stream::Map => 0,
            Stream::Host(placement) | Stream::Gc(placement) | Stream::Wear(placement) => placement,
        }
    }

    /// Returns the number of streams of a group, with `placements` of the host.
    pub(crate) fn count(placements: u8) -> usize {
        1 + 3 * placements.max(1) as usize
    }
}

/// Free reclaim units of a group. Those that were never opened are a range of numbers and cost no memory.
#[derive(Clone, Debug)]
struct FreeUnits {
    /// Next unit that was never opened; the end of these follows.
    fresh: u32,
    end: u32,
    freed: Freed,
}

#[derive(Clone, Debug)]
enum Freed {
    FirstFreed(VecDeque<u32>),
    LeastWorn(BTreeSet<(u32, u32)>),
}

impl FreeUnits {
    fn new(count: u32, least_worn: bool) -> FreeUnits {
        let freed =
            if least_worn { Freed::LeastWorn(BTreeSet::new()) } else { Freed::FirstFreed(VecDeque::new()) };
        FreeUnits { fresh: 0, end: count, freed }
    }

    #[inline]
    fn len(&self) -> u32 {
        let freed = match &self.freed {
            Freed::FirstFreed(list) => list.len(),
            Freed::LeastWorn(set) => set.len(),
        };
        self.end - self.fresh + freed as u32
    }

    /// Returns the unit that [`FreeUnits::take`] would take.
    fn next(&self) -> Option<u32> {
        if self.fresh < self.end {
            return Some(self.fresh);
        }
        match &self.freed {
            Freed::FirstFreed(list) => list.front().copied(),
            Freed::LeastWorn(set) => set.first().map(|(_, ru)| *ru),
        }
    }

    /// Takes a unit. Those never opened come first under either rule: they were free before any other, and are not
    /// worn.
    fn take(&mut self) -> Option<u32> {
        if self.fresh < self.end {
            self.fresh += 1;
            return Some(self.fresh - 1);
        }
        match &mut self.freed {
            Freed::FirstFreed(list) if planted_nth(Mutant::WrongBlock, 4) => list.pop_back(),
            Freed::LeastWorn(set) if planted_nth(Mutant::WrongBlock, 4) => set.pop_last().map(|(_, ru)| ru),
            Freed::FirstFreed(list) => list.pop_front(),
            Freed::LeastWorn(set) => set.pop_first().map(|(_, ru)| ru),
        }
    }

    /// Returns the list position of the unit that was erased most often; `None` if all were never opened. A list in
    /// order of freeing is searched: reclaiming keeps few units free.
    fn most_worn(&self, wear: &ByWear) -> Option<(usize, u32)> {
        match &self.freed {
            Freed::FirstFreed(list) => {
                let places = list.iter().copied().enumerate();
                places.max_by_key(|(place, ru)| (wear.erases(*ru), usize::MAX - place))
            }
            Freed::LeastWorn(set) => set.last().map(|(_, ru)| (set.len() - 1, *ru)),
        }
    }

    fn take_most_worn(&mut self, wear: &ByWear) -> Option<u32> {
        let Some((place, ru)) = self.most_worn(wear) else { return self.take() };
        match &mut self.freed {
            Freed::FirstFreed(list) => drop(list.remove(place)),
            Freed::LeastWorn(set) => drop(set.pop_last()),
        }
        Some(ru)
    }

    fn put(&mut self, ru: u32, erases: u32) {
        match &mut self.freed {
            Freed::FirstFreed(list) => {
                if list.capacity() == 0 {
                    list.reserve_exact(self.end as usize);
                }
                list.push_back(ru);
            }
            Freed::LeastWorn(set) => {
                set.insert((erases, ru));
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Frontier {
    pub(super) ru: u32,
    next: u32,
}
engine::snapshot!(Frontier { ru, next });

/// Reclaim units of one group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Records of units, up to the highest number that was ever opened.
    pub rus: Vec<Ru>,
    /// Times of closing, one for each of `rus`.
    pub closed_at: Vec<u64>,
    pub(crate) index: Index,
    free: FreeUnits,
    pub(crate) frontiers: Vec<Frontier>,
    /// Minimum number of free units since the last reset.
    pub(crate) free_min: u32,
    /// Units by wear, if static wear levelling needs them.
    pub(crate) by_wear: Option<ByWear>,
    /// Pools of placements, if the victim policy weighs them.
    pub(crate) pools: Option<Pools>,
    /// Number of valid map units.
    pub(crate) valid: u64,
    /// Number of victims since the host's last commit, and the number of that commit.
    pub(crate) lap: (u32, u64),
    /// Number of units that have failed.
    pub retired: u32,
}

impl engine::Snapshot for Freed {
    fn save(&self, out: &mut Vec<u8>) {
        match self {
            Freed::FirstFreed(list) => (0u8, list.iter().copied().collect::<Vec<u32>>()).save(out),
            Freed::LeastWorn(set) => (1u8, set.clone()).save(out),
        }
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        match u8::load(input)? {
            0 => Some(Freed::FirstFreed(Vec::load(input)?.into())),
            1 => Some(Freed::LeastWorn(BTreeSet::load(input)?)),
            _ => None,
        }
    }
}
engine::snapshot!(FreeUnits { fresh, end, freed });
engine::snapshot!(Group {
    rus,
    closed_at,
    index,
    free,
    frontiers,
    free_min,
    by_wear,
    pools,
    valid,
    lap,
    retired
});

impl Group {
    /// Creates a group with all units free.
    pub(crate) fn new(geo: &Geometry, streams: usize, wear: WearRule) -> Group {
        let count = geo.shape.blocks;
        Group {
            rus: Vec::new(),
            closed_at: Vec::new(),
            index: Index::new(count, geo.units_per_ru),
            free: FreeUnits::new(count, wear.least_worn),
            frontiers: vec![Frontier { ru: NONE, next: 0 }; streams],
            free_min: count,
            by_wear: wear.gap.map(|_| ByWear::new(count)),
            pools: None,
            valid: 0,
            lap: (0, 0),
            retired: 0,
        }
    }

    /// Returns whether the number of victims since the host's commit number `commits` has reached the number of units.
    pub(crate) fn runs_in_circles(&self, commits: u64) -> bool {
        self.lap.1 == commits && self.lap.0 >= self.free.end
    }

    /// Counts one more victim, after the host's commit number `commits`.
    pub(crate) fn count_victim(&mut self, commits: u64) {
        let before = if self.lap.1 == commits { self.lap.0 } else { 0 };
        self.lap = (before.saturating_add(1), commits);
    }

    /// Returns a reclaim unit.
    #[inline]
    pub(crate) fn ru(&self, number: u32) -> &Ru {
        self.rus.get(number as usize).unwrap_or(&FRESH)
    }

    #[inline]
    pub(crate) fn free(&self) -> u32 {
        self.free.len()
    }

    /// Returns whether `stream` can reserve a program unit while `keep` free units stay untouched.
    #[inline]
    pub(crate) fn can_reserve(&self, stream: Stream, keep: u32) -> bool {
        self.frontiers[stream.index()].ru != NONE || self.free() > keep
    }

    /// Takes the next program unit of a frontier, opening a free unit if needed: (unit, its program unit).
    #[inline]
    pub(crate) fn reserve(&mut self, stream: Stream, keep: u32, programs_per_ru: u32) -> Option<(u32, u32)> {
        self.reserve_run(stream, keep, programs_per_ru, 1).map(|(ru, programs)| (ru, programs.start))
    }

    /// Takes the next program units of a frontier: `wanted`, or as many as its unit still has.
    #[inline]
    pub(crate) fn reserve_run(
        &mut self,
        stream: Stream,
        keep: u32,
        programs_per_ru: u32,
        wanted: u32,
    ) -> Option<(u32, Range<u32>)> {
        let mut frontier = self.frontiers[stream.index()];
        if frontier.ru == NONE {
            if self.free() <= keep {
                return None;
            }
            frontier = Frontier { ru: self.take_free(stream)?, next: 0 };
            self.rus[frontier.ru as usize].state = RuState::Open;
        }
        let number = frontier.ru;
        let taken = frontier.next..(frontier.next + wanted).min(programs_per_ru);
        let ru = &mut self.rus[number as usize];
        ru.inflight += taken.end - taken.start;
        frontier.next = taken.end;
        if frontier.next == programs_per_ru {
            ru.state = RuState::Full;
            frontier.ru = NONE;
        }
        self.frontiers[stream.index()] = frontier;
        Some((number, taken))
    }

    /// Detaches the open unit of a stream, and returns it with the program units taken from it.
    pub(crate) fn take_frontier(&mut self, stream: Stream) -> Option<(u32, u32)> {
        let open = self.open(stream)?;
        self.frontiers[stream.index()].ru = NONE;
        Some(open)
    }

    /// Opens a free unit without a stream, while `keep` stay untouched.
    pub(crate) fn open_free(&mut self, stream: Stream, keep: u32) -> Option<u32> {
        let ru = if self.free() > keep { self.take_free(stream)? } else { return None };
        self.rus[ru as usize].state = RuState::Open;
        Some(ru)
    }

    /// Allocates one more program unit of an open unit.
    pub(crate) fn gives_out(&mut self, ru: u32) {
        self.rus[ru as usize].inflight += 1;
    }

    /// Marks an open unit as full: all its program units have been allocated or skipped.
    pub(crate) fn fills(&mut self, ru: u32, clock: u64) {
        self.rus[ru as usize].state = RuState::Full;
        self.programmed_run(ru, 0, clock);
    }

    fn take_free(&mut self, stream: Stream) -> Option<u32> {
        let ru = match (stream, &self.by_wear) {
            (Stream::Wear(_), Some(wear)) => self.free.take_most_worn(wear)?,
            _ => self.free.take()?,
        };
        if self.rus.is_empty() {
            // Reserve the final size: a group in use will be used whole, and memory that is not written to costs
            // nothing.
            self.rus.reserve_exact(self.free.end as usize);
            self.closed_at.reserve_exact(self.free.end as usize);
        }
        if ru as usize >= self.rus.len() {
            self.rus.resize(ru as usize + 1, FRESH);
            self.closed_at.resize(ru as usize + 1, 0);
        }
        self.rus[ru as usize].placement = stream.placement();
        if let (Some(pools), Stream::Host(placement)) = (&mut self.pools, stream) {
            pools.opened(placement);
        }
        self.free_min = self.free_min.min(self.free());
        Some(ru)
    }

    /// Takes a free unit with its first `programs` program units programmed and `valid` units valid in it: closed if
    /// that is all of it, otherwise the frontier of `stream`.
    pub(crate) fn assume(
        &mut self,
        stream: Stream,
        programs: u32,
        programs_per_ru: u32,
        valid: u32,
    ) -> Option<u32> {
        let number = self.take_free(stream)?;
        let ru = &mut self.rus[number as usize];
        ru.valid = valid;
        self.valid += u64::from(valid);
        if programs < programs_per_ru {
            ru.state = RuState::Open;
            self.frontiers[stream.index()] = Frontier { ru: number, next: programs };
        } else {
            ru.state = RuState::Closed;
        }
        Some(number)
    }

    /// Lists a closed unit after those closed before.
    pub(crate) fn list_closed(&mut self, ru: u32, clock: u64) {
        self.closed_at[ru as usize] = clock;
        self.index.insert(ru, self.rus[ru as usize].valid);
        if let Some(wear) = &mut self.by_wear {
            wear.insert(ru);
        }
        if let Some(pools) = &mut self.pools {
            let Ru { placement, valid, .. } = self.rus[ru as usize];
            pools.insert(placement, ru, valid);
        }
    }

    /// Closes the open unit of a stream before it is full. No program of it may be in flight.
    pub(crate) fn close_early(&mut self, stream: usize, clock: u64) {
        let number = std::mem::replace(&mut self.frontiers[stream].ru, NONE);
        let unit = &mut self.rus[number as usize];
        debug_assert_eq!((unit.state, unit.inflight), (RuState::Open, 0));
        unit.state = RuState::Closed;
        unit.short = true;
        self.list_closed(number, clock);
    }

    /// Injects a fault: if units are opened in the order of freeing, the one freed last goes first.
    #[cold]
    pub(crate) fn misplace_freed(&mut self) {
        let is_fresh = self.free.fresh < self.free.end;
        if let Freed::FirstFreed(list) = &mut self.free.freed
            && !is_fresh
            && !list.is_empty()
        {
            list.rotate_right(1);
        }
    }

    /// Returns the free units that were opened before, in list order.
    pub fn freed(&self) -> Vec<u32> {
        match &self.free.freed {
            Freed::FirstFreed(list) => list.iter().copied().collect(),
            Freed::LeastWorn(set) => set.iter().map(|(_, ru)| *ru).collect(),
        }
    }

    /// Returns the erase count of a unit, if static wear levelling keeps it.
    pub(crate) fn erases(&self, ru: u32) -> u32 {
        self.by_wear.as_ref().map_or(0, |wear| wear.erases(ru))
    }

    /// Returns the erase count of the most worn free unit, if static wear levelling keeps it.
    pub(crate) fn most_worn_free(&self) -> Option<u32> {
        let wear = self.by_wear.as_ref()?;
        self.free.most_worn(wear).map(|(_, ru)| wear.erases(ru))
    }

    /// Prefetches the records of a reclaim unit.
    #[inline]
    pub(crate) fn prefetch(&self, ru: u32) {
        engine::prefetch(&self.rus[ru as usize]);
        self.index.prefetch(ru);
    }

    /// Returns the number of bytes allocated.
    pub(crate) fn bytes(&self) -> u64 {
        let records = self.rus.capacity() * size_of::<Ru>() + self.closed_at.capacity() * size_of::<u64>();
        let freed = match &self.free.freed {
            Freed::FirstFreed(list) => list.capacity() * size_of::<u32>(),
            // A tree has at most twice the room that its entries take.
            Freed::LeastWorn(set) => set.len() * 2 * size_of::<(u32, u32)>(),
        };
        let wear = self.by_wear.as_ref().map_or(0, ByWear::bytes);
        let pools = self.pools.as_ref().map_or(0, Pools::bytes);
        (size_of::<Group>() + records + freed) as u64 + self.index.bytes() + wear + pools
    }

    /// Registers a programmed program unit.
    #[inline]
    pub(crate) fn programmed(&mut self, ru: u32, clock: u64) {
        self.programmed_run(ru, 1, clock);
    }

    /// Registers several programmed program units of one reclaim unit.
    #[inline]
    pub(crate) fn programmed_run(&mut self, ru: u32, programs: u32, clock: u64) {
        let unit = &mut self.rus[ru as usize];
        unit.inflight -= programs;
        if unit.state == RuState::Full && unit.inflight == 0 {
            unit.state = RuState::Closed;
            self.list_closed(ru, clock);
        }
    }

    /// Starts reclaiming a closed unit.
    pub(crate) fn collect(&mut self, ru: u32) {
        debug_assert_eq!(self.rus[ru as usize].state, RuState::Closed);
        self.index.remove(ru);
        if let Some(wear) = &mut self.by_wear {
            wear.remove(ru);
        }
        if let Some(pools) = &mut self.pools {
            let Ru { placement, valid, .. } = self.rus[ru as usize];
            pools.remove(placement, ru, valid);
        }
        self.rus[ru as usize].state = RuState::Collecting;
    }

    /// Makes an erased unit free again.
    pub(crate) fn release(&mut self, ru: u32, erases: u32) {
        let unit = &mut self.rus[ru as usize];
        debug_assert!(unit.valid == 0 && unit.readers == 0 && unit.inflight == 0, "erased while in use");
        unit.state = RuState::Free;
        unit.follows_base = false;
        unit.short = false;
        if let Some(wear) = &mut self.by_wear {
            wear.erased(ru, erases);
        }
        self.free.put(ru, erases);
    }

    /// Takes an erased unit out of use.
    pub(crate) fn retire(&mut self, ru: u32) {
        let unit = &mut self.rus[ru as usize];
        debug_assert!(unit.valid == 0 && unit.readers == 0 && unit.inflight == 0, "retired while in use");
        *unit = Ru { state: RuState::Bad, ..FRESH };
        self.retired += 1;
    }

    /// Takes the last `bad` units out of use; nothing was opened before.
    pub fn lose(&mut self, bad: u32) {
        self.free.end -= bad.min(self.free.end);
        self.free_min = self.free();
    }

    /// Returns the number of units without the factory bad ones.
    pub(crate) fn usable(&self) -> u32 {
        self.free.end
    }

    /// Iterates over the frontiers' units, with the number of program units taken from each.
    pub fn open_units(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.frontiers.iter().filter(|f| f.ru != NONE).map(|f| (f.ru, f.next))
    }

    /// Returns the first program unit of the unit that is opened next.
    pub(crate) fn next_free(&self) -> Option<(u32, u32)> {
        Some((self.free.next()?, 0))
    }

    /// Returns the unit of a stream's next program unit, and the number of program units taken from it before.
    pub(crate) fn next_program(&self, stream: Stream) -> Option<(u32, u32)> {
        self.open(stream).or_else(|| Some((self.free.next()?, 0)))
    }

    /// Returns a stream's open unit, if it has one, with the number of program units taken from it.
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

/// Iterates over the first slots of the blocks of a reclaim unit.
pub(crate) fn block_starts(geo: &Geometry, ru: u64) -> impl Iterator<Item = Slot> + '_ {
    (0..geo.lanes).map(move |lane| geo.first_slot(geo.block_of_ru(ru, lane)))
}
