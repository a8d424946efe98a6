//! What the memory behind a shared cache did.

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
    /// Read requests to a page that is read from the arrays at all, those that share another's fetch included.
    pub requests_of_a_page: f64,
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

/// What a processor sends to a flash device by itself. Its commands are flows of `io`.
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

/// What the kinds of memory that have figures of their own did; one of them at most is there.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct BehindResult {
    /// Network-attached flash; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<DirectResult>,
    /// The SSD engine; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineResult>,
    /// What the processor sends to its flash device by itself; left out where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator: Option<InitiatorResult>,
    /// The DRAM cache; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dram_cache: Option<DramCacheResult>,
    /// The placement of several memories; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementResult>,
}

/// What every memory says of itself.
pub(super) struct Said<'a> {
    pub(super) kind: &'static str,
    pub(super) behind: BehindResult,
    /// Bytes that flash arrays read and programmed, a second.
    pub(super) array_bytes_per_s: Option<f64>,
    /// The DRAM in it.
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

/// A memory behind another.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AskedResult {
    /// What it is called.
    pub name: String,
    /// `dram`, `dram_cache`, `direct`, `engine` or `initiator`.
    pub kind: &'static str,
    /// Bytes that flash arrays read and programmed, whole pages, a second; null without flash.
    pub array_bandwidth_bytes_per_s: Option<f64>,
    /// Bytes that its DRAM read and wrote, a second; null where there is none.
    pub dram_bytes_per_s: Option<f64>,
    /// DRAM: share of accesses to an open row; null where there is none.
    pub row_hit_share: Option<f64>,
    /// What its kind has figures of its own for.
    #[serde(flatten)]
    pub behind: BehindResult,
}

impl AskedResult {
    /// Of all memories behind that of a complex.
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

/// The share of accesses to an open row.
pub(super) fn row_hits(dram: &DramStats) -> f64 {
    share(dram.row_hits, dram.row_hits + dram.row_closed + dram.row_conflicts)
}

/// Bytes a second that a device's arrays have read and programmed.
fn array_bytes(device: &Device, window: Window) -> f64 {
    let (backend, _) = device.window_counters();
    let units: u64 =
        Class::ALL.iter().filter(|c| **c != Class::Erase).map(|c| backend.units[*c as usize]).sum();
    window.per_second(units * u64::from(device.ftl.geo.shape.unit_bytes))
}

/// DRAM as a cache over flash.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DramCacheResult {
    /// Accesses to data that found their page, those included that had waited for it.
    pub hits: u64,
    /// Accesses that did not find their page.
    pub misses: u64,
    /// Share of accesses to data that did not find their page. Those that waited for it count once.
    pub miss_share: f64,
    /// Misses answered at once, without data.
    pub signalled: u64,
    /// Misses that waited for their page.
    pub waits: u64,
    /// Misses whose page was on its way already.
    pub merged: u64,
    /// Accesses to page tables in rows of their own.
    pub flat_accesses: u64,
    /// Pages asked from flash.
    pub fetches: u64,
    /// Pages that were asked for while they were on their way out, and came back.
    pub reclaims: u64,
    /// Pages put into the cache.
    pub installs: u64,
    /// Pages read that were not put into the cache, because the admission policy did not keep them.
    pub bypasses: u64,
    /// Accesses to data that had waited for such a page, and were answered from it.
    pub passes: u64,
    /// Changed pages written to flash.
    pub write_backs: u64,
    /// Mean time from the request for a page to the page; null if none came.
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
        // An access ends with data of the cache, with data of a page that is not kept, or without data. What the window cuts in two
        // may have missed in it and not ended.
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

// What a placement of several memories did.

/// One memory of a placement, in the order of `targets`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlacedResult {
    /// Commands that read.
    pub reads: u64,
    /// Commands that write.
    pub writes: u64,
    /// Share of the lines of all memories that were read or written here; moves apart.
    pub line_share: f64,
    /// Pages that moves brought.
    pub pages_in: u64,
    /// Pages that moves took away.
    pub pages_out: u64,
}

/// Several memories, and which page lies in which.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlacementResult {
    /// The memories.
    pub targets: Vec<PlacedResult>,
    /// Pages that were given a frame because they were used for the first time.
    pub first_touches: u64,
    /// Pages that were hot enough to be moved to an earlier memory.
    pub candidates: u64,
    /// Of them, those beyond the rate of moves.
    pub limited: u64,
    /// Of them, those for which too many moves were under way.
    pub crowded: u64,
    /// Of them, those for which no page could make room.
    pub without_room: u64,
    /// Pages moved to an earlier memory.
    pub promotions: u64,
    /// Pages moved to a later memory, to make room.
    pub demotions: u64,
    /// Bytes that moves wrote, a second; they read as many.
    pub moved_bytes_per_s: f64,
    /// Commands that waited because their page was on the move.
    pub waits: u64,
    /// Mean time that these waited; null if none did.
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

    /// Twenty accesses: eight find their page. Of twelve that do not, five are told so, seven wait: four have their page from the
    /// cache in the end, three from a page that is not kept.
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
        // All of them wait: none has found its page.
        let stats = DramCacheStats { hits: 9, misses: 9, waits: 9, ..Default::default() };
        assert_eq!(DramCacheResult::of(&stats).miss_share, 1.0);
    }
}
