//! Flash of page groups and its media, as a user writes them.

use crate::spec::{Built, CellSpec, ChannelSpec, FlashEnergySpec, GeometrySpec, Programming};
use config::SpecError;
use config::units::{Bandwidth, Share};
use engine::Time;
use ftl::page_groups::Layout;
use ftl::page_groups::spec::GroupsSpec;
use ftl::page_map::bad::Factory;
use nand::dies::sched::Scheduling;
use nand::dies::{BackendPolicy, MultiPlane, Sharing, Suspend};
use nand::geometry::Geometry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flash that an accelerator governs by itself: page groups, what they lie on, and the link to the accelerator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupsFlashSpec {
    /// Page groups: what they consist of, how numbers become places, and how Storengine keeps them.
    pub groups: GroupsSpec,
    /// The memory cells: page types and their times.
    pub cell: CellSpec,
    /// The channels between the link and the dies.
    pub channel: ChannelSpec,
    /// Which operation a free die takes next.
    pub scheduler: Scheduling,
    /// What connects the channels' controllers with the accelerator.
    pub link: GroupLink,
    /// Blocks that are bad from the factory; left out, none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_blocks: Option<GroupBadBlocksSpec>,
    /// What it spends; left out, it reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<FlashEnergySpec>,
}

/// The link between the controllers of the channels and the accelerator's memory: both directions at the same time, each first in,
/// first out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupLink {
    /// Data a second each way, packets' own bytes taken off.
    ///
    /// FlashAbacus has four SRIO lanes of 5 Gbit/s (Table 1): 2.0 GB/s after 8b/10b, 1.83 GB/s with 24 B around each packet of 256 B.
    pub rate: Bandwidth,
}

/// Blocks of planes that do not work. A controller puts the next good block of the plane in place of each, so that every plane has as many as the worst one: a page group is the same page of the same block on all
/// channels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupBadBlocksSpec {
    /// Probability that a block is bad from the factory; each plane draws its own. Data sheets guarantee 98 % good blocks.
    pub factory: Share,
}

impl GroupsFlashSpec {
    /// Page groups on what the factory has left, and how many blocks of planes are bad.
    ///
    /// # Errors
    /// Too few good blocks.
    pub(super) fn good(&self, context: &Built) -> Result<(GroupsSpec, u64), SpecError> {
        let mut groups = self.groups.clone();
        let Some(GroupBadBlocksSpec { factory }) = self.bad_blocks else { return Ok((groups, 0)) };
        let geo = Geometry::new(Layout::new(&groups).shape());
        let Factory { blocks, lost } = Factory::draw(&geo, factory.get(), context.seed, &context.name);
        let lost = lost.into_iter().max().unwrap_or(0);
        if lost >= groups.geometry.blocks {
            let what = format!("a plane has {lost} bad blocks of {}", groups.geometry.blocks);
            return Err(SpecError::new("bad_blocks.factory", what).help("0% to 5%"));
        }
        groups.geometry.blocks -= lost;
        groups.check().map_err(|fault| fault.within("groups"))?;
        Ok((groups, blocks))
    }

    /// Whether it can be built; keys relative to the part's table.
    ///
    /// # Errors
    /// What the tables `groups`, `cell` and `channel` cannot be; word lines that are programmed as one; a link without rate.
    pub fn check(&self) -> Result<(), SpecError> {
        self.groups.check().map_err(|fault| fault.within("groups"))?;
        let geometry = &self.groups.geometry;
        self.cell.check(&GeometrySpec {
            channels: geometry.channels,
            ways: geometry.packages,
            dies: geometry.dies,
            planes: geometry.planes,
            blocks: geometry.blocks,
            pages: geometry.pages,
            page_size: geometry.page,
        })?;
        if self.cell.programming != Programming::page {
            let what = "page groups are programmed page by page, as the numbers of their log are handed out";
            return Err(SpecError::new("cell.programming", what).help("`cell.programming = \"page\"`"));
        }
        self.channel.check()?;
        SpecError::positive("link.rate", self.link.rate.bytes_per_s())
    }

    /// Both planes of a die work on each page of a group, at the same place: they always share a command.
    pub(super) fn policy(&self, fold: bool) -> BackendPolicy {
        BackendPolicy {
            scheduler: self.scheduler.build(&()),
            arbiter: self.channel.arbiter.build(&()),
            sharing: Sharing { rule: MultiPlane::SameBlock, search: 1 },
            independent_reads: false,
            register_reads: false,
            joins_reads: false,
            suspend: Suspend {
                program: false,
                erase: false,
                latency: Time::ZERO,
                resume: Time::ZERO,
                least: Time::ZERO,
                limit: 0,
            },
            budget: None,
            tells_idle: false,
            fold,
            wanted: None,
            link: None,
        }
    }
}
