//! `mq-deadline` (block/mq-deadline.c).

use super::{Context, Scheduler, SchedulerStats};
use crate::block::bio::{Attempt, Piece, Side};
use crate::block::request::{NONE, Request, RequestList, Requests};
use config::units::Duration;
use engine::Time;
use proto::IoOp;

/// Parameters of `mq_deadline`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time after which a read is past its deadline.
    pub read_expire: Duration,
    /// Time after which a write is past its deadline.
    pub write_expire: Duration,
    /// Requests in a batch of one direction, in order of position.
    #[schemars(range(min = 1, max = 65_536))]
    pub fifo_batch: u32,
    /// Batches of reads that may pass waiting writes.
    #[schemars(range(max = 65_536))]
    pub writes_starved: u32,
    /// Whether a bio may join a request at the front.
    pub front_merges: bool,
    /// Tags of each word of a queue's tags available to writes and asynchronous reads. Default: three quarters of the
    /// queue's requests, which has no effect if a word has fewer.
    #[schemars(range(min = 1, max = 65_536))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub async_depth: Option<u32>,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            read_expire: Duration::new(Time::from_ms(500)),
            write_expire: Duration::new(Time::from_s(5)),
            fifo_batch: 16,
            writes_starved: 2,
            front_merges: true,
            async_depth: None,
        }
    }
}

const READ: usize = 0;
const WRITE: usize = 1;

/// Requests of one direction.
#[derive(Debug, Default)]
struct Direction {
    /// Requests by position; equal positions in order of arrival.
    sorted: Vec<(u64, u32)>,
    /// Requests in order of arrival.
    fifo: RequestList,
    /// Request after the last dispatched one, or none (`next_rq`).
    next: u32,
}

impl Direction {
    /// Index of a request among those sorted.
    fn place(&self, offset: u64, name: u32) -> usize {
        let from = self.sorted.partition_point(|(at, _)| *at < offset);
        let behind = self.sorted[from..].iter().position(|(_, other)| *other == name);
        from + behind.expect("a waiting request is in the sorted list")
    }

    fn sort_in(&mut self, offset: u64, name: u32) {
        let at = self.sorted.partition_point(|(other, _)| *other <= offset);
        self.sorted.insert(at, (offset, name));
    }

    /// Request after a position and name (`deadline_latter_request`).
    fn behind(&self, offset: u64, name: u32) -> u32 {
        self.sorted.get(self.place(offset, name) + 1).map_or(NONE, |(_, behind)| *behind)
    }

    /// Request that begins at a position.
    fn beginning_at(&self, offset: u64) -> Option<u32> {
        let at = self.sorted.partition_point(|(other, _)| *other < offset);
        self.sorted.get(at).filter(|(other, _)| *other == offset).map(|(_, name)| *name)
    }

    /// Last request that begins before a position.
    fn in_front_of(&self, offset: u64) -> Option<u32> {
        let at = self.sorted.partition_point(|(other, _)| *other < offset);
        at.checked_sub(1).map(|at| self.sorted[at].1)
    }

    fn remove(&mut self, requests: &mut Requests, name: u32) {
        let offset = requests[name].offset;
        let at = self.place(offset, name);
        if self.next == name {
            self.next = self.sorted.get(at + 1).map_or(NONE, |(_, behind)| *behind);
        }
        self.sorted.remove(at);
        self.fifo.remove(requests, name);
    }
}

/// Two directions, each sorted by position and by age. A batch continues in one direction by position. A new one begins
/// with the oldest request if that is past its deadline or no request lies further on. Reads go first, but at most
/// `writes_starved` times in a row while writes wait.
///
/// Source: block/mq-deadline.c (`__dd_dispatch_request`). All hardware queues share it. Merge candidates are found by
/// position, where Linux has a hash of ends and a cache of the last one; overlapping requests may therefore stay
/// separate. Left out: priority classes, which no caller uses (all are best effort), and their ageing.
#[derive(Debug)]
pub struct Deadline {
    params: Params,
    async_depth: u32,
    directions: [Direction; 2],
    last: usize,
    batching: u32,
    starved: u32,
    stats: SchedulerStats,
}

fn direction(op: IoOp) -> usize {
    match op {
        IoOp::Read | IoOp::Flush => READ,
        IoOp::Write | IoOp::Trim | IoOp::WriteZeroes => WRITE,
    }
}

impl Deadline {
    /// Creates the scheduler of an empty queue.
    pub fn new(params: &Params, context: &Context) -> Deadline {
        let empty = || Direction { next: NONE, ..Direction::default() };
        Deadline {
            params: params.clone(),
            // `dd_depth_updated`.
            async_depth: params.async_depth.unwrap_or((3 * context.requests / 4).max(1)),
            directions: [empty(), empty()],
            last: WRITE,
            batching: 0,
            starved: 0,
            stats: SchedulerStats::default(),
        }
    }

    /// Merges the next request into this one (`attempt_back_merge`, `dd_merged_requests`); the earlier deadline counts.
    fn merge_with_next(
        &mut self,
        requests: &mut Requests,
        name: u32,
        next: u32,
        freed: &mut Vec<u32>,
    ) -> bool {
        let queue = &mut self.directions[direction(requests[name].op)];
        let next_offset = requests[next].offset;
        if !requests.attempt_request_merge(name, next) {
            return false;
        }
        debug_assert_eq!(requests[next].offset, next_offset);
        let deadline = requests[next].deadline;
        if deadline < requests[name].deadline {
            queue.fifo.move_before(requests, name, next);
            requests[name].deadline = deadline;
        }
        queue.remove(requests, next);
        freed.push(next);
        true
    }

    /// Selects the first request of a new batch, and its direction (`__dd_dispatch_request` after a batch has ended).
    fn begin(&mut self, requests: &Requests, now: Time) -> Option<(usize, u32)> {
        let waits = |at: usize| !self.directions[at].fifo.is_empty();
        let mut at = READ;
        if !waits(READ) {
            at = WRITE;
        } else if waits(WRITE) {
            self.starved += 1;
            if self.starved > self.params.writes_starved {
                self.stats.starved += 1;
                at = WRITE;
            }
        }
        if at == WRITE {
            if !waits(WRITE) {
                return None;
            }
            self.starved = 0;
        }
        let queue = &self.directions[at];
        let oldest = queue.fifo.first()?;
        let expired = now >= requests[oldest].deadline;
        let name = if expired || queue.next == NONE { oldest } else { queue.next };
        self.stats.expired += u64::from(expired);
        if at == READ {
            self.stats.read_batches += 1;
        } else {
            self.stats.write_batches += 1;
        }
        (self.last, self.batching) = (at, 0);
        Some((at, name))
    }
}

impl Scheduler for Deadline {
    fn is_elevator(&self) -> bool {
        true
    }
    fn shallow(&self, synchronous: bool, write: bool) -> u32 {
        if synchronous && !write { u32::MAX } else { self.async_depth }
    }
    fn least_shallow(&self) -> u32 {
        self.async_depth
    }
    fn bio_merge(
        &mut self,
        requests: &mut Requests,
        piece: &Piece,
        _: u16,
        freed: &mut Vec<u32>,
    ) -> Option<Side> {
        let (bio, at) = (&piece.bio, direction(piece.bio.op));
        if let Some(name) = self.directions[at].in_front_of(bio.offset) {
            match requests.attempt_bio_merge(name, piece) {
                Attempt::Merged(side) => {
                    let next = self.directions[at].behind(requests[name].offset, name);
                    if next != NONE {
                        self.merge_with_next(requests, name, next, freed);
                    }
                    return Some(side);
                }
                Attempt::Failed => return None,
                Attempt::None => {}
            }
        }
        if !self.params.front_merges {
            return None;
        }
        let end = bio.offset + u64::from(bio.bytes);
        let name = self.directions[at].beginning_at(end)?;
        let Attempt::Merged(side) = requests.attempt_bio_merge(name, piece) else { return None };
        // The request begins earlier now, and may lie behind another one.
        let queue = &mut self.directions[at];
        let place = queue.place(end, name);
        queue.sorted.remove(place);
        queue.sort_in(bio.offset, name);
        if let Some(before) = queue.in_front_of(bio.offset) {
            self.merge_with_next(requests, before, name, freed);
        }
        Some(side)
    }
    fn insert(&mut self, requests: &mut Requests, name: u32, merges: bool, now: Time, freed: &mut Vec<u32>) {
        let Request { op, offset, .. } = requests[name];
        let at = direction(op);
        let queue = &mut self.directions[at];
        // `elv_attempt_insert_merge`: the grown request may in turn join the one before it.
        if merges
            && let Some(mut longer) = queue.in_front_of(offset)
            && requests.attempt_request_merge(longer, name)
        {
            freed.push(name);
            while let Some(before) = self.directions[at].in_front_of(requests[longer].offset)
                && self.merge_with_next(requests, before, longer, freed)
            {
                longer = before;
            }
            return;
        }
        let expire = if at == READ { &self.params.read_expire } else { &self.params.write_expire };
        requests[name].deadline = now + expire.time();
        queue.sort_in(offset, name);
        queue.fifo.push_back(requests, name);
    }
    fn dispatch(&mut self, requests: &mut Requests, _: u16, now: Time) -> Option<u32> {
        let going = self.directions[self.last].next;
        let (at, name) = if going != NONE && self.batching < self.params.fifo_batch {
            (self.last, going)
        } else {
            self.begin(requests, now)?
        };
        self.batching += 1;
        let queue = &mut self.directions[at];
        queue.next = queue.behind(requests[name].offset, name);
        queue.remove(requests, name);
        Some(name)
    }
    fn has_work(&self, _: u16) -> bool {
        self.directions.iter().any(|queue| !queue.fifo.is_empty())
    }
    fn finish(&mut self, _: &mut Request, _: &mut Vec<u16>) {}
    fn completed(&mut self, _: &Request, _: Time) {}
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
