//! `kyber` (block/kyber-iosched.c).

mod domain;
mod histogram;
#[cfg(test)]
mod tests;

use super::super::Map;
use super::{Context, Scheduler, SchedulerStats};
use crate::block::bio::Piece;
use crate::block::list::RequestList;
use crate::block::merge::Side;
use crate::block::request::{NONE, Request, Requests};
use config::units::Duration;
use domain::{BATCH, DEPTH, DOMAINS, Latencies, MEASURED, domain};
use engine::Time;
use histogram::{GOOD, resized};

use crate::block::tags::Tags;

/// Parameters of `kyber`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Latency that reads should have.
    #[schemars(extend("x-minimum" = "1us"))]
    pub read_lat: Duration,
    /// Latency that writes should have.
    #[schemars(extend("x-minimum" = "1us"))]
    pub write_lat: Duration,
}

impl Default for Params {
    fn default() -> Params {
        Params { read_lat: Duration::new(Time::from_ms(2)), write_lat: Duration::new(Time::from_ms(10)) }
    }
}

/// Target of discards; nobody can change it in Linux.
const DISCARD_LAT: Time = Time::from_s(5);
/// `KYBER_ASYNC_PERCENT`.
const ASYNC_PERCENT: u32 = 75;
/// From a completion to the look at the latencies (`HZ / 10`).
const WINDOW: Time = Time::from_ms(100);

/// What waits for one hardware queue (`struct kyber_hctx_data`).
#[derive(Debug, Default)]
struct Hctx {
    /// Requests past merging, by domain.
    ready: [RequestList; DOMAINS],
    /// Requests in the lists of its cores, by domain.
    fresh: [u32; DOMAINS],
    domain: usize,
    batching: u32,
    /// Whether it waits for a token, by domain.
    waits: [bool; DOMAINS],
}

/// Requests are reads, writes, discards and others. So many of each are at the drive as it has tokens, which are taken back from those that are
/// faster than their target when one of them is slow, and given to those that are slower. Domains take turns in batches.
///
/// Source: block/kyber-iosched.c of Linux 6.1, whose writes are one domain, synchronous or not; those that are not get three quarters of the
/// tags (`kyber_limit_depth`). Times are exact and not those of a tick.
#[derive(Debug)]
pub struct Kyber {
    map: Map,
    async_depth: u32,
    targets: [Time; MEASURED],
    tokens: [Tags; DOMAINS],
    hctxs: Vec<Hctx>,
    /// Requests that may still be merged, of each core, by domain.
    fresh: Vec<[RequestList; DOMAINS]>,
    latencies: [Latencies; MEASURED],
    timer: Option<Time>,
    stats: SchedulerStats,
}

impl Kyber {
    /// The scheduler of an empty queue.
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

    /// A token for the domain whose turn it is; without one the hardware queue waits (`kyber_get_domain_token`).
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

    /// The next request of the domain whose turn it is (`kyber_dispatch_cur_domain`). The lists of the cores are emptied only with a token in
    /// hand: what is in them can still be merged.
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
        let name = state.ready[at].pop_front(requests).expect("what is counted is there");
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
        // None of a word's one bit is no limit (`__blk_mq_get_tag`).
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
