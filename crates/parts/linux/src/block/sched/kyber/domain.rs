//! Domains of requests, and the latencies of one.

use super::histogram::Histogram;
use engine::Time;
use proto::IoOp;

/// `KYBER_NUM_DOMAINS`: reads, writes, discards, others.
pub(super) const DOMAINS: usize = 4;
/// Domains whose latency is measured: all but the others.
pub(super) const MEASURED: usize = 3;
/// `kyber_depth`: most requests of a domain at the drive.
pub(super) const DEPTH: [u32; DOMAINS] = [256, 128, 64, 16];
/// `kyber_batch_size`: requests of a domain in a row.
pub(super) const BATCH: [u32; DOMAINS] = [16, 8, 1, 1];

/// `kyber_sched_domain`.
pub(super) fn domain(op: IoOp) -> usize {
    match op {
        IoOp::Read => 0,
        IoOp::Write => 1,
        IoOp::Trim => 2,
        IoOp::WriteZeroes | IoOp::Flush => 3,
    }
}

/// Latencies of a domain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latencies {
    /// Since the request has been.
    total: Histogram,
    /// Since the drive has had it.
    device: Histogram,
    until: Option<Time>,
    /// The last 99th percentile, until it has been acted upon (`domain_p99`).
    remembered: Option<u32>,
}

impl Latencies {
    pub(super) fn add(&mut self, target: Time, total: Time, device: Time) {
        self.total.add(target, total);
        self.device.add(target, device);
    }

    /// The 90th percentile of the drive's latency, if there are enough samples.
    pub(super) fn slow_device(&mut self, now: Time) -> Option<u32> {
        self.device.take_percentile(90, &mut self.until, now)
    }

    /// The 99th percentile of the whole latency to act upon. With congestion, the last one counts if there is none now, once.
    pub(super) fn judge(&mut self, congested: bool, now: Time) -> Option<u32> {
        let p99 = self.total.take_percentile(99, &mut self.until, now);
        if congested {
            p99.or(self.remembered.take())
        } else {
            if p99.is_some() {
                self.remembered = p99;
            }
            p99
        }
    }
}
