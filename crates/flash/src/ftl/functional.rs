//! The functional mode: the same FTL functions, run without time. Preconditioning uses it.

use super::space::{RuState, Stream};
use super::{Ftl, base::Base};
use proto::{Lpn, Slot};

/// No reclaim unit can be freed in a group any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSpace {
    /// The group.
    pub group: u32,
    /// Its free reclaim units.
    pub free: u32,
}

/// Writes map units one after another, packing neighbours of a group into program units.
#[derive(Debug, Default)]
pub struct FunctionalWriter {
    /// Open program unit of each group: first slot and units filled.
    open: Vec<Option<(Slot, u32)>>,
    pending: Vec<Vec<Lpn>>,
}

impl FunctionalWriter {
    /// A writer for one FTL.
    pub fn new(ftl: &Ftl) -> FunctionalWriter {
        FunctionalWriter {
            open: vec![None; ftl.geo.groups as usize],
            pending: vec![Vec::new(); ftl.geo.groups as usize],
        }
    }

    /// Writes one logical unit into a group, reclaiming first if the group is short of space.
    ///
    /// # Errors
    /// If nothing can be reclaimed.
    pub fn write(&mut self, ftl: &mut Ftl, group: u32, lpn: Lpn) -> Result<(), NoSpace> {
        let g = group as usize;
        if self.open[g].is_none() {
            ftl.make_room(group)?;
            let slot = ftl.reserve(group, Stream::Host(0)).ok_or(NoSpace { group, free: ftl.free(group) })?;
            self.open[g] = Some((slot, 0));
        }
        if let Some((first, filled)) = self.open[g].as_mut() {
            ftl.fill(Slot(first.0 + u64::from(*filled)), Some(lpn));
            self.pending[g].push(lpn);
            *filled += 1;
            if *filled == ftl.geo.units_per_program {
                self.close(ftl, group);
            }
        }
        Ok(())
    }

    /// Pads and programs what is open.
    pub fn finish(&mut self, ftl: &mut Ftl) {
        for group in 0..ftl.geo.groups {
            self.close(ftl, group);
        }
    }

    fn close(&mut self, ftl: &mut Ftl, group: u32) {
        let Some((first, filled)) = self.open[group as usize].take() else { return };
        for pad in filled..ftl.geo.units_per_program {
            ftl.fill(Slot(first.0 + u64::from(pad)), None);
        }
        ftl.program(first);
        for (at, lpn) in self.pending[group as usize].drain(..).enumerate() {
            ftl.commit(lpn, Slot(first.0 + at as u64));
        }
        ftl.programmed(first);
    }
}

impl Ftl {
    /// Reclaims until the group has room, as the timed garbage collector would.
    ///
    /// # Errors
    /// If the group is at its hard limit and nothing can be reclaimed.
    pub fn make_room(&mut self, group: u32) -> Result<(), NoSpace> {
        if self.free(group) > self.thresholds.start {
            return Ok(());
        }
        while self.free(group) < self.thresholds.stop {
            match self.pick_victim(group) {
                Some(ru) => self.reclaim(ru)?,
                None => break,
            }
        }
        if self.can_reserve(group, Stream::Host(0)) {
            Ok(())
        } else {
            Err(NoSpace { group, free: self.free(group) })
        }
    }

    /// Moves the valid units of a collected reclaim unit and erases it.
    ///
    /// # Errors
    /// If the moves find no space.
    pub fn reclaim(&mut self, ru: u64) -> Result<(), NoSpace> {
        let group = self.geo.group_of_ru(ru);
        let per_program = self.geo.units_per_program;
        let mut cursor = 0;
        let mut done = false;
        while !done {
            let mut first: Option<Slot> = None;
            let mut filled = 0;
            let start = cursor;
            while filled < per_program {
                let Some(from) = self.next_valid(ru, &mut cursor) else {
                    done = true;
                    break;
                };
                let to = match first {
                    Some(slot) => slot,
                    None => {
                        self.reserve(group, Stream::Gc).ok_or(NoSpace { group, free: self.free(group) })?
                    }
                };
                first = Some(to);
                let lpn = self.lpn_at(from);
                self.fill(Slot(to.0 + u64::from(filled)), lpn);
                filled += 1;
            }
            let Some(to) = first else { break };
            for pad in filled..per_program {
                self.fill(Slot(to.0 + u64::from(pad)), None);
            }
            self.program(to);
            // Second walk over the same units: commits must follow the program.
            cursor = start;
            for n in 0..filled {
                if let Some(from) = self.next_valid(ru, &mut cursor)
                    && let Some(lpn) = self.lpn_at(from)
                {
                    self.commit_move(lpn, from, Slot(to.0 + u64::from(n)));
                }
            }
            self.programmed(to);
        }
        self.erased(ru);
        Ok(())
    }

    /// Declares logical units `0..units` written once, in order, onto the empty device: O(reclaim units).
    ///
    /// # Panics
    /// If anything was written before.
    pub fn assume_sequential(&mut self, units: u64) {
        assert!(self.mapped == 0 && self.clock == 0, "only an empty device can be declared filled");
        self.base = Base::Sequential { units };
        self.mapped = units;
        self.clock = units;
        let (per_program, per_ru) =
            (u64::from(self.geo.units_per_program), u64::from(self.geo.programs_per_ru));
        let groups = u64::from(self.geo.groups);
        let stripes = units.div_ceil(per_program);
        for group in 0..self.geo.groups {
            // Program units this group received: its stripe positions below `stripes`.
            let position = self.geo.sequential_unit(group, 0, 0) / per_program;
            let programs = (stripes + groups - 1 - position) / groups;
            for nth in 0..programs.div_ceil(per_ru) {
                let taken = (programs - nth * per_ru).min(per_ru) as u32;
                self.assume_ru(group, taken, units);
            }
        }
    }

    fn assume_ru(&mut self, group: u32, programs: u32, units: u64) {
        let mut first = None;
        for _ in 0..programs {
            first =
                self.groups[group as usize].reserve(Stream::Host(0), 0, self.geo.programs_per_ru).or(first);
        }
        let Some((number, _)) = first else { return };
        let ru = self.join(group, number);
        for lane in 0..self.geo.lanes {
            // Program unit `index` lies in lane `index % lanes`.
            let rows = (programs + self.geo.lanes - 1 - lane) / self.geo.lanes;
            self.array.assume_programmed(self.geo.block_of_ru(ru, lane), rows);
        }
        let last = self.geo.slot_of_program(ru, programs - 1);
        let last_start = self.base.lpn(last, &self.geo).map_or(units, |l| l.0);
        let per_program = u64::from(self.geo.units_per_program);
        let in_last = (units - last_start).min(per_program);
        let state = &mut self.groups[group as usize].rus[number as usize];
        state.follows_base = true;
        state.valid = ((u64::from(programs) - 1) * per_program + in_last) as u32;
        let closes = state.state == RuState::Full;
        state.inflight = u32::from(closes);
        let valid = u64::from(state.valid);
        self.groups[group as usize].valid += valid;
        if closes {
            self.groups[group as usize].programmed(number, self.clock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::Thresholds;
    use crate::ftl::gc::{VictimContext, greedy::Greedy};
    use crate::geometry::{Geometry, Reclaim, Shape, tests::small};
    use kernel::Rng;
    use proptest::prelude::*;

    fn ftl(reclaim: Reclaim, logical: u64) -> Ftl {
        let blocks = if reclaim == Reclaim::Superblock { 24 } else { 16 };
        let geo = Geometry::new(Shape { blocks, ..small(reclaim) });
        Ftl::new(
            geo,
            (logical, 0),
            1,
            false,
            Thresholds { start: 3, stop: 4, hard: 1 },
            Box::new(Greedy::new(&VictimContext { seed: 1, device: "flash".into() })),
        )
    }

    /// The naive reference: what each logical unit's slot must satisfy.
    fn check(ftl: &Ftl, written: &[bool]) {
        let mut per_ru = vec![0; ftl.geo.ru_count as usize];
        for (lpn, written) in written.iter().enumerate() {
            let slot = ftl.lookup(Lpn(lpn as u64));
            assert_eq!(slot.is_some(), *written, "unit {lpn}");
            if let Some(slot) = slot {
                assert!(ftl.is_valid(slot));
                assert_eq!(ftl.lpn_at(slot), Some(Lpn(lpn as u64)));
                per_ru[ftl.geo.ru_of_slot(slot) as usize] += 1;
            }
        }
        for (ru, count) in per_ru.iter().enumerate() {
            assert_eq!(ftl.valid_units(ru as u64), *count, "valid count of reclaim unit {ru}");
            let mut cursor = 0;
            let mut found = 0;
            while ftl.next_valid(ru as u64, &mut cursor).is_some() {
                found += 1;
            }
            assert_eq!(found, *count, "valid slots of reclaim unit {ru}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn map_and_valid_counts_survive_anything(which in 0usize..3, base in 0u64..9000, seed: u64) {
            let ftl = &mut ftl([Reclaim::Block, Reclaim::PlaneSet, Reclaim::Superblock][which], 9000);
            let mut written = vec![false; 9000];
            ftl.assume_sequential(base);
            written[..base as usize].fill(true);
            check(ftl, &written);
            let mut rng = Rng::stream(seed, "writes");
            let mut writer = FunctionalWriter::new(ftl);
            for n in 0..30_000 {
                let lpn = rng.below(9000);
                if rng.below(20) == 0 {
                    // What waits in an open program unit would overtake the trim.
                    writer.finish(ftl);
                    prop_assert_eq!(ftl.trim(Lpn(lpn)), written[lpn as usize]);
                    written[lpn as usize] = false;
                } else {
                    let group = ftl.geo.group_at(rng.next_u64() >> 8);
                    // A unit may wait in one open program unit only.
                    if writer.pending.iter().any(|p| p.contains(&Lpn(lpn))) {
                        writer.finish(ftl);
                    }
                    writer.write(ftl, group, Lpn(lpn)).map_err(|e| TestCaseError::fail(format!("{e:?}")))?;
                    written[lpn as usize] = true;
                }
                if n % 10_000 == 9_999 {
                    writer.finish(ftl);
                    check(ftl, &written);
                }
            }
        }
    }

    #[test]
    fn declared_fill_equals_written_fill() {
        for reclaim in [Reclaim::Block, Reclaim::PlaneSet, Reclaim::Superblock] {
            for units in [1, 13, 4096, 8999] {
                let (mut declared, mut written) = (ftl(reclaim, 9000), ftl(reclaim, 9000));
                declared.assume_sequential(units);
                let mut writer = FunctionalWriter::new(&written);
                for lpn in 0..units {
                    let group = written.geo.group_at(written.geo.stripe_of_unit(lpn));
                    writer.write(&mut written, group, Lpn(lpn)).expect("an empty device has room");
                }
                writer.finish(&mut written);
                for lpn in 0..9000 {
                    assert_eq!(declared.lookup(Lpn(lpn)), written.lookup(Lpn(lpn)));
                }
                for ru in 0..written.geo.ru_count {
                    assert_eq!(declared.valid_units(ru), written.valid_units(ru));
                }
                for group in 0..written.geo.groups {
                    assert_eq!(declared.free(group), written.free(group));
                    let open = |f: &Ftl| f.groups[group as usize].open(Stream::Host(0));
                    assert_eq!(open(&declared), open(&written));
                }
            }
        }
    }
}
