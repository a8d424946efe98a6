//! Where a page lives.

use super::spec::DirectMapping;
use nand::fastdiv::FastDiv;
use nand::planes::spec::DirectGeometry;

/// Where a page lives: its plane, which of the plane's data blocks it belongs to, which page of that block it is.
///
/// Planes are numbered channel first, then package, die, plane of the die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Plane of all.
    pub plane: u32,
    /// Data block of the plane, as the block table knows it.
    pub slot: u32,
    /// Page of the block.
    pub index: u32,
}

/// The arithmetic from addresses to places. An entry of the block table has one block in each plane of a set; sets take
/// turns, pages of an entry are striped over the planes of its set.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Pages of an entry.
    entry_pages: FastDiv,
    group: FastDiv,
    sets: FastDiv,
    /// Planes.
    pub planes: u32,
    /// Pages of the address space.
    pub pages: u64,
}

impl Layout {
    /// The layout of planes of this geometry.
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

    /// Where the page with this number lives.
    #[inline]
    pub fn place(&self, page: u64) -> Place {
        let (entry, offset) = self.entry_pages.div_rem(page);
        let (index, member) = self.group.div_rem(offset);
        let (slot, set) = self.sets.div_rem(entry);
        Place { plane: (set * self.group.get() + member) as u32, slot: slot as u32, index: index as u32 }
    }

    /// The page that lives at a place.
    #[inline]
    pub fn page(&self, place: Place) -> u64 {
        let (set, member) = self.group.div_rem(place.plane.into());
        let entry = u64::from(place.slot) * self.sets.get() + set;
        entry * self.entry_pages.get() + u64::from(place.index) * self.group.get() + member
    }

    /// Planes that an entry of the block table has blocks in.
    pub fn group(&self) -> u32 {
        self.group.get() as u32
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

    /// Table I: an entry covers 192 MiB in 128 planes, the same plane of all 16 x 8 dies; the eight planes of a die take
    /// turns.
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
