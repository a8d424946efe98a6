//! Where page groups are: the arithmetic of numbers, blocks, metadata and addresses.

use super::Physical;
use super::spec::{ENTRY_BYTES, GroupGeometry, GroupsSpec};
use super::translation::{Translation, TranslationContext};
use nand::fastdiv::FastDiv;
use nand::geometry::{Address, Digit, Reclaim, Shape};

/// Where a page group lies: on all channels, the same page of the same die.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// Package in its channel.
    pub package: u32,
    /// Die in the package.
    pub die: u32,
    /// Block in each plane of the die.
    pub block: u32,
    /// Page in the block.
    pub page: u32,
}

/// Everything that follows from the geometry and the translation.
pub struct Layout {
    geometry: GroupGeometry,
    translation: Box<dyn Translation>,
    /// Groups a block.
    block_groups: FastDiv,
    /// Those of them that hold data.
    data_groups: FastDiv,
    blocks: u32,
    meta: u32,
}

impl Layout {
    /// Works out a spec. The caller has checked it, room for data apart.
    pub fn new(spec: &GroupsSpec) -> Layout {
        let geometry = spec.geometry.clone();
        let GroupGeometry { packages, dies, blocks, pages, .. } = geometry;
        let translation = spec.translation.build(&TranslationContext { packages, dies, blocks, pages });
        let spread = translation.spread();
        let meta = spec.metadata_pages * spread;
        Layout {
            block_groups: FastDiv::new(u64::from(pages * spread)),
            data_groups: FastDiv::new(u64::from(pages * spread - meta)),
            blocks: packages * dies / spread * blocks,
            meta,
            geometry,
            translation,
        }
    }

    /// Bytes a group: channels x planes of a die x bytes a page.
    pub fn group_bytes(&self) -> u64 {
        u64::from(self.geometry.channels) * u64::from(self.geometry.planes) * self.geometry.page.get()
    }
    /// Groups of the flash, metadata among them; logical ones, too.
    pub fn groups(&self) -> u32 {
        self.blocks * self.block_groups()
    }
    /// Bytes of the map: an entry for each group of the flash.
    pub fn map_bytes(&self) -> u64 {
        u64::from(self.groups()) * ENTRY_BYTES
    }
    /// Entries of the map in a group of it.
    pub fn group_entries(&self) -> u32 {
        (self.group_bytes() / ENTRY_BYTES) as u32
    }
    /// Groups that the map fills on flash.
    pub fn map_groups(&self) -> u32 {
        self.groups().div_ceil(self.group_entries())
    }
    /// Blocks: what consecutive groups fill, and what is erased as one.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }
    /// Groups a block.
    pub fn block_groups(&self) -> u32 {
        self.block_groups.get() as u32
    }
    /// Groups at the beginning of a block that hold metadata.
    pub fn metadata_groups(&self) -> u32 {
        self.meta
    }
    /// Groups of a block that hold data.
    pub fn data_groups(&self) -> u32 {
        self.data_groups.get() as u32
    }
    /// The block of a group, and which of its groups it is.
    #[inline]
    pub fn block_of(&self, group: Physical) -> (u32, u32) {
        let (block, index) = self.block_groups.div_rem(group.0.into());
        (block as u32, index as u32)
    }
    /// A group of a block.
    #[inline]
    pub fn group(&self, block: u32, index: u32) -> Physical {
        Physical(block * self.block_groups() + index)
    }
    /// The group that the data group with a number, counted over all blocks, is in.
    #[inline]
    pub(super) fn nth_data(&self, nth: u32) -> Physical {
        let (block, index) = self.data_groups.div_rem(nth.into());
        self.group(block as u32, self.meta + index as u32)
    }
    /// The inverse of [`Layout::nth_data`]; `None` for metadata.
    #[inline]
    pub(super) fn data_number(&self, group: Physical) -> Option<u32> {
        let (block, index) = self.block_of(group);
        Some(block * self.data_groups() + index.checked_sub(self.meta)?)
    }

    /// Where a group lies.
    #[inline]
    pub fn place(&self, group: Physical) -> Place {
        self.translation.place(group)
    }
    /// The pages of a group: channel by channel, plane by plane.
    pub fn pages(&self, group: Physical) -> impl Iterator<Item = Address> + use<> {
        self.addresses(self.place(group))
    }
    /// The blocks of planes that are erased with a block, as addresses of their first pages.
    pub fn erase(&self, block: u32) -> impl Iterator<Item = Address> + '_ {
        (0..self.translation.spread()).flat_map(move |n| self.addresses(self.place(self.group(block, n))))
    }

    /// The die of a place on the first channel.
    #[inline]
    pub fn first_die(&self, place: Place) -> u32 {
        place.package * self.geometry.dies + place.die
    }

    fn addresses(&self, place: Place) -> impl Iterator<Item = Address> + use<> {
        let GroupGeometry { channels, packages, dies, planes, .. } = self.geometry;
        let first = self.first_die(place);
        (0..channels).flat_map(move |channel| {
            let die = channel * packages * dies + first;
            (0..planes).map(move |plane| Address {
                die,
                plane: plane as u8,
                block: place.block,
                page: place.page,
            })
        })
    }

    /// The shape of the media, for dies behind channels; map units are pages.
    pub fn shape(&self) -> Shape {
        let GroupGeometry { channels, packages, dies, planes, blocks, pages, page } = self.geometry;
        let bytes = page.get() as u32;
        Shape {
            channels,
            ways: packages,
            dies,
            planes,
            blocks,
            pages,
            page_bytes: bytes,
            unit_bytes: bytes,
            program_pages: 1,
            reclaim: Reclaim::Block,
            stripe: [Digit::Channel, Digit::Way, Digit::Die, Digit::Plane],
            interleave: true,
            parity: None,
        }
    }
}
