//! SLC cache: reclaim units written with one bit per cell, faster and smaller, for host writes.
//!
//! A reclaim unit of the cache holds its first `1 / bits` program units, each programmed and read in the times of a
//! single bit. Any free unit can be one; this is decided when the unit is opened, and the controller remembers it on
//! flash. A number of units is reserved for the cache (static), and a share of the remaining free units may be added
//! (dynamic): Samsung's Intelligent TurboWrite has both parts (white paper of the 850 EVO, data sheets of the 970 EVO
//! and 980 PRO), Micron's dynamic write acceleration the second (technical brief, 2014).
//!
//! The cache's data is moved to ordinary units by a job like those of garbage collection, the unit closed first in
//! front: folding.

use super::Ftl;
use super::space::Stream;
use super::units::RuState;
use crate::buffer::destage::Pace;
use config::units::Share;
use engine::{Mutant, Snapshot, planted_nth};
use proto::Slot;
use std::collections::VecDeque;

/// Size of the cache, and its behaviour when it is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlcRule {
    /// Bits per cell elsewhere.
    pub bits: u32,
    /// Number of reclaim units of a group reserved for the cache.
    pub fixed: u32,
    /// Share of the other free units, beyond the goal of garbage collection, that may be added.
    pub dynamic: Share,
    /// True if host data waits for room in the cache; otherwise it goes to ordinary units.
    pub waits: bool,
}

/// Cache of a group.
#[derive(Clone, Debug, Default)]
struct Part {
    /// Membership flags by reclaim unit; empty as long as none was a member.
    members: Vec<bool>,
    /// Number of members.
    count: u32,
    /// Unit being written, and the program units taken from it.
    open: Option<(u32, u32)>,
    /// Completely written units, the one closed first in front.
    closed: VecDeque<u32>,
    /// True while a unit is being folded and an ordinary unit may be opened although none becomes free: all others
    /// leave it.
    takes: bool,
}

impl Part {
    fn has(&self, number: u32) -> bool {
        self.members.get(number as usize).is_some_and(|member| *member)
    }
}

/// Caches of all groups.
#[derive(Clone, Debug)]
pub(crate) struct Slc {
    rule: SlcRule,
    /// Program units that a reclaim unit holds with one bit per cell.
    programs: u32,
    parts: Vec<Part>,
}

impl Slc {
    /// Returns the number of units reserved for the cache and not in use.
    fn held(&self, group: u32) -> u32 {
        self.rule.fixed.saturating_sub(self.parts[group as usize].count)
    }

    /// Returns the program units allocated from a unit of the cache; `None` if the unit is not in the cache.
    pub(crate) fn given(&self, group: usize, number: u32) -> Option<u32> {
        let part = &self.parts[group];
        let open = part.open.filter(|(open, _)| *open == number).map(|(_, taken)| taken);
        part.has(number).then(|| open.unwrap_or(self.programs))
    }

    /// Returns the numbers of units being written, and of units listed as closed.
    pub(crate) fn listed(&self, group: usize) -> (u64, u64) {
        let part = &self.parts[group];
        (u64::from(part.open.is_some()), part.closed.len() as u64)
    }

    /// Returns whether no unit belongs to the cache: preconditioning writes to others.
    pub(crate) fn is_unused(&self) -> bool {
        let unused = |part: &Part| {
            let Part { members, count, open, closed, takes } = part;
            members.is_empty() && *count == 0 && open.is_none() && closed.is_empty() && !takes
        };
        self.parts.iter().all(unused)
    }

    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        for Part { members, count, open, closed, takes } in &self.parts {
            members.save(out);
            count.save(out);
            open.save(out);
            closed.iter().copied().collect::<Vec<u32>>().save(out);
            takes.save(out);
        }
    }

    pub(crate) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        for part in &mut self.parts {
            part.members = Vec::load(input)?;
            part.count = u32::load(input)?;
            part.open = Option::load(input)?;
            part.closed = Vec::<u32>::load(input)?.into();
            part.takes = bool::load(input)?;
        }
        Some(())
    }
}

/// Answer of the cache to a host program.
enum Room {
    /// The program goes to this slot.
    At(Slot),
    /// The program waits.
    Wait,
    /// The program goes to an ordinary unit.
    None,
}

impl Ftl {
    /// Makes host data go to SLC units first; nothing was written yet.
    pub fn cache_in_slc(&mut self, rule: SlcRule) {
        let rows = self.geo.programs_per_ru / self.geo.lanes / rule.bits;
        let parts = vec![Part::default(); self.geo.groups as usize];
        self.slc = Some(Box::new(Slc { rule, programs: rows * self.geo.lanes, parts }));
    }

    /// Returns whether a slot is in a cell of one bit.
    #[inline]
    pub fn is_slc(&self, slot: Slot) -> bool {
        self.slc.is_some() && self.is_in_cache(slot)
    }

    #[cold]
    fn is_in_cache(&self, slot: Slot) -> bool {
        let (group, number) = self.split(self.geo.ru_of_slot(slot));
        self.slc.as_ref().is_some_and(|slc| slc.parts[group].has(number))
    }

    /// Returns the number of free units of a group reserved for the cache.
    #[inline]
    pub(super) fn held(&self, group: u32) -> u32 {
        self.slc.as_ref().map_or(0, |slc| slc.held(group))
    }

    /// Returns the number of free units of a group reserved for a fold.
    pub(super) fn left_to_fold(&self, group: u32) -> u32 {
        self.slc.as_ref().map_or(0, |slc| u32::from(slc.parts[group as usize].takes))
    }

    /// Returns the number of units that the cache of a group may still open: those reserved for it, and the share
    /// `dynamic` of the units that would be free beyond the goal of garbage collection without the cache.
    pub fn slc_left(&self, group: u32) -> u32 {
        let Some(slc) = &self.slc else { return 0 };
        let held = slc.held(group).min(self.groups[group as usize].free());
        let added = slc.parts[group as usize].count.saturating_sub(slc.rule.fixed);
        let spare = (self.free(group) + added).saturating_sub(self.thresholds.stop);
        let most = slc.rule.dynamic.of(spare.into()) as u32;
        held + most.saturating_sub(added).min(self.free(group))
    }

    /// Returns the number of a group's units that the cache uses, and the number that can be folded.
    pub fn slc_units(&self, group: u32) -> (u32, u32) {
        self.slc.as_ref().map_or((0, 0), |slc| {
            let part = &slc.parts[group as usize];
            (part.count, part.closed.len() as u32)
        })
    }

    /// Returns whether the cache of a group takes space that ordinary units lack.
    pub fn slc_is_over(&self, group: u32) -> bool {
        self.slc.as_ref().is_some_and(|slc| slc.parts[group as usize].count > slc.rule.fixed)
    }

    /// Returns whether host data of a group waits until its cache has been folded.
    pub fn waits_for_fold(&self, group: u32) -> bool {
        self.slc.as_ref().is_some_and(|slc| {
            let part = &slc.parts[group as usize];
            slc.rule.waits && part.count > 0 && part.open.is_none() && self.slc_left(group) == 0
        })
    }

    /// Returns the place of the next host program in a group if the cache takes it: reclaim unit and its program unit.
    pub(super) fn next_of_slc(&self, group: u32) -> Option<(u32, u32)> {
        let slc = self.slc.as_ref()?;
        let open = slc.parts[group as usize].open;
        open.or_else(|| (self.slc_left(group) > 0).then(|| self.groups[group as usize].next_free())?)
    }

    /// Returns whether a host program finds room, ignoring ordinary units.
    pub(super) fn slc_has_room(&self, group: u32) -> bool {
        self.slc.as_ref().is_some_and(|slc| slc.parts[group as usize].open.is_some())
            || self.slc_left(group) > 0
    }

    /// Reserves as [`Ftl::reserve`] does, for host data: in the cache if it has room.
    #[inline]
    pub fn reserve_for_host(&mut self, group: u32, stream: Stream, pace: Pace) -> Option<Slot> {
        if self.slc.is_some() {
            match self.reserve_in_slc(group, stream) {
                Room::At(slot) => return Some(slot),
                Room::Wait => return None,
                Room::None => {}
            }
        }
        self.reserve_at(group, stream, pace)
    }

    fn reserve_in_slc(&mut self, group: u32, stream: Stream) -> Room {
        let waits = self.waits_for_fold(group);
        let may_open = self.slc_left(group) > 0;
        let Some(slc) = &mut self.slc else { return Room::None };
        let programs = slc.programs;
        let part = &mut slc.parts[group as usize];
        let records = &mut self.groups[group as usize];
        let mut opened = None;
        let open = match part.open {
            Some(open) => open,
            None if !may_open && waits => return Room::Wait,
            None if !may_open => return Room::None,
            None => {
                if planted_nth(Mutant::WrongCacheBlock, 4) {
                    records.misplace_freed();
                }
                let Some(number) = records.open_free(stream, 0) else { return Room::None };
                opened = Some(number);
                part.members.resize(part.members.len().max(number as usize + 1), false);
                part.members[number as usize] = true;
                part.count += 1;
                (number, 0)
            }
        };
        let (number, index) = open;
        records.gives_out(number);
        part.open = (index + 1 < programs).then_some((number, index + 1));
        if part.open.is_none() {
            records.rus[number as usize].state = RuState::Full;
        }
        if let Some(number) = opened {
            self.note_opened(group, number, stream);
        }
        Room::At(self.geo.slot_of_program(self.join(group, number), index))
    }

    /// Registers a program of a group's unit; returns whether the unit is in the cache, which lists it once it is full.
    #[cold]
    pub(super) fn slc_programmed(&mut self, group: usize, number: u32) -> bool {
        let Some(slc) = self.slc.as_mut().filter(|slc| slc.parts[group].has(number)) else { return false };
        let unit = &mut self.groups[group].rus[number as usize];
        unit.inflight -= 1;
        if unit.state == RuState::Full && unit.inflight == 0 {
            unit.state = RuState::Cached;
            unit.short = true;
            slc.parts[group].closed.push_back(number);
        }
        true
    }

    /// Picks the unit of a group's cache that was closed first; it is removed from the list.
    pub fn pick_fold(&mut self, group: u32) -> Option<u64> {
        let gains = self.slc_is_over(group);
        let part = &mut self.slc.as_mut()?.parts[group as usize];
        let number = part.closed.pop_front()?;
        part.takes = !gains;
        self.groups[group as usize].rus[number as usize].state = RuState::Collecting;
        Some(self.join(group, number))
    }

    /// Removes an erased reclaim unit from the cache.
    pub(super) fn slc_erased(&mut self, group: usize, number: u32) {
        let Some(slc) = self.slc.as_mut().filter(|slc| slc.parts[group].has(number)) else { return };
        slc.parts[group].members[number as usize] = false;
        slc.parts[group].count -= 1;
        slc.parts[group].takes = false;
    }

    /// Returns the reclaim units of the cache: the list of them is on flash.
    pub fn slc_members(&self) -> Vec<u64> {
        let Some(slc) = &self.slc else { return Vec::new() };
        let of = |group: u32| {
            let members = (0..).zip(&slc.parts[group as usize].members);
            members.filter(|(_, member)| **member).map(move |(number, _)| self.join(group, number))
        };
        (0..self.geo.groups).flat_map(of).collect()
    }

    /// Restores, after a power cut, the cache's own units among those that a scan has found closed, the one opened
    /// first in front.
    pub fn find_slc(&mut self, members: &[u64]) {
        let mut closed: Vec<(u64, usize, u32)> = members
            .iter()
            .map(|ru| self.split(*ru))
            .filter(|(group, number)| self.groups[*group].ru(*number).state == RuState::Closed)
            .map(|(group, number)| (self.groups[group].closed_at[number as usize], group, number))
            .collect();
        closed.sort_unstable();
        for (_, group, number) in closed {
            let Some(slc) = &mut self.slc else { return };
            self.groups[group].collect(number);
            let unit = &mut self.groups[group].rus[number as usize];
            (unit.state, unit.short) = (RuState::Cached, true);
            let part = &mut slc.parts[group];
            part.members.resize(part.members.len().max(number as usize + 1), false);
            part.members[number as usize] = true;
            part.count += 1;
            part.closed.push_back(number);
        }
    }
}
