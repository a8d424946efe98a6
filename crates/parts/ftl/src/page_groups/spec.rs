//! Flash of page groups as specified by a user, and the places of its page groups.

use super::victim::GroupVictim;
use super::{
    Physical,
    translation::{GroupTranslation, Translation, TranslationContext},
};
use config::SpecError;
use config::schema::product;
use config::units::{Bytes, Duration};
use nand::{
    geometry::{Address, Digit, Reclaim, Shape},
    numbers::FastDiv,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes per entry of the map.
pub const ENTRY_BYTES: u64 = 4;
/// Maximum number of page groups: an entry names one, or none.
const MOST_GROUPS: u64 = 1 << 31;

/// Page groups: their composition, their placement, and their maintenance by Storengine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-products" = [
    product(MOST_GROUPS, "page groups", &["geometry.packages", "geometry.dies", "geometry.blocks", "geometry.pages"]),
]))]
pub struct GroupsSpec {
    /// Counts of channels, packages, dies, planes, blocks and pages.
    pub geometry: GroupGeometry,
    /// Translation of a group's number to a place.
    pub translation: GroupTranslation,
    /// First pages of each block, which hold the map's entries for the rest of the block.
    #[schemars(range(min = 1, max = 16))]
    pub metadata_pages: u32,
    /// Reclaim of blocks.
    pub reclaim: GroupReclaim,
    /// Dumps of the map to flash.
    pub dump: GroupDump,
}

/// Counts. A page group is a page of each plane of a die, on all channels: channels x planes x page bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupGeometry {
    /// Channels, over which every group spreads.
    #[schemars(range(min = 1, max = 64))]
    pub channels: u32,
    /// Packages per channel.
    #[schemars(range(min = 1, max = 64))]
    pub packages: u32,
    /// Dies per package.
    #[schemars(range(min = 1, max = 16))]
    pub dies: u32,
    /// Planes per die, over which every group spreads.
    #[schemars(range(min = 1, max = 16))]
    pub planes: u32,
    /// Blocks per plane.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub blocks: u32,
    /// Pages per block.
    #[schemars(range(min = 2, max = 4_096))]
    pub pages: u32,
    /// Bytes per page.
    #[schemars(extend("x-minimum" = "512B", "x-maximum" = "64KiB"))]
    pub page: Bytes,
}

/// Reclaim of blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupReclaim {
    /// Which used block is reclaimed next.
    pub victim: GroupVictim,
    /// Free blocks reserved for reclaim: writes of kernels and dumps wait rather than take them.
    #[schemars(range(min = 1, max = 65_536))]
    pub reserve: u32,
    /// Number of free blocks below which blocks are reclaimed in the background, if that gains any space.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub below: u32,
    /// Number of groups that are moved at the same time.
    #[schemars(range(min = 1, max = 256))]
    pub moves: u32,
}

/// Dumps of the map to flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupDump {
    /// Time between the starts of two dumps.
    pub period: Duration,
    /// Extent of a dump.
    pub extent: DumpExtent,
}

config::policies! {
    /// Extent of a dump of the map.
    #[derive(Copy, Eq)]
    pub family DumpExtent: choice {
        /// Groups of the map in which an entry has changed since they were dumped.
        default changed,
        /// The whole map.
        whole,
    }
}

impl GroupsSpec {
    /// Checks that the flash can be built; keys are relative to the component's table.
    ///
    /// # Errors
    /// A count is zero or beyond what is modelled, the groups exceed what an entry of the map can name, metadata leaves
    /// no page of a block, or no room is left for data.
    pub fn check(&self) -> Result<(), SpecError> {
        self.geometry.check()?;
        within("metadata_pages", self.metadata_pages, 1, 16)?;
        if self.metadata_pages >= self.geometry.pages {
            let what = format!(
                "{} metadata pages leave none of the {} pages of a block for data",
                self.metadata_pages, self.geometry.pages
            );
            return Err(SpecError::new("metadata_pages", what));
        }
        within("reclaim.reserve", self.reclaim.reserve, 1, 65_536)?;
        within("reclaim.below", self.reclaim.below, 1, 1 << 20)?;
        within("reclaim.moves", self.reclaim.moves, 1, 256)?;
        if self.dump.period.time() == engine::Time::ZERO {
            return Err(SpecError::new("dump.period", "the time between two dumps is zero"));
        }
        let layout = Layout::new(self);
        if self.capacity(&layout) == 0 {
            let what = format!(
                "{} blocks of {} groups leave no room for data beside {} free blocks (`reclaim.reserve`), the two that \
                 are written to, and {} groups of the map",
                layout.blocks(),
                layout.data_groups(),
                self.reclaim.reserve,
                layout.map_groups()
            );
            return Err(SpecError::new("geometry.blocks", what));
        }
        if self.reclaim.below > layout.blocks() {
            let what = format!("{} free blocks, but only {} blocks", self.reclaim.below, layout.blocks());
            return Err(SpecError::new("reclaim.below", what));
        }
        Ok(())
    }

    /// Returns the number of groups of data that fit: all but metadata, free blocks, the two open blocks, and the map.
    pub(super) fn capacity(&self, layout: &Layout) -> u32 {
        let blocks = u64::from(layout.blocks()).saturating_sub(u64::from(self.reclaim.reserve) + 2);
        let groups = blocks * u64::from(layout.data_groups());
        groups.saturating_sub(u64::from(layout.map_groups())) as u32
    }
}

impl GroupGeometry {
    fn check(&self) -> Result<(), SpecError> {
        within("geometry.channels", self.channels, 1, 64)?;
        within("geometry.packages", self.packages, 1, 64)?;
        within("geometry.dies", self.dies, 1, 16)?;
        within("geometry.planes", self.planes, 1, 16)?;
        within("geometry.blocks", self.blocks, 1, 1 << 20)?;
        within("geometry.pages", self.pages, 2, 1 << 12)?;
        let page = self.page.get();
        if !(512..=65_536).contains(&page) || !page.is_multiple_of(ENTRY_BYTES) {
            let what = format!("a page of {page} B; pages must have 512 to 65,536 B, a multiple of 4 B");
            return Err(SpecError::new("geometry.page", what));
        }
        let groups = [self.packages, self.dies, self.blocks, self.pages].map(u64::from);
        let groups: u64 = groups.iter().product();
        if groups > MOST_GROUPS {
            let what = format!("{groups} page groups; at most {MOST_GROUPS} are modelled");
            return Err(SpecError::new("geometry.blocks", what));
        }
        Ok(())
    }
}

fn within(key: &str, value: u32, least: u32, most: u32) -> Result<(), SpecError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(SpecError::new(key, format!("`{key}` is {value}, but must be from {least} to {most}")))
}

// Places of page groups: the arithmetic of numbers, blocks, metadata and addresses.

/// Place of a page group: on all channels, the same page of the same die.
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

/// Layout derived from the geometry and the translation.
pub struct Layout {
    geometry: GroupGeometry,
    translation: Box<dyn Translation>,
    /// Groups per block.
    block_groups: FastDiv,
    /// Groups per block that hold data.
    data_groups: FastDiv,
    blocks: u32,
    meta: u32,
}

impl Layout {
    /// Derives the layout of a spec. The caller has checked it, except for the room for data.
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

    /// Returns the bytes per group: channels x planes of a die x bytes per page.
    pub fn group_bytes(&self) -> u64 {
        u64::from(self.geometry.channels) * u64::from(self.geometry.planes) * self.geometry.page.get()
    }
    /// Returns the number of groups of the flash, including metadata; the number of logical groups is the same.
    pub fn groups(&self) -> u32 {
        self.blocks * self.block_groups()
    }
    /// Returns the bytes of the map: an entry for each group of the flash.
    pub fn map_bytes(&self) -> u64 {
        u64::from(self.groups()) * ENTRY_BYTES
    }
    /// Returns the number of map entries per group.
    pub fn group_entries(&self) -> u32 {
        (self.group_bytes() / ENTRY_BYTES) as u32
    }
    /// Returns the number of groups that the map fills on flash.
    pub fn map_groups(&self) -> u32 {
        self.groups().div_ceil(self.group_entries())
    }
    /// Returns the number of blocks. Consecutive groups fill a block, and it is erased as a whole.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }
    /// Returns the groups per block.
    pub fn block_groups(&self) -> u32 {
        self.block_groups.get() as u32
    }
    /// Returns the number of groups at the beginning of a block that hold metadata.
    pub fn metadata_groups(&self) -> u32 {
        self.meta
    }
    /// Returns the groups per block that hold data.
    pub fn data_groups(&self) -> u32 {
        self.data_groups.get() as u32
    }
    /// Returns the block of a group, and the group's number in it.
    #[inline]
    pub fn block_of(&self, group: Physical) -> (u32, u32) {
        let (block, index) = self.block_groups.div_rem(group.0.into());
        (block as u32, index as u32)
    }
    /// Returns a group of a block.
    #[inline]
    pub fn group(&self, block: u32, index: u32) -> Physical {
        Physical(block * self.block_groups() + index)
    }
    /// Returns the group of the `nth` data group, counted over all blocks.
    #[inline]
    pub(super) fn nth_data(&self, nth: u32) -> Physical {
        let (block, index) = self.data_groups.div_rem(nth.into());
        self.group(block as u32, self.meta + index as u32)
    }
    /// Inverts [`Layout::nth_data`]; `None` for metadata.
    #[inline]
    pub(super) fn data_number(&self, group: Physical) -> Option<u32> {
        let (block, index) = self.block_of(group);
        Some(block * self.data_groups() + index.checked_sub(self.meta)?)
    }

    /// Returns the place of a group.
    #[inline]
    pub fn place(&self, group: Physical) -> Place {
        self.translation.place(group)
    }
    /// Iterates over the pages of a group: channel by channel, plane by plane.
    pub fn pages(&self, group: Physical) -> impl Iterator<Item = Address> + use<> {
        self.addresses(self.place(group))
    }
    /// Iterates over the plane blocks that are erased with a block, as addresses of their first pages.
    pub fn erase(&self, block: u32) -> impl Iterator<Item = Address> + '_ {
        (0..self.translation.spread()).flat_map(move |n| self.addresses(self.place(self.group(block, n))))
    }

    /// Returns the die of a place on the first channel.
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

    /// Returns the shape of the media, for dies behind channels; map units are pages.
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
