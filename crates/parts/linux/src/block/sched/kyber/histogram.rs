//! Latencies against a target, and what a percentile of them says.

use engine::Time;

/// `KYBER_LATENCY_SHIFT`: a bucket is a quarter of the target.
const SHIFT: u32 = 2;
/// `KYBER_GOOD_BUCKETS`: the first buckets are latencies within the target.
pub(super) const GOOD: u32 = 1 << SHIFT;
/// `KYBER_LATENCY_BUCKETS`.
const BUCKETS: usize = 2 << SHIFT;
/// Samples from which on a percentile is taken, however little time has passed.
const ENOUGH: u32 = 500;
/// Time after the first sample was seen from which on it is taken, however few there are.
const LONG: Time = Time::from_s(1);

/// Latencies of one kind, in quarters of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Histogram {
    buckets: [u32; BUCKETS],
}

impl Histogram {
    /// `add_latency_sample`.
    pub(super) fn add(&mut self, target: Time, latency: Time) {
        let width = (target.ps() >> SHIFT).max(1);
        let bucket = (latency.ps().saturating_sub(1) / width).min(BUCKETS as u64 - 1);
        self.buckets[bucket as usize] += 1;
    }

    /// The bucket of a percentile, and an empty histogram; none if there are not enough samples yet (`calculate_percentile`). `until` is the end
    /// of the wait for more, which all kinds of a domain share.
    pub(super) fn take_percentile(
        &mut self,
        percent: u32,
        until: &mut Option<Time>,
        now: Time,
    ) -> Option<u32> {
        let samples: u32 = self.buckets.iter().sum();
        if samples == 0 {
            return None;
        }
        let end = *until.get_or_insert(now + LONG);
        if samples < ENOUGH && end > now {
            return None;
        }
        *until = None;
        let mut left = (samples * percent).div_ceil(100);
        let mut bucket = 0;
        while bucket < BUCKETS - 1 && self.buckets[bucket] < left {
            left -= self.buckets[bucket];
            bucket += 1;
        }
        *self = Histogram::default();
        Some(bucket as u32)
    }
}

/// The depth that a percentile asks for: in proportion to the target, between one and `most` (`kyber_timer_fn`, `kyber_resize_domain`).
pub(super) fn resized(depth: u32, bucket: u32, most: u32) -> u32 {
    ((depth * (bucket + 1)) >> SHIFT).clamp(1, most)
}
