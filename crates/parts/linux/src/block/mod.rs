//! Block layer of Linux 6.1 for one drive: plugs, merges, tags, software and hardware queues, schedulers, write-back
//! throttling, flushes. It has no clock; callers pass the time.
//!
//! # Calls and their order
//!
//! A [`Queue`] is made for a drive ([`Queue::new`]). Every call takes the time, which never goes back, and the caller's
//! [`Effects`], which receives the outcome of the call. The caller acts on all four of its lists, keeping the order
//! within each list, then [clears](Effects::clear) it. Acting on them may take time and calls the queue again.
//!
//! * [`Queue::submit`]: a task submits a [`Bio`], with its open [`Plug`] (`blk_start_plug`) if any. The result is
//!   [`Submitted::Queued`] or [`Submitted::MustWait`]. In the second case the caller does not submit the rest of the
//!   bio again: the task acts on the effects, flushes its plugs of all queues with `from_schedule` (`io_schedule`),
//!   acts on those effects, and sleeps.
//! * [`Effects::woken`] names a task that may go on. As soon as it has a core it calls [`Queue::resume`], which answers
//!   as `submit` does, since another task may have been faster. A task can be woken before it sleeps, by its own work
//!   between the two.
//! * [`Queue::flush_plug`]: at the end of a task's work (`blk_finish_plug`), and with `from_schedule` whenever it is
//!   about to sleep.
//! * [`Effects::runs`]: each is one call of [`Queue::dispatch`], in the caller's context or, if `later` is set, by a
//!   kernel worker on a core of that hardware queue ([`Map::cores_of`]). A queue is not handed to the worker again
//!   before it has run.
//! * [`Effects::issued`]: commands for the drive. A command is named by its hardware queue and tag until
//!   [`Queue::complete`], which may be called in any order and on any core; the driver decides where (`rq_affinity`).
//! * [`Effects::done`]: owners of bios that have ended, each once; also from `submit`, for a flush that a drive without
//!   a volatile cache does not need.
//! * [`Queue::timer`] at [`Queue::next_timer`], which must be read again after each call.
//! * [`Queue::writer_paused`]: whenever a writer of dirty pages is paused.
//!
//! # Deviations from the kernel
//!
//! Code that follows a kernel function names it. Three things are simpler, without effect on results: which of several
//! free tags is taken (`Tags`), exact times instead of ticks, and calls that take no time. A driver never refuses a
//! request that has a tag, so `dispatch_busy` and budgets are always at their best. Left out: priorities by class,
//! `REQ_NOWAIT` except for polled bios, control groups, hybrid polling, polled queues with an elevator, discards of
//! several ranges, `chunk_sectors`, `physical_block_size`.

mod bio;
mod dispatch;
mod queue;
pub mod request;
pub mod sched;
mod submit;
mod tags;
#[cfg(test)]
mod tests;
mod wbt;

pub use bio::{Attempt, Bio, BioFlags, Piece, Side};
pub use queue::{Queue, Stalled, Submitted};
pub use request::RequestList;
pub use sched::SchedulerPolicy;
pub use submit::Plug;
pub use wbt::WbtStats;

use crate::PAGE;
use config::units::{Bytes, Duration};
use engine::Time;
use proto::{IoOp, Status};
use sched::SchedulerStats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Gauge;
use std::ops::Range;

// Map from cores to hardware queues.

/// Map from cores to hardware queues: neighbouring cores share a queue, and the first queues have one core more if the
/// division leaves a remainder (`irq_create_affinity_masks`, `blk_mq_pci_map_queues`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    cores: u16,
    hctxs: u16,
}

impl Map {
    /// Maps `cores` cores to `hctxs` queues.
    ///
    /// # Panics
    /// If either is zero, or there are more queues than cores.
    pub fn new(cores: u16, hctxs: u16) -> Map {
        assert!(hctxs > 0 && hctxs <= cores, "{hctxs} hardware queues for {cores} cores");
        Map { cores, hctxs }
    }

    /// Number of hardware queues.
    #[inline]
    pub fn hctxs(&self) -> u16 {
        self.hctxs
    }

    /// Number of cores.
    #[inline]
    pub fn cores(&self) -> u16 {
        self.cores
    }

    /// Hardware queue of a core.
    #[inline]
    pub fn hctx(&self, core: u16) -> u16 {
        let (each, more) = (self.cores / self.hctxs, self.cores % self.hctxs);
        let long = more * (each + 1);
        if core < long { core / (each + 1) } else { more + (core - long) / each }
    }

    /// Cores of a hardware queue.
    #[inline]
    pub fn cores_of(&self, hctx: u16) -> Range<u16> {
        let (each, more) = (self.cores / self.hctxs, self.cores % self.hctxs);
        let first = hctx * each + hctx.min(more);
        first..first + each + u16::from(hctx < more)
    }
}

// User-visible configuration of the block layer.

/// Block layer of a host in front of one drive. Defaults are those of Linux 6.1 for an NVMe drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BlockSpec {
    /// I/O scheduler.
    pub scheduler: SchedulerPolicy,
    /// Requests that a hardware queue holds; with `none` at most the drive's queue depth. Default: that depth with
    /// `none`, else twice the smaller of that depth and 128.
    #[schemars(range(min = 4, max = 65_536))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<u32>,
    /// Maximum bytes of a request, capped by the drive's own limit.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "4MiB", "x-multiple-of" = "4KiB"))]
    pub max_sectors: Bytes,
    /// Bytes of physically contiguous memory behind consecutive file pages. Each such piece is one segment of a
    /// request, and one of the 256 entries of a bio (`bio_add_page`). Tens of KiB where memory has been used before, 4
    /// KiB where it consists of single pages, megabytes after a boot.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "8MiB", "x-multiple-of" = "4KiB"))]
    pub contiguous: Bytes,
    /// Whether adjacent bios and requests are merged.
    pub merges: bool,
    /// Target for the lowest read latency of a window; write-back is throttled above it. Zero disables throttling.
    #[schemars(extend("x-maximum" = "10s"))]
    pub wbt_lat: Duration,
    /// Number of hardware queues, capped by the drive's queues and the number of cores. Default: as many as both allow.
    #[schemars(range(min = 1, max = 1_024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_queues: Option<u16>,
}

impl Default for BlockSpec {
    /// `none` is the scheduler of a drive of several queues (`elevator_get_default`); `BLK_DEF_MAX_SECTORS`;
    /// `wbt_default_latency_nsec` of a drive that does not rotate. The contiguous size is the smallest power of two in
    /// what Linux 6.1 had in memory used a second time, 25 to 90 KiB (`l-kyber`, docs/pagecache-calibration.md).
    fn default() -> BlockSpec {
        BlockSpec {
            scheduler: SchedulerPolicy::default(),
            nr_requests: None,
            max_sectors: Bytes::from_kib(1280),
            contiguous: Bytes::from_kib(32),
            merges: true,
            wbt_lat: Duration::new(Time::from_ms(2)),
            hardware_queues: None,
        }
    }
}

// Effects of a call outside the queue.

/// Request for the driver (`queue_rq`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Hardware queue.
    pub hctx: u16,
    /// Tag in that queue, which names the request until [`Queue::complete`](Queue::complete).
    pub tag: u32,
    /// Core that submitted it, for completions on the submitter's core.
    pub core: u16,
    /// Operation.
    pub op: IoOp,
    /// First byte.
    pub offset: u64,
    /// Length in bytes; zero for a flush.
    pub bytes: u32,
    /// Force unit access.
    pub fua: bool,
    /// Pages of the victimization that begins with this request ([`proto::Command::announced`]).
    pub announced: u32,
}

/// Bio that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Caller's identifier of the bio.
    pub owner: u32,
    /// First error of the bio's parts, or success.
    pub status: Status,
}

/// Task that may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// Task, as named in [`Queue::submit`](Queue::submit).
    pub task: u32,
    /// Argument for [`Queue::resume`](Queue::resume).
    pub stalled: Stalled,
}

/// Hardware queue to be run by a call of [`Queue::dispatch`](Queue::dispatch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Hardware queue.
    pub hctx: u16,
    /// True if a kernel worker (`kblockd`) runs it later, on a core of that queue; otherwise the caller runs it at
    /// once.
    pub later: bool,
}

/// Effects of a call of a queue. The caller keeps one, passes it to every call, and clears it afterwards, so that its
/// lists are allocated only while they still grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Requests for the driver, in order.
    pub issued: Vec<Issued>,
    /// Bios that have ended.
    pub done: Vec<Done>,
    /// Tasks to be woken, in order.
    pub woken: Vec<Woken>,
    /// Hardware queues to be run, in order.
    pub runs: Vec<Run>,
}

impl Effects {
    /// Clears all lists.
    pub fn clear(&mut self) {
        self.issued.clear();
        self.done.clear();
        self.woken.clear();
        self.runs.clear();
    }
}

// Block-layer statistics.

/// Number of bio and request kinds in [`BlockStats`]: read, write, trim, write zeroes, flush.
pub const KINDS: usize = 5;

/// Index of a kind in a table of [`BlockStats`].
pub const fn kind(op: IoOp) -> usize {
    match op {
        IoOp::Read => 0,
        IoOp::Write => 1,
        IoOp::Trim => 2,
        IoOp::WriteZeroes => 3,
        IoOp::Flush => 4,
    }
}

/// Sleeps of tasks for one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Number of sleeps.
    pub count: u64,
    /// Total time slept.
    pub time: Time,
}

/// Block-layer counters since the last [`reset`](Queue::reset_stats).
#[derive(Clone, Debug, Default)]
pub struct BlockStats {
    /// Bios submitted, by [`kind`]; a flush alone counts as one.
    pub bios: [u64; KINDS],
    /// Commands given to the driver, by [`kind`].
    pub requests: [u64; KINDS],
    /// Bytes of those commands, by kind.
    pub bytes: [u64; KINDS],
    /// Parts beyond the first of bios that were split.
    pub splits: u64,
    /// Bios merged into a request of the task's plug.
    pub plug_merges: u64,
    /// Bios merged at the back of a request: in a plug, a software queue or the scheduler.
    pub back_merges: u64,
    /// Bios merged at the front of a request.
    pub front_merges: u64,
    /// Requests merged into another request.
    pub request_merges: u64,
    /// Waits for a tag.
    pub tag_waits: Waits,
    /// Waits for permission to write.
    pub throttle_waits: Waits,
    /// Requests in existence, from the allocation of their tag on.
    pub queued: Gauge,
    /// Requests at the drive.
    pub in_flight: Gauge,
    /// Flushes that bios asked for: before their data, or after it for lack of force unit access.
    pub flushes_asked: u64,
    /// Flushes completed at once because the drive has no volatile cache.
    pub flushes_void: u64,
    /// Number of hardware queue runs.
    pub runs: u64,
    /// Scheduler counters.
    pub scheduler: SchedulerStats,
    /// Write-back throttling counters.
    pub wbt: WbtStats,
}

impl BlockStats {
    /// Returns the mean bytes of a request of a kind; zero if none was issued.
    pub fn mean_bytes(&self, op: IoOp) -> f64 {
        let kind = kind(op);
        if self.requests[kind] == 0 { 0.0 } else { self.bytes[kind] as f64 / self.requests[kind] as f64 }
    }

    /// Restarts the counters; gauges keep their current level.
    fn reset(&mut self, now: Time) {
        let mut fresh = BlockStats { queued: self.queued, in_flight: self.in_flight, ..Default::default() };
        fresh.queued.reset(now);
        fresh.in_flight.reset(now);
        *self = fresh;
    }
}

// Device properties, and the request limits that follow from them.

/// Device properties that the driver passes to the block layer when it creates the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Maximum bytes of a command (MDTS of NVMe); zero if the device has no limit.
    pub max_transfer: u64,
    /// Logical block size in bytes: a power of two from 512 to 4096.
    pub block: u32,
    /// Submission queues available to a host.
    pub queues: u16,
    /// Maximum commands in flight in one queue. Linux uses one less than the queue has entries
    /// (`nvme_alloc_io_tag_set`).
    pub queue_depth: u32,
    /// True if the device has a volatile write cache (`QUEUE_FLAG_WC`); without one, flushes complete at once.
    pub write_cache: bool,
    /// True if the device supports force unit access (`QUEUE_FLAG_FUA`); otherwise the block layer flushes after the
    /// write.
    pub fua: bool,
}

/// `NVME_MAX_KB_SZ` in bytes.
const DRIVER_TRANSFER: u64 = 4096 << 10;

/// `NVME_MAX_SEGS`.
const DRIVER_SEGMENTS: u64 = 127;

/// Limits of a request (`queue_limits`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum bytes of a read or a write (`max_sectors`).
    pub bytes: u32,
    /// Maximum bytes of zeroes written without data (`max_write_zeroes_sectors`): the device's transfer limit.
    pub zeroes: u32,
    /// Maximum bytes deallocated (`max_discard_sectors`).
    pub discard: u32,
    /// Maximum memory segments of a read or a write.
    pub segments: u32,
    /// Bytes of a segment, that is of contiguous memory pages; at least one page.
    pub segment: u32,
}

impl Limits {
    /// Computes the limits as `nvme_set_queue_limits` and `blk_queue_max_hw_sectors` do, with the host's own
    /// `max_sectors_kb`. The driver takes at most 4 MiB and 127 segments a command: 508 KiB of pages that are not
    /// contiguous.
    pub fn new(spec: &BlockSpec, device: &Device) -> Limits {
        let block = u64::from(device.block);
        let transfer =
            if device.max_transfer == 0 { DRIVER_TRANSFER } else { device.max_transfer.min(DRIVER_TRANSFER) };
        let whole = |bytes: u64| (bytes - bytes % block).max(block) as u32;
        Limits {
            bytes: whole(transfer.min(spec.max_sectors.get())),
            zeroes: whole(transfer),
            discard: whole(u64::from(u32::MAX)),
            segments: (transfer / PAGE + 1).min(DRIVER_SEGMENTS) as u32,
            segment: spec.contiguous.get().max(PAGE) as u32,
        }
    }

    /// Maximum bytes of a request, whatever its segments (`blk_queue_get_max_sectors`).
    #[inline]
    pub fn of(&self, op: IoOp) -> u32 {
        match op {
            IoOp::Trim => self.discard,
            IoOp::WriteZeroes => self.zeroes,
            IoOp::Read | IoOp::Write | IoOp::Flush => self.bytes,
        }
    }

    /// Maximum bytes of a bio that is not split (`bio_split_rw`, `bio_split_discard`, `bio_split_write_zeroes`).
    #[inline]
    pub fn unsplit(&self, op: IoOp) -> u32 {
        let segments = self.segments.saturating_mul(self.segment);
        if has_data(op) { self.of(op).min(segments) } else { self.of(op) }
    }

    /// Segments of `bytes` bytes of memory.
    #[inline]
    fn segments_of(&self, op: IoOp, bytes: u32) -> u32 {
        if has_data(op) { bytes.div_ceil(self.segment) } else { 1 }
    }
}

/// Returns whether a command of this kind carries data, and so has segments.
#[inline]
fn has_data(op: IoOp) -> bool {
    matches!(op, IoOp::Read | IoOp::Write)
}
