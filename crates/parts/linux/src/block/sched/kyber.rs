//! `kyber` (block/kyber-iosched.c).

use super::super::Map;
use super::{Context, Scheduler, SchedulerStats};
use crate::block::bio::{Piece, Side};
use crate::block::request::{NONE, Request, RequestList, Requests};
use config::units::Duration;
use engine::Time;

use crate::block::tags::Tags;
use proto::IoOp;

/// Parameters of `kyber`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Target latency of reads.
    #[schemars(extend("x-minimum" = "1us"))]
    pub read_lat: Duration,
    /// Target latency of writes.
    #[schemars(extend("x-minimum" = "1us"))]
    pub write_lat: Duration,
}

impl Default for Params {
    fn default() -> Params {
        Params { read_lat: Duration::new(Time::from_ms(2)), write_lat: Duration::new(Time::from_ms(10)) }
    }
}

/// Target latency of discards; fixed in Linux.
const DISCARD_LAT: Time = Time::from_s(5);
/// `KYBER_ASYNC_PERCENT`.
const ASYNC_PERCENT: u32 = 75;
/// Delay from a completion to the evaluation of latencies (`HZ / 10`).
const WINDOW: Time = Time::from_ms(100);

/// Requests waiting for one hardware queue (`struct kyber_hctx_data`).
#[derive(Debug, Default)]
struct Hctx {
    /// Requests past merging, by domain.
    ready: [RequestList; DOMAINS],
    /// Number of requests in the lists of its cores, by domain.
    fresh: [u32; DOMAINS],
    domain: usize,
    batching: u32,
    /// True if the hardware queue waits for a token, by domain.
    waits: [bool; DOMAINS],
}

/// Requests are reads, writes, discards and others. Each domain has at most as many requests at the drive as it has
/// tokens. When a domain is slow, tokens are taken from domains that are faster than their target and given to those
/// that are slower. Domains take turns in batches.
///
/// Source: block/kyber-iosched.c of Linux 6.1, whose writes are one domain, synchronous or not. Asynchronous writes get
/// three quarters of the tags (`kyber_limit_depth`). Times are exact instead of ticks.
#[derive(Debug)]
pub struct Kyber {
    map: Map,
    async_depth: u32,
    targets: [Time; MEASURED],
    tokens: [Tags; DOMAINS],
    hctxs: Vec<Hctx>,
    /// Requests that may still be merged, by core and domain.
    fresh: Vec<[RequestList; DOMAINS]>,
    latencies: [Latencies; MEASURED],
    timer: Option<Time>,
    stats: SchedulerStats,
}

impl Kyber {
    /// Creates the scheduler of an empty queue.
    pub fn new(params: &Params, context: &Context) -> Kyber {
        let map = context.map;
        let mut stats = SchedulerStats::default();
        for (gauge, depth) in stats.depth.iter_mut().zip(DEPTH) {
            *gauge = stats::Gauge::new(Time::ZERO, depth.into());
        }
        Kyber {
            map,
            async_depth: context.word * ASYNC_PERCENT / 100,
            targets: [params.read_lat.time(), params.write_lat.time(), DISCARD_LAT],
            tokens: DEPTH.map(Tags::new),
            hctxs: (0..map.hctxs()).map(|_| Hctx::default()).collect(),
            fresh: vec![[RequestList::default(); DOMAINS]; map.cores().into()],
            latencies: Default::default(),
            timer: None,
            stats,
        }
    }

    /// Takes a token for the current domain; without one the hardware queue waits (`kyber_get_domain_token`).
    fn token(&mut self, hctx: u16) -> Option<u32> {
        let state = &mut self.hctxs[usize::from(hctx)];
        let at = state.domain;
        let token = self.tokens[at].get(u32::MAX);
        if token.is_none() {
            self.stats.throttled[at] += 1;
        }
        if token.is_none() != state.waits[at] {
            state.waits[at] = token.is_none();
            if state.waits[at] {
                self.tokens[at].wait(hctx.into());
            } else {
                self.tokens[at].forget(hctx.into());
            }
        }
        token
    }

    /// Dispatches the next request of the current domain (`kyber_dispatch_cur_domain`). The lists of the cores are
    /// emptied only with a token in hand, since their requests can still be merged.
    fn dispatch_domain(&mut self, requests: &mut Requests, hctx: u16) -> Option<u32> {
        let state = &self.hctxs[usize::from(hctx)];
        let at = state.domain;
        let ready = !state.ready[at].is_empty();
        if !ready && state.fresh[at] == 0 {
            return None;
        }
        let token = self.token(hctx)?;
        let state = &mut self.hctxs[usize::from(hctx)];
        if !ready {
            for core in self.map.cores_of(hctx) {
                let fresh = self.fresh[usize::from(core)][at].take();
                state.ready[at].append(requests, fresh);
            }
            state.fresh[at] = 0;
        }
        let name = state.ready[at].pop_front(requests).expect("a counted request is in its list");
        state.batching += 1;
        requests[name].token = token;
        Some(name)
    }

    fn resize(&mut self, at: usize, depth: u32, now: Time) {
        if depth != self.tokens[at].depth() {
            self.tokens[at].resize(depth);
            self.stats.resizes[at] += 1;
            self.stats.depth[at].set(now, depth.into());
        }
    }

    /// `kyber_timer_fn`.
    fn adjust(&mut self, now: Time) {
        let mut congested = false;
        for domain in &mut self.latencies {
            congested |= domain.slow_device(now).is_some_and(|p90| p90 >= GOOD);
        }
        self.stats.congested += u64::from(congested);
        for (at, most) in DEPTH.into_iter().enumerate().take(MEASURED) {
            let Some(p99) = self.latencies[at].judge(congested, now) else { continue };
            if congested || p99 >= GOOD {
                let depth = resized(self.tokens[at].depth(), p99, most);
                self.resize(at, depth, now);
            }
        }
    }
}

impl Scheduler for Kyber {
    fn is_elevator(&self) -> bool {
        true
    }
    fn shallow(&self, synchronous: bool, _: bool) -> u32 {
        // Zero bits of a one-bit word means no limit (`__blk_mq_get_tag`).
        if synchronous || self.async_depth == 0 { u32::MAX } else { self.async_depth }
    }
    fn least_shallow(&self) -> u32 {
        self.async_depth
    }
    fn bio_merge(
        &mut self,
        requests: &mut Requests,
        piece: &Piece,
        core: u16,
        _: &mut Vec<u32>,
    ) -> Option<Side> {
        requests.attempt_list_merge(&self.fresh[usize::from(core)][domain(piece.bio.op)], piece)
    }
    fn insert(&mut self, requests: &mut Requests, name: u32, _: bool, _: Time, _: &mut Vec<u32>) {
        let Request { op, core, hctx, .. } = requests[name];
        self.fresh[usize::from(core)][domain(op)].push_back(requests, name);
        self.hctxs[usize::from(hctx)].fresh[domain(op)] += 1;
    }
    fn dispatch(&mut self, requests: &mut Requests, hctx: u16, _: Time) -> Option<u32> {
        let state = &self.hctxs[usize::from(hctx)];
        if state.batching < BATCH[state.domain]
            && let Some(name) = self.dispatch_domain(requests, hctx)
        {
            return Some(name);
        }
        self.hctxs[usize::from(hctx)].batching = 0;
        for _ in 0..DOMAINS {
            let state = &mut self.hctxs[usize::from(hctx)];
            state.domain = (state.domain + 1) % DOMAINS;
            if let Some(name) = self.dispatch_domain(requests, hctx) {
                return Some(name);
            }
        }
        None
    }
    fn has_work(&self, hctx: u16) -> bool {
        let state = &self.hctxs[usize::from(hctx)];
        state.ready.iter().any(|list| !list.is_empty()) || state.fresh.iter().any(|count| *count > 0)
    }
    fn finish(&mut self, request: &mut Request, run: &mut Vec<u16>) {
        if request.token == NONE {
            return;
        }
        let (at, hctxs) = (domain(request.op), &mut self.hctxs);
        self.tokens[at].put(std::mem::replace(&mut request.token, NONE), |hctx| {
            hctxs[hctx as usize].waits[at] = false;
            run.push(hctx as u16);
        });
    }
    fn completed(&mut self, request: &Request, now: Time) {
        let at = domain(request.op);
        if at >= MEASURED {
            return;
        }
        self.latencies[at].add(self.targets[at], now.since(request.start), now.since(request.issued));
        let due = now + WINDOW;
        self.timer = Some(self.timer.map_or(due, |timer| timer.min(due)));
    }
    fn next_timer(&self) -> Option<Time> {
        self.timer
    }
    fn timer(&mut self, now: Time) {
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            self.adjust(now);
        }
    }
    fn stats(&self) -> SchedulerStats {
        self.stats
    }
    fn reset_stats(&mut self, now: Time) {
        let depth = self.stats.depth;
        self.stats = SchedulerStats { depth, ..SchedulerStats::default() };
        self.stats.depth.iter_mut().for_each(|gauge| gauge.reset(now));
    }
}

// Domains of requests, and their latencies.

/// `KYBER_NUM_DOMAINS`: reads, writes, discards, others.
const DOMAINS: usize = 4;

/// Domains whose latency is measured: all but the others.
const MEASURED: usize = 3;

/// `kyber_depth`: maximum requests of a domain at the drive.
const DEPTH: [u32; DOMAINS] = [256, 128, 64, 16];

/// `kyber_batch_size`: requests of a domain in a row.
const BATCH: [u32; DOMAINS] = [16, 8, 1, 1];

/// `kyber_sched_domain`.
fn domain(op: IoOp) -> usize {
    match op {
        IoOp::Read => 0,
        IoOp::Write => 1,
        IoOp::Trim => 2,
        IoOp::WriteZeroes | IoOp::Flush => 3,
    }
}

/// Latencies of a domain.
#[derive(Clone, Copy, Debug, Default)]
struct Latencies {
    /// Latency since the request was created.
    total: Histogram,
    /// Latency since the drive received it.
    device: Histogram,
    until: Option<Time>,
    /// Last 99th percentile, until it has been acted upon (`domain_p99`).
    remembered: Option<u32>,
}

impl Latencies {
    fn add(&mut self, target: Time, total: Time, device: Time) {
        self.total.add(target, total);
        self.device.add(target, device);
    }

    /// Returns the 90th percentile of the drive's latency, if there are enough samples.
    fn slow_device(&mut self, now: Time) -> Option<u32> {
        self.device.take_percentile(90, &mut self.until, now)
    }

    /// Returns the 99th percentile of the total latency to act upon. Under congestion, the previous one is used once if
    /// none is available now.
    fn judge(&mut self, congested: bool, now: Time) -> Option<u32> {
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

// Latencies relative to a target, and their percentiles.

/// `KYBER_LATENCY_SHIFT`: a bucket is a quarter of the target.
const SHIFT: u32 = 2;

/// `KYBER_GOOD_BUCKETS`: the first buckets are latencies within the target.
const GOOD: u32 = 1 << SHIFT;

/// `KYBER_LATENCY_BUCKETS`.
const BUCKETS: usize = 2 << SHIFT;

/// Number of samples at which a percentile is taken, however little time has passed.
const ENOUGH: u32 = 500;

/// Time since the first sample at which a percentile is taken, however few samples there are.
const LONG: Time = Time::from_s(1);

/// Latencies of one kind, in quarters of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Histogram {
    buckets: [u32; BUCKETS],
}

impl Histogram {
    /// `add_latency_sample`.
    fn add(&mut self, target: Time, latency: Time) {
        let width = (target.ps() >> SHIFT).max(1);
        let bucket = (latency.ps().saturating_sub(1) / width).min(BUCKETS as u64 - 1);
        self.buckets[bucket as usize] += 1;
    }

    /// Returns the bucket of a percentile and empties the histogram; `None` if there are not enough samples yet
    /// (`calculate_percentile`). `until` is the end of the wait for more, shared by all kinds of a domain.
    fn take_percentile(&mut self, percent: u32, until: &mut Option<Time>, now: Time) -> Option<u32> {
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

/// Depth for a percentile: proportional to percentile over target, between one and `most` (`kyber_timer_fn`,
/// `kyber_resize_domain`).
fn resized(depth: u32, bucket: u32, most: u32) -> u32 {
    ((depth * (bucket + 1)) >> SHIFT).clamp(1, most)
}

#[cfg(test)]
mod tests {
    // Percentiles and depths by `calculate_percentile`, `add_latency_sample`, `kyber_timer_fn`.
    use super::Latencies;
    use super::{Histogram, resized};
    use engine::Time;

    const TARGET: Time = Time::from_ms(2);

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    /// A bucket is a quarter of the target, upper end included: 500 us are in the first, 501 in the second, from 3.5 ms
    /// on in the last.
    #[test]
    fn latencies_fall_into_quarters_of_the_target() {
        for (latency, bucket) in
            [(0, 0), (500, 0), (501, 1), (2000, 3), (2001, 4), (3500, 6), (3501, 7), (90_000, 7)]
        {
            let mut histogram = Histogram::default();
            histogram.add(TARGET, us(latency));
            let now = Time::from_s(1);
            // One sample is enough once the wait for more is over.
            assert_eq!(histogram.take_percentile(99, &mut Some(now), now), Some(bucket), "{latency} us");
        }
    }

    /// 600 samples: 540 up to 500 us, 54 up to 1 ms, 6 of 10 ms. The 540th is the 90th percentile, in bucket 0; the
    /// 594th the 99th, in bucket 1. With one fewer in the first bucket and one more in the last, they are in buckets 1
    /// and 7.
    #[test]
    fn a_percentile_is_the_bucket_of_its_sample() {
        for (slow, p90, p99) in [(6, 0, 1), (7, 1, 7)] {
            let fill = || {
                let mut histogram = Histogram::default();
                (0..546 - slow).for_each(|_| histogram.add(TARGET, us(400)));
                (0..54).for_each(|_| histogram.add(TARGET, us(900)));
                (0..slow).for_each(|_| histogram.add(TARGET, us(10_000)));
                histogram
            };
            let now = Time::from_s(9);
            assert_eq!(fill().take_percentile(90, &mut None, now), Some(p90));
            let mut histogram = fill();
            assert_eq!(histogram.take_percentile(99, &mut None, now), Some(p99));
            assert_eq!(histogram, Histogram::default());
        }
    }

    /// Fewer than 500 samples are kept until a second after they were first looked at.
    #[test]
    fn few_samples_wait_for_a_second() {
        let mut histogram = Histogram::default();
        (0..499).for_each(|_| histogram.add(TARGET, us(900)));
        let (mut until, seen) = (None, Time::from_s(5));
        assert_eq!(histogram.take_percentile(90, &mut until, seen), None);
        assert_eq!(until, Some(Time::from_s(6)));
        assert_eq!(histogram.take_percentile(90, &mut until, Time::from_ms(5_999)), None);
        assert_eq!(histogram.take_percentile(90, &mut until, Time::from_s(6)), Some(1));
        assert_eq!((histogram.take_percentile(90, &mut until, Time::from_s(7)), until), (None, None));
        (0..500).for_each(|_| histogram.add(TARGET, us(900)));
        assert_eq!(histogram.take_percentile(90, &mut until, Time::from_s(7)), Some(1));
    }

    /// A percentile of three quarters of the target gives three quarters of the depth, one of twice the target twice
    /// the depth, within bounds.
    #[test]
    fn depths_follow_the_percentile() {
        assert_eq!((resized(256, 2, 256), resized(100, 7, 256), resized(200, 7, 256)), (192, 200, 256));
        assert_eq!((resized(128, 0, 128), resized(3, 0, 128), resized(1, 4, 128)), (32, 1, 1));
    }

    /// The last percentile is remembered until there is congestion, and acted upon once (`domain_p99`).
    #[test]
    fn a_domain_remembers_its_percentile_until_congestion() {
        let mut domain = Latencies::default();
        (0..500).for_each(|_| domain.add(TARGET, us(1_500), us(1_500)));
        let mut now = Time::from_s(1);
        assert_eq!((domain.slow_device(now), domain.judge(false, now)), (Some(2), Some(2)));
        now += Time::from_s(1);
        assert_eq!((domain.slow_device(now), domain.judge(false, now)), (None, None));
        assert_eq!((domain.judge(true, now), domain.judge(true, now)), (Some(2), None));
    }

    /// A few samples that have waited for their second are used up by the drive's percentile, which ends the shared
    /// wait. The total latency waits for another second.
    #[test]
    fn the_wait_for_samples_is_shared() {
        let mut domain = Latencies::default();
        (0..10).for_each(|_| domain.add(TARGET, us(1_500), us(1_500)));
        let seen = Time::from_s(1);
        assert_eq!((domain.slow_device(seen), domain.judge(false, seen)), (None, None));
        let end = Time::from_s(2);
        assert_eq!((domain.slow_device(end), domain.judge(false, end)), (Some(2), None));
        let later = Time::from_s(3);
        assert_eq!((domain.slow_device(later), domain.judge(false, later)), (None, Some(2)));
    }
}
