//! What a host did on the path to its drives.

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

/// A host: its cores, its page cache, write-back, and each drive's block layer and file system.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HostResult {
    /// What it is called.
    pub name: String,
    /// Its cores.
    pub cores: CoresResult,
    /// The page cache.
    pub page_cache: PageCacheResult,
    /// Write-back.
    pub writeback: WritebackResult,
    /// The path to each drive, in the order of the host's drives.
    pub drives: Vec<PathResult>,
    /// Its programs; left out where it has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramResult>,
}

/// Cores and their scheduler.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CoresResult {
    /// Cores.
    pub count: u64,
    /// Share of the cores' time that programs had, zero to one.
    pub user_share: f64,
    /// Share that the kernel had in threads.
    pub system_share: f64,
    /// Share that interrupts had.
    pub interrupt_share: f64,
    /// Changes from one thread to another.
    pub switches: u64,
    /// Threads that were taken off their core while they wanted to go on.
    pub preemptions: u64,
    /// Threads that went on on another core than before.
    pub migrations: u64,
    /// The longest that a thread waited for a core.
    pub waited_max_ns: f64,
    /// Interrupts of drives.
    pub interrupts: u64,
    /// Completions that threads looked for on their cores; left out if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polled: Option<u64>,
}

/// The page cache.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PageCacheResult {
    /// Pages that were looked for and there.
    pub hits: u64,
    /// Pages that were not.
    pub misses: u64,
    /// Share of hits, zero to one; null without look-ups.
    pub hit_share: Option<f64>,
    /// Times a thread waited for a page that was being read.
    pub page_waits: u64,
    /// Pages that came by read-ahead, without having been asked for.
    pub read_ahead: u64,
    /// Of those that came so, accessed since for the first time.
    pub read_ahead_used: u64,
    /// Of those that came so, gone without ever having been accessed.
    pub read_ahead_wasted: u64,
    /// Pages that were reclaimed.
    pub evicted: u64,
    /// Pages that reclaim looked at.
    pub scanned: u64,
    /// Pages that came back soon after they had been reclaimed.
    pub refaults: u64,
    /// Pages that came to the active list, or a younger generation.
    pub activated: u64,
    /// Times a thread had to reclaim memory itself.
    pub direct_reclaims: u64,
    /// Pages in memory at the end.
    pub pages: u64,
    /// Of them, active ones.
    pub active_pages: u64,
}

/// Write-back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WritebackResult {
    /// Pages made dirty.
    pub dirtied: u64,
    /// Pages written back.
    pub written: u64,
    /// Pauses of writers.
    pub pauses: u64,
    /// How long they were.
    pub pause_ns: Summary,
    /// Dirty pages over time.
    pub dirty_pages: Vec<LevelWindow>,
    /// Pages that were being written, over time.
    pub writeback_pages: Vec<LevelWindow>,
    /// Pages that were announced to drives before they were written.
    pub announced: u64,
    /// Times the dirty ratios changed because a drive's buffer was full, or was so no more.
    pub ratio_changes: u64,
    /// Dirty pages for which there was no room on the drive when they were written: their data are lost.
    pub lost: u64,
    /// Writes that were refused because there was no room.
    pub no_space: u64,
    /// Reads and writes of pages and of the journal that a drive has answered with an error.
    pub errors: u64,
}

/// The path to a drive.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PathResult {
    /// The drive, or the stripe.
    pub drive: String,
    /// Pages that the flusher submitted, by reason: `background`, `vmscan`, `sync`, `periodic`. What `fsync` writes itself is not in it.
    pub flushed_pages: BTreeMap<&'static str, u64>,
    /// What it is believed to write, at the end.
    pub write_bandwidth_bytes_per_s: f64,
    /// What a writer may dirty, at the end.
    pub dirty_ratelimit_bytes_per_s: f64,
    /// The block layer.
    pub block: BlockResult,
    /// The file system; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs: Option<FsResult>,
}

/// The block layer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BlockResult {
    /// Bios that were asked for: reads, writes, flushes.
    pub bios: [u64; 3],
    /// Requests that went to the drive: reads, writes, flushes.
    pub requests: [u64; 3],
    /// Mean bytes of a read.
    pub read_bytes_mean: f64,
    /// Mean bytes of a write.
    pub write_bytes_mean: f64,
    /// Bios that joined a request: in a plug, and elsewhere behind it or in front.
    pub merges: u64,
    /// Requests that were taken up by another one.
    pub request_merges: u64,
    /// Bios that were split, by the parts beyond the first.
    pub splits: u64,
    /// Mean number of requests, at the scheduler or at the drive.
    pub queued_mean: f64,
    /// Mean number of requests at the drive.
    pub in_flight_mean: f64,
    /// Waits for a tag, and how long all together.
    pub tag_waits: u64,
    /// How long they were all together.
    pub tag_wait_ns: f64,
    /// Waits of writers because write-back was throttled.
    pub throttle_waits: u64,
    /// How long they were all together.
    pub throttle_wait_ns: f64,
    /// Requests that found no token of the `kyber` scheduler: reads, writes, deallocations, others.
    pub throttled: [u64; 4],
    /// Batches that `mq_deadline` began with a request past its deadline.
    pub expired: u64,
}

/// A file system.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FsResult {
    /// Commits that `fsync` or `sync` asked for.
    pub commits_sync: u64,
    /// Commits of transactions whose time was up.
    pub commits_interval: u64,
    /// Commits of transactions that were too large, or for want of room in the log.
    pub commits_space: u64,
    /// Blocks written to the log, all kinds together.
    pub log_blocks: u64,
    /// Blocks of metadata written to their places.
    pub home_blocks: u64,
    /// Times that blocks were written to make room in the log.
    pub checkpoints: u64,
    /// Blocks that were allocated for data.
    pub allocated_blocks: u64,
    /// Allocations that were made for them.
    pub allocations: u64,
}

/// System calls that failed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FailedResult {
    /// Because there was no room (`ENOSPC`).
    pub no_space: u64,
    /// Because a drive failed (`EIO`).
    pub io: u64,
    /// Because a journal had been given up (`EROFS`).
    pub read_only: u64,
}

impl FailedResult {
    fn of(failed: Failed) -> Option<FailedResult> {
        let Failed { no_space, io, read_only } = failed;
        (failed != Failed::default()).then_some(FailedResult { no_space, io, read_only })
    }
}

/// A program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProgramResult {
    /// What it is called.
    pub name: String,
    /// Its requests by kind; `slat_ns` is the time before a worker took the request, `clat_ns` the time after it.
    pub requests: BTreeMap<&'static str, OpResult>,
    /// System calls.
    pub calls: u64,
    /// Bytes that it asked to read.
    pub read_bytes: u64,
    /// Bytes that it asked to write.
    pub written_bytes: u64,
    /// The same in a second.
    pub written_bytes_per_s: f64,
    /// Times it asked for durability.
    pub syncs: u64,
    /// System calls that failed, or did a part of what they should; left out if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedResult>,
    /// Requests of all kinds by the time at which they were answered.
    pub series: Vec<Window>,
    /// The largest of the windows' mean response times; null without requests.
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
