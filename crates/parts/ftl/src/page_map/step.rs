//! Frontiers of the planes of a die in step: at the same page of their blocks, where their programs share commands.
//!
//! A multi-plane command programs the same page number on each of its planes (ONFI: multi-plane addressing). Where each
//! plane has reclaim units of its own, host data that is spread evenly keeps the host's frontiers of a die's planes at equal
//! pages, and every write in order finds its mate. Once one plane is a page ahead, none does, for as long as the planes
//! are written evenly. Collection writes behind frontiers of its own and disturbs nothing; after a power cut all planes
//! begin a new unit. A plane set or a superblock is one frontier: its planes are in step whatever is written.

use super::Ftl;
use super::space::Stream;
use nand::dies::MultiPlane;
use proto::Slot;

impl Ftl {
    /// Program units that each group must take behind the host's frontier before the planes that share commands by `rule`
    /// are in step again: as few as possible, by group. None lags where groups are more than one plane.
    pub fn lags(&self, rule: MultiPlane) -> Vec<u32> {
        let planes = self.geo.shape.planes as usize;
        let mut lags = vec![0; self.geo.groups as usize];
        if rule == MultiPlane::Off || self.geo.lanes > 1 || planes == 1 {
            return lags;
        }
        let per_ru = self.geo.programs_per_ru;
        for (set, lags) in lags.chunks_exact_mut(planes).enumerate() {
            let first = (set * planes) as u32;
            let at = |plane: usize| self.programs_of_host(first + plane as u32) as u32;
            // From a page to another one, through the end of the block if it lies behind.
            let way = |from: u32, to: u32| (to + per_ru - from) % per_ru;
            let all_to = |to: u32| (0..planes).map(|plane| way(at(plane), to)).sum::<u32>();
            let Some(target) = (0..planes).map(at).min_by_key(|to| all_to(*to)) else { continue };
            lags.iter_mut().enumerate().for_each(|(plane, lag)| *lag = way(at(plane), target));
        }
        lags
    }

    /// Programs units of a group without data behind the host's frontier, as many as there is space for without
    /// reclaiming.
    pub fn pad(&mut self, group: u32, programs: u32) {
        for _ in 0..programs {
            let Some(slot) = self.reserve(group, Stream::Host(0)) else { return };
            for unit in 0..u64::from(self.geo.units_per_program) {
                self.fill(Slot(slot.0 + unit), None);
            }
            self.program(slot);
            self.programmed(slot);
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
    use proto::Lpn;

    /// Written in order, and a random number of times at random.
    fn written(reclaim: Reclaim, units: u64, rng: &mut Rng) -> Ftl {
        let mut ftl = ftl(reclaim, 9000);
        ftl.assume_sequential(units);
        let mut writer = FunctionalWriter::new(&ftl, Placement::Striped);
        let lpns: Vec<Lpn> = (0..rng.below(20_000)).map(|_| Lpn(rng.below(units))).collect();
        writer.write_all(&mut ftl, lpns).expect("there is spare space");
        writer.finish(&mut ftl).expect("there is spare space");
        ftl
    }

    #[test]
    fn padding_what_lags_brings_all_planes_in_step_and_no_less_would() {
        let mut rng = Rng::stream(5, "test");
        for units in [1, 700, 4097, 8999] {
            let mut ftl = written(Reclaim::Block, units, &mut rng);
            let (planes, per_ru) = (ftl.geo.shape.planes, ftl.geo.programs_per_ru);
            let lags = ftl.lags(MultiPlane::SamePage);
            let rows =
                |ftl: &Ftl| -> Vec<u64> { (0..ftl.geo.groups).map(|g| ftl.programs_of_host(g)).collect() };
            // Naively: the cheapest of all pages to meet at.
            for (set, rows) in rows(&ftl).chunks(planes as usize).enumerate() {
                let cost =
                    |to: u64| rows.iter().map(|row| (to + u64::from(per_ru) - row) % u64::from(per_ru)).sum();
                let least: u64 = (0..u64::from(per_ru)).map(cost).min().expect("pages");
                let of_set = &lags[set * planes as usize..(set + 1) * planes as usize];
                assert_eq!(of_set.iter().map(|lag| u64::from(*lag)).sum::<u64>(), least, "{rows:?}");
            }
            (0u32..).zip(&lags).for_each(|(group, lag)| ftl.pad(group, *lag));
            for rows in rows(&ftl).chunks(planes as usize) {
                assert!(rows.iter().all(|row| *row == rows[0]), "{rows:?}");
            }
            let whole: Vec<bool> = (0..9000).map(|lpn| lpn < units).collect();
            check(&ftl, &whole);
        }
    }

    #[test]
    fn nothing_lags_where_planes_share_no_command_or_a_frontier() {
        let mut rng = Rng::stream(5, "test");
        let block = written(Reclaim::Block, 8999, &mut rng);
        assert!(block.lags(MultiPlane::Off).iter().all(|lag| *lag == 0));
        assert!(block.lags(MultiPlane::SameBlock).iter().any(|lag| *lag > 0));
        for reclaim in [Reclaim::PlaneSet, Reclaim::Superblock] {
            let ftl = written(reclaim, 8999, &mut rng);
            assert!(ftl.lags(MultiPlane::SamePage).iter().all(|lag| *lag == 0));
        }
    }
}
