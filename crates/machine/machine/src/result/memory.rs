//! Results of the memory behind a shared cache.

use super::hierarchy::{Window, share};
use crate::machine::Machine;
use crate::parts::Behind;
use crate::parts::complex::Complex;
use crate::parts::memory::Memory;
use mem::dram_cache::DramCacheStats;
use mem::{
    dram::DramStats,
    placement::{Placement, TargetStats},
};
use nand::dies::op::Class;
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::Serialize;
use ssd::Device;
use ssd::direct::Direct;
use ssd::port::engine::Engine;
use ssd::port::initiator::Initiator;

/// Flash whose controllers are on the network.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DirectResult {
    /// Pages read from the arrays to serve reads.
    pub array_reads: u64,
    /// Old pages read because an evicted page was written only in part.
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
    /// Start of the first merge; null without merges.
    pub gc_begun_ns: Option<f64>,
    /// End of the last merge; null without merges.
    pub gc_ended_ns: Option<f64>,
    /// Merges under way at the end.
    pub gc_under_way: u64,
    /// Mean array reads per page, of pages that are read from the arrays.
    pub reads_of_a_page: f64,
    /// Mean read requests per page, of pages that are read from the arrays; requests that share a fetch count.
    pub requests_of_a_page: f64,
    /// Mean programs per page, of pages that are programmed; merges excluded.
    pub programs_of_a_page: f64,
    /// Mean write requests per page, of pages that are written.
    pub writes_of_a_page: f64,
    /// Share of writes that found their page in a register.
    pub register_hit_share: f64,
    /// Pages moved between registers of different planes.
    pub register_moves: u64,
    /// Dirty pages accepted by the shared cache.
    pub parked_pages: u64,
    /// Bytes per second on the flash network, commands excluded.
    pub network_bytes_per_s: f64,
}

/// An SSD engine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EngineResult {
    /// Share of reads that hit a buffer.
    pub read_hit_share: f64,
    /// Share of reads that joined a page fetch under way.
    pub read_merge_share: f64,
    /// Share of writes that the write buffer took at once.
    pub write_hit_share: f64,
    /// Address translations.
    pub ftl_requests: u64,
    /// Pages prefetched.
    pub prefetched_pages: u64,
    /// Share of prefetched pages that were requested.
    pub prefetch_used_share: f64,
    /// Bytes per second on the bus of the buffer's DRAM.
    pub buffer_bytes_per_s: f64,
    /// Share of the window in which the buffer's DRAM bus was busy.
    pub buffer_busy_share: f64,
    /// Share of the window in which the dispatcher was busy.
    pub dispatcher_busy_share: f64,
}

/// Commands that a processor sends directly to a flash device. They are flows of `io`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InitiatorResult {
    /// Share of reads served from lines that wait to be written.
    pub gathered_read_share: f64,
    /// Partly written pages evicted to make room.
    pub evictions: u64,
    /// Reads of sectors that had been written only in part.
    pub fills: u64,
    /// Share of writes that waited for room.
    pub room_wait_share: f64,
    /// Commands that waited for an entry of a submission queue.
    pub entry_waits: u64,
}

/// Metrics specific to a kind of memory; at most one is present.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct BehindResult {
    /// Network-attached flash; left out without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<DirectResult>,
    /// SSD engine; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineResult>,
    /// Commands that the processor sends directly to its flash device; left out without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator: Option<InitiatorResult>,
    /// DRAM cache; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dram_cache: Option<DramCacheResult>,
    /// Placement over several memories; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementResult>,
}

/// Results that every memory provides.
pub(super) struct Said<'a> {
    pub(super) kind: &'static str,
    pub(super) behind: BehindResult,
    /// Bytes per second read and programmed by flash arrays.
    pub(super) array_bytes_per_s: Option<f64>,
    /// DRAM of the memory.
    pub(super) dram: Option<&'a DramStats>,
}

impl Said<'_> {
    pub(super) fn of<'a>(machine: &'a Machine, at: &'a Behind, window: Window) -> Said<'a> {
        let of_device = || {
            let bytes = machine.drives_of(at).map(|device| array_bytes(device, window));
            bytes.reduce(|sum, bytes| sum + bytes)
        };
        let none = BehindResult::default();
        match &at.memory {
            Memory::Dram(dram) => {
                Said { kind: "dram", behind: none, array_bytes_per_s: None, dram: Some(&dram.stats) }
            }
            Memory::DramCache(cache) => Said {
                kind: "dram_cache",
                behind: BehindResult { dram_cache: Some(DramCacheResult::of(&cache.stats)), ..none },
                array_bytes_per_s: of_device(),
                dram: Some(cache.dram_stats()),
            },
            Memory::Placement(placement) => Said {
                kind: "placement",
                behind: BehindResult { placement: Some(PlacementResult::collect(placement, window)), ..none },
                array_bytes_per_s: None,
                dram: None,
            },
            Memory::Direct(direct) => {
                let bytes = direct.stats.bytes_sensed() + direct.stats.programs() * proto::memory::PAGE;
                Said {
                    kind: "direct",
                    behind: BehindResult { direct: Some(DirectResult::collect(direct, window)), ..none },
                    array_bytes_per_s: Some(window.per_second(bytes)),
                    dram: None,
                }
            }
            Memory::Engine(engine) => Said {
                kind: "engine",
                behind: BehindResult { engine: Some(EngineResult::collect(machine, engine, window)), ..none },
                array_bytes_per_s: of_device(),
                dram: None,
            },
            Memory::Initiator(initiator) => Said {
                kind: "initiator",
                behind: BehindResult { initiator: Some(InitiatorResult::collect(initiator)), ..none },
                array_bytes_per_s: of_device(),
                dram: None,
            },
        }
    }
}

/// Memory behind a different memory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AskedResult {
    /// Name of the memory.
    pub name: String,
    /// Kind of the memory: `dram`, `dram_cache`, `direct`, `engine` or `initiator`.
    pub kind: &'static str,
    /// Bytes per second read and programmed by flash arrays, in whole pages; null without flash.
    pub array_bandwidth_bytes_per_s: Option<f64>,
    /// Bytes per second read and written by the DRAM; null without DRAM.
    pub dram_bytes_per_s: Option<f64>,
    /// Share of DRAM accesses that hit an open row; null without DRAM.
    pub row_hit_share: Option<f64>,
    /// Metrics of this kind of memory.
    #[serde(flatten)]
    pub behind: BehindResult,
}

impl AskedResult {
    /// Collects results of all memories behind that of a complex.
    pub(super) fn collect(machine: &Machine, complex: &Complex, window: Window) -> Vec<AskedResult> {
        let of = |at: &Behind| {
            let said = Said::of(machine, at, window);
            let moved = |dram: &DramStats| window.per_second(dram.read_bytes + dram.written_bytes);
            AskedResult {
                name: at.name.clone(),
                kind: said.kind,
                array_bandwidth_bytes_per_s: said.array_bytes_per_s,
                dram_bytes_per_s: said.dram.map(moved),
                row_hit_share: said.dram.map(row_hits),
                behind: said.behind,
            }
        };
        machine.memories_behind(complex).map(of).collect()
    }
}

/// Share of accesses that hit an open row.
pub(super) fn row_hits(dram: &DramStats) -> f64 {
    share(dram.row_hits, dram.row_hits + dram.row_closed + dram.row_conflicts)
}

/// Bytes per second read and programmed by a device's arrays.
fn array_bytes(device: &Device, window: Window) -> f64 {
    let (backend, _) = device.window_counters();
    let units: u64 =
        Class::ALL.iter().filter(|c| **c != Class::Erase).map(|c| backend.units[*c as usize]).sum();
    window.per_second(units * u64::from(device.ftl.geo.shape.unit_bytes))
}

/// DRAM as a cache over flash.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DramCacheResult {
    /// Data accesses that found their page, including those that had waited for it.
    pub hits: u64,
    /// Data accesses that did not find their page.
    pub misses: u64,
    /// Share of data accesses that missed. Accesses that waited for their page count once.
    pub miss_share: f64,
    /// Misses answered at once, without data.
    pub signalled: u64,
    /// Misses that waited for their page.
    pub waits: u64,
    /// Misses whose page was already under way.
    pub merged: u64,
    /// Accesses to page tables in rows of their own.
    pub flat_accesses: u64,
    /// Pages requested from flash.
    pub fetches: u64,
    /// Pages requested again during their eviction, and kept.
    pub reclaims: u64,
    /// Pages put into the cache.
    pub installs: u64,
    /// Pages read but not installed, because the admission policy rejected them.
    pub bypasses: u64,
    /// Data accesses that waited for such a page and were served from it.
    pub passes: u64,
    /// Dirty pages written to flash.
    pub write_backs: u64,
    /// Mean time from a page request until the page arrives; null if none arrived.
    pub response_ns: Option<f64>,
    /// Misses that held up the accesses behind them, because too many waited already.
    pub stalls: u64,
    /// Misses that waited for an entry of the miss status row.
    pub full_misses: u64,
    /// Pages that waited for room in the evict buffer.
    pub buffer_waits: u64,
}

impl DirectResult {
    fn collect(direct: &Direct, window: Window) -> DirectResult {
        let s = &direct.stats;
        DirectResult {
            array_reads: s.array_reads,
            fill_reads: s.fill_reads,
            gc_reads: s.gc_reads,
            eviction_programs: s.eviction_programs,
            gc_programs: s.gc_programs,
            erases: s.erases,
            gc_runs: s.gc_runs,
            gc_begun_ns: s.gc_begun.map(engine::Time::as_ns_f64),
            gc_ended_ns: s.gc_ended.map(engine::Time::as_ns_f64),
            gc_under_way: direct.merging(),
            reads_of_a_page: s.reaccess(),
            requests_of_a_page: s.reads_per_page(),
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
    fn collect(machine: &Machine, engine: &Engine, window: Window) -> EngineResult {
        let s = &engine.stats;
        let busy = engine.busy(machine.now());
        let of_window = |time: engine::Time| match window.seconds {
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

impl DramCacheResult {
    fn of(s: &DramCacheStats) -> DramCacheResult {
        // An access ends with data of the cache, with data of a bypassed page, or without data. An access that the
        // window's start cuts in two may have missed inside the window and not ended.
        let accesses = (s.hits + s.passes + s.signalled).max(s.misses);
        DramCacheResult {
            hits: s.hits,
            misses: s.misses,
            miss_share: share(s.misses, accesses),
            signalled: s.signalled,
            waits: s.waits,
            merged: s.merged,
            flat_accesses: s.flat,
            fetches: s.fetches,
            reclaims: s.reclaims,
            installs: s.installs,
            bypasses: s.bypasses,
            passes: s.passes,
            write_backs: s.write_backs,
            response_ns: (s.responses > 0).then(|| s.response.as_ns_f64() / s.responses as f64),
            stalls: s.stalls,
            full_misses: s.full_misses,
            buffer_waits: s.buffer_waits,
        }
    }
}

// Results of a placement over several memories.

/// Results of one memory of a placement, in the order of `targets`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlacedResult {
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
    /// Share of all lines read or written in any memory that were served here; moves excluded.
    pub line_share: f64,
    /// Pages moved in.
    pub pages_in: u64,
    /// Pages moved out.
    pub pages_out: u64,
}

/// Results of a placement over several memories.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlacementResult {
    /// Memories of the placement.
    pub targets: Vec<PlacedResult>,
    /// Pages assigned a frame at their first use.
    pub first_touches: u64,
    /// Pages hot enough to move to an earlier memory.
    pub candidates: u64,
    /// Candidates rejected because of the rate limit of moves.
    pub limited: u64,
    /// Candidates rejected because too many moves were under way.
    pub crowded: u64,
    /// Candidates rejected because no page could make room.
    pub without_room: u64,
    /// Pages moved to an earlier memory.
    pub promotions: u64,
    /// Pages moved to a later memory to make room.
    pub demotions: u64,
    /// Bytes per second written by moves; moves read as many.
    pub moved_bytes_per_s: f64,
    /// Commands that waited because their page was being moved.
    pub waits: u64,
    /// Mean wait of these commands; null without waits.
    pub wait_ns: Option<f64>,
}

impl PlacementResult {
    pub(super) fn collect(placement: &Placement, window: Window) -> PlacementResult {
        let s = &placement.stats;
        let lines = |target: &TargetStats| target.lines_read + target.lines_written;
        let all: u64 = s.targets.iter().map(lines).sum();
        let target = |target: &TargetStats| PlacedResult {
            reads: target.reads,
            writes: target.writes,
            line_share: share(lines(target), all),
            pages_in: target.pages_in,
            pages_out: target.pages_out,
        };
        debug_assert_eq!(s.moved_bytes % PAGE, 0, "whole pages are moved");
        PlacementResult {
            targets: s.targets.iter().map(target).collect(),
            first_touches: s.first_touches,
            candidates: s.candidates,
            limited: s.limited,
            crowded: s.crowded,
            without_room: s.without_room,
            promotions: s.promotions,
            demotions: s.demotions,
            moved_bytes_per_s: window.per_second(s.moved_bytes),
            waits: s.waits,
            wait_ns: (s.waits > 0).then(|| s.wait.as_ns_f64() / s.waits as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty accesses: eight find their page. Of the twelve misses, five are signalled and seven wait: four are then
    /// served from the cache, three from a page that is not kept.
    #[test]
    fn an_access_that_waits_is_one_access() {
        let stats = DramCacheStats {
            hits: 8 + 4,
            misses: 12,
            signalled: 5,
            waits: 7,
            passes: 3,
            ..Default::default()
        };
        assert_eq!(DramCacheResult::of(&stats).miss_share, 12.0 / 20.0);
        // All accesses wait: none found its page.
        let stats = DramCacheStats { hits: 9, misses: 9, waits: 9, ..Default::default() };
        assert_eq!(DramCacheResult::of(&stats).miss_share, 1.0);
    }
}
