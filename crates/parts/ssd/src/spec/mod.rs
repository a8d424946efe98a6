//! Spec of a flash device, and construction of the device from it.

mod buffer;
mod build;
mod channel;
mod errors;
mod ftl;
mod host;
mod media;
mod state;

pub use buffer::{BufferSpec, FullReads, Moves, SlcEnergySpec, SlcFull, SlcSpec};
pub use build::{Built, energy, timing};
pub use channel::{ChannelSpec, DieSpec, Interface, MultiPlaneRule, PowerBudgetSpec, SuspendSpec};
pub use errors::{ErrorsSpec, RetrySpec};
pub use ftl::{
    FtlSpec, GcModeSpec, GcScope, GcSpec, GcStreams, MapGranularity, MapMemorySpec, Mapping, UnwrittenRead,
    WearSpec,
};
pub use host::{
    AhciSpec, ControllerSpec, HostSpec, InnerSpec, NvmeArbitration, NvmeSpec, UpkeepSpec, WriterSpec,
};
pub use media::{CellSpec, GeometrySpec, PageLayout, Programming, ReclaimUnit, SpreadSpec, StripeOrder};
pub use state::FlashState;

use crate::device::{BufferMemory, BufferParts, Exit, RegisterParts};
use ::ftl::{
    buffer::{
        Buffer, BufferShape, MAX_SECTORS, Sets,
        admit::AdmissionPolicy,
        destage::{DestageContext, DestagePolicy},
        evict::{Eviction, EvictionPolicy},
    },
    page_map::{
        alloc::Allocator,
        bad::{Factory, Lives},
    },
};
pub use config::SpecError;
use config::units::{Bandwidth, Bytes, Duration, Share};
use engine::Rng;
pub use nand::dies::FlashEnergySpec;
use nand::{
    geometry::Geometry,
    registers::{Link, RegisterNetwork},
};
use net::{
    pcie::{self, lane_bytes_per_s},
    sata,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flash device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlashSpec {
    /// Geometry of the flash array.
    pub geometry: GeometrySpec,
    /// Memory cells: page types and their times.
    pub cell: CellSpec,
    /// Channels between controller and dies.
    pub channel: ChannelSpec,
    /// Capabilities and scheduling of dies.
    pub die: DieSpec,
    /// Flash translation layer (FTL).
    pub ftl: FtlSpec,
    /// Data buffer in the drive's DRAM; if omitted, writes are acknowledged from flash and every read goes to flash.
    pub buffer: Option<BufferSpec>,
    /// Registers of the planes that gather writes, in place of a `buffer`; none if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<RegisterCacheSpec>,
    /// Bad blocks; if omitted, no block is ever bad.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_blocks: Option<BadBlocksSpec>,
    /// Host interface of the device.
    pub host: HostSpec,
    /// Interface of a processor inside the drive; if omitted, there is none, and a GPU reaches the device as the host
    /// does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<InnerSpec>,
    /// Energy of operations; if omitted, the device reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<FlashEnergySpec>,
}

// Validity of superblock parity.

impl FlashSpec {
    /// Checks that the requested parity can be laid out, with `program_pages` pages per program unit.
    pub(crate) fn check_parity(&self, program_pages: u32) -> Result<(), SpecError> {
        let key = "ftl.parity";
        let Some(data) = self.ftl.parity else { return Ok(()) };
        let geometry = &self.geometry;
        let dies = geometry.channels * geometry.ways * if self.die.interleave { geometry.dies } else { 1 };
        let rows = geometry.pages / program_pages;
        let fits = |data: u32| dies.is_multiple_of(data + 1) && rows.is_multiple_of(data + 1);
        if data == 0 || data >= dies || !fits(data) {
            let what = format!(
                "`{key}` is {data}: sets of this many dies plus one must fill the {dies} dies of the device, and \
                 rows of as many program units its blocks of {rows}"
            );
            let allowed: Vec<String> = (1..dies.min(rows).min(256))
                .filter(|data| fits(*data))
                .map(|data| data.to_string())
                .collect();
            return Err(SpecError::new(key, what).help(if allowed.is_empty() {
                "no number fits this geometry: omit flash.ftl.parity".to_owned()
            } else {
                format!("allowed are {}, or omit flash.ftl.parity", allowed.join(", "))
            }));
        }
        let refused = [
            (self.ftl.page_choice().is_some(), "ftl.pages", "choosing pages by type"),
            (
                self.ftl.gc.copy_back,
                "ftl.gc.copy_back",
                "copy-back, which hides moved pages from the controller",
            ),
            (self.registers.is_some(), "registers", "registers that gather writes"),
        ];
        if let Some((_, other, which)) = refused.into_iter().find(|(is_set, ..)| *is_set) {
            let what = format!("{which} (`{other}`) cannot be combined with `{key}`");
            return Err(SpecError::new(other, what).help("omit one of the two, or leave it at its default"));
        }
        Ok(())
    }
}

// Spec of bad blocks.

/// Bad blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BadBlocksSpec {
    /// Probability that a block is bad from the factory, drawn for each plane. Data sheets guarantee 98 % good blocks.
    pub factory: Share,
    /// Blocks that fail with wear; none if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grown: Option<GrownSpec>,
}

/// Lifetimes of blocks: a Weibull distribution over erases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrownSpec {
    /// Erases after which 63.2 % of the blocks have failed.
    #[schemars(range(min = 1))]
    pub endurance: u32,
    /// Weibull shape: 1 is a constant failure rate; larger values mean later and steeper failure.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub shape: f64,
}

impl BadBlocksSpec {
    pub(crate) fn factory(&self, geo: &Geometry, seed: u64, device: &str) -> Factory {
        Factory::draw(geo, self.factory.get(), seed, device)
    }

    pub(crate) fn lives(&self, seed: u64, device: &str) -> Result<Option<Lives>, SpecError> {
        let Some(grown) = &self.grown else { return Ok(None) };
        SpecError::positive("bad_blocks.grown.endurance", grown.endurance.into())?;
        if !(grown.shape.is_finite() && grown.shape > 0.0) {
            let what = format!("a Weibull shape of {} is invalid; it must be a positive number", grown.shape);
            return Err(SpecError::new("bad_blocks.grown.shape", what));
        }
        let seed = Rng::stream(seed, &format!("{device}/bad_blocks.grown")).next_u64();
        Ok(Some(Lives { endurance: f64::from(grown.endurance), shape: grown.shape, seed }))
    }
}

// Specs of links.

/// Full-duplex link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LinkSpec {
    /// PCI Express.
    Pcie(PcieSpec),
    /// Link given only by its payload rate.
    Plain(PlainSpec),
}

/// Link between a host and its drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HostLinkSpec {
    /// PCI Express.
    Pcie(PcieSpec),
    /// Link given only by its payload rate.
    Plain(PlainSpec),
    /// Serial ATA: half duplex, for `ahci`.
    Sata(SataSpec),
}

/// PCI Express.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PcieSpec {
    /// Generation, 1 to 6.
    #[schemars(range(min = 1, max = 6))]
    pub generation: u32,
    /// Number of lanes.
    #[schemars(extend("enum" = [1, 2, 4, 8, 16]))]
    pub lanes: u32,
    /// Maximum packet payload.
    #[schemars(extend("x-minimum" = "1B"))]
    pub max_payload: Bytes,
    /// Latency in one direction.
    pub latency: Duration,
    /// Share of the rate, in each direction, taken by acknowledgements and flow-control updates; zero if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-maximum" = "50%"))]
    pub flow_control: Option<Share>,
}

/// Link given only by its payload rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlainSpec {
    /// Payload bandwidth in each direction, in bytes per second.
    pub bandwidth: Bandwidth,
    /// Latency in one direction.
    pub latency: Duration,
}

/// Serial ATA.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SataSpec {
    /// Generation, 1 to 3: 1.5, 3 and 6 Gb/s.
    #[schemars(range(min = 1, max = 3))]
    pub generation: u32,
    /// Latency in one direction, from the sender's link layer to the receiver's; each frame takes it four times, for
    /// its handshakes.
    pub latency: Duration,
}

/// Link built from a [`HostLinkSpec`].
enum HostLink {
    Both(pcie::Link),
    Sata(sata::Link),
}

impl LinkSpec {
    /// Builds the link; `table` is the spec table that holds it.
    ///
    /// # Errors
    /// Returns a generation, lane count or packet size that does not exist.
    pub fn build(&self, table: &str) -> Result<pcie::Link, SpecError> {
        match self {
            LinkSpec::Pcie(spec) => spec.build(&format!("{table}.link.pcie")),
            LinkSpec::Plain(spec) => Ok(spec.build()),
        }
    }
}

impl HostLinkSpec {
    /// Builds the link; `table` is the spec table that holds it.
    fn build(&self, table: &str) -> Result<HostLink, SpecError> {
        Ok(match self {
            HostLinkSpec::Pcie(spec) => HostLink::Both(spec.build(&format!("{table}.link.pcie"))?),
            HostLinkSpec::Plain(spec) => HostLink::Both(spec.build()),
            HostLinkSpec::Sata(spec) => HostLink::Sata(spec.build(&format!("{table}.link.sata"))?),
        })
    }
}

impl PcieSpec {
    fn build(&self, table: &str) -> Result<pcie::Link, SpecError> {
        let key = |name: &str| format!("{table}.{name}");
        let PcieSpec { generation, lanes, max_payload, latency, flow_control } = self;
        let lane = lane_bytes_per_s(*generation).ok_or_else(|| {
            let what = format!("PCIe generation {generation}; allowed are 1 to 6");
            SpecError::new(&key("generation"), what)
        })?;
        if ![1, 2, 4, 8, 16].contains(lanes) {
            let what = format!("{lanes} lanes; allowed are 1, 2, 4, 8, 16");
            return Err(SpecError::new(&key("lanes"), what));
        }
        SpecError::positive(&key("max_payload"), max_payload.get())?;
        let link = pcie::Link::new(lane * u64::from(*lanes), max_payload.get(), latency.time());
        Ok(match flow_control {
            Some(share) if *share > Share::percent(50) => {
                let what = format!("{share} of the rate for flow control; allowed are 0 % to 50 %");
                return Err(SpecError::new(&key("flow_control"), what));
            }
            Some(share) => link.with_flow_control(*share),
            None => link,
        })
    }
}

impl PlainSpec {
    fn build(&self) -> pcie::Link {
        pcie::Link::new(self.bandwidth.bytes_per_s(), 0, self.latency.time())
    }
}

impl SataSpec {
    fn build(&self, table: &str) -> Result<sata::Link, SpecError> {
        let rate = sata::bytes_per_s(self.generation).ok_or_else(|| {
            let what = format!("SATA generation {}; allowed are 1 to 3", self.generation);
            SpecError::new(&format!("{table}.generation"), what)
        })?;
        Ok(sata::Link::new(rate, self.latency.time()))
    }
}

// Spec of registers that gather writes.

/// Registers of the planes that gather writes, in place of a buffer in DRAM (ZnG, section III-C).
///
/// A write is done when its data is in a register of the package that its address selects. A page is programmed from
/// there when its register is needed; reads find it there. Flash must be written page by page where the address says: a
/// map unit is a page and a program unit, `ftl.allocation` is `striped`, `ftl.reclaim_unit` is `block`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterCacheSpec {
    /// Page registers per plane: one is the data register of the array, the others gather writes.
    #[schemars(range(min = 2, max = 1_024))]
    pub count: u32,
    /// Registers that a page may use.
    pub network: RegisterNetwork,
    /// Share of the registers that a page may use, rounded down, that is kept free by evicting pages before room is
    /// needed.
    pub reserve: Share,
    /// Eviction policy: the page that leaves the registers next.
    pub eviction: Leaves,
    /// Power-loss protection: capacitors keep the registers through a power cut, so flush and forced unit access cost
    /// nothing more.
    pub protected: bool,
}

config::policies! {
    /// Eviction policy of the registers. All pages in them are dirty.
    #[derive(Copy, Eq)]
    pub family Leaves: choice {
        /// Least recently used page, by reads and writes, as in ZnG.
        default lru,
        /// Oldest page, in order of arrival.
        fifo,
    }
}

impl Leaves {
    fn policy(self) -> Box<dyn Eviction> {
        match self {
            Leaves::lru => EvictionPolicy::lru,
            Leaves::fifo => EvictionPolicy::fifo,
        }
        .build(&())
    }
}

impl RegisterCacheSpec {
    /// Checks that pages are written one by one where the address says.
    fn check_pages(geo: &Geometry, allocator: &dyn Allocator) -> Result<(), SpecError> {
        let (page, unit) = (geo.shape.page_bytes, geo.shape.unit_bytes);
        if page != unit || u64::from(unit) > u64::from(MAX_SECTORS) * 512 {
            let what = format!("a register gathers one page of {page} B, but the map unit is {unit} B");
            return Err(SpecError::new("ftl.map_unit", what).help(format!(
                "set `ftl.map_unit = \"{page}B\"`, or use a `buffer` in place of `registers`"
            )));
        }
        if geo.units_per_program != 1 {
            let what =
                format!("a register gathers one page, but {} are programmed as one", geo.units_per_program);
            return Err(SpecError::new("cell.programming", what).help("choose `page`"));
        }
        if geo.lanes != 1 {
            let what = format!(
                "a register holds the page of one plane, but a reclaim unit spans {} planes",
                geo.lanes
            );
            return Err(SpecError::new("ftl.reclaim_unit", what).help("choose `block`"));
        }
        if !allocator.is_static() {
            let what = "registers need a package fixed by the address; this allocation chooses it later";
            return Err(SpecError::new("ftl.allocation", what).help("choose `striped`"));
        }
        Ok(())
    }

    pub(crate) fn build(&self, geo: &Geometry, allocator: &dyn Allocator) -> Result<BufferParts, SpecError> {
        self.network.check(self.count)?;
        RegisterCacheSpec::check_pages(geo, allocator)?;
        let each = self.count - 1;
        let package = geo.shape.dies * geo.shape.planes;
        let planes = if self.network == RegisterNetwork::private { 1 } else { package };
        let total = u64::from(geo.plane_count) * u64::from(each);
        if total > 1 << 24 {
            let what = format!("{total} registers in all planes; allowed are at most 16,777,216");
            return Err(SpecError::new("registers.count", what));
        }
        let lines = planes * each;
        let high = lines - self.reserve.of(u64::from(lines)) as u32;
        let shape = BufferShape {
            lines,
            unit_sectors: geo.shape.unit_bytes / 512,
            caches_reads: false,
            caches_writes: true,
            high,
            low: high,
        };
        let admission = || AdmissionPolicy::always.build(&());
        let sets = (0..geo.plane_count / planes)
            .map(|_| Buffer::new(shape, self.eviction.policy(), admission()))
            .collect();
        // Positions in the stripe order, one for each plane.
        let places = (0..u64::from(geo.groups)).map(|position| geo.group_at(position) / planes).collect();
        Ok(BufferParts {
            buffer: Sets::spread(sets, places),
            destage: DestagePolicy::watermarks.build(&DestageContext {
                high,
                low: high,
                unit_sectors: shape.unit_sectors,
            }),
            in_flight: u32::MAX,
            throttle: u64::MAX,
            moves_sectors: false,
            reads_wait: false,
            keep: None,
            acknowledges_early: true,
            protected: self.protected,
            memory: BufferMemory::Registers(RegisterParts {
                each,
                planes,
                exit: match self.network {
                    RegisterNetwork::swnet => Exit::Controller,
                    RegisterNetwork::private | RegisterNetwork::fcnet | RegisterNetwork::nif(_) => {
                        Exit::Inside
                    }
                },
            }),
            look_ahead: None,
        })
    }

    /// Returns the path of pages from one plane to another inside a package.
    pub(crate) fn link(&self, geo: &Geometry) -> Link {
        Link::new(&self.network, geo.plane_count, u64::from(geo.shape.page_bytes))
    }
}
