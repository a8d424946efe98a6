//! Spec of flash with page groups and its media.

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

/// Flash managed by an accelerator: page groups, their media, and the link to the accelerator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupsFlashSpec {
    /// Page groups: their composition, the mapping of numbers to places, and their management by Storengine.
    pub groups: GroupsSpec,
    /// Memory cells: page types and their times.
    pub cell: CellSpec,
    /// Channels between the link and the dies.
    pub channel: ChannelSpec,
    /// Die scheduler: the operation that a free die takes next.
    pub scheduler: Scheduling,
    /// Link between the channels' controllers and the accelerator.
    pub link: GroupLink,
    /// Factory bad blocks; none if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_blocks: Option<GroupBadBlocksSpec>,
    /// Energy of operations; if omitted, the device reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<FlashEnergySpec>,
}

/// Link between the channels' controllers and the accelerator's memory: full duplex, first in, first out in each
/// direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupLink {
    /// Data rate in each direction, in bytes per second, without packet overhead.
    ///
    /// FlashAbacus has four SRIO lanes of 5 Gbit/s (Table 1): 2.0 GB/s after 8b/10b, 1.83 GB/s with 24 B around each packet of 256 B.
    pub rate: Bandwidth,
}

/// Factory bad blocks of planes. A controller replaces each with the next good block of the plane, so that every plane
/// has as many as the worst one: a page group is the same page of the same block on all channels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupBadBlocksSpec {
    /// Probability that a block is bad from the factory, drawn for each plane. Data sheets guarantee 98 % good blocks.
    pub factory: Share,
}

impl GroupsFlashSpec {
    /// Page groups on the good blocks, and the number of bad blocks of planes.
    ///
    /// # Errors
    /// Returns an error if too few blocks are good.
    pub(super) fn good(&self, context: &Built) -> Result<(GroupsSpec, u64), SpecError> {
        let mut groups = self.groups.clone();
        let Some(GroupBadBlocksSpec { factory }) = self.bad_blocks else { return Ok((groups, 0)) };
        let geo = Geometry::new(Layout::new(&groups).shape());
        let Factory { blocks, lost } = Factory::draw(&geo, factory.get(), context.seed, &context.name);
        let lost = lost.into_iter().max().unwrap_or(0);
        if lost >= groups.geometry.blocks {
            let what = format!("a plane has too few good blocks: {lost} bad of {}", groups.geometry.blocks);
            return Err(SpecError::new("bad_blocks.factory", what).help("allowed are 0% to 5%"));
        }
        groups.geometry.blocks -= lost;
        groups.check().map_err(|fault| fault.within("groups"))?;
        Ok((groups, blocks))
    }

    /// Checks that the spec can be built; keys are relative to the part's table.
    ///
    /// # Errors
    /// Invalid values in the tables `groups`, `cell` and `channel`; word lines that are programmed as one; a link
    /// without rate.
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
            let what = "page groups are programmed page by page, in the order of their log";
            return Err(SpecError::new("cell.programming", what).help("set `cell.programming = \"page\"`"));
        }
        self.channel.check()?;
        SpecError::positive("link.rate", self.link.rate.bytes_per_s())
    }

    /// Policy of the back end. Both planes of a die work on each page of a group, at the same place: they always share
    /// a command.
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
