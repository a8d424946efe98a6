//! Bad blocks: units out of use from the beginning, and units that fail with wear.
//!
//! **Factory.** Each plane has blocks that never worked. When the drive is formatted, the controller counts the good
//! ones of each plane and makes its reclaim units of those with equal number. So a group has as many reclaim units as
//! the plane with the fewest good blocks, and the numbers after those are out of use. Results do not depend on which
//! blocks of a plane are bad.
//!
//! **Grown.** Each block has a life, in erases. The erase that reaches it fails, and the whole reclaim unit is retired:
//! other blocks of a plane set or a superblock are not recombined. A program that would have failed is detected at the
//! next erase, when nothing valid is left in the unit. A unit that fails while its group has no other free one is used
//! once more, because garbage collection could not go on otherwise. Once a group has no spare unit beyond the needs of
//! the logical space and the thresholds, the next failure makes the device read-only. Writes then end with
//! [`Status::WriteFault`](proto::Status::WriteFault), and data accepted before can still be written to flash.

use super::Ftl;
use super::units::RuState;
use engine::{Rng, Snapshot, mix};
use nand::geometry::Geometry;
use serde::Serialize;

/// Blocks of a new drive that never worked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Factory {
    /// Number of such blocks.
    pub blocks: u64,
    /// Number of reclaim units that each group lacks.
    pub lost: Vec<u32>,
}

impl Factory {
    /// Draws the bad blocks of each plane: each block is bad with probability `share`. O(blocks).
    pub fn draw(geo: &Geometry, share: f64, seed: u64, device: &str) -> Factory {
        let mut rng = Rng::stream(seed, &format!("{device}/bad_blocks.factory"));
        let mut factory = Factory { blocks: 0, lost: vec![0; geo.groups as usize] };
        for plane in 0..geo.plane_count {
            let bad = (0..geo.shape.blocks).filter(|_| rng.unit() < share).count() as u32;
            factory.blocks += u64::from(bad);
            let lost = &mut factory.lost[(plane / geo.lanes) as usize];
            *lost = bad.max(*lost);
        }
        factory
    }
}

/// Distribution of block lives: a Weibull distribution, as used for wear-out of parts in general.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lives {
    /// Number of erases that 36.8 % of the blocks survive.
    pub endurance: f64,
    /// Uniformity of the lives: 1 is failure at a constant rate, larger is later and steeper.
    pub shape: f64,
    /// Seed from which the lives are drawn.
    pub seed: u64,
}

impl Lives {
    /// Returns the erase that a block does not survive, from 1. It follows from the block's number.
    pub fn of(&self, block: u64) -> u32 {
        let bits = mix(self.seed ^ mix(block)) >> 11;
        // Middle of the cell: neither 0 nor 1.
        let uniform = (bits as f64 + 0.5) / (1u64 << 53) as f64;
        let life = self.endurance * libm::pow(-libm::log(uniform), 1.0 / self.shape);
        (libm::ceil(life) as u32).max(1)
    }
}

/// Counts of bad blocks so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BadCounts {
    /// Blocks that were bad from the beginning.
    pub factory: u64,
    /// Blocks that have failed since.
    pub grown: u64,
    /// Reclaim units out of use for either reason.
    pub units: u64,
}

/// Failure for which no replacement was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WornOut {
    /// Group that has no good block to spare.
    pub group: u32,
    /// Units that the host had written by then, since the run began.
    pub host_units: u64,
}

engine::snapshot!(WornOut { group, host_units });

/// Bad-block state of a translation layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct BadBlocks {
    /// True if bad blocks exist, or may appear.
    exist: bool,
    factory: u64,
    lives: Option<Lives>,
    /// Number of units that each group can still lose.
    spare: Vec<u32>,
    grown: u64,
    worn_out: Option<WornOut>,
}

impl BadBlocks {
    /// Appends the failures since the start, without the factory bad blocks.
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        let BadBlocks { exist: _, factory: _, lives: _, spare, grown, worn_out } = self;
        spare.save(out);
        grown.save(out);
        worn_out.save(out);
    }

    /// Returns whether the failures name existing groups, and at most as many units as they have.
    pub(crate) fn is_within(&self, groups: &[super::space::Group]) -> bool {
        let spares = self.spare.iter().zip(groups).all(|(spare, group)| *spare <= group.usable());
        spares && self.worn_out.is_none_or(|worn| (worn.group as usize) < groups.len())
    }

    /// Restores the saved failures; `None` if they are truncated or malformed.
    pub(crate) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.spare = Vec::load(input).filter(|spare: &Vec<u32>| spare.len() == self.spare.len())?;
        self.grown = u64::load(input)?;
        self.worn_out = Option::load(input)?;
        Some(())
    }
}

impl Ftl {
    /// Registers the drive's bad blocks, before anything is written. `least`: minimum number of reclaim units that a
    /// group needs.
    pub fn set_bad_blocks(&mut self, factory: &Factory, lives: Option<Lives>, least: u32) {
        for (group, lost) in self.groups.iter_mut().zip(&factory.lost) {
            group.lose(*lost);
        }
        let spare = self.groups.iter().map(|group| group.usable().saturating_sub(least)).collect();
        self.bad = BadBlocks { exist: true, factory: factory.blocks, lives, spare, ..BadBlocks::default() };
    }

    /// Returns the number of reclaim units of a group without the factory bad ones.
    pub fn usable(&self, group: u32) -> u32 {
        self.groups[group as usize].usable()
    }

    /// Returns the smallest such number of any group.
    pub fn fewest_usable(&self) -> u32 {
        self.groups.iter().map(|group| group.usable()).min().unwrap_or(0)
    }

    /// Iterates over the erase counts of the blocks in use: those of every reclaim unit except factory bad and retired
    /// ones.
    pub fn erases_in_use(&self) -> impl Iterator<Item = u32> + '_ {
        let in_use = |ru: &u64| {
            let (group, number) = self.split(*ru);
            let group = &self.groups[group];
            number < group.usable() && group.ru(number).state != RuState::Bad
        };
        let blocks = move |ru| (0..self.geo.lanes).map(move |lane| self.geo.block_of_ru(ru, lane));
        (0..self.geo.ru_count).filter(in_use).flat_map(blocks).map(|block| self.array.erases(block))
    }

    /// Returns the counts of bad blocks so far; `None` if none exist or can appear.
    pub fn bad_counts(&self) -> Option<BadCounts> {
        self.bad.exist.then(|| self.count_bad())
    }

    fn count_bad(&self) -> BadCounts {
        let usable: u64 = self.groups.iter().map(|group| u64::from(group.usable())).sum();
        let retired: u64 = self.groups.iter().map(|group| u64::from(group.retired)).sum();
        let units = self.geo.ru_count - usable + retired;
        BadCounts { factory: self.bad.factory, grown: self.bad.grown, units }
    }

    /// Returns whether the device takes no more writes, because a block has failed without a replacement.
    #[inline]
    pub fn is_worn_out(&self) -> bool {
        self.bad.worn_out.is_some()
    }

    /// Returns the failure that ended the device's life, if it is over.
    pub fn worn_out(&self) -> Option<WornOut> {
        self.bad.worn_out
    }

    /// Returns whether blocks fail with wear.
    #[inline]
    pub(super) fn wears_out(&self) -> bool {
        self.bad.lives.is_some()
    }

    /// Registers an erase of a reclaim unit; returns whether the unit is to be retired.
    #[cold]
    pub(super) fn fails(&mut self, ru: u64) -> bool {
        let Some(lives) = self.bad.lives else { return false };
        let blocks = (0..self.geo.lanes).map(|lane| self.geo.block_of_ru(ru, lane));
        let failed = blocks.filter(|block| self.array.erases(*block) >= lives.of(*block)).count() as u64;
        let (group, _) = self.split(ru);
        if failed == 0 || self.groups[group].free() == 0 {
            return false;
        }
        if self.bad.spare[group] == 0 {
            let host_units = self.counters.host_commits;
            self.bad.worn_out.get_or_insert(WornOut { group: group as u32, host_units });
            return false;
        }
        self.bad.spare[group] -= 1;
        self.bad.grown += failed;
        true
    }

    /// Returns the reclaim units that have been retired: the list of bad units is on flash.
    pub fn retired_units(&self) -> Vec<u64> {
        let bad = |ru: &u64| {
            let (group, number) = self.split(*ru);
            self.groups[group].ru(number).state == RuState::Bad
        };
        (0..self.geo.ru_count).filter(bad).collect()
    }

    /// Adopts the units that another translation layer of the same drive has retired.
    pub fn assume_retired(&mut self, units: &[u64]) {
        let Some(lives) = self.bad.lives else { return };
        for ru in units {
            let (group, _) = self.split(*ru);
            self.bad.spare[group] = self.bad.spare[group].saturating_sub(1);
            let blocks = (0..self.geo.lanes).map(|lane| self.geo.block_of_ru(*ru, lane));
            self.bad.grown +=
                blocks.filter(|block| self.array.erases(*block) >= lives.of(*block)).count() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    // Bad blocks against probability theory.
    use super::{Factory, Lives};
    use crate::page_map::testing::small;
    use nand::geometry::{Geometry, Reclaim, Shape};

    #[test]
    fn factory_bad_blocks_are_binomial() {
        for reclaim in [Reclaim::Block, Reclaim::PlaneSet, Reclaim::Superblock] {
            let geo = Geometry::new(Shape { blocks: 2048, ..small(reclaim) });
            let factory = Factory::draw(&geo, 0.01, 1, "flash");
            // 24 planes of 2048 blocks: mean 491.5, standard deviation 22.
            assert!(factory.blocks.abs_diff(492) < 90, "{}", factory.blocks);
            let mean = 2048.0 * 0.01;
            assert!(
                factory
                    .lost
                    .iter()
                    .all(|lost| f64::from(*lost) > mean - 18.0 && f64::from(*lost) < mean + 25.0)
            );
            assert_eq!(factory.lost.len() as u32, geo.groups);
            assert_eq!(Factory::draw(&geo, 0.01, 1, "flash"), factory);
            assert_ne!(Factory::draw(&geo, 0.01, 2, "flash"), factory);
            assert_eq!(Factory::draw(&geo, 0.0, 1, "flash").blocks, 0);
        }
        // Wider groups lack as many units as their worst plane has bad blocks.
        let lost = |reclaim| {
            let geo = Geometry::new(Shape { blocks: 2048, ..small(reclaim) });
            (Factory::draw(&geo, 0.01, 1, "flash").lost, geo)
        };
        let (planes, _) = lost(Reclaim::Block);
        let (pairs, _) = lost(Reclaim::PlaneSet);
        let (all, _) = lost(Reclaim::Superblock);
        let naive: Vec<u32> = planes.chunks(2).map(|pair| pair[0].max(pair[1])).collect();
        assert_eq!(pairs, naive);
        assert_eq!(Some(&all[0]), planes.iter().max());
    }

    #[test]
    fn lives_follow_weibull() {
        for shape in [1.0, 4.0] {
            let lives = Lives { endurance: 3000.0, shape, seed: 5 };
            let mut drawn: Vec<u32> = (0..20_000).map(|block| lives.of(block)).collect();
            drawn.sort_unstable();
            for share in [0.1f64, 0.5, 0.632_120_6, 0.9] {
                // The quantile function: endurance (-ln(1 - p))^(1/shape).
                let expected = 3000.0 * libm::pow(-libm::log(1.0 - share), 1.0 / shape);
                let found = f64::from(drawn[(share * 20_000.0) as usize]);
                assert!(
                    (found / expected - 1.0).abs() < 0.08,
                    "shape {shape}, {share}: {found}, not {expected}"
                );
            }
        }
    }
}
