//! States that are declared instead of written.

use super::Ftl;
use super::space::Stream;
use engine::Rng;
use nand::base::Base;
use proto::{Lpn, Slot};

/// State of a group after long use, for [`Ftl::assume_drawn`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Valid units of each closed reclaim unit, the one closed first in front.
    pub closed: Vec<u32>,
    /// Program units taken from the host's frontier; all their units are valid. Zero: no open unit.
    pub host: u32,
    /// Program units taken from the frontier of moved data, likewise.
    pub moved: u32,
}

impl Ftl {
    /// Returns whether nothing was ever written.
    pub fn is_fresh(&self) -> bool {
        self.clock == 0 && self.mapped == 0 && self.base == Base::Empty
    }

    /// Declares logical units `0..units` written once, in order, onto the empty device: O(reclaim units).
    ///
    /// # Panics
    /// If anything was written before.
    pub fn assume_sequential(&mut self, units: u64) {
        self.assume_filled(Base::Sequential { units }, units);
    }

    /// Declares logical units `0..units` written once, one after another to the next group in turn: O(reclaim units).
    ///
    /// # Panics
    /// If anything was written before.
    pub fn assume_interleaved(&mut self, units: u64) {
        self.assume_filled(Base::Interleaved { units }, units);
    }

    /// Declares the state of a base; both bases fill the same slots.
    fn assume_filled(&mut self, base: Base, units: u64) {
        assert!(self.is_fresh(), "only an empty device can be declared filled");
        self.base = base;
        self.mapped = units;
        self.clock = units;
        let (per_program, per_ru) =
            (u64::from(self.geo.units_per_program), u64::from(self.geo.programs_per_ru));
        let groups = u64::from(self.geo.groups);
        let stripes = units.div_ceil(per_program);
        for group in 0..self.geo.groups {
            // Program units that this group received: its stripe positions below `stripes`.
            let position = self.geo.sequential_unit(group, 0, 0) / per_program;
            let programs = (stripes + groups - 1 - position) / groups;
            for nth in 0..programs.div_ceil(per_ru) {
                let taken = (programs - nth * per_ru).min(per_ru);
                // The last program unit of the device may be padded.
                let last = self.geo.sequential_unit(group, nth * per_ru + taken - 1, 0);
                let in_last = (units - last).min(per_program);
                let valid = (taken - 1) * per_program + in_last;
                self.assume_ru(group, Stream::Host(0), taken as u32, valid as u32, last + in_last);
                let state = self.groups[group as usize].rus.last_mut();
                state.expect("a unit was just taken").follows_base = true;
            }
        }
    }

    /// Takes the next reclaim unit of a group, with its first `programs` program units programmed; returns its name.
    fn assume_ru(&mut self, group: u32, stream: Stream, programs: u32, valid: u32, clock: u64) -> u64 {
        let per_ru = self.geo.programs_per_ru;
        let of_group = &mut self.groups[group as usize];
        let number = of_group.assume(stream, programs, per_ru, valid).expect("the data fits on the device");
        if programs == per_ru {
            of_group.list_closed(number, clock);
        }
        let ru = self.join(group, number);
        for lane in 0..self.geo.lanes {
            // Program unit `index` is in lane `index % lanes`.
            let rows = (programs + self.geo.lanes - 1 - lane) / self.geo.lanes;
            self.array.assume_programmed(self.geo.block_of_ru(ru, lane), rows);
        }
        ru
    }

    /// Declares the content of a group of the empty device: reclaim units with given valid counts, filled by `units`
    /// one after another. The valid slots of a reclaim unit are drawn at random. An invalid slot holds an old copy of
    /// the unit placed last, or padding if none. O(slots).
    ///
    /// # Panics
    /// If the group was used before, the counts do not fit the group, or `units` ends early.
    pub fn assume_drawn(
        &mut self,
        group: u32,
        drawn: &Drawn,
        units: &mut impl Iterator<Item = Lpn>,
        rng: &mut Rng,
    ) {
        assert!(self.groups[group as usize].rus.is_empty(), "group {group} was used before");
        let per_ru = self.geo.programs_per_ru;
        // On the clock, all groups close reclaim units at the same rate.
        let step = u64::from(self.geo.units_per_ru) * u64::from(self.geo.groups);
        let mut clock = 0;
        for &valid in &drawn.closed {
            clock += step;
            let ru = self.assume_ru(group, Stream::Host(0), per_ru, valid, clock);
            self.assume_units(ru, per_ru, valid, units, rng);
        }
        for (stream, programs) in [(Stream::Host(0), drawn.host), (Stream::Gc(0), drawn.moved)] {
            if programs > 0 {
                assert!(programs < per_ru, "a frontier of {programs} program units is full");
                let valid = programs * self.geo.units_per_program;
                let ru = self.assume_ru(group, stream, programs, valid, clock);
                self.assume_units(ru, programs, valid, units, rng);
            }
        }
        self.clock = self.clock.max(clock + step);
    }

    /// Writes `valid` of the units into the first program units of a reclaim unit.
    fn assume_units(
        &mut self,
        ru: u64,
        programs: u32,
        valid: u32,
        units: &mut impl Iterator<Item = Lpn>,
        rng: &mut Rng,
    ) {
        let mut left = programs * self.geo.units_per_program;
        let mut due = valid;
        let mut stale = None;
        for index in 0..programs {
            let first = self.geo.slot_of_program(ru, index);
            for unit in 0..self.geo.units_per_program {
                let slot = Slot(first.0 + u64::from(unit));
                // Selection sampling (Knuth, TAOCP 2, algorithm 3.4.2 S): every subset of the slots is equally likely.
                let is_valid = due == left || (due > 0 && rng.below(u64::from(left)) < u64::from(due));
                if is_valid {
                    let lpn = units.next().expect("as many units as valid slots");
                    self.map.set(lpn.0, slot.0 + 1);
                    self.valid.flip(slot.0);
                    self.mapped += 1;
                    due -= 1;
                    stale = Some(lpn);
                }
                self.array.load_register(slot, stale);
                left -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_map::functional::{FunctionalWriter, Placement};
    use crate::page_map::testing::{check, ftl};
    use engine::Rng;
    use nand::geometry::Reclaim;
    use proptest::prelude::*;

    #[test]
    fn declared_fill_equals_written_fill() {
        for reclaim in [Reclaim::Block, Reclaim::PlaneSet, Reclaim::Superblock] {
            for units in [1, 13, 4096, 8999] {
                let (mut declared, mut written) = (ftl(reclaim, 9000), ftl(reclaim, 9000));
                declared.assume_sequential(units);
                let mut writer = FunctionalWriter::new(&written, Placement::Striped);
                writer.write_all(&mut written, (0..units).map(Lpn)).expect("an empty device has room");
                writer.finish(&mut written).expect("an empty device has room");
                for lpn in 0..9000 {
                    assert_eq!(declared.lookup(Lpn(lpn)), written.lookup(Lpn(lpn)));
                }
                for ru in 0..written.geo.ru_count {
                    assert_eq!(declared.valid_units(ru), written.valid_units(ru));
                }
                assert_eq!(declared.array.all_programs(), written.array.all_programs());
                for group in 0..written.geo.groups {
                    assert_eq!(declared.free(group), written.free(group));
                    let of = |f: &Ftl| {
                        let g = &f.groups[group as usize];
                        (g.open(Stream::Host(0)), g.closed_at.clone())
                    };
                    assert_eq!(of(&declared), of(&written));
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_drawn_state_is_what_was_asked_for_and_can_be_written_on(which in 0usize..3, seed: u64) {
            let reclaim = [Reclaim::Block, Reclaim::PlaneSet, Reclaim::Superblock][which];
            let mut ftl = ftl(reclaim, 9000);
            let mut rng = Rng::stream(seed, "test");
            let (groups, per_ru) = (u64::from(ftl.geo.groups), u64::from(ftl.geo.units_per_ru));
            let mut drawn = Vec::new();
            let mut units = 0;
            for group in 0..groups {
                let share = 9000 / groups;
                let mut of = Drawn { host: 1, moved: 2, closed: Vec::new() };
                let mut left = share - 3 * u64::from(ftl.geo.units_per_program);
                while left > 0 && of.closed.len() < ftl.geo.shape.blocks as usize - 6 {
                    let valid = left.min(rng.below(per_ru / 4) + per_ru * 3 / 4);
                    of.closed.push(valid as u32);
                    left -= valid;
                }
                units += share - left;
                drawn.push((group as u32, of));
            }
            let mut next = (0..9000).map(Lpn);
            for (group, of) in &drawn {
                ftl.assume_drawn(*group, of, &mut next, &mut rng);
            }
            let mut written = vec![false; 9000];
            written[..units as usize].fill(true);
            prop_assert_eq!(ftl.mapped(), units);
            check(&ftl, &written);
            for (group, of) in &drawn {
                let first = u64::from(*group) * u64::from(ftl.geo.shape.blocks);
                let valid: Vec<u32> = (0..of.closed.len() as u64).map(|n| ftl.valid_units(first + n)).collect();
                prop_assert_eq!(&valid, &of.closed);
                let open = |stream| ftl.groups[*group as usize].open(stream).map(|(_, programs)| programs);
                prop_assert_eq!((open(Stream::Host(0)), open(Stream::Gc(0))), (Some(1), Some(2)));
            }
            let mut writer = FunctionalWriter::new(&ftl, Placement::InTurn);
            let lpns: Vec<u64> = (0..20_000).map(|_| rng.below(9000)).collect();
            lpns.iter().for_each(|l| written[*l as usize] = true);
            writer.write_all(&mut ftl, lpns.into_iter().map(Lpn)).expect("over-provisioning leaves room");
            writer.finish(&mut ftl).expect("over-provisioning leaves room");
            check(&ftl, &written);
        }
    }
}
