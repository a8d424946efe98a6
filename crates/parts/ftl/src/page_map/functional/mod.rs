//! Functional mode: the same FTL functions, run without time. Preconditioning uses it.

use super::Ftl;
use super::space::{Stream, block_starts};
use proto::{Lpn, Slot};

/// Number of units that are looked up together before they are written.
const AHEAD: usize = 64;

/// Error: no reclaim unit can be freed in a group any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSpace {
    /// Group without space.
    pub group: u32,
    /// Number of its free reclaim units.
    pub free: u32,
}

/// Rule for the group of a unit. Either way, all waiting copies of a unit are in one program unit, in the order in
/// which they were written, so the later one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The logical address decides: static allocation.
    Striped,
    /// Groups take turns in stripe order, a program unit each; a group that cannot get space is skipped. Represents
    /// every dynamic allocation: without time, no die is busier than another.
    InTurn,
}

/// Writer of map units in sequence; packs those of a group into program units.
#[derive(Clone, Debug)]
pub struct FunctionalWriter {
    placement: Placement,
    /// Stripe position whose turn it is.
    turn: u64,
    /// Units that wait for their program unit to fill up: by group if striped, otherwise in one list.
    waiting: Vec<Vec<Lpn>>,
    /// Number of program units written; the number of lists in which units wait follows.
    programs: u64,
    open: u64,
}

impl FunctionalWriter {
    /// Creates a writer for one FTL.
    pub fn new(ftl: &Ftl, placement: Placement) -> FunctionalWriter {
        let lists = if placement == Placement::Striped { ftl.geo.groups as usize } else { 1 };
        FunctionalWriter { placement, turn: 0, waiting: vec![Vec::new(); lists], programs: 0, open: 0 }
    }

    /// Writes one logical unit, reclaiming first if space is short.
    ///
    /// # Errors
    /// If nothing can be reclaimed.
    #[inline]
    pub fn write(&mut self, ftl: &mut Ftl, lpn: Lpn) -> Result<(), NoSpace> {
        let list = self.list(ftl, lpn);
        if ftl.geo.units_per_program == 1 {
            return self.program(ftl, list, &[lpn]);
        }
        self.open += u64::from(self.waiting[list].is_empty());
        self.waiting[list].push(lpn);
        if self.waiting[list].len() == ftl.geo.units_per_program as usize {
            self.flush(ftl, list)
        } else {
            Ok(())
        }
    }

    /// Writes many logical units.
    ///
    /// # Errors
    /// If nothing can be reclaimed.
    pub fn write_all(&mut self, ftl: &mut Ftl, lpns: impl IntoIterator<Item = Lpn>) -> Result<(), NoSpace> {
        let mut lpns = lpns.into_iter();
        let mut ahead = Vec::with_capacity(AHEAD);
        loop {
            ahead.extend(lpns.by_ref().take(AHEAD));
            if ahead.is_empty() {
                return Ok(());
            }
            ftl.look_ahead(&ahead);
            for lpn in ahead.drain(..) {
                self.write(ftl, lpn)?;
            }
        }
    }

    /// Deallocates a unit, also while it waits. False if it held no data.
    pub fn trim(&mut self, ftl: &mut Ftl, lpn: Lpn) -> bool {
        let list = self.list(ftl, lpn);
        let before = self.waiting[list].len();
        self.waiting[list].retain(|l| *l != lpn);
        let waited = self.waiting[list].len() < before;
        self.open -= u64::from(waited && self.waiting[list].is_empty());
        ftl.trim(lpn) || waited
    }

    /// Pads and programs the waiting units.
    ///
    /// # Errors
    /// If nothing can be reclaimed.
    pub fn finish(&mut self, ftl: &mut Ftl) -> Result<(), NoSpace> {
        (0..self.waiting.len()).try_for_each(|list| self.flush(ftl, list))
    }

    /// Returns the rule for the group of a unit.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Returns the group of a unit, if its address decides.
    pub fn group_of(&self, ftl: &Ftl, lpn: Lpn) -> Option<u32> {
        (self.placement == Placement::Striped).then(|| self.list(ftl, lpn) as u32)
    }

    /// Returns the number of program units of host data, counting the waiting units as written.
    pub fn programs(&self) -> u64 {
        self.programs + self.open
    }

    /// Returns the number of waiting units.
    pub fn waiting(&self) -> usize {
        self.waiting.iter().map(Vec::len).sum()
    }

    #[inline]
    fn list(&self, ftl: &Ftl, lpn: Lpn) -> usize {
        match self.placement {
            Placement::Striped => ftl.geo.group_at(ftl.geo.stripe_of_unit(lpn.0)) as usize,
            Placement::InTurn => 0,
        }
    }

    fn flush(&mut self, ftl: &mut Ftl, list: usize) -> Result<(), NoSpace> {
        if self.waiting[list].is_empty() {
            return Ok(());
        }
        self.open -= 1;
        let mut lpns = std::mem::take(&mut self.waiting[list]);
        let done = self.program(ftl, list, &lpns);
        lpns.clear();
        self.waiting[list] = lpns;
        done
    }

    #[inline]
    fn program(&mut self, ftl: &mut Ftl, list: usize, lpns: &[Lpn]) -> Result<(), NoSpace> {
        self.programs += 1;
        if self.placement == Placement::Striped {
            return ftl.write_program(list as u32, lpns);
        }
        let mut full = Ok(());
        for _ in 0..ftl.geo.groups {
            let group = ftl.geo.group_at(self.turn);
            self.turn += 1;
            full = ftl.write_program(group, lpns);
            if full.is_ok() {
                break;
            }
        }
        full
    }
}

impl Ftl {
    /// Writes host data into the next program unit of a group, reclaiming first if the group is short of space. The
    /// rest of the program unit is padded.
    ///
    /// # Errors
    /// If nothing can be reclaimed.
    #[inline]
    pub fn write_program(&mut self, group: u32, lpns: &[Lpn]) -> Result<(), NoSpace> {
        self.make_room(group)?;
        let to = self.reserve_or(group, Stream::Host(0))?;
        self.fill_program(to, lpns.iter().copied());
        self.program(to);
        for (at, lpn) in (to.0..).zip(lpns) {
            self.commit(*lpn, Slot(at));
        }
        self.programmed(to);
        Ok(())
    }

    /// Prefetches what the writes of these units will change: the fetches overlap; in the middle of a write they would
    /// wait for each other.
    fn look_ahead(&self, lpns: &[Lpn]) {
        lpns.iter().for_each(|lpn| self.prefetch(*lpn));
        lpns.iter().for_each(|lpn| self.prefetch_overwritten(*lpn));
        lpns.iter().for_each(|lpn| self.prefetch_beside_overwritten(*lpn));
    }

    #[inline]
    fn reserve_or(&mut self, group: u32, stream: Stream) -> Result<Slot, NoSpace> {
        self.reserve(group, stream).ok_or(NoSpace { group, free: self.free(group) })
    }

    #[inline]
    fn fill_program(&mut self, to: Slot, lpns: impl Iterator<Item = Lpn>) {
        let padded = lpns.map(Some).chain(std::iter::repeat(None));
        for (at, lpn) in (to.0..to.0 + u64::from(self.geo.units_per_program)).zip(padded) {
            self.fill(Slot(at), lpn);
        }
    }

    /// Reclaims until the group has room, as the timed garbage collector would.
    ///
    /// # Errors
    /// If the group is at its hard limit and nothing can be reclaimed.
    #[inline]
    pub fn make_room(&mut self, group: u32) -> Result<(), NoSpace> {
        if self.free(group) > self.thresholds.start { Ok(()) } else { self.reclaim_until_stop(group) }
    }

    #[cold]
    fn reclaim_until_stop(&mut self, group: u32) -> Result<(), NoSpace> {
        let mut levelled = true;
        loop {
            if let Some(ru) = self.pick_unworn(group, levelled) {
                self.reclaim(ru, true)?;
                levelled = true;
            } else if self.free(group) < self.thresholds.stop
                && let Some(ru) = self.pick_victim(group)
            {
                self.reclaim(ru, false)?;
                levelled = false;
            } else {
                break;
            }
        }
        if self.can_reserve_ordinary(group, Stream::Host(0)) {
            Ok(())
        } else {
            Err(NoSpace { group, free: self.free(group) })
        }
    }

    /// Moves the valid units of a collected reclaim unit, for space or to level wear, and erases it. Without time no
    /// move can lose its race, so the map is changed for all of them at once. The resulting state equals that of
    /// [`Ftl::commit_move`] one by one.
    ///
    /// # Errors
    /// If the moves find no space.
    pub fn reclaim(&mut self, ru: u64, levels_wear: bool) -> Result<(), NoSpace> {
        let (group, number) = self.split(ru);
        let moves = self.units_of(ru);
        debug_assert!(moves.iter().all(|(lpn, from)| self.lookup(*lpn) == Some(*from)));
        self.relocate(group as u32, self.mover(ru, levels_wear), &moves)?;
        self.groups[group].rus[number as usize].valid -= moves.len() as u32;
        self.groups[group].valid -= moves.len() as u64;
        self.erased(ru);
        Ok(())
    }

    /// Returns the valid units of a reclaim unit and their slots.
    fn units_of(&self, ru: u64) -> Vec<(Lpn, Slot)> {
        let named = |slot| (self.lpn_at(slot).expect("a valid slot names its unit"), slot);
        let mut units = Vec::with_capacity(self.valid_units(ru) as usize);
        match self.base_mask(ru) {
            Some(mask) => {
                for first in block_starts(&self.geo, ru) {
                    let slots = first.0..first.0 + u64::from(self.geo.units_per_block);
                    units.extend(self.valid.ones(slots, mask).map(|slot| named(Slot(slot))));
                }
            }
            None => {
                let mut cursor = 0;
                units.extend(std::iter::from_fn(|| self.next_valid(ru, &mut cursor)).map(named));
            }
        }
        units
    }

    /// Writes units to a frontier of moved data and points the map at them.
    fn relocate(&mut self, group: u32, stream: Stream, moves: &[(Lpn, Slot)]) -> Result<(), NoSpace> {
        moves.iter().for_each(|(lpn, _)| self.prefetch(*lpn));
        let per_program = self.geo.units_per_program;
        let keep = self.keep(group, stream);
        let mut rest = moves;
        while !rest.is_empty() {
            let wanted = (rest.len() as u32).div_ceil(per_program);
            let frontier = &mut self.groups[group as usize];
            let Some((number, programs)) =
                frontier.reserve_run(stream, keep, self.geo.programs_per_ru, wanted)
            else {
                return Err(NoSpace { group, free: self.free(group) });
            };
            let count = programs.end - programs.start;
            let (now, later) = rest.split_at(rest.len().min((count * per_program) as usize));
            let ru = self.join(group, number);
            for (index, packed) in programs.zip(now.chunks(per_program as usize)) {
                let to = self.geo.slot_of_program(ru, index);
                self.fill_program(to, packed.iter().map(|(lpn, _)| *lpn));
                self.program(to);
                for (at, (lpn, _)) in (to.0..).zip(packed) {
                    self.map.set(lpn.0, at + 1);
                }
                self.valid.flip_range(to.0..to.0 + packed.len() as u64);
            }
            self.clock += now.len() as u64;
            self.counters.moves += now.len() as u64;
            let frontier = &mut self.groups[group as usize];
            frontier.rus[number as usize].valid += now.len() as u32;
            frontier.valid += now.len() as u64;
            frontier.programmed_run(number, count, self.clock);
            rest = later;
        }
        Ok(())
    }

    /// Returns the number of map units programmed since their blocks were erased, padding included.
    pub fn programmed_units(&self) -> u64 {
        self.array.all_programs() * u64::from(self.geo.units_per_program)
    }

    /// Resets the counters: preconditioning is not part of the run. Erases stay, as the array remembers them too.
    pub fn reset_counters(&mut self) {
        self.counters = super::FtlCounters { erases: self.counters.erases, ..Default::default() };
        for group in &mut self.groups {
            group.free_min = group.free();
        }
    }

    /// Returns the bytes of the map, flags, out-of-band words and records of reclaim units.
    pub fn bytes(&self) -> u64 {
        let groups: u64 = self.groups.iter().map(|g| g.bytes()).sum();
        self.map.bytes() + self.valid.bytes() + self.array.bytes() + groups
    }
}

#[cfg(test)]
mod tests;
