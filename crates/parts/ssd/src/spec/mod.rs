//! What a user writes about a flash device, and what is built from it.

mod bad;
mod buffer;
mod build;
mod cell;
mod channel;
mod errors;
mod ftl;
mod host;
mod link;
mod parity;
mod registers;
mod shape;
mod slc;
mod state;

pub use bad::{BadBlocksSpec, GrownSpec};
pub use buffer::{BufferSpec, FullReads, Moves};
pub use build::Built;
pub use build::{energy, timing};
pub use cell::{CellSpec, PageLayout, Programming, SpreadSpec};
pub use channel::{ChannelSpec, DieSpec, Interface, MultiPlaneRule, PowerBudgetSpec, SuspendSpec};
pub use errors::{ErrorsSpec, RetrySpec};
pub use ftl::{
    FtlSpec, GcModeSpec, GcScope, GcSpec, GcStreams, MapGranularity, MapMemorySpec, Mapping, UnwrittenRead,
    WearSpec,
};
pub use host::{
    AhciSpec, ControllerSpec, HostSpec, InnerSpec, NvmeArbitration, NvmeSpec, UpkeepSpec, WriterSpec,
};
pub use link::{HostLinkSpec, LinkSpec, PcieSpec, PlainSpec, SataSpec};
pub use registers::{Leaves, RegisterCacheSpec};
pub use shape::{GeometrySpec, ReclaimUnit, StripeOrder};
pub use slc::{SlcEnergySpec, SlcFull, SlcSpec};
pub use state::FlashState;

pub use config::SpecError;
pub use nand::energy::FlashEnergySpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A flash device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlashSpec {
    /// How many of everything.
    pub geometry: GeometrySpec,
    /// The memory cells: page types and their times.
    pub cell: CellSpec,
    /// The channels between controller and dies.
    pub channel: ChannelSpec,
    /// What dies can do and in which order they do it.
    pub die: DieSpec,
    /// The translation layer.
    pub ftl: FtlSpec,
    /// The data buffer in the drive's DRAM; left out, writes are acknowledged from flash and reads go there.
    pub buffer: Option<BufferSpec>,
    /// Registers of the planes that gather writes, in place of a `buffer`; left out, there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<RegisterCacheSpec>,
    /// Blocks that do not work; left out, all do, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_blocks: Option<BadBlocksSpec>,
    /// How the host reaches the device.
    pub host: HostSpec,
    /// How a processor inside the drive reaches the device; left out, there is none, and a GPU reaches it as the host does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<InnerSpec>,
    /// What it spends; left out, it reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<FlashEnergySpec>,
}
