//! What is counted in the block layer.

use super::sched::SchedulerStats;
use super::wbt::WbtStats;
use engine::Time;
use proto::IoOp;
use stats::Gauge;

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

/// What is counted in the block layer, since the last [`reset`](super::Queue::reset_stats).
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
    pub(super) fn reset(&mut self, now: Time) {
        let mut fresh = BlockStats { queued: self.queued, in_flight: self.in_flight, ..Default::default() };
        fresh.queued.reset(now);
        fresh.in_flight.reset(now);
        *self = fresh;
    }
}
