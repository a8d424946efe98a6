//! Flash translation layer: a synchronous state machine without time.
//!
//! The event-driven device, preconditioning and the functional mode call the same functions: look up, reserve, fill,
//! commit, trim, pick a victim, erase. One hazard rule holds everywhere: the map changes when a program has completed,
//! by compare-and-swap on the source address. Until then reads find the old copy; a move that loses the race is dropped
//! and counted; a trim is a write of nothing.

pub mod alloc;
pub mod assume;
pub mod bad;
pub(crate) mod census;
mod closed;
pub mod functional;
pub mod gc;
pub mod map_cache;
pub mod pages;
pub mod slc;
pub mod space;
mod state;
#[cfg(test)]
pub(crate) mod testing;
pub mod units;
pub mod wear;

pub use census::FtlCounters;
use closed::{Pools, VictimView};
use gc::Victim;
use nand::array::NandArray;
use nand::base::Base;
use nand::geometry::Geometry;
use nand::sparse::{Bits, Table};
use proto::{Lpn, Slot};
use space::{Group, Stream, block_starts, erase_blocks};
pub use state::MapCopy;
use state::lookup;
use units::RuState;
use wear::WearRule;

/// Map word of a unit that was written and then deallocated.
const DEALLOCATED: u64 = 0;

/// Thresholds of free space, in reclaim units of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Number of free units at or below which reclaiming starts.
    pub start: u32,
    /// Number of free units at which reclaiming stops.
    pub stop: u32,
    /// Number of free units at or below which host writes wait.
    pub hard: u32,
}

/// Copy of a unit, distinguished from any other that its slot holds before or after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Slot of the copy; `None` if the unit holds no data.
    pub slot: Option<Slot>,
    /// Erase count of the slot's block.
    erases: u32,
}

/// State of the translation layer.
pub struct Ftl {
    /// Geometry of the device.
    pub geo: Geometry,
    /// Durable state.
    pub array: NandArray,
    map: Table,
    /// Validity of each slot, as a difference from the base.
    valid: Bits,
    base: Base,
    /// Planes or sets of planes, each with its reclaim units.
    pub groups: Vec<Group>,
    victim: Box<dyn Victim>,
    wear: WearRule,
    /// Number of placements of the host.
    placements: u8,
    /// True if garbage collection moves the data of each placement to a separate frontier.
    isolated: bool,
    /// Free-space thresholds.
    pub thresholds: Thresholds,
    /// Map units committed since the beginning: the clock of ages.
    clock: u64,
    /// Counters.
    pub counters: FtlCounters,
    mapped: u64,
    logical: u64,
    /// Number of units after the host's: translation pages.
    hidden: u64,
    bad: bad::BadBlocks,
    /// Choice of the pages for host data, if not the next one.
    pages: Option<Box<pages::Pages>>,
    /// SLC cache: reclaim units that take host data first, if any.
    slc: Option<Box<slc::Slc>>,
    /// Record of opened units, if watched.
    opened: Option<Box<census::Opened>>,
}

impl Ftl {
    /// An empty FTL over an erased array: `logical` units for the host, `hidden` ones behind them for translation
    /// pages, `placements` host streams.
    pub fn new(
        geo: Geometry,
        (logical, hidden): (u64, u64),
        placements: u8,
        wear: WearRule,
        thresholds: Thresholds,
        victim: Box<dyn Victim>,
    ) -> Ftl {
        let streams = Stream::count(placements);
        Ftl {
            array: NandArray::new(&geo, logical + hidden),
            map: Table::new(logical + hidden, geo.slots + 2),
            valid: Bits::new(geo.slots),
            base: Base::Empty,
            groups: (0..geo.groups).map(|_| Group::new(&geo, streams, wear)).collect(),
            victim,
            wear,
            placements: placements.max(1),
            isolated: false,
            thresholds,
            clock: 0,
            counters: FtlCounters::default(),
            mapped: 0,
            logical,
            hidden,
            bad: bad::BadBlocks::default(),
            pages: None,
            slc: None,
            opened: None,
            geo,
        }
    }

    /// Returns the number of logical units.
    pub fn logical(&self) -> u64 {
        self.logical
    }
    /// Returns the number of units after the host's.
    pub fn hidden(&self) -> u64 {
        self.hidden
    }
    /// Returns the number of logical units that hold data.
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Returns the slot of a logical unit, if it holds data.
    #[inline]
    pub fn lookup(&self, lpn: Lpn) -> Option<Slot> {
        lookup(&self.map, &self.base, lpn, &self.geo)
    }

    /// Returns the place of the next program unit of a stream in a group: plane of the device, block in the plane, and
    /// program unit in the block. `None` if the group has no free unit for it.
    pub(crate) fn next_program(&self, group: u32, stream: Stream) -> Option<(u32, u32, u32)> {
        let of_slc = if matches!(stream, Stream::Host(_)) { self.next_of_slc(group) } else { None };
        let (number, index) = of_slc.or_else(|| self.groups[group as usize].next_program(stream))?;
        let (row, lane) = (index / self.geo.lanes, index % self.geo.lanes);
        Some((self.geo.plane_of_lane(group, lane), number, row))
    }

    /// Returns the number of program units that the host has taken from the block that it writes in a group.
    pub fn programs_of_host(&self, group: u32) -> u64 {
        self.groups[group as usize].open(Stream::Host(0)).map_or(0, |(_, taken)| u64::from(taken))
    }

    /// Returns the slot that writing the whole device in order would have given a unit that was never written. `None`
    /// if it was written or deallocated.
    pub fn place_if_written(&self, lpn: Lpn) -> Option<Slot> {
        let never = self.map.get(lpn.0).is_none() && self.base.slot(lpn, &self.geo).is_none();
        if never { Base::Sequential { units: u64::MAX }.slot(lpn, &self.geo) } else { None }
    }

    /// Returns the newest copy of a unit.
    pub fn source(&self, lpn: Lpn) -> Source {
        let slot = self.lookup(lpn);
        Source { slot, erases: slot.map_or(0, |s| self.array.erases(self.geo.block_of_slot(s).0)) }
    }

    /// Returns the logical unit whose data was written to a slot.
    #[inline]
    pub fn lpn_at(&self, slot: Slot) -> Option<Lpn> {
        self.array.lpn(slot, &self.base, &self.geo)
    }

    /// Returns whether a slot holds the newest copy of some unit.
    #[inline]
    pub fn is_valid(&self, slot: Slot) -> bool {
        let ru = self.geo.ru_of_slot(slot);
        self.valid.get(slot.0) ^ self.base_valid(ru, slot)
    }

    #[inline]
    fn base_valid(&self, ru: u64, slot: Slot) -> bool {
        let (group, number) = self.split(ru);
        self.groups[group].ru(number).follows_base && self.base.lpn(slot, &self.geo).is_some()
    }

    /// Splits a reclaim unit into its group and its number in the group.
    #[inline]
    pub fn split(&self, ru: u64) -> (usize, u32) {
        let group = self.geo.group_of_ru(ru);
        (group as usize, (ru - u64::from(group) * u64::from(self.geo.shape.blocks)) as u32)
    }
    #[inline]
    fn join(&self, group: u32, number: u32) -> u64 {
        u64::from(group) * u64::from(self.geo.shape.blocks) + u64::from(number)
    }

    /// Returns the number of free reclaim units of a group, without those reserved for a cache.
    #[inline]
    pub fn free(&self, group: u32) -> u32 {
        self.groups[group as usize].free().saturating_sub(self.held(group))
    }

    /// Returns the number of free units that a stream must leave: the host leaves the hard limit, mapping pages one,
    /// moves none. All of them also leave those reserved for a cache.
    fn keep(&self, group: u32, stream: Stream) -> u32 {
        let held = self.held(group);
        held + match stream {
            Stream::Gc(_) | Stream::Wear(_) => 0,
            Stream::Map => 1.min(self.thresholds.hard) + self.left_to_fold(group),
            Stream::Host(_) => self.thresholds.hard + self.left_to_fold(group),
        }
    }

    /// Returns whether [`Ftl::reserve`] would succeed.
    #[inline]
    pub fn can_reserve(&self, group: u32, stream: Stream) -> bool {
        if self.slc.is_some() && matches!(stream, Stream::Host(_)) {
            if self.slc_has_room(group) {
                return true;
            }
            if self.waits_for_fold(group) {
                return false;
            }
        }
        self.can_reserve_ordinary(group, stream)
    }

    /// Returns whether a reservation outside the cache would succeed.
    #[inline]
    fn can_reserve_ordinary(&self, group: u32, stream: Stream) -> bool {
        self.groups[group as usize].can_reserve(stream, self.keep(group, stream))
            || self.has_open_pages(group, stream)
    }

    /// Prefetches the map's entry of a unit.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        self.map.prefetch(lpn.0);
    }

    /// Prefetches what overwriting a unit will change; its entry should have been prefetched before.
    #[inline]
    pub fn prefetch_overwritten(&self, lpn: Lpn) {
        if let Some(old) = self.lookup(lpn) {
            self.valid.prefetch(old.0);
            let (group, number) = self.split(self.geo.ru_of_slot(old));
            self.groups[group].prefetch(number);
        }
    }

    /// Prefetches the neighbours in the index of victims, once that entry has been prefetched.
    #[inline]
    pub(crate) fn prefetch_beside_overwritten(&self, lpn: Lpn) {
        if let Some(old) = self.lookup(lpn) {
            let (group, number) = self.split(self.geo.ru_of_slot(old));
            self.groups[group].index.prefetch_beside(number);
        }
    }

    /// Reserves the next program unit of a stream in a group; returns its first slot. `None`: wait for an erase.
    #[inline]
    pub fn reserve(&mut self, group: u32, stream: Stream) -> Option<Slot> {
        let keep = self.keep(group, stream);
        let (number, index) = self.groups[group as usize].reserve(stream, keep, self.geo.programs_per_ru)?;
        if index == 0 {
            self.note_opened(group, number, stream);
        }
        if self.pages.is_some() && !matches!(stream, Stream::Host(_)) {
            self.count_moved_page(index);
        }
        Some(self.geo.slot_of_program(self.join(group, number), index))
    }

    /// Puts a logical unit, or padding, into a reserved slot.
    #[inline]
    pub fn fill(&mut self, slot: Slot, lpn: Option<Lpn>) {
        self.array.load_register(slot, lpn);
    }

    /// Makes garbage collection of an empty device keep placements apart.
    pub fn isolate(&mut self) {
        self.isolated = true;
        if self.victim.weighs_pools() && self.keeps_apart() {
            let pools = Pools::new(self.placements, self.geo.shape.blocks, self.geo.units_per_ru);
            self.groups.iter_mut().for_each(|group| group.pools = Some(pools.clone()));
        }
    }

    /// Returns whether several placements exist and garbage collection keeps them apart.
    pub fn keeps_apart(&self) -> bool {
        self.isolated && self.placements > 1
    }

    /// Returns the number of placements of the host.
    pub fn placements(&self) -> u8 {
        self.placements
    }

    /// Returns the stream that writes data moved out of a reclaim unit.
    pub fn mover(&self, ru: u64, levels_wear: bool) -> Stream {
        let (group, number) = self.split(ru);
        let placement = if self.isolated { self.groups[group].ru(number).placement } else { 0 };
        if levels_wear { Stream::Wear(placement) } else { Stream::Gc(placement) }
    }

    /// Returns the placement in the out-of-band area of a reclaim unit.
    pub fn placement_on_flash(&self, ru: u64) -> u8 {
        let of = |lane| self.array.placement(self.geo.block_of_ru(ru, lane));
        (0..self.geo.lanes).map(of).max().unwrap_or(0)
    }

    /// Programs the program unit at `slot`; its units may now be committed.
    #[inline]
    pub fn program(&mut self, slot: Slot) {
        if self.placements > 1 {
            let (group, number) = self.split(self.geo.ru_of_slot(slot));
            let placement = self.groups[group].ru(number).placement;
            self.array.place(self.geo.block_of_slot(slot).0, placement);
        }
        self.array.program(slot, &self.geo);
    }

    /// Ends the program unit at `slot`: every unit of it has been committed or dropped.
    #[inline]
    pub fn programmed(&mut self, slot: Slot) {
        let (group, number) = self.split(self.geo.ru_of_slot(slot));
        if self.slc.is_some() && self.slc_programmed(group, number) {
            return;
        }
        self.groups[group].programmed(number, self.clock);
    }

    /// Commits a host write that has become durable: the map now names its slot.
    #[inline]
    pub fn commit(&mut self, lpn: Lpn, slot: Slot) {
        match self.lookup(lpn) {
            Some(old) => self.invalidate(old),
            None => self.mapped += 1,
        }
        self.point(lpn, slot);
        self.counters.host_commits += 1;
    }

    /// Commits a translation page that has become durable.
    pub fn commit_map(&mut self, lpn: Lpn, slot: Slot) {
        debug_assert!(lpn.0 >= self.logical, "the host's units are not translation pages");
        if let Some(old) = self.lookup(lpn) {
            self.invalidate(old);
        }
        self.point(lpn, slot);
        self.counters.map_commits += 1;
    }

    /// Commits a moved copy that has become durable: it counts if the map still names its source. False if it lost the
    /// race.
    #[inline]
    pub fn commit_move(&mut self, lpn: Lpn, from: Slot, to: Slot) -> bool {
        if self.lookup(lpn) != Some(from) {
            self.counters.moves_dropped += 1;
            return false;
        }
        self.invalidate(from);
        self.point(lpn, to);
        self.counters.moves += 1;
        true
    }

    /// Commits a partly written unit that has become durable, together with old data from `from`: it counts if that is
    /// still the newest copy. Otherwise returns false, and the data at `slot` is useless.
    pub fn commit_merge(&mut self, lpn: Lpn, from: Source, slot: Slot) -> bool {
        if self.source(lpn) != from {
            self.counters.merges_dropped += 1;
            return false;
        }
        self.commit(lpn, slot);
        true
    }

    /// Deallocates a unit. False if it held no data.
    pub fn trim(&mut self, lpn: Lpn) -> bool {
        let Some(old) = self.lookup(lpn) else { return false };
        self.invalidate(old);
        self.map.set(lpn.0, DEALLOCATED);
        self.mapped -= 1;
        self.counters.trims += 1;
        true
    }

    #[inline]
    fn point(&mut self, lpn: Lpn, slot: Slot) {
        debug_assert!(
            self.array.is_programmed(slot, &self.geo),
            "the map must not name a page that is not programmed"
        );
        self.map.set(lpn.0, slot.0 + 1);
        self.valid.flip(slot.0);
        let (group, number) = self.split(self.geo.ru_of_slot(slot));
        self.groups[group].rus[number as usize].valid += 1;
        self.groups[group].valid += 1;
        self.clock += 1;
    }

    #[inline]
    fn invalidate(&mut self, slot: Slot) {
        self.valid.flip(slot.0);
        let (group, number) = self.split(self.geo.ru_of_slot(slot));
        let group = &mut self.groups[group];
        group.valid -= 1;
        let ru = &mut group.rus[number as usize];
        ru.valid -= 1;
        if ru.state == RuState::Closed {
            let valid = ru.valid;
            group.index.revalue(number, valid);
            if let Some(pools) = &mut group.pools {
                pools.invalidated(ru.placement, number, valid);
            }
        }
    }

    /// Replaces the victim policy.
    pub fn set_victim(&mut self, victim: Box<dyn Victim>) {
        self.victim = victim;
    }

    /// Picks the closed reclaim unit of a group that the policy wants to reclaim; it is removed from the index.
    ///
    /// A policy need not consider the space gained. If moves cost space themselves, because translation pages change
    /// with them, such a policy could reclaim for ever without progress. So after a lap through the group without any
    /// host data committed, the emptiest unit goes first.
    pub fn pick_victim(&mut self, group: u32) -> Option<u64> {
        let rest = self.wear.gap.and_then(|gap| self.groups[group as usize].rest(gap));
        let g = &self.groups[group as usize];
        let (geo, array) = (&self.geo, &self.array);
        let first = u64::from(group) * u64::from(geo.shape.blocks);
        let erases = |number: u32| array.erases(geo.block_of_ru(first + u64::from(number), 0));
        let view = VictimView {
            index: &g.index,
            rus: &g.rus,
            closed_at: &g.closed_at,
            erases: &erases,
            now: self.clock,
            pools: g.pools.as_ref(),
            units_per_ru: self.geo.units_per_ru,
            units_per_program: self.geo.units_per_program,
        };
        // A unit may be so full that moving it takes as much space as it frees. Policies may choose one, but not if no
        // other exists: reclaiming would go on for ever and gain nothing.
        let emptiest = view.by_valid().next()?;
        if view.valid(emptiest) + self.geo.units_per_program > self.geo.units_per_ru {
            return None;
        }
        let mut number =
            if g.runs_in_circles(self.counters.host_commits) { emptiest } else { self.victim.pick(&view)? };
        if let Some(rest) = rest {
            number = wear::unrested(&view, number, rest, view.units_per_ru - self.geo.units_per_program);
        }
        self.groups[group as usize].count_victim(self.counters.host_commits);
        self.groups[group as usize].collect(number);
        Some(self.join(group, number))
    }

    /// Returns the number of valid units that a group lacks to its share of the logical space; negative if it holds
    /// more.
    pub fn share_left(&self, group: u32) -> i64 {
        let share = (self.logical + self.hidden).div_ceil(u64::from(self.geo.groups));
        share as i64 - self.groups[group as usize].valid as i64
    }

    /// Picks the closed reclaim unit of a group with the fewest valid units, however many; it is removed from the
    /// index.
    pub fn pick_emptiest(&mut self, group: u32) -> Option<u64> {
        let g = &mut self.groups[group as usize];
        // Units after the last record have never been opened.
        let closed = (0u32..).zip(&g.rus).filter(|(_, ru)| ru.state == RuState::Closed);
        let (number, _) = closed.min_by_key(|(_, ru)| ru.valid)?;
        g.collect(number);
        Some(self.join(group, number))
    }

    /// Returns the mask that turns the flags of a reclaim unit's slots into their validity: zero, or all ones if the
    /// base has data in every slot. `None` if it has data in some.
    fn base_mask(&self, ru: u64) -> Option<u64> {
        let (group, number) = self.split(ru);
        if !self.groups[group].ru(number).follows_base {
            return Some(0);
        }
        // The base fills a reclaim unit in order: if it has the last slot, it has all.
        let last = self.geo.slot_of_program(ru, self.geo.programs_per_ru - 1).0;
        let last = Slot(last + u64::from(self.geo.units_per_program) - 1);
        self.base.lpn(last, &self.geo).map(|_| !0)
    }

    /// Returns the next valid slot of a reclaim unit at or after `cursor`, which counts its units block by block; moves
    /// the cursor past it.
    pub fn next_valid(&self, ru: u64, cursor: &mut u32) -> Option<Slot> {
        let per_block = self.geo.units_per_block;
        let mask = self.base_mask(ru);
        while *cursor < self.geo.units_per_ru {
            let (lane, unit) =
                if self.geo.lanes == 1 { (0, *cursor) } else { (*cursor / per_block, *cursor % per_block) };
            let at = self.geo.first_slot(self.geo.block_of_ru(ru, lane)).0 + u64::from(unit);
            let Some(mask) = mask else {
                *cursor += 1;
                if self.is_valid(Slot(at)) {
                    return Some(Slot(at));
                }
                continue;
            };
            let left = per_block - unit;
            let bits = (self.valid.word(at >> 6) ^ mask) >> (at & 63);
            let span = (64 - (at & 63) as u32).min(left);
            let skip = bits.trailing_zeros().min(span);
            *cursor += skip;
            if skip < span {
                *cursor += 1;
                return Some(Slot(at + u64::from(skip)));
            }
        }
        None
    }

    /// Returns the number of valid units of a reclaim unit.
    pub fn valid_units(&self, ru: u64) -> u32 {
        let (group, number) = self.split(ru);
        self.groups[group].ru(number).valid
    }

    /// Begins a read of a slot: its reclaim unit must not be erased before [`Ftl::unpin`].
    #[inline]
    pub fn pin(&mut self, slot: Slot) {
        let (group, number) = self.split(self.geo.ru_of_slot(slot));
        self.groups[group].rus[number as usize].readers += 1;
    }
    /// Ends a read of a slot. True if it was the last one of a unit that is being reclaimed.
    #[inline]
    pub fn unpin(&mut self, slot: Slot) -> bool {
        let (group, number) = self.split(self.geo.ru_of_slot(slot));
        let ru = &mut self.groups[group].rus[number as usize];
        ru.readers -= 1;
        ru.readers == 0 && ru.state == RuState::Collecting
    }
    /// Returns whether reads of a reclaim unit are in flight.
    pub fn is_pinned(&self, ru: u64) -> bool {
        let (group, number) = self.split(ru);
        self.groups[group].rus[number as usize].readers > 0
    }

    /// Registers the erase of a collected reclaim unit.
    pub fn erased(&mut self, ru: u64) {
        for first in block_starts(&self.geo, ru) {
            self.valid.clear(first.0..first.0 + u64::from(self.geo.units_per_block));
        }
        let erases = erase_blocks(&mut self.array, &self.geo, ru);
        self.forgets_skips(ru);
        let (group, number) = self.split(ru);
        self.slc_erased(group, number);
        if self.wears_out() && self.fails(ru) {
            self.groups[group].retire(number);
        } else {
            self.groups[group].release(number, erases);
            self.note_freed(group as u32, number, erases);
        }
        self.counters.erases += 1;
    }
}
