//! `cfq` (block/cfq-iosched.c, until Linux 4.20): time at the drive is divided among processes.

use super::super::Map;
use super::{Context, Scheduler, SchedulerStats};
use crate::block::bio::{Piece, Side};
use crate::block::request::{NONE, Request, RequestList, Requests};
use config::units::Duration;
use engine::Time;
use std::collections::{BTreeMap, VecDeque};

/// Parameters of `cfq`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Requests that a process may have at the drive while others wait; half as many until its slice has begun.
    #[schemars(range(min = 1, max = 65_536))]
    pub quantum: u32,
    /// Slice of a process, from its first completion on.
    #[schemars(extend("x-minimum" = "1ms"))]
    pub slice_sync: Duration,
    /// Shared slice of all writes that no process waits for.
    #[schemars(extend("x-minimum" = "1ms"))]
    pub slice_async: Duration,
    /// Time in which every process should get its turn; slices are shortened if the waiting processes would take
    /// longer.
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
/// Pseudo-process of writes that no process waits for.
const NOBODY: u32 = u32::MAX;

/// Four fifths: the slice of the highest priority exceeds that of the default priority by this share
/// (`cfq_prio_slice`).
const MORE: [u64; 2] = [4, 5];
/// Distance from the first key to the key of a process that goes next, in ps.
const FRONT: i64 = Time::from_s(1).ps() as i64;

/// Requests of a process (`struct cfq_queue`).
#[derive(Debug, Default)]
struct Process {
    is_async: bool,
    /// Waiting requests in order of arrival.
    waiting: RequestList,
    /// Requests at the drive.
    dispatched: u32,
    /// End of the last request that went to the drive.
    position: u64,
    /// End of the slice; none before the first completion in it.
    slice_end: Option<Time>,
    /// Rest of the slice when the process lost its turn, in ps (`slice_resid`); negative after an overrun.
    left: i64,
    /// Place in the tree, in ps (`rb_key`); none outside the tree (`cfq_cfqq_on_rr`).
    key: Option<i64>,
    /// True if the oldest request has been looked at in this slice.
    looked: bool,
}

/// One process at a time is served, by position, until its slice ends or its queue is empty. Others follow by key: time
/// of arrival plus a slice for each process in the tree. A request preempts a process whose queue is empty, and its own
/// process goes first (`cfq_should_preempt`). Recently served processes are then served again and the others starve.
/// With more processes than commands at the drive, this causes late requests.
///
/// Source: block/cfq-iosched.c of Linux 4.15, for a drive that does not rotate and takes several commands, where `cfq`
/// never idles for a process (`cfq_registered_queue` sets `slice_idle` to zero). Left out: classes and levels of
/// priority, groups, a tree for each type of work, cooperating processes, back seeks, and the slow start of
/// asynchronous writes behind synchronous requests.
#[derive(Debug)]
pub struct Cfq {
    params: Params,
    map: Map,
    processes: Vec<Process>,
    /// Index of each task's process.
    names: BTreeMap<u32, usize>,
    active: Option<usize>,
    /// Processes with requests, and the active one, by key; equal keys in order of arrival (`cfq_rb_root`).
    tree: VecDeque<(i64, usize)>,
    /// Recent number of processes in the tree (`busy_queues_avg`).
    average: u64,
    stats: SchedulerStats,
}

impl Cfq {
    /// Creates the scheduler of an empty queue.
    pub fn new(params: &Params, context: &Context) -> Cfq {
        Cfq {
            params: params.clone(),
            map: context.map,
            processes: Vec::new(),
            names: BTreeMap::new(),
            active: None,
            tree: VecDeque::new(),
            average: 0,
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

    /// Number of processes with waiting requests.
    fn busy(&self) -> usize {
        let idle = self.active.is_some_and(|at| self.processes[at].waiting.is_empty());
        self.tree.len() - usize::from(idle)
    }

    /// Slice of a process by priority (`cfq_prio_to_slice`).
    fn base(&self, at: usize) -> Time {
        if self.processes[at].is_async {
            self.params.slice_async.time()
        } else {
            self.params.slice_sync.time()
        }
    }

    /// Slice of a process (`cfq_scaled_cfqq_slice`), shortened if all turns together would exceed the target latency.
    fn slice(&mut self, at: usize) -> Time {
        let busy = self.tree.len() as u64;
        let (least, most) = (self.average.min(busy), self.average.max(busy));
        // `cfq_hist_divisor`: a fall in their number counts a quarter.
        self.average = (3 * most + least + 2) / 4;
        let (slice, target) = (self.base(at), self.params.target_latency.time());
        let all = self.params.slice_sync.time().times(self.average);
        if all <= target {
            return slice;
        }
        let share = u128::from(slice.ps()) * u128::from(target.ps()) / u128::from(all.ps());
        Time::from_ps(share as u64)
    }

    /// Removes a process from the tree.
    fn leave(&mut self, at: usize) {
        if let Some(key) = self.processes[at].key.take()
            && let Some(place) = self.tree.iter().position(|entry| *entry == (key, at))
        {
            self.tree.remove(place);
        }
    }

    /// Puts a process into the tree, at the front or by its key (`cfq_service_tree_add`).
    fn place(&mut self, at: usize, first: bool, now: Time) {
        let key = if first {
            self.tree.front().map_or(now.ps() as i64, |(key, _)| *key) - FRONT
        } else {
            // `cfq_slice_offset`: a process that is in the tree already counts itself, so a new one goes before it.
            let step =
                self.params.slice_sync.time().ps() * (MORE[0] + MORE[1]) / MORE[1] - self.base(at).ps();
            now.ps() as i64 + (self.tree.len() as i64 - 1) * step as i64
                - std::mem::take(&mut self.processes[at].left)
        };
        self.leave(at);
        let place = self.tree.partition_point(|(other, _)| *other <= key);
        self.tree.insert(place, (key, at));
        self.processes[at].key = Some(key);
    }

    /// Ends the turn of the active process (`cfq_slice_expired`); `keeps` records the rest of its slice.
    fn expire(&mut self, keeps: bool, now: Time) {
        let Some(at) = self.active.take() else { return };
        if keeps {
            self.processes[at].left = match self.processes[at].slice_end {
                Some(end) => end.ps() as i64 - now.ps() as i64,
                None => self.slice(at).ps() as i64,
            };
        }
        if self.processes[at].waiting.is_empty() {
            self.leave(at);
        } else {
            self.place(at, false, now);
        }
    }

    /// Returns whether a process with a new request preempts the active one (`cfq_should_preempt`).
    fn preempts(&self, at: usize, now: Time) -> bool {
        let Some(active) = self.active.filter(|active| *active != at) else { return false };
        let (new, active) = (&self.processes[at], &self.processes[active]);
        let is_over = active.slice_end.is_some_and(|end| now >= end);
        !new.is_async && (active.is_async || is_over || active.waiting.is_empty())
    }

    /// Selects the process to serve (`cfq_select_queue`).
    fn select(&mut self, now: Time) -> Option<usize> {
        if let Some(at) = self.active {
            let process = &self.processes[at];
            let is_over = process.slice_end.is_some_and(|end| now >= end);
            if !is_over && !process.waiting.is_empty() {
                return Some(at);
            }
            self.stats.expired += u64::from(is_over && !process.waiting.is_empty());
            self.expire(false, now);
        }
        let (_, at) = *self.tree.front()?;
        self.active = Some(at);
        (self.processes[at].slice_end, self.processes[at].looked) = (None, false);
        Some(at)
    }

    /// Returns whether a process may have one more request at the drive (`cfq_may_dispatch`).
    fn may_dispatch(&self, at: usize) -> bool {
        let Process { dispatched, slice_end, .. } = self.processes[at];
        let quantum = self.params.quantum;
        if dispatched < (quantum / 2).max(1) || self.busy() <= 1 {
            return true;
        }
        // `cfq_slice_used_soon`: a slice has no known length before its first completion.
        slice_end.is_some() && dispatched < quantum
    }

    /// Selects the oldest request if it is late, at the start of a slice; else the next by position, wrapping to the
    /// first.
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
    fn gives_batches(&self) -> bool {
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
        process.waiting.push_back(requests, name);
        if process.key.is_none() {
            self.place(at, false, now);
        }
        if self.preempts(at, now) {
            self.expire(true, now);
            self.place(at, true, now);
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
        if self.active != Some(at) {
            return;
        }
        let end = match self.processes[at].slice_end {
            Some(end) => end,
            None => now + self.slice(at),
        };
        self.processes[at].slice_end = Some(end);
        if now >= end {
            self.expire(true, now);
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
