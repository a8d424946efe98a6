//! Results of a host's path to its drives.

use super::io::{OpResult, result};
use crate::machine::Machine;
use crate::parts::{Hosted, Target};
use ::linux::block::{Queue, kind};
use ::linux::fs::{Ext4, FsStats};
use ::linux::writeback::{Reason, Writeback};
use engine::Time;
use programs::host::{Failed, HostProgram};
use proto::IoOp;
use schemars::JsonSchema;
use serde::Serialize;
use stats::{LevelWindow, Summary, Window};
use std::collections::BTreeMap;

/// Results of a host: cores, page cache, write-back, and each drive's block layer and file system.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HostResult {
    /// Name of the host.
    pub name: String,
    /// Cores and their scheduler.
    pub cores: CoresResult,
    /// Page cache.
    pub page_cache: PageCacheResult,
    /// Write-back of dirty pages.
    pub writeback: WritebackResult,
    /// Path to each drive, in the order of the host's drives.
    pub drives: Vec<PathResult>,
    /// Programs of the host; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramResult>,
}

/// Cores and their scheduler.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CoresResult {
    /// Number of cores.
    pub count: u64,
    /// Share of the cores' time in programs, zero to one.
    pub user_share: f64,
    /// Share of the cores' time in the kernel, interrupts excluded.
    pub system_share: f64,
    /// Share of the cores' time in interrupts.
    pub interrupt_share: f64,
    /// Context switches.
    pub switches: u64,
    /// Threads preempted while they could still run.
    pub preemptions: u64,
    /// Threads resumed on a different core.
    pub migrations: u64,
    /// Longest time that a thread waited for a core.
    pub waited_max_ns: f64,
    /// Interrupts of drives.
    pub interrupts: u64,
    /// Completions polled by threads on their cores; left out if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polled: Option<u64>,
}

/// The page cache.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PageCacheResult {
    /// Page look-ups that hit.
    pub hits: u64,
    /// Page look-ups that missed.
    pub misses: u64,
    /// Share of look-ups that hit, zero to one; null without look-ups.
    pub hit_share: Option<f64>,
    /// Number of times a thread waited for a page that was being read.
    pub page_waits: u64,
    /// Pages brought by read-ahead, before any request for them.
    pub read_ahead: u64,
    /// Read-ahead pages accessed for the first time.
    pub read_ahead_used: u64,
    /// Read-ahead pages evicted without an access.
    pub read_ahead_wasted: u64,
    /// Pages evicted.
    pub evicted: u64,
    /// Pages scanned by reclaim.
    pub scanned: u64,
    /// Pages read back soon after their eviction.
    pub refaults: u64,
    /// Pages promoted to the active list, or to a younger generation.
    pub activated: u64,
    /// Number of times a thread had to reclaim memory itself.
    pub direct_reclaims: u64,
    /// Pages in memory at the end.
    pub pages: u64,
    /// Active pages at the end; part of `pages`.
    pub active_pages: u64,
}

/// Write-back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WritebackResult {
    /// Pages made dirty.
    pub dirtied: u64,
    /// Pages written back.
    pub written: u64,
    /// Number of pauses of writers.
    pub pauses: u64,
    /// Duration of these pauses.
    pub pause_ns: Summary,
    /// Dirty pages over time.
    pub dirty_pages: Vec<LevelWindow>,
    /// Pages under write-back, over time.
    pub writeback_pages: Vec<LevelWindow>,
    /// Pages announced to drives before their write-back.
    pub announced: u64,
    /// Number of times the dirty ratios changed because a drive's buffer became full, or stopped being full.
    pub ratio_changes: u64,
    /// Dirty pages lost, because the drive had no room when they were written.
    pub lost: u64,
    /// Writes refused for lack of room.
    pub no_space: u64,
    /// Reads and writes of pages and of the journal that a drive completed with an error.
    pub errors: u64,
}

/// Results of the path to a drive.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PathResult {
    /// Name of the drive or stripe.
    pub drive: String,
    /// Pages submitted by the flusher, by reason: `background`, `vmscan`, `sync`, `periodic`. Pages that `fsync` writes
    /// are not included.
    pub flushed_pages: BTreeMap<&'static str, u64>,
    /// Estimated write bandwidth of the drive, at the end.
    pub write_bandwidth_bytes_per_s: f64,
    /// Dirty rate limit of a writer, at the end.
    pub dirty_ratelimit_bytes_per_s: f64,
    /// Block layer.
    pub block: BlockResult,
    /// File system; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs: Option<FsResult>,
}

/// The block layer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BlockResult {
    /// Bios submitted: reads, writes, flushes.
    pub bios: [u64; 3],
    /// Requests sent to the drive: reads, writes, flushes.
    pub requests: [u64; 3],
    /// Mean size of a read, bytes.
    pub read_bytes_mean: f64,
    /// Mean size of a write, bytes.
    pub write_bytes_mean: f64,
    /// Bios merged into a request: in a plug, or elsewhere at its back or front.
    pub merges: u64,
    /// Requests merged into a different request.
    pub request_merges: u64,
    /// Parts beyond the first of bios that were split.
    pub splits: u64,
    /// Mean number of requests at the scheduler or at the drive.
    pub queued_mean: f64,
    /// Mean number of requests at the drive.
    pub in_flight_mean: f64,
    /// Number of waits for a tag.
    pub tag_waits: u64,
    /// Total time of waits for a tag.
    pub tag_wait_ns: f64,
    /// Number of waits of writers for throttled write-back.
    pub throttle_waits: u64,
    /// Total time of these waits.
    pub throttle_wait_ns: f64,
    /// Requests that found no token of the `kyber` scheduler: reads, writes, deallocations, others.
    pub throttled: [u64; 4],
    /// Batches that `mq_deadline` began with a request past its deadline.
    pub expired: u64,
}

/// Results of a file system.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FsResult {
    /// Commits requested by `fsync` or `sync`.
    pub commits_sync: u64,
    /// Commits of transactions whose interval had expired.
    pub commits_interval: u64,
    /// Commits because a transaction was too large, or the log lacked room.
    pub commits_space: u64,
    /// Blocks written to the log, all kinds together.
    pub log_blocks: u64,
    /// Metadata blocks written to their places.
    pub home_blocks: u64,
    /// Number of times blocks were written to make room in the log.
    pub checkpoints: u64,
    /// Blocks allocated for data.
    pub allocated_blocks: u64,
    /// Number of allocations.
    pub allocations: u64,
}

/// System calls that failed, by error.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FailedResult {
    /// Calls failed for lack of room (`ENOSPC`).
    pub no_space: u64,
    /// Calls failed by a drive's error (`EIO`).
    pub io: u64,
    /// Calls failed because the journal had been aborted (`EROFS`).
    pub read_only: u64,
}

impl FailedResult {
    fn of(failed: Failed) -> Option<FailedResult> {
        let Failed { no_space, io, read_only } = failed;
        (failed != Failed::default()).then_some(FailedResult { no_space, io, read_only })
    }
}

/// Results of a program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProgramResult {
    /// Name of the program.
    pub name: String,
    /// Requests by kind: `slat_ns` is the time before a worker took the request, `clat_ns` the time after it.
    pub requests: BTreeMap<&'static str, OpResult>,
    /// System calls.
    pub calls: u64,
    /// Bytes that the program asked to read.
    pub read_bytes: u64,
    /// Bytes that the program asked to write.
    pub written_bytes: u64,
    /// Bytes that the program asked to write, per second.
    pub written_bytes_per_s: f64,
    /// Number of calls for durability.
    pub syncs: u64,
    /// System calls that failed or were cut short; left out if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedResult>,
    /// Requests of all kinds over time, by the time of their answer.
    pub series: Vec<Window>,
    /// Largest mean response time of a window; null without requests.
    pub worst_window_ns: Option<f64>,
}

impl HostResult {
    pub(super) fn collect(machine: &Machine, at: &Hosted) -> HostResult {
        let host = &at.host;
        let (now, from) = (machine.now(), machine.measured_from);
        let seconds = now.since(from).as_s_f64();
        let drive = |(disk, target): (u16, &Target)| PathResult {
            drive: machine.name_of(*target).to_owned(),
            flushed_pages: flushed(host.writeback(), disk),
            write_bandwidth_bytes_per_s: pages(host.writeback().estimates(disk).write_bandwidth),
            dirty_ratelimit_bytes_per_s: pages(host.writeback().estimates(disk).dirty_ratelimit),
            block: BlockResult::collect(host.queue(disk), now),
            fs: host.fs(disk).map(FsResult::collect),
        };
        HostResult {
            name: at.name.clone(),
            cores: CoresResult::collect(at, seconds),
            page_cache: PageCacheResult::collect(at),
            writeback: WritebackResult::collect(at, now),
            drives: (0..).zip(&at.drives).map(drive).collect(),
            programs: host.programs().map(|program| ProgramResult::collect(&**program, now)).collect(),
        }
    }
}

fn pages(per_s: u64) -> f64 {
    (per_s * ::linux::PAGE) as f64
}

fn flushed(writeback: &Writeback, disk: u16) -> BTreeMap<&'static str, u64> {
    let pages = &writeback.flushers[usize::from(disk)].pages;
    let name = |reason| match reason {
        Reason::Background => "background",
        Reason::Vmscan => "vmscan",
        Reason::Sync => "sync",
        Reason::Periodic => "periodic",
    };
    Reason::ALL.iter().zip(pages).map(|(reason, pages)| (name(*reason), *pages)).collect()
}

impl CoresResult {
    fn collect(at: &Hosted, seconds: f64) -> CoresResult {
        let cores = at.host.cores();
        let all = seconds * f64::from(cores.count());
        let share = |of: fn(&::linux::tasks::CoreTime) -> Time| {
            let sum: f64 = cores.stats.time.iter().map(|time| of(time).as_s_f64()).sum();
            if all > 0.0 { sum / all } else { 0.0 }
        };
        CoresResult {
            count: cores.count().into(),
            user_share: share(|time| time.user),
            system_share: share(|time| time.system),
            interrupt_share: share(|time| time.interrupt),
            switches: cores.stats.switches,
            preemptions: cores.stats.preemptions,
            migrations: cores.stats.migrations,
            waited_max_ns: cores.stats.waited_max.as_ns_f64(),
            interrupts: at.host.stats.interrupts,
            polled: Some(at.host.stats.polled).filter(|polled| *polled > 0),
        }
    }
}

impl PageCacheResult {
    fn collect(at: &Hosted) -> PageCacheResult {
        let (cache, stats) = (at.host.cache(), at.host.cache().stats());
        let looked = stats.hits + stats.hits_under_read + stats.misses;
        let hits = stats.hits + stats.hits_under_read;
        PageCacheResult {
            hits,
            misses: stats.misses,
            hit_share: (looked > 0).then(|| hits as f64 / looked as f64),
            page_waits: at.host.stats.page_waits,
            read_ahead: stats.read_ahead,
            read_ahead_used: stats.read_ahead_used,
            read_ahead_wasted: stats.read_ahead_wasted,
            evicted: stats.evicted,
            scanned: stats.scanned,
            refaults: stats.refaults,
            activated: stats.activated,
            direct_reclaims: at.host.stats.direct_reclaims,
            pages: cache.nr_file_pages(),
            active_pages: cache.nr_active(),
        }
    }
}

impl WritebackResult {
    fn collect(at: &Hosted, now: Time) -> WritebackResult {
        let host = &at.host;
        let levels = |levels: &stats::Levels| {
            let mut levels = levels.clone();
            levels.advance(now);
            levels.windows().collect()
        };
        let pauses = &host.writeback().stats.pauses;
        WritebackResult {
            dirtied: host.cache().stats().dirtied,
            written: host.cache().stats().written,
            pauses: pauses.count(),
            pause_ns: Summary::from_ps(pauses),
            dirty_pages: levels(&host.dirty),
            writeback_pages: levels(&host.under_writeback),
            announced: host.stats.announced,
            ratio_changes: host.stats.ratio_changes,
            lost: host.stats.lost,
            no_space: host.stats.no_space,
            errors: host.stats.errors,
        }
    }
}

impl BlockResult {
    fn collect(queue: &Queue, now: Time) -> BlockResult {
        let stats = queue.stats();
        let of = |counts: &[u64]| [IoOp::Read, IoOp::Write, IoOp::Flush].map(|op| counts[kind(op)]);
        BlockResult {
            bios: of(&stats.bios),
            requests: of(&stats.requests),
            read_bytes_mean: stats.mean_bytes(IoOp::Read),
            write_bytes_mean: stats.mean_bytes(IoOp::Write),
            merges: stats.plug_merges + stats.back_merges + stats.front_merges,
            request_merges: stats.request_merges,
            splits: stats.splits,
            queued_mean: stats.queued.mean(now),
            in_flight_mean: stats.in_flight.mean(now),
            tag_waits: stats.tag_waits.count,
            tag_wait_ns: stats.tag_waits.time.as_ns_f64(),
            throttle_waits: stats.throttle_waits.count,
            throttle_wait_ns: stats.throttle_waits.time.as_ns_f64(),
            throttled: stats.scheduler.throttled,
            expired: stats.scheduler.expired,
        }
    }
}

impl FsResult {
    fn collect(fs: &Ext4) -> FsResult {
        let FsStats { log_descriptors, log_metadata, log_data, log_revokes, log_commits, .. } = fs.stats;
        FsResult {
            commits_sync: fs.stats.commits_sync,
            commits_interval: fs.stats.commits_interval,
            commits_space: fs.stats.commits_space,
            log_blocks: log_descriptors + log_metadata + log_data + log_revokes + log_commits,
            home_blocks: fs.stats.home_blocks,
            checkpoints: fs.stats.checkpoints,
            allocated_blocks: fs.stats.allocated,
            allocations: fs.stats.allocations,
        }
    }
}

impl ProgramResult {
    fn collect(program: &dyn HostProgram, now: Time) -> ProgramResult {
        let served = program.measured();
        let seconds = now.since(served.since()).as_s_f64();
        let asked = served.asked();
        ProgramResult {
            name: program.name().to_owned(),
            requests: served.kinds().iter().map(|kind| (kind.name, result(&kind.ops, seconds))).collect(),
            calls: asked.calls,
            read_bytes: asked.read_bytes,
            written_bytes: asked.written_bytes,
            written_bytes_per_s: if seconds > 0.0 { asked.written_bytes as f64 / seconds } else { 0.0 },
            syncs: asked.syncs,
            failed: FailedResult::of(asked.failed),
            series: served.series().windows().collect(),
            worst_window_ns: served.worst_bin_ns(),
        }
    }
}
