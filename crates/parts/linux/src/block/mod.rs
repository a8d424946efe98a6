//! The block layer of Linux 6.1 in front of one drive: plugs, merges, tags, software and hardware queues, schedulers, throttling of
//! write-back, flushes. It knows no time but what it is told.
//!
//! # Who calls what, and when
//!
//! A [`Queue`] is made for a drive ([`Queue::new`]). Every call gets the time, which never goes back, and an [`Effects`] of the caller, which
//! says what the call brings about. The caller acts on all four lists of it, in any order that keeps each list's own, then
//! [clears](Effects::clear) it; acting on them may take time and calls the queue again.
//!
//! * [`Queue::submit`]: a task asks for a [`Bio`]. It gives the [`Plug`] that it has open (`blk_start_plug`), if it has one. The answer is
//!   [`Submitted::Queued`]; or [`Submitted::MustWait`]: nothing of the rest of the bio is asked again by the caller. Then the task acts on the
//!   effects, flushes its plugs of all queues with `from_schedule` (`io_schedule`), acts on that, and sleeps.
//! * [`Effects::woken`] names it when it may go on; as soon as it has a core it calls [`Queue::resume`], which answers as `submit` does, since
//!   another task may have been quicker. A task can be woken before it sleeps: by what it does itself between the two.
//! * [`Queue::flush_plug`]: at the end of a task's work (`blk_finish_plug`), and with `from_schedule` whenever it goes to sleep for anything.
//! * [`Effects::runs`]: each is one call of [`Queue::dispatch`], in the caller's context, or by a worker of the kernel on a core of that hardware
//!   queue ([`Map::cores_of`]) if it says `later`. A queue is not told twice to the worker before it has been run.
//! * [`Effects::issued`]: commands for the drive. A command is named by its hardware queue and tag until [`Queue::complete`], which may be called
//!   in any order, on any core: where is the driver's business (`rq_affinity`).
//! * [`Effects::done`]: the owners of bios that have ended, each once; also from `submit`, for a flush that a drive without a volatile cache
//!   does not need.
//! * [`Queue::timer`] at [`Queue::next_timer`], which is asked again after each call.
//! * [`Queue::writer_paused`]: whenever a writer of dirty pages is paused.
//!
//! # What is as in the kernel, and what is not
//!
//! The functions that are followed are named where they are. Simpler, since nothing that is measured comes of it: which of several tags that are
//! free is taken (`Tags`); times are exact and not those of a tick; all work of one call is done
//! in an instant. A driver never refuses what has a tag, so `dispatch_busy` and budgets are always at their best. Left out: priorities by
//! class, `REQ_NOWAIT` but for polled bios, control groups, hybrid polling, polled queues with an elevator, discards of several ranges, `chunk_sectors`, `physical_block_size`.

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

// Which hardware queue serves which core.

/// The map from cores to hardware queues: neighbours share a queue, and the first queues have one core more if they do not come out even
/// (`irq_create_affinity_masks`, `blk_mq_pci_map_queues`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    cores: u16,
    hctxs: u16,
}

impl Map {
    /// `hctxs` queues for `cores` cores.
    ///
    /// # Panics
    /// If there is none of either, or more queues than cores.
    pub fn new(cores: u16, hctxs: u16) -> Map {
        assert!(hctxs > 0 && hctxs <= cores, "{hctxs} hardware queues for {cores} cores");
        Map { cores, hctxs }
    }

    /// Hardware queues.
    #[inline]
    pub fn hctxs(&self) -> u16 {
        self.hctxs
    }

    /// Cores.
    #[inline]
    pub fn cores(&self) -> u16 {
        self.cores
    }

    /// The hardware queue of a core.
    #[inline]
    pub fn hctx(&self, core: u16) -> u16 {
        let (each, more) = (self.cores / self.hctxs, self.cores % self.hctxs);
        let long = more * (each + 1);
        if core < long { core / (each + 1) } else { more + (core - long) / each }
    }

    /// The cores of a hardware queue.
    #[inline]
    pub fn cores_of(&self, hctx: u16) -> Range<u16> {
        let (each, more) = (self.cores / self.hctxs, self.cores % self.hctxs);
        let first = hctx * each + hctx.min(more);
        first..first + each + u16::from(hctx < more)
    }
}

// What a user writes about the block layer.

/// The block layer of a host in front of one drive. What is left out is as in Linux 6.1 for an NVMe drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BlockSpec {
    /// Which request goes to the drive next.
    pub scheduler: SchedulerPolicy,
    /// Requests that a hardware queue holds; at most the drive's queue depth if the scheduler is `none`. Left out: that depth with `none`, else
    /// twice the smaller of it and 128.
    #[schemars(range(min = 4, max = 65_536))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<u32>,
    /// Most bytes of a request, as far as the drive takes as many.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "4MiB", "x-multiple-of" = "4KiB"))]
    pub max_sectors: Bytes,
    /// Memory of pages that follow each other in a file lies in pieces of so many bytes, each of which is one segment of a request, and one of the 256
    /// entries of a bio (`bio_add_page`). Tens of KiB where memory has been used before, 4 KiB where it is in single pages; megabytes after a boot.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "8MiB", "x-multiple-of" = "4KiB"))]
    pub contiguous: Bytes,
    /// Whether a request takes up what lies beside it.
    pub merges: bool,
    /// Lowest read latency of a window above which write-back is throttled; zero throttles nothing.
    #[schemars(extend("x-maximum" = "10s"))]
    pub wbt_lat: Duration,
    /// Hardware queues, as far as the drive and the number of cores allow. Left out: as many as both allow.
    #[schemars(range(min = 1, max = 1_024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_queues: Option<u16>,
}

impl Default for BlockSpec {
    /// `none` is the scheduler of a drive of several queues (`elevator_get_default`); `BLK_DEF_MAX_SECTORS`; `wbt_default_latency_nsec` of a
    /// drive that does not rotate. Pieces of memory are the least power of two in what Linux 6.1 had in memory used a second time, 25 to 90 KiB
    /// (`l-kyber`, docs/pagecache-calibration.md).
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

// What a call of a queue brings about outside it.

/// A request that the driver gets (`queue_rq`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Hardware queue.
    pub hctx: u16,
    /// Its tag in that queue, which names it until [`Queue::complete`](Queue::complete).
    pub tag: u32,
    /// The core that submitted it, for completions on the core of the submitter.
    pub core: u16,
    /// What the drive does.
    pub op: IoOp,
    /// First byte.
    pub offset: u64,
    /// Length in bytes; zero for a flush.
    pub bytes: u32,
    /// Force unit access.
    pub fua: bool,
    /// Pages of a victimization that begins with it ([`proto::Command::announced`]).
    pub announced: u32,
}

/// A bio that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The caller's name for it.
    pub owner: u32,
    /// The first error of its parts, or success.
    pub status: Status,
}

/// A task that may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// The task, as it was named in [`Queue::submit`](Queue::submit).
    pub task: u32,
    /// What it gives to [`Queue::resume`](Queue::resume).
    pub stalled: Stalled,
}

/// A hardware queue that has to be run: a call of [`Queue::dispatch`](Queue::dispatch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Hardware queue.
    pub hctx: u16,
    /// Whether a worker of the kernel (`kblockd`) runs it later, on a core of that queue; otherwise the caller does, at once.
    pub later: bool,
}

/// What a call of a queue brings about. The caller keeps one, gives it to every call, and empties it afterwards: nothing is allocated for
/// it once it has been at its longest.
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
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.issued.clear();
        self.done.clear();
        self.woken.clear();
        self.runs.clear();
    }
}

// What is counted in the block layer.

/// Kinds of bios and requests in [`BlockStats`]: read, write, trim, write zeroes, flush.
pub const KINDS: usize = 5;

/// The place of a kind in a table of [`BlockStats`].
pub const fn kind(op: IoOp) -> usize {
    match op {
        IoOp::Read => 0,
        IoOp::Write => 1,
        IoOp::Trim => 2,
        IoOp::WriteZeroes => 3,
        IoOp::Flush => 4,
    }
}

/// Tasks that slept for something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How often.
    pub count: u64,
    /// For how long, all together.
    pub time: Time,
}

/// What is counted in the block layer, since the last [`reset`](Queue::reset_stats).
#[derive(Clone, Debug, Default)]
pub struct BlockStats {
    /// Bios asked for, by [`kind`]; a flush alone is one.
    pub bios: [u64; KINDS],
    /// Commands given to the driver, by [`kind`].
    pub requests: [u64; KINDS],
    /// Bytes of them.
    pub bytes: [u64; KINDS],
    /// Bios that became more than one request, by the parts beyond the first.
    pub splits: u64,
    /// Bios taken up by a request of the task's plug.
    pub plug_merges: u64,
    /// Bios that joined a request behind it: in a plug, a software queue or the scheduler.
    pub back_merges: u64,
    /// Bios that joined a request in front of it.
    pub front_merges: u64,
    /// Requests taken up by another one.
    pub request_merges: u64,
    /// Waits for a tag.
    pub tag_waits: Waits,
    /// Waits for leave to write.
    pub throttle_waits: Waits,
    /// Requests that there are, from their tag on.
    pub queued: Gauge,
    /// Requests that the drive has.
    pub in_flight: Gauge,
    /// Flushes that bios asked for: in front of their data, or behind it for want of force unit access.
    pub flushes_asked: u64,
    /// Flushes that were done at once, because the drive has no volatile cache.
    pub flushes_void: u64,
    /// Hardware queues run.
    pub runs: u64,
    /// What the scheduler decided.
    pub scheduler: SchedulerStats,
    /// What the throttling of write-back decided.
    pub wbt: WbtStats,
}

impl BlockStats {
    /// Mean bytes of a request of a kind, zero without one.
    pub fn mean_bytes(&self, op: IoOp) -> f64 {
        let kind = kind(op);
        if self.requests[kind] == 0 { 0.0 } else { self.bytes[kind] as f64 / self.requests[kind] as f64 }
    }

    /// Counts from here on; what is held stays.
    fn reset(&mut self, now: Time) {
        let mut fresh = BlockStats { queued: self.queued, in_flight: self.in_flight, ..Default::default() };
        fresh.queued.reset(now);
        fresh.in_flight.reset(now);
        *self = fresh;
    }
}

// What a device says of itself, and the limits of a request that follow from it.

/// What the driver of a device tells the block layer when it makes the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Most bytes of a command (MDTS of NVMe); zero: the device has no limit.
    pub max_transfer: u64,
    /// Bytes of a logical block: a power of two from 512 to 4096.
    pub block: u32,
    /// Submission queues that a host may have.
    pub queues: u16,
    /// Commands of one queue under way at once. Linux has one less than the queue has entries (`nvme_alloc_io_tag_set`).
    pub queue_depth: u32,
    /// Whether it has a volatile write cache (`QUEUE_FLAG_WC`): without one, flushes are done at once.
    pub write_cache: bool,
    /// Whether it takes force unit access (`QUEUE_FLAG_FUA`); without it, the block layer flushes behind the write.
    pub fua: bool,
}

/// `NVME_MAX_KB_SZ` in bytes.
const DRIVER_TRANSFER: u64 = 4096 << 10;

/// `NVME_MAX_SEGS`.
const DRIVER_SEGMENTS: u64 = 127;

/// The limits of a request (`queue_limits`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a read or a write (`max_sectors`).
    pub bytes: u32,
    /// Most bytes of zeroes written without data (`max_write_zeroes_sectors`): what the device transfers at most.
    pub zeroes: u32,
    /// Most bytes deallocated (`max_discard_sectors`).
    pub discard: u32,
    /// Most segments of memory of a read or a write.
    pub segments: u32,
    /// Bytes of a segment: pages of memory that lie side by side, a page at least.
    pub segment: u32,
}

impl Limits {
    /// As `nvme_set_queue_limits` and `blk_queue_max_hw_sectors` compute them, with the host's own `max_sectors_kb`. The driver takes 4 MiB a
    /// command and 127 segments at most: 508 KiB of pages that do not lie side by side.
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

    /// Most bytes of a request, whatever its segments (`blk_queue_get_max_sectors`).
    #[inline]
    pub fn of(&self, op: IoOp) -> u32 {
        match op {
            IoOp::Trim => self.discard,
            IoOp::WriteZeroes => self.zeroes,
            IoOp::Read | IoOp::Write | IoOp::Flush => self.bytes,
        }
    }

    /// Most bytes that a bio can keep without being split (`bio_split_rw`, `bio_split_discard`, `bio_split_write_zeroes`).
    #[inline]
    pub fn unsplit(&self, op: IoOp) -> u32 {
        let segments = self.segments.saturating_mul(self.segment);
        if has_data(op) { self.of(op).min(segments) } else { self.of(op) }
    }

    /// Segments of so many bytes of memory.
    #[inline]
    fn segments_of(&self, op: IoOp, bytes: u32) -> u32 {
        if has_data(op) { bytes.div_ceil(self.segment) } else { 1 }
    }
}

/// Whether a command of this kind carries data, and so has segments.
#[inline]
fn has_data(op: IoOp) -> bool {
    matches!(op, IoOp::Read | IoOp::Write)
}
