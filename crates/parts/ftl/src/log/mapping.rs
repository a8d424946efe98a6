//! Block map with logs: its specification, and the placement of each page.

use config::{
    SpecError,
    units::{Duration, Share},
};
use nand::numbers::FastDiv;
use nand::planes::spec::DirectGeometry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Place of a page: its plane, the plane's data block, and the page of that block.
///
/// Planes are numbered channel first, then package, die, plane of the die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Plane, numbered over all.
    pub plane: u32,
    /// Data block of the plane, as numbered in the block table.
    pub slot: u32,
    /// Page of the block.
    pub index: u32,
}

/// Arithmetic from addresses to places. An entry of the block table has one block in each plane of a set; sets take
/// turns, pages of an entry are striped over the planes of its set.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Pages per entry.
    entry_pages: FastDiv,
    group: FastDiv,
    sets: FastDiv,
    /// Number of planes.
    pub planes: u32,
    /// Number of pages of the address space.
    pub pages: u64,
}

impl Layout {
    /// Creates the layout of planes of this geometry.
    pub fn new(geometry: &DirectGeometry, mapping: &DirectMapping) -> Layout {
        let planes = geometry.all_planes();
        let (sets, entry_pages) =
            (planes / mapping.group, u64::from(mapping.group) * u64::from(geometry.pages));
        Layout {
            entry_pages: FastDiv::new(entry_pages),
            group: FastDiv::new(mapping.group.into()),
            sets: FastDiv::new(sets.into()),
            planes,
            pages: u64::from(sets) * u64::from(mapping.data_blocks) * entry_pages,
        }
    }

    /// Returns the place of the page with this number.
    #[inline]
    pub fn place(&self, page: u64) -> Place {
        let (entry, offset) = self.entry_pages.div_rem(page);
        let (index, member) = self.group.div_rem(offset);
        let (slot, set) = self.sets.div_rem(entry);
        Place { plane: (set * self.group.get() + member) as u32, slot: slot as u32, index: index as u32 }
    }

    /// Returns the page at a place.
    #[inline]
    pub fn page(&self, place: Place) -> u64 {
        let (set, member) = self.group.div_rem(place.plane.into());
        let entry = u64::from(place.slot) * self.sets.get() + set;
        entry * self.entry_pages.get() + u64::from(place.index) * self.group.get() + member
    }

    /// Returns the number of planes in which an entry of the block table has blocks.
    pub fn group(&self) -> u32 {
        self.group.get() as u32
    }
}

// Block map with logs, as specified by a user.

/// Mapping of addresses to flash pages: a table maps blocks, and log blocks map the pages written since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectMapping {
    /// Data blocks per entry of the block table: one in each of as many planes, over which the pages of the entry are
    /// striped, channel first.
    #[schemars(range(min = 1))]
    pub group: u32,
    /// Data blocks per plane: the addressable ones. The rest of the plane are log blocks and free blocks.
    #[schemars(range(min = 1))]
    pub data_blocks: u32,
    /// Data blocks of a plane that share a log block.
    #[schemars(range(min = 1, max = 16))]
    pub log_share: u32,
    /// Time that the search of the log's page table in the row decoder adds to an array read.
    pub search: Duration,
    /// Share of the pages of log blocks that are programmed at the start, rounded to whole pages. One value per
    /// application, in order; the last applies to all further ones. Log blocks hold copies of the application's pages,
    /// drawn at random.
    pub log_filled: Vec<Share>,
}

impl DirectMapping {
    /// Returns the number of blocks that a plane needs: data, one log block per share, and the free blocks of a merge.
    fn needed(&self) -> u64 {
        let (data, share) = (u64::from(self.data_blocks), u64::from(self.log_share));
        data + data / share + share
    }

    /// Checks that the mapping can be built; keys are relative to the component's table.
    ///
    /// # Errors
    /// The key at fault, with the allowed values.
    pub fn check(&self, geometry: &DirectGeometry) -> Result<(), SpecError> {
        SpecError::positive("mapping.group", self.group.into())?;
        SpecError::positive("mapping.data_blocks", self.data_blocks.into())?;
        SpecError::positive("mapping.log_share", self.log_share.into())?;
        let planes = geometry.all_planes();
        if !planes.is_multiple_of(self.group) {
            let what = format!(
                "{planes} planes are not a multiple of the group size {}: a group has one block in each of its planes",
                self.group
            );
            return Err(SpecError::new("mapping.group", what));
        }
        if !self.data_blocks.is_multiple_of(self.log_share) {
            let what = format!(
                "{} data blocks per plane are not a multiple of the {} that share a log block",
                self.data_blocks, self.log_share
            );
            return Err(SpecError::new("mapping.data_blocks", what));
        }
        if self.log_filled.is_empty() {
            return Err(SpecError::new("mapping.log_filled", "no share; give one for all applications"));
        }
        if self.log_share > 16 {
            let what = format!("{} data blocks share a log block; at most 16 are modelled", self.log_share);
            return Err(SpecError::new("mapping.log_share", what));
        }
        if self.needed() > geometry.blocks.into() {
            let share = u64::from(self.log_share);
            let most = u64::from(geometry.blocks).saturating_sub(share) / (share + 1) * share;
            let what = format!(
                "{} data blocks need {} log blocks and {share} free ones for merges: {} blocks; a plane has {}",
                self.data_blocks,
                self.data_blocks / self.log_share,
                self.needed(),
                geometry.blocks
            );
            return Err(
                SpecError::new("mapping.data_blocks", what).help(format!("at most {most} data blocks fit"))
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::units::{Duration, Share};
    use engine::Time;

    /// ZnG's Table I.
    fn table_i() -> (DirectGeometry, DirectMapping) {
        let geometry = DirectGeometry {
            channels: 16,
            packages: 1,
            ports: 2,
            dies: 8,
            planes: 8,
            blocks: 1024,
            pages: 384,
        };
        let mapping = DirectMapping {
            group: 128,
            data_blocks: 512,
            log_share: 4,
            search: Duration::new(Time::from_ns(10)),
            log_filled: vec![Share::ZERO],
        };
        (geometry, mapping)
    }

    /// Two packages with two planes each, of 16 blocks with 8 pages.
    fn small() -> (DirectGeometry, DirectMapping) {
        let (_, mapping) = table_i();
        let geometry =
            DirectGeometry { channels: 2, packages: 1, ports: 2, dies: 1, planes: 2, blocks: 16, pages: 8 };
        (geometry, DirectMapping { group: 2, data_blocks: 8, log_share: 2, ..mapping })
    }

    /// Table I: an entry covers 192 MiB in 128 planes, the same plane of all 16 x 8 dies; the eight planes of a die
    /// take turns.
    #[test]
    fn an_entry_of_table_i_has_one_plane_of_every_die() {
        let (geometry, mapping) = table_i();
        let layout = Layout::new(&geometry, &mapping);
        let packages = geometry.packages();
        let entry = |n: u64| n * (192 << 20) / 4096;
        for plane_of_die in 0..8u64 {
            for member in 0..128u64 {
                let place = layout.place(entry(plane_of_die) + member);
                let (package, within) = packages.package(place.plane);
                assert_eq!((u64::from(package), u64::from(within % 8)), (member % 16, member / 16));
                assert_eq!(u64::from(within / 8), plane_of_die);
                assert_eq!((place.slot, place.index), (0, 0));
            }
        }
        let place = layout.place(entry(8 * 3 + 2) + 128 * 5 + 1);
        assert_eq!((place.plane, place.slot, place.index), (2 * 128 + 1, 3, 5));
    }

    #[test]
    fn every_page_has_its_own_place() {
        let (geometry, mapping) = small();
        let layout = Layout::new(&geometry, &mapping);
        let mut places: Vec<_> = (0..layout.pages)
            .map(|page| {
                let place = layout.place(page);
                assert_eq!(layout.page(place), page);
                (place.plane, place.slot, place.index)
            })
            .collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len() as u64, layout.pages);
    }
}
