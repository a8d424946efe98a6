//! Whether a state that was loaded is one that a translation layer can be in: a file may be damaged, or made up, behind a checksum that is right.
//!
//! What is checked is whatever one part of the state says of another: lists and what they list, counts and what they count, the map and the
//! array. That a state is the one that its writer has reached cannot be seen.

use super::space::{Group, erases_of, is_group_sound};
use super::{Ftl, FtlCounters};
use proto::Lpn;

/// Commits and erases beyond which no preconditioning goes: sums of what follows still fit.
const MOST: u64 = 1 << 56;
/// Slots whose owners are looked up together.
const AHEAD: usize = 64;

impl Ftl {
    /// Whether the state is one that preconditioning can leave: nothing under way, and every list, count and map entry agrees with what it is about.
    /// O(units written, and reclaim units).
    pub fn is_sound(&self) -> bool {
        self.is_within_bounds() && self.groups_are_sound() && self.is_at_rest() && self.maps_what_is_valid()
    }

    /// Numbers that others are looked up by, and those that only grow.
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

    /// Every reclaim unit is in the list of its state, and the array holds what was given out of it.
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

    /// Whether blocks of open units are programmed in turn, and those of units that were never opened not at all.
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

    /// Every valid slot is the place of the unit that was written to it, and every unit that the map knows has one.
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

    /// Whether nothing has touched a reclaim unit since the base was laid out: it holds nothing, or all that the base has there.
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

    /// Units that the map knows; `None` if they are others than are counted, or if one of them has its place in the base as well.
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
