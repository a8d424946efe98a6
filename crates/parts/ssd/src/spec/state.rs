//! Spec keys that decide the state of a device before its first command.
//!
//! Preconditioning works without time: it sees geometry, mapping, free-space limits, victim policy and bad blocks. Each key of
//! [`FlashSpec`] is named here, kept or left out with the reason, so that a new key does not compile until it is placed.

use super::{
    AhciSpec, BadBlocksSpec, BufferSpec, CellSpec, ChannelSpec, ControllerSpec, DieSpec, ErrorsSpec,
    FlashSpec, FtlSpec, GcSpec, GcStreams, GeometrySpec, HostLinkSpec, HostSpec, InnerSpec, LinkSpec,
    MapMemorySpec, Mapping, MultiPlaneRule, NvmeArbitration, NvmeSpec, PcieSpec, PlainSpec, Programming,
    ReclaimUnit, RegisterCacheSpec, RetrySpec, SataSpec, SlcSpec, SpreadSpec, StripeOrder, SuspendSpec,
    WearSpec,
};
use config::units::{Bytes, Share};
use ftl::page_map::alloc::Allocation;
use ftl::page_map::gc::VictimPolicy;
use ftl::page_map::pages::PageOrder;
use serde::Serialize;

/// Spec keys that the state before the first command depends on, named as in a spec. Devices with equal keys, seed and
/// precondition have the same [`crate::Device::save_preconditioned`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlashState {
    geometry: GeometrySpec,
    cell: CellState,
    die: DieState,
    ftl: FtlState,
    #[serde(skip_serializing_if = "Option::is_none")]
    bad_blocks: Option<BadBlocksSpec>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct CellState {
    bits: u8,
    programming: Programming,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct DieState {
    interleave: bool,
    multi_plane: MultiPlaneRule,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct FtlState {
    map_unit: Bytes,
    mapping: MappingState,
    reclaim_unit: ReclaimUnit,
    stripe: StripeOrder,
    allocation: Allocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<PageOrder>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slc_cache: Option<SlcState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parity: Option<u32>,
    over_provisioning: Share,
    placements: u8,
    gc: GcState,
    wear: WearSpec,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum MappingState {
    Table,
    Demand { stored_entry: Bytes },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct SlcState {
    fixed: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct GcState {
    victim: VictimPolicy,
    start: u32,
    stop: u32,
    hard: u32,
    streams: GcStreams,
}

impl From<&FlashSpec> for FlashState {
    fn from(spec: &FlashSpec) -> FlashState {
        let FlashSpec {
            geometry,
            cell,
            channel,
            die,
            ftl,
            buffer,
            registers,
            bad_blocks,
            host,
            inner,
            energy: _,
        } = spec;
        channel_is_time(channel);
        buffer.iter().for_each(buffer_is_empty);
        registers.iter().for_each(registers_are_empty);
        host_is_time(host);
        inner.iter().for_each(inner_is_time);
        FlashState {
            geometry: geometry.clone(),
            cell: cell.into(),
            die: die.into(),
            ftl: ftl.into(),
            bad_blocks: bad_blocks.clone(),
        }
    }
}

impl From<&CellSpec> for CellState {
    fn from(spec: &CellSpec) -> CellState {
        let CellSpec {
            bits,
            programming,
            // Page types differ only in their times.
            layout: _,
            // Times of operations: preconditioning takes no time.
            read: _,
            program: _,
            erase: _,
            // Changes of times with erase counts; the counts are part of the state.
            program_drift: _,
            erase_drift: _,
            spread,
            errors,
        } = spec;
        if let Some(spread) = spread {
            // Deviations of times.
            let SpreadSpec { read: _, program: _, erase: _ } = spread;
        }
        errors.iter().for_each(errors_are_read);
        CellState { bits: *bits, programming: *programming }
    }
}

impl From<&DieSpec> for DieState {
    fn from(spec: &DieSpec) -> DieState {
        let DieSpec {
            interleave,
            multi_plane,
            // Order and joining of waiting operations: none has been queued.
            scheduler: _,
            partner_search: _,
            independent_reads: _,
            register_reads: _,
            join_reads: _,
            suspend,
            // Delays of waiting operations.
            power: _,
        } = spec;
        // Suspension of operations under way: none has begun.
        let SuspendSpec { program: _, erase: _, latency: _, resume: _, least: _, limit: _ } = suspend;
        DieState { interleave: *interleave, multi_plane: *multi_plane }
    }
}

impl From<&FtlSpec> for FtlState {
    fn from(spec: &FtlSpec) -> FtlState {
        let FtlSpec {
            map_unit,
            mapping,
            map_memory,
            reclaim_unit,
            stripe,
            allocation,
            pages,
            slc_cache,
            parity,
            over_provisioning,
            placements,
            // Answers of the device, and what it keeps of them; nothing has been read.
            unwritten_read: _,
            gc,
            wear,
        } = spec;
        if let Some(memory) = map_memory {
            // Times of look-ups, and a size that is only reported.
            let MapMemorySpec { entry: _, latency: _, bandwidth: _ } = memory;
        }
        FtlState {
            map_unit: *map_unit,
            mapping: mapping.into(),
            reclaim_unit: *reclaim_unit,
            stripe: *stripe,
            allocation: allocation.clone(),
            pages: pages.clone(),
            slc_cache: slc_cache.as_ref().map(SlcState::from),
            parity: *parity,
            over_provisioning: *over_provisioning,
            placements: *placements,
            gc: gc.into(),
            wear: wear.clone(),
        }
    }
}

impl From<&SlcSpec> for SlcState {
    fn from(spec: &SlcSpec) -> SlcState {
        let SlcSpec {
            fixed,
            // Cache for host writes: empty before the first command.
            read: _,
            program: _,
            dynamic: _,
            full: _,
            idle: _,
            keep: _,
            foreground: _,
            energy: _,
        } = spec;
        SlcState { fixed: *fixed }
    }
}

impl From<&Mapping> for MappingState {
    fn from(spec: &Mapping) -> MappingState {
        match spec {
            Mapping::Table => MappingState::Table,
            Mapping::Demand {
                stored_entry,
                // Cached part of the map: empty before the first look-up.
                capacity: _,
                granularity: _,
                cached_entry: _,
                // Bytes over the channel.
                read: _,
            } => MappingState::Demand { stored_entry: *stored_entry },
        }
    }
}

impl From<&GcSpec> for GcState {
    fn from(spec: &GcSpec) -> GcState {
        let GcSpec {
            victim,
            start,
            stop,
            hard,
            streams,
            // Sharing of the device between garbage collection and the host: without time, collection is immediate and
            // inside its group.
            mode: _,
            scope: _,
            window: _,
            copy_back: _,
        } = spec;
        GcState {
            victim: victim.clone(),
            start: *start,
            stop: *stop,
            hard: *hard,
            // The default if omitted.
            streams: streams.unwrap_or_default(),
        }
    }
}

/// Errors are found by reads: nothing has been read, and the age of data is not part of the state.
fn errors_are_read(spec: &ErrorsSpec) {
    let ErrorsSpec { fresh: _, wear: _, retention: _, reads: _, age: _, types: _, spread: _, retry } = spec;
    let RetrySpec { correctable: _, gain: _, limit: _, latency: _ } = retry;
}

/// Channels carry commands and data: nothing has been sent.
fn channel_is_time(spec: &ChannelSpec) {
    let ChannelSpec { interface: _, rate: _, width: _, arbiter: _ } = spec;
}

/// Buffers are bypassed by preconditioning: they are as built.
fn buffer_is_empty(spec: &BufferSpec) {
    let BufferSpec {
        capacity: _,
        reads: _,
        writes: _,
        full_reads: _,
        high: _,
        low: _,
        destage: _,
        in_flight: _,
        throttle: _,
        keep_rewrites: _,
        moves: _,
        protected: _,
        eviction: _,
        admission: _,
        look_ahead: _,
        bandwidth: _,
        latency: _,
    } = spec;
}

/// Registers are bypassed as well.
fn registers_are_empty(spec: &RegisterCacheSpec) {
    let RegisterCacheSpec { count: _, network: _, reserve: _, eviction: _, protected: _ } = spec;
}

/// Links, controllers and queues carry commands: nothing has been sent.
fn host_is_time(spec: &HostSpec) {
    let HostSpec { link, sleep: _, controller, nvme, ahci } = spec;
    match link {
        HostLinkSpec::Pcie(pcie) => pcie_is_time(pcie),
        HostLinkSpec::Plain(plain) => plain_is_time(plain),
        HostLinkSpec::Sata(SataSpec { generation: _, latency: _ }) => {}
    }
    let ControllerSpec { cores: _, command: _, unit: _, spread: _, write: _, moved: _ } = controller;
    nvme.iter().for_each(nvme_is_time);
    if let Some(ahci) = ahci {
        let AhciSpec { slots: _, command: _, interrupt: _ } = ahci;
    }
}

fn inner_is_time(spec: &InnerSpec) {
    let InnerSpec { link, command: _, nvme } = spec;
    match link {
        LinkSpec::Pcie(pcie) => pcie_is_time(pcie),
        LinkSpec::Plain(plain) => plain_is_time(plain),
    }
    nvme.iter().for_each(nvme_is_time);
}

fn pcie_is_time(spec: &PcieSpec) {
    let PcieSpec { generation: _, lanes: _, max_payload: _, latency: _, flow_control: _ } = spec;
}

fn plain_is_time(spec: &PlainSpec) {
    let PlainSpec { bandwidth: _, latency: _ } = spec;
}

fn nvme_is_time(spec: &NvmeSpec) {
    let NvmeSpec { queues: _, depth: _, in_controller: _, arbitration, doorbell: _, fetch: _, interrupt: _ } =
        spec;
    match arbitration {
        NvmeArbitration::RoundRobin { burst: _ }
        | NvmeArbitration::Weighted { burst: _, high: _, medium: _, low: _, classes: _ } => {}
    }
}
