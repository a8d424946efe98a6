//! What the memory behind a GPU's shared cache did.

use super::Window;
use crate::complex::Complex;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::result::hierarchy::share;
use flash::Device;
use flash::backend::op::Class;
use flash::direct::Direct;
use flash::engine::Engine;
use flash::initiator::Initiator;
use host::paging::Paging;
use mem::dram::Dram;
use schemars::JsonSchema;
use serde::Serialize;

/// Flash whose controllers are on the network.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DirectResult {
    /// Pages read from the arrays for reads.
    pub array_reads: u64,
    /// Old pages read because an evicted one was written in part.
    pub fill_reads: u64,
    /// Pages read by merges of log blocks.
    pub gc_reads: u64,
    /// Pages programmed because a register was needed.
    pub eviction_programs: u64,
    /// Pages programmed by merges of log blocks.
    pub gc_programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Merges of a log block.
    pub gc_runs: u64,
    /// When the first merge began; null if none has.
    pub gc_begun_ns: Option<f64>,
    /// When the last merge ended; null if none has.
    pub gc_ended_ns: Option<f64>,
    /// Merges under way at the end.
    pub gc_under_way: u64,
    /// How often a page is read from the arrays that is read at all.
    pub reads_of_a_page: f64,
    /// How often a page is programmed that is programmed at all, merges apart.
    pub programs_of_a_page: f64,
    /// Write requests to a page that is written at all.
    pub writes_of_a_page: f64,
    /// Share of writes whose page a register held.
    pub register_hit_share: f64,
    /// Pages moved between registers of different planes.
    pub register_moves: u64,
    /// Dirty pages that the shared cache took.
    pub parked_pages: u64,
    /// Bytes on the flash network, commands apart, a second.
    pub network_bytes_per_s: f64,
}

/// An SSD engine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EngineResult {
    /// Share of reads that a buffer answered.
    pub read_hit_share: f64,
    /// Share of reads that waited for a page under way.
    pub read_merge_share: f64,
    /// Share of writes that the write buffer took at once.
    pub write_hit_share: f64,
    /// Address translations.
    pub ftl_requests: u64,
    /// Pages fetched ahead.
    pub prefetched_pages: u64,
    /// Share of these that were asked for.
    pub prefetch_used_share: f64,
    /// Bytes a second on the bus of the buffer's DRAM.
    pub buffer_bytes_per_s: f64,
    /// Share of the window in which that bus was busy.
    pub buffer_busy_share: f64,
    /// Share of the window in which the dispatcher was busy.
    pub dispatcher_busy_share: f64,
}

/// What a GPU sends to a flash device by itself. Its commands are flows of `io`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InitiatorResult {
    /// Share of reads that lines answered which wait to be written.
    pub gathered_read_share: f64,
    /// Pages of which lines had been written and that made room.
    pub evictions: u64,
    /// Reads of sectors that had been written in part.
    pub fills: u64,
    /// Share of writes that waited for room.
    pub room_wait_share: f64,
    /// Commands that waited for an entry of a submission queue.
    pub entry_waits: u64,
}

/// The memory behind the shared cache.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MemoryResult {
    /// `dram`, `direct`, `engine` or `initiator`.
    pub kind: &'static str,
    /// Bytes that the shared cache read and wrote, a second.
    pub bandwidth_bytes_per_s: f64,
    /// Bytes that flash arrays read and programmed, whole pages, a second; null without flash behind the cache.
    pub array_bandwidth_bytes_per_s: Option<f64>,
    /// Network-attached flash; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<DirectResult>,
    /// The SSD engine; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineResult>,
    /// What the GPU sends to its flash device by itself; left out where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator: Option<InitiatorResult>,
    /// DRAM: share of accesses to an open row; null where there is none.
    pub row_hit_share: Option<f64>,
}

impl MemoryResult {
    pub(super) fn collect(machine: &Machine, complex: &Complex, window: &Window) -> MemoryResult {
        let lines = complex.l2.stats.fetched_lines + complex.l2.stats.written_lines;
        let empty = MemoryResult {
            kind: "dram",
            bandwidth_bytes_per_s: window.per_second(lines * proto::memory::LINE),
            array_bandwidth_bytes_per_s: None,
            direct: None,
            engine: None,
            initiator: None,
            row_hit_share: None,
        };
        match machine.memory_of(complex) {
            Memory::Dram(dram) => MemoryResult { row_hit_share: Some(row_hits(dram)), ..empty },
            Memory::Direct(direct) => {
                let bytes = direct.stats.bytes_sensed() + direct.stats.programs() * proto::memory::PAGE;
                MemoryResult {
                    kind: "direct",
                    array_bandwidth_bytes_per_s: Some(window.per_second(bytes)),
                    direct: Some(DirectResult::collect(direct, window)),
                    ..empty
                }
            }
            Memory::Engine(engine) => MemoryResult {
                kind: "engine",
                array_bandwidth_bytes_per_s: machine.drive().map(|device| array_bytes(device, window)),
                engine: Some(EngineResult::collect(machine, engine, window)),
                ..empty
            },
            Memory::Initiator(initiator) => MemoryResult {
                kind: "initiator",
                array_bandwidth_bytes_per_s: machine.drive().map(|device| array_bytes(device, window)),
                initiator: Some(InitiatorResult::collect(initiator)),
                ..empty
            },
            Memory::DramCache(_) => unreachable!("refused when the spec is read"),
        }
    }
}

fn row_hits(dram: &Dram) -> f64 {
    share(dram.stats.row_hits, dram.stats.row_hits + dram.stats.row_closed + dram.stats.row_conflicts)
}

/// Bytes a second that a device's arrays have read and programmed.
fn array_bytes(device: &Device, window: &Window) -> f64 {
    let (backend, _) = device.window_counters();
    let units: u64 =
        Class::ALL.iter().filter(|c| **c != Class::Erase).map(|c| backend.units[*c as usize]).sum();
    window.per_second(units * u64::from(device.ftl.geo.shape.unit_bytes))
}

impl DirectResult {
    fn collect(direct: &Direct, window: &Window) -> DirectResult {
        let s = &direct.stats;
        DirectResult {
            array_reads: s.array_reads,
            fill_reads: s.fill_reads,
            gc_reads: s.gc_reads,
            eviction_programs: s.eviction_programs,
            gc_programs: s.gc_programs,
            erases: s.erases,
            gc_runs: s.gc_runs,
            gc_begun_ns: s.gc_begun.map(kernel::Time::as_ns_f64),
            gc_ended_ns: s.gc_ended.map(kernel::Time::as_ns_f64),
            gc_under_way: direct.merging(),
            reads_of_a_page: s.reaccess(),
            programs_of_a_page: s.write_redundancy(),
            writes_of_a_page: s.writes_per_page(),
            register_hit_share: share(s.register_hits, s.register_hits + s.register_misses),
            register_moves: s.moves,
            parked_pages: s.parked - s.refused,
            network_bytes_per_s: window.per_second(s.bytes_in + s.bytes_out),
        }
    }
}

impl EngineResult {
    fn collect(machine: &Machine, engine: &Engine, window: &Window) -> EngineResult {
        let s = &engine.stats;
        let busy = engine.busy(machine.now());
        let of_window = |time: kernel::Time| match window.seconds {
            0.0 => 0.0,
            seconds => time.as_s_f64() / seconds,
        };
        EngineResult {
            read_hit_share: share(s.reads.hits, s.reads.requests),
            read_merge_share: share(s.reads.merges, s.reads.requests),
            write_hit_share: share(s.writes.hits, s.writes.requests),
            ftl_requests: s.ftl_requests,
            prefetched_pages: s.prefetched,
            prefetch_used_share: share(s.prefetch_used, s.prefetched),
            buffer_bytes_per_s: window.per_second(engine.dram_traffic().0),
            buffer_busy_share: of_window(busy.dram),
            dispatcher_busy_share: of_window(busy.dispatcher),
        }
    }
}

impl InitiatorResult {
    fn collect(initiator: &Initiator) -> InitiatorResult {
        let s = &initiator.stats;
        InitiatorResult {
            gathered_read_share: share(s.gathered_reads, s.reads),
            evictions: s.evictions,
            fills: s.fills,
            room_wait_share: share(s.waits_for_room, s.writes),
            entry_waits: s.waits_for_entry,
        }
    }
}

/// Paging by the host.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PagingResult {
    /// Page faults that reached the host.
    pub faults: u64,
    /// Interrupts of the host.
    pub interrupts: u64,
    /// Batches in which the driver took faults.
    pub batches: u64,
    /// Granules brought into the GPU's memory.
    pub granules: u64,
    /// Bytes brought.
    pub moved_bytes: u64,
    /// Granules that made room.
    pub evictions: u64,
}

impl PagingResult {
    pub(super) fn collect(paging: &Paging) -> PagingResult {
        let s = &paging.stats;
        PagingResult {
            faults: s.faults + s.merged + s.present,
            interrupts: s.interrupts,
            batches: s.batches,
            moved_bytes: s.moved_bytes,
            granules: s.mapped,
            evictions: s.evictions,
        }
    }
}
