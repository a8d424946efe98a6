//! State of the translation layer: saved and loaded, checked, copied, and recovered by a scan of flash.

use super::space::{Group, erases_of, is_group_sound};
use super::{DEALLOCATED, Ftl, FtlCounters};
use engine::Snapshot;
use nand::base::Base;
use nand::sparse::{Bits, Table, length_ahead};
use nand::{array::NandArray, geometry::Geometry};
use proto::{Lpn, Slot};

impl Ftl {
    /// Appends the state, including that of the victim policy, without geometry, thresholds and policies.
    pub fn save(&self, out: &mut Vec<u8>) {
        // Naming every field turns a forgotten one into a compile error.
        let Ftl {
            geo: _,
            array,
            map,
            valid,
            base,
            groups,
            victim,
            wear: _,
            placements: _,
            isolated: _,
            thresholds: _,
            clock,
            counters,
            mapped,
            logical: _,
            hidden: _,
            bad,
            pages,
            slc,
            opened: _,
        } = self;
        array.save(out);
        map.save(out);
        valid.save(out);
        base.save(out);
        groups.save(out);
        clock.save(out);
        counters.save(out);
        mapped.save(out);
        bad.save(out);
        if let Some(pages) = pages {
            pages.save(out);
            array.save_skips(out);
        }
        slc.iter().for_each(|slc| slc.save(out));
        victim.save(out);
    }

    /// Restores the state that a translation layer with the same parameters saved; `None` if it is truncated or
    /// malformed.
    pub fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.opened = None;
        // Lengths first: a damaged one must end in `None`, not in a huge allocation.
        let ahead = |input: &[u8], len: u64| (length_ahead(input)? == len).then_some(());
        ahead(input, self.geo.slots)?;
        self.array = NandArray::load(input).filter(|array| array.is_like(&self.array))?;
        ahead(input, self.logical + self.hidden)?;
        self.map = Table::load(input).filter(|map| map.is_like(&self.map))?;
        ahead(input, self.geo.slots.div_ceil(64))?;
        self.valid = Bits::load(input).filter(|valid| valid.is_like(&self.valid))?;
        self.base = Base::load(input)?;
        let groups = Vec::<Group>::load(input).filter(|groups| groups.len() == self.groups.len())?;
        if !groups.iter().zip(&self.groups).all(|(group, built)| group.fits(built)) {
            return None;
        }
        self.groups = groups;
        self.clock = u64::load(input)?;
        self.counters = FtlCounters::load(input)?;
        self.mapped = u64::load(input)?;
        self.bad.load(input)?;
        if let Some(pages) = &mut self.pages {
            pages.load(input)?;
            self.array.load_skips(input, &self.geo)?;
        }
        if let Some(slc) = &mut self.slc {
            slc.load(input)?;
        }
        self.victim.load(input)
    }
}

// Soundness of a loaded state: a file may be damaged, or forged, behind a correct checksum.
//
// The checks compare parts of the state with each other: lists with their items, counts with what they count, the map
// with the array. Whether the state is the one that its writer reached cannot be checked.

/// Maximum number of commits and erases of any preconditioning: later sums still fit.
const MOST: u64 = 1 << 56;
/// Number of slots whose owners are looked up together.
const AHEAD: usize = 64;

impl Ftl {
    /// Returns whether the state is one that preconditioning can leave: nothing in flight, and every list, count and
    /// map entry consistent. O(units written, and reclaim units).
    pub fn is_sound(&self) -> bool {
        self.is_within_bounds() && self.groups_are_sound() && self.is_at_rest() && self.maps_what_is_valid()
    }

    /// Checks indices, and numbers that only grow.
    fn is_within_bounds(&self) -> bool {
        let units = self.logical + self.hidden;
        let FtlCounters { host_commits, map_commits, moves, moves_dropped, merges_dropped, trims, erases: _ } =
            self.counters;
        let counts = [host_commits, map_commits, moves, moves_dropped, merges_dropped, trims];
        let erases: u64 = self.array.all_erases().iter().map(|count| u64::from(*count)).sum();
        self.clock < MOST
            && erases < MOST
            && self.counters.erases.checked_mul(u64::from(self.geo.lanes)) == Some(erases)
            && counts.iter().all(|count| *count < MOST)
            && self.base.units() <= units.min(self.geo.slots)
            && self.bad.is_within(&self.groups)
            && self.array.is_within(&self.geo, units)
            && self.map.written_words().all(|(_, word)| word <= self.geo.slots)
    }

    fn groups_are_sound(&self) -> bool {
        (0u32..).zip(&self.groups).all(|(number, group)| {
            let erases = |ru: u32| erases_of(&self.array, &self.geo, self.join(number, ru));
            is_group_sound(group, &self.geo, self.placements, self.clock, &erases)
        })
    }

    /// Returns whether every reclaim unit is in the list of its state, and the array holds what was allocated from it.
    fn is_at_rest(&self) -> bool {
        let is_unused = self.slc.as_ref().is_none_or(|slc| slc.is_unused())
            && self.pages.as_ref().is_none_or(|pages| pages.is_unused());
        if !is_unused {
            return false;
        }
        let census = self.census();
        let [free, open, full, closed, collecting, bad, cached] = census.states;
        let wrong = [full, collecting, cached, census.readers, census.inflight];
        wrong == [0; 5]
            && [census.miscounted, census.misprogrammed] == [0; 2]
            && [free, open, closed, bad]
                == [census.listed_free, census.frontiers, census.listed_closed, census.listed_bad]
            && free + open + closed + bad == self.geo.ru_count
            && (0u32..).zip(&self.groups).all(|(number, group)| self.is_programmed_in_order(number, group))
    }

    /// Returns whether blocks of open units are programmed in turn, and those of units that were never opened not at
    /// all.
    fn is_programmed_in_order(&self, number: u32, group: &Group) -> bool {
        let lanes = self.geo.lanes;
        let is_in_turn = |(ru, taken): (u32, u32)| {
            (0..lanes).all(|lane| {
                let block = self.geo.block_of_ru(self.join(number, ru), lane);
                self.array.programs(block) == taken / lanes + u32::from(lane < taken % lanes)
            })
        };
        let opened = group.rus.len() as u32;
        group.open_units().all(is_in_turn) && (opened..group.usable()).all(|ru| is_in_turn((ru, 0)))
    }

    /// Returns whether every valid slot is the place of the unit that was written to it, and every unit that the map
    /// knows has one.
    fn maps_what_is_valid(&self) -> bool {
        let Some(mapped) = self.mapped_units() else { return false };
        let is_where_it_lies = |lpn: Lpn, slot| self.lookup(lpn) == Some(slot);
        let mut ahead = Vec::with_capacity(AHEAD);
        for ru in 0..self.geo.ru_count {
            if self.is_as_the_base_has_it(ru) {
                continue;
            }
            let mut cursor = 0;
            let mut slots = std::iter::from_fn(|| self.next_valid(ru, &mut cursor));
            loop {
                for slot in slots.by_ref().take(AHEAD) {
                    let Some(lpn) = self.lpn_at(slot).filter(|_| self.array.is_programmed(slot, &self.geo))
                    else {
                        return false;
                    };
                    self.prefetch(lpn);
                    ahead.push((lpn, slot));
                }
                if ahead.is_empty() {
                    break;
                }
                if !ahead.drain(..).all(|(lpn, slot)| is_where_it_lies(lpn, slot)) {
                    return false;
                }
            }
        }
        // As many valid slots as units, and no two of a unit: each unit has one.
        self.recount_valid() == Ok(mapped)
    }

    /// Returns whether a reclaim unit is untouched since the base was laid out: empty, or with all that the base has
    /// there.
    fn is_as_the_base_has_it(&self, ru: u64) -> bool {
        let Some(valid) = self.untouched_valid(ru) else { return false };
        let is_whole = || {
            let per_block = u64::from(self.geo.units_per_block);
            let is_untouched = |lane| {
                let block = self.geo.block_of_ru(ru, lane);
                let first = self.geo.first_slot(block).0;
                self.array.erases(block) == 0 && self.array.names_nothing(first..first + per_block)
            };
            (0..self.geo.lanes).all(is_untouched) && self.programs_of(ru) == Some(self.geo.programs_per_ru)
        };
        valid == 0 || is_whole()
    }

    /// Returns the number of units that the map knows; `None` if they differ from the count, or if one also has its
    /// place in the base.
    fn mapped_units(&self) -> Option<u64> {
        let based = self.base.units();
        let (mut host, mut hidden) = (based.min(self.logical), based.saturating_sub(self.logical));
        for (lpn, word) in self.map.written_words() {
            let of = if lpn < self.logical { &mut host } else { &mut hidden };
            *of = *of + u64::from(word > 0) - u64::from(lpn < based);
            let left = self.base.slot(Lpn(lpn), &self.geo).filter(|_| lpn < based);
            if left.is_some_and(|left| {
                word != left.0 + 1 && self.is_valid(left) && self.lpn_at(left) == Some(Lpn(lpn))
            }) {
                return None;
            }
        }
        (host == self.mapped).then_some(host + hidden)
    }
}

/// Copy of the map at some moment.
pub struct MapCopy {
    map: Table,
    base: Base,
}

impl MapCopy {
    /// Returns the slot of a logical unit at that moment.
    pub fn lookup(&self, lpn: Lpn, geo: &Geometry) -> Option<Slot> {
        lookup(&self.map, &self.base, lpn, geo)
    }

    /// Iterates over the units whose place had been written into the map, in ascending order: all others were where the
    /// base says.
    pub fn written(&self) -> impl Iterator<Item = Lpn> {
        self.map.written().map(Lpn)
    }

    /// Returns whether a unit's place had been written into the map.
    pub fn is_written(&self, lpn: Lpn) -> bool {
        self.map.get(lpn.0).is_some()
    }
}

#[inline]
pub(super) fn lookup(map: &Table, base: &Base, lpn: Lpn, geo: &Geometry) -> Option<Slot> {
    match map.get(lpn.0) {
        Some(word) => word.checked_sub(1).map(Slot),
        None => base.slot(lpn, geo),
    }
}

impl Ftl {
    /// Returns a copy of the map, for an observer that must know the state at its start.
    pub fn map_copy(&self) -> MapCopy {
        MapCopy { map: self.map.clone(), base: self.base }
    }

    /// Iterates over the units whose place has been written into the map, in ascending order: all others are where the
    /// base says.
    pub fn written(&self) -> impl Iterator<Item = Lpn> {
        self.map.written().map(Lpn)
    }

    /// Returns whether a unit's place has been written into the map.
    pub fn is_written(&self, lpn: Lpn) -> bool {
        self.map.get(lpn.0).is_some()
    }

    /// Returns whether the base is that of a copy of the map.
    pub fn based_on(&self, copy: &MapCopy) -> bool {
        self.base == copy.base
    }

    /// Returns the unit that the base has at a slot.
    pub fn base_unit(&self, slot: Slot) -> Option<Lpn> {
        self.base.lpn(slot, &self.geo)
    }
}

// Map as recovered by a scan of flash.

impl Ftl {
    /// Returns the state that survives a power cut.
    pub fn into_array(self) -> (NandArray, Base) {
        (self.array, self.base)
    }

    /// Sets the base: the content of never-erased blocks that is not stored one by one. The map must not follow it: see
    /// [`Ftl::forget_map`].
    pub fn set_base(&mut self, base: Base) {
        self.base = base;
    }

    /// Begins a scan: no unit has been found.
    pub fn forget_map(&mut self) {
        let units = self.logical + self.hidden;
        self.map = Table::new(units, self.geo.slots + 2);
        self.valid = Bits::new(self.geo.slots);
        self.mapped = 0;
    }

    /// Returns the copy of a unit that counts so far.
    pub fn found(&self, lpn: Lpn) -> Option<Slot> {
        self.map.get(lpn.0).and_then(|word| word.checked_sub(1)).map(Slot)
    }

    /// Replaces the copy of a unit found before by one that counts more.
    pub fn find(&mut self, lpn: Lpn, slot: Slot) {
        self.map.set(lpn.0, slot.0 + 1);
    }

    /// Ends the search for a unit: a found copy is valid, and a unit that was not found holds no data. Returns whether
    /// it was found.
    pub fn accept_found(&mut self, lpn: Lpn) -> bool {
        let Some(slot) = self.found(lpn) else {
            self.map.set(lpn.0, DEALLOCATED);
            return false;
        };
        self.valid.flip(slot.0);
        self.mapped += u64::from(lpn.0 < self.logical);
        true
    }

    /// Returns the number of units found in a reclaim unit.
    pub fn found_in(&self, ru: u64) -> u32 {
        (0..self.geo.lanes)
            .map(|lane| {
                let first = self.geo.first_slot(self.geo.block_of_ru(ru, lane)).0;
                self.valid.ones(first..first + u64::from(self.geo.units_per_block), 0).count() as u32
            })
            .sum()
    }

    /// Sets the clock from which ages count.
    pub fn set_clock(&mut self, clock: u64) {
        self.clock = clock;
    }

    /// Returns the number of map units committed since the beginning.
    pub fn clock(&self) -> u64 {
        self.clock
    }
}
