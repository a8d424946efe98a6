//! Where a page lives.

use super::spec::DirectMapping;
use crate::fastdiv::FastDiv;
use crate::media::planes::spec::DirectGeometry;

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
    pub(crate) planes: u32,
    /// Pages of the address space.
    pub(crate) pages: u64,
}

impl Layout {
    pub(crate) fn new(geometry: &DirectGeometry, mapping: &DirectMapping) -> Layout {
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
    use crate::direct::testing;

    /// Table I: an entry covers 192 MiB in 128 planes, the same plane of all 16 x 8 dies; the eight planes of a die take
    /// turns.
    #[test]
    fn an_entry_of_table_i_has_one_plane_of_every_die() {
        let spec = testing::table_i();
        assert_eq!(spec.reach(), 192 << 20);
        let layout = Layout::new(&spec.geometry, &spec.mapping);
        let packages = spec.geometry.packages();
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
        let layout = Layout::new(&testing::small().geometry, &testing::small().mapping);
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
