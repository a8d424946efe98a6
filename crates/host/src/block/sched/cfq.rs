//! `cfq` (block/cfq-iosched.c, until Linux 4.20): time at the drive is shared out process by process.

use super::{Context, Scheduler, SchedulerStats};
use crate::block::bio::Piece;
use crate::block::list::RequestList;
use crate::block::map::Map;
use crate::block::merge::Side;
use crate::block::request::{NONE, Request, Requests};
use config::units::Duration;
use kernel::Time;
use std::collections::{BTreeMap, VecDeque};

/// Parameters of `cfq`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Requests that a process may have at the drive while others wait; half of them until its slice has begun.
    #[schemars(range(min = 1, max = 65_536))]
    pub quantum: u32,
    /// Slice of a process, from its first completion on.
    #[schemars(extend("x-minimum" = "1ms"))]
    pub slice_sync: Duration,
    /// Slice of all writes that no process waits for.
    #[schemars(extend("x-minimum" = "1ms"))]
    pub slice_async: Duration,
    /// Time in which each process shall have its turn: slices are shortened if so many processes wait that they would take longer.
    #[schemars(extend("x-minimum" = "1ms"))]
    pub target_latency: Duration,
}

impl Default for Params {
    /// `cfq_quantum`, `cfq_slice_sync`, `cfq_slice_async`, `cfq_target_latency`.
    fn default() -> Params {
        let ms = |ms| Duration::new(Time::from_ms(ms));
        Params { quantum: 8, slice_sync: ms(100), slice_async: ms(40), target_latency: ms(300) }
    }
}

/// `cfq_fifo_expire`, of requests that a process waits for, and of others.
const EXPIRE: [Time; 2] = [Time::from_ms(125), Time::from_ms(250)];
/// The process of writes that no process waits for.
const NOBODY: u32 = u32::MAX;

/// Requests of a process (`struct cfq_queue`).
#[derive(Debug, Default)]
struct Process {
    is_async: bool,
    /// In the order in which they came.
    waiting: RequestList,
    /// Requests at the drive.
    dispatched: u32,
    /// Behind the last request that went to the drive.
    position: u64,
    /// End of its slice; none before the first completion in it.
    slice_end: Option<Time>,
    /// Whether the oldest request has been looked at in this slice.
    looked: bool,
}

/// One process at a time is served, by position, until its slice is over or nothing of it waits. Others follow in turn.
///
/// Source: block/cfq-iosched.c of Linux 4.15, for a drive that does not rotate and takes several commands, where nothing idles for a process
/// (`cfq_registered_queue` sets `slice_idle` to zero). Left out: classes and levels of priority, groups, cooperating processes, back seeks, and the slow start of asynchronous
/// writes behind synchronous requests.
#[derive(Debug)]
pub struct Cfq {
    params: Params,
    map: Map,
    processes: Vec<Process>,
    /// Index of each task's process.
    names: BTreeMap<u32, usize>,
    active: Option<usize>,
    /// Processes that wait for their turn.
    ring: VecDeque<usize>,
    stats: SchedulerStats,
}

impl Cfq {
    /// The scheduler of an empty queue.
    pub fn new(params: &Params, context: &Context) -> Cfq {
        Cfq {
            params: params.clone(),
            map: context.map,
            processes: Vec::new(),
            names: BTreeMap::new(),
            active: None,
            ring: VecDeque::new(),
            stats: SchedulerStats::default(),
        }
    }

    fn process_of(&mut self, request: &Request) -> usize {
        let is_async = !request.is_sync();
        let task = if is_async { NOBODY } else { request.task };
        let next = self.processes.len();
        let at = *self.names.entry(task).or_insert(next);
        if at == next {
            self.processes.push(Process { is_async, ..Process::default() });
        }
        at
    }

    /// Processes of which something waits, the one that is served among them.
    fn busy(&self) -> usize {
        let active = self.active.is_some_and(|at| !self.processes[at].waiting.is_empty());
        self.ring.len() + usize::from(active)
    }

    /// The slice of a process (`cfq_scaled_cfqq_slice`).
    fn slice(&self, at: usize) -> Time {
        let Params { slice_sync, slice_async, target_latency, .. } = &self.params;
        let (sync, target) = (slice_sync.time(), target_latency.time());
        let slice = if self.processes[at].is_async { slice_async.time() } else { sync };
        let others = self.ring.iter().filter(|other| **other != at && !self.processes[**other].is_async);
        let all = sync.times(others.count() as u64 + 1);
        if all <= target {
            return slice;
        }
        let share = u128::from(slice.ps()) * u128::from(target.ps()) / u128::from(all.ps());
        Time::from_ps(share as u64)
    }

    /// The process that is served loses its turn (`cfq_slice_expired`).
    fn expire(&mut self) {
        if let Some(at) = self.active.take()
            && !self.processes[at].waiting.is_empty()
        {
            self.ring.push_back(at);
        }
    }

    /// The process to serve (`cfq_select_queue`).
    fn select(&mut self, now: Time) -> Option<usize> {
        if let Some(at) = self.active {
            let process = &self.processes[at];
            let is_over = process.slice_end.is_some_and(|end| now > end);
            if !is_over && !process.waiting.is_empty() {
                return Some(at);
            }
            self.stats.expired += u64::from(is_over);
            self.expire();
        }
        self.active = self.ring.pop_front();
        let at = self.active?;
        (self.processes[at].slice_end, self.processes[at].looked) = (None, false);
        Some(at)
    }

    /// Whether a process may have one more request at the drive (`cfq_may_dispatch`).
    fn may_dispatch(&self, at: usize) -> bool {
        let Process { dispatched, slice_end, .. } = self.processes[at];
        let quantum = self.params.quantum;
        if dispatched < (quantum / 2).max(1) || self.busy() <= 1 {
            return true;
        }
        // `cfq_slice_used_soon`: nothing is known of a slice before its first completion.
        slice_end.is_some() && dispatched < quantum
    }

    /// The oldest request if it is late, at the beginning of a slice; else the next by position, from the front again behind the last.
    fn next(&mut self, requests: &Requests, at: usize, now: Time) -> Option<u32> {
        let process = &mut self.processes[at];
        let oldest = process.waiting.first()?;
        if !std::mem::replace(&mut process.looked, true) && requests[oldest].deadline <= now {
            return Some(oldest);
        }
        let behind = |name: u32| requests[name].offset < process.position;
        let mut best = (behind(oldest), requests[oldest].offset, oldest);
        let mut name = requests[oldest].next;
        while name != NONE {
            best = best.min((behind(name), requests[name].offset, name));
            name = requests[name].next;
        }
        Some(best.2)
    }
}

impl Scheduler for Cfq {
    fn is_elevator(&self) -> bool {
        true
    }
    fn shallow(&self, _: bool, _: bool) -> u32 {
        u32::MAX
    }
    fn least_shallow(&self) -> u32 {
        u32::MAX
    }
    fn bio_merge(
        &mut self,
        requests: &mut Requests,
        piece: &Piece,
        _: u16,
        _: &mut Vec<u32>,
    ) -> Option<Side> {
        let lists = self.processes.iter().map(|process| process.waiting);
        lists.into_iter().find_map(|list| requests.attempt_list_merge(&list, piece))
    }
    fn insert(&mut self, requests: &mut Requests, name: u32, _: bool, now: Time, _: &mut Vec<u32>) {
        let at = self.process_of(&requests[name]);
        let process = &mut self.processes[at];
        requests[name].deadline = now + EXPIRE[usize::from(process.is_async)];
        let is_new = process.waiting.is_empty();
        process.waiting.push_back(requests, name);
        let is_async = process.is_async;
        if is_new && self.active != Some(at) {
            self.ring.push_back(at);
        }
        // `cfq_should_preempt`.
        if !is_async && self.active.is_some_and(|active| self.processes[active].is_async) {
            self.expire();
        }
    }
    fn dispatch(&mut self, requests: &mut Requests, _: u16, now: Time) -> Option<u32> {
        let at = self.select(now)?;
        if !self.may_dispatch(at) {
            return None;
        }
        let name = self.next(requests, at, now)?;
        let process = &mut self.processes[at];
        process.waiting.remove(requests, name);
        process.dispatched += 1;
        process.position = requests[name].end();
        requests[name].token = at as u32;
        Some(name)
    }
    fn has_work(&self, _: u16) -> bool {
        self.busy() > 0
    }
    fn finish(&mut self, request: &mut Request, run: &mut Vec<u16>) {
        request.token = NONE;
        if self.busy() > 0 {
            run.extend(0..self.map.hctxs());
        }
    }
    fn completed(&mut self, request: &Request, now: Time) {
        if request.token == NONE {
            return;
        }
        let at = request.token as usize;
        self.processes[at].dispatched = self.processes[at].dispatched.saturating_sub(1);
        if self.active == Some(at) && self.processes[at].slice_end.is_none() {
            self.processes[at].slice_end = Some(now + self.slice(at));
        }
    }
    fn next_timer(&self) -> Option<Time> {
        None
    }
    fn timer(&mut self, _: Time) {}
    fn stats(&self) -> SchedulerStats {
        self.stats
    }
    fn reset_stats(&mut self, _: Time) {
        self.stats = SchedulerStats::default();
    }
}
