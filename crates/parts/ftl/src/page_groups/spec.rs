//! Flash of page groups as a user writes it.

use super::geometry::Layout;
use super::translation::GroupTranslation;
use super::victim::GroupVictim;
use config::SpecError;
use config::schema::product;
use config::units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of an entry of the map.
pub const ENTRY_BYTES: u64 = 4;
/// Page groups at most: an entry names one, or none.
const MOST_GROUPS: u64 = 1 << 31;

/// Page groups: what they consist of, how numbers become places, and how Storengine keeps them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-products" = [
    product(MOST_GROUPS, "page groups", &["geometry.packages", "geometry.dies", "geometry.blocks", "geometry.pages"]),
]))]
pub struct GroupsSpec {
    /// How many of everything.
    pub geometry: GroupGeometry,
    /// How the number of a group becomes a place.
    pub translation: GroupTranslation,
    /// First pages of each block that hold the map's entries for the rest of it.
    #[schemars(range(min = 1, max = 16))]
    pub metadata_pages: u32,
    /// How blocks become free again.
    pub reclaim: GroupReclaim,
    /// How the map comes to flash.
    pub dump: GroupDump,
}

/// How many of everything. A page group is a page of each plane of a die, on all channels: channels x planes x page bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupGeometry {
    /// Channels, over which every group lies.
    #[schemars(range(min = 1, max = 64))]
    pub channels: u32,
    /// Packages a channel.
    #[schemars(range(min = 1, max = 64))]
    pub packages: u32,
    /// Dies a package.
    #[schemars(range(min = 1, max = 16))]
    pub dies: u32,
    /// Planes a die, over which every group lies.
    #[schemars(range(min = 1, max = 16))]
    pub planes: u32,
    /// Blocks a plane.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub blocks: u32,
    /// Pages a block.
    #[schemars(range(min = 2, max = 4_096))]
    pub pages: u32,
    /// Bytes a page.
    #[schemars(extend("x-minimum" = "512B", "x-maximum" = "64KiB"))]
    pub page: Bytes,
}

/// How blocks become free again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupReclaim {
    /// Which used block is reclaimed next.
    pub victim: GroupVictim,
    /// Free blocks that are kept for reclaim: writes of kernels and dumps wait rather than take them.
    #[schemars(range(min = 1, max = 65_536))]
    pub reserve: u32,
    /// Free blocks below which blocks are reclaimed in the background, if that gains anything.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub below: u32,
    /// Groups that are moved at the same time.
    #[schemars(range(min = 1, max = 256))]
    pub moves: u32,
}

/// How the map comes to flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupDump {
    /// Time between the beginnings of two dumps.
    pub period: Duration,
    /// What a dump writes.
    pub extent: DumpExtent,
}

config::policies! {
    /// What a dump of the map writes.
    #[derive(Copy, Eq)]
    pub family DumpExtent: choice {
        /// Groups of the map in which an entry has changed since they were dumped.
        default changed,
        /// The whole map.
        whole,
    }
}

impl GroupsSpec {
    /// Whether it can be built; keys relative to the part's table.
    ///
    /// # Errors
    /// Counts of zero or beyond what is modelled, more groups than an entry of the map can name, metadata that leaves no page
    /// of a block, no room for data.
    pub fn check(&self) -> Result<(), SpecError> {
        self.geometry.check()?;
        within("metadata_pages", self.metadata_pages, 1, 16)?;
        if self.metadata_pages >= self.geometry.pages {
            let what = format!(
                "{} pages of metadata leave none of {} a block for data",
                self.metadata_pages, self.geometry.pages
            );
            return Err(SpecError::new("metadata_pages", what));
        }
        within("reclaim.reserve", self.reclaim.reserve, 1, 65_536)?;
        within("reclaim.below", self.reclaim.below, 1, 1 << 20)?;
        within("reclaim.moves", self.reclaim.moves, 1, 256)?;
        if self.dump.period.time() == engine::Time::ZERO {
            return Err(SpecError::new("dump.period", "dumps without time between them"));
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
            let what = format!("{} of {} blocks cannot be free", self.reclaim.below, layout.blocks());
            return Err(SpecError::new("reclaim.below", what));
        }
        Ok(())
    }

    /// Groups of data that fit: all but metadata, free blocks, the two blocks that are written to, and the map.
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
            let what = format!("a page of {page} B; pages have 512 to 65,536 B, and whole entries of 4 B");
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
