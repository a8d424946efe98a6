//! The generator: draws a job's requests one at a time, when the injector has room for them.

use engine::Time;
use proto::{Batches, IoOp, IoRequest};

use super::job::{Access, Direction, Job};
use super::pace::{Pace, Thinker, Thought};
use super::place::{Extent, PlaceStreams, Places};
use super::{Next, Progress, Purpose, Stream, split_mix};

/// Answer of a generator to a poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Poll {
    /// Issue this now. `at` is the intended issue time: earlier than now if a rate-capped job is late.
    Issue(IoRequest),
    /// No request before this time, unless a completion comes first.
    At(Time),
    /// No request before a completion.
    Blocked,
    /// The job has ended, and none of its requests is outstanding.
    Done,
}

/// Draws the requests of one [`Job`].
///
/// The injector tracks the outstanding requests. It calls [`start`](Self::start) once, [`poll`](Self::poll) whenever
/// it could issue a request (until the answer is not [`Poll::Issue`]), and [`completed`](Self::completed) for each
/// completion. A clone is a snapshot: it continues exactly as the original.
///
/// Compared with fio: the order of blocks, sizes, mixes, passes, limits, flushes and pauses follow `io_u.c` and
/// `backend.c`; the random numbers do not, so individual offsets differ. A rate-capped fio job waits for its queue to
/// drain before it sleeps, and counts latency from the moment it wakes. Here requests are due on schedule and latency
/// counts from that moment, as with `io_submit_mode=offload` and no coordinated omission. `iodepth` bounds the
/// outstanding requests in both.
#[derive(Clone, Debug)]
pub struct Generator {
    job: Job,
    seed: u64,
    places: Places,
    streams: PlaceStreams,
    direction: Stream,
    pace: Option<Pace>,
    thinker: Option<Thinker>,
    phase: Phase,
    /// Outstanding requests at which nothing is issued: the depth while the queue is being filled; once it was full,
    /// one more than its low mark.
    limit: u32,
    /// Number of requests in the batch that the thread has taken and that have not completed yet.
    taken: u32,
    /// Number of requests that may be issued before the limits must be checked again.
    budget: u64,
    /// Time before which only the depth and the budget can hold a request back.
    carefree_until: Time,
    started: Time,
    not_before: Time,
    ramp_until: Time,
    ramping: bool,
    deadline: Time,
    progress: Progress,
    /// True if a periodic flush comes next.
    flush_due: bool,
    /// True if data was written since the last flush.
    unflushed: bool,
    /// Direction that was drawn but is not due yet.
    held: Option<Direction>,
    /// Extent that was trimmed and not yet written.
    trimmed: Option<Extent>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    Running,
    /// A blocking flush is outstanding.
    Flushing,
    /// A pass has ended and the queue drains.
    Draining(Next),
    /// The flush at the end of a pass is outstanding.
    LastFlush(Next),
    Done,
}

impl Generator {
    /// Creates a generator of `job`. Its random stream depends on the job's own seed (or else on `seed`) and on its
    /// flow number, so that clones differ.
    pub fn new(job: Job, seed: u64) -> Generator {
        let mut mixed = job.seed.unwrap_or(seed) ^ (job.flow as u64).rotate_left(48);
        let seed = split_mix(&mut mixed);
        let (mut streams, direction) = streams(seed);
        Generator {
            places: Places::new(&job, seed, &mut streams),
            pace: Pace::new(&job, seed),
            limit: job.depth,
            taken: 0,
            job,
            seed,
            streams,
            direction,
            thinker: None,
            phase: Phase::Idle,
            budget: 0,
            carefree_until: Time::ZERO,
            started: Time::ZERO,
            not_before: Time::ZERO,
            ramp_until: Time::ZERO,
            ramping: false,
            deadline: Time::MAX,
            progress: Progress::default(),
            flush_due: false,
            unflushed: false,
            held: None,
            trimmed: None,
        }
    }

    /// Returns the job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Starts the job together with its group, at `group`. As in fio, `startdelay` counts from the start of the whole
    /// workload, not of the group.
    pub fn start(&mut self, workload: Time, group: Time) {
        let (low, high) = self.job.start_delay;
        let spread = Stream::new(self.seed, Purpose::Delay).below(high.since(low).ps().saturating_add(1));
        let delayed = later(workload, later(low, Time::from_ps(spread)));
        self.started = group.max(delayed);
        self.not_before = self.started;
        self.ramping = self.job.ramp > Time::ZERO;
        self.ramp_until = later(self.started, self.job.ramp);
        self.deadline = self.job.limits.runtime.map_or(Time::MAX, |runtime| later(self.ramp_until, runtime));
        self.thinker = self.job.think.map(|rule| Thinker::new(rule, self.started));
        self.phase = Phase::Running;
    }

    /// Returns the time at which the job starts or has started.
    pub fn started(&self) -> Time {
        self.started
    }

    /// Returns the time from which results count completions; the start of the job without a ramp.
    pub fn ramp_until(&self) -> Time {
        self.ramp_until
    }

    /// Returns true if the job has ended.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Returns the requests issued so far, excluding flushes.
    pub fn issued(&self) -> u64 {
        self.progress.issued
    }

    /// Returns the share of the job done at `now`, zero to one, by the limit that is nearest to ending it.
    pub fn share(&self, now: Time) -> f64 {
        match self.phase {
            Phase::Idle => 0.0,
            Phase::Done => 1.0,
            _ => {
                let clock = self.job.limits.runtime.map_or(0.0, |_| {
                    let whole = self.deadline.since(self.started).as_s_f64();
                    if whole > 0.0 { now.since(self.started).as_s_f64() / whole } else { 1.0 }
                });
                self.progress.share(&self.job).max(clock).min(1.0)
            }
        }
    }

    /// Returns what to do at `now` with `outstanding` requests of this job in flight. `now` must not decrease.
    #[inline]
    pub fn poll(&mut self, now: Time, outstanding: u32) -> Poll {
        if self.budget > 0 && now < self.carefree_until {
            if !self.has_room(outstanding) {
                return Poll::Blocked;
            }
            let d = self.draw_direction();
            if let Some(request) = self.place(d, now) {
                self.budget -= 1;
                return Poll::Issue(request);
            }
            self.held = Some(d);
            self.budget = 0;
        }
        self.poll_carefully(now, outstanding)
    }

    /// Counts a completed request of this job. The injector polls afterwards.
    #[inline]
    pub fn completed(&mut self, op: IoOp) {
        if op != IoOp::Flush {
            self.progress.completed += 1;
            self.taken = self.taken.saturating_sub(1);
            return;
        }
        match self.phase {
            Phase::Flushing => self.phase = Phase::Running,
            Phase::LastFlush(next) => self.begin(next),
            _ => {}
        }
    }

    /// Returns how many of `ended` completions the job's thread takes now. It takes no more until each of them is
    /// reported ([`completed`](Self::completed)).
    pub fn takes(&mut self, ended: u32, outstanding: u32) -> u32 {
        let Some(batches) = self.job.batches else { return ended };
        self.taken = batches.takes(ended, outstanding, outstanding >= self.limit);
        if self.taken > 0 && outstanding - self.taken <= batches.low {
            self.limit = self.job.depth;
        }
        self.taken
    }

    /// Returns true if the queue is being filled.
    #[inline]
    fn has_room(&mut self, outstanding: u32) -> bool {
        let room = outstanding < self.limit;
        match self.job.batches {
            None => {}
            Some(_) if room => self.limit = self.job.depth,
            Some(Batches { low, .. }) if outstanding - self.taken >= self.limit => {
                self.limit = low.saturating_add(1).min(self.job.depth);
            }
            Some(_) => {}
        }
        room
    }

    fn poll_carefully(&mut self, now: Time, outstanding: u32) -> Poll {
        // Each iteration either answers or moves to the next phase; a pass that issues nothing ends the job.
        loop {
            let answer = match self.phase {
                Phase::Idle | Phase::Flushing | Phase::LastFlush(_) => Some(Poll::Blocked),
                Phase::Done => Some(Poll::Done),
                Phase::Draining(_) if outstanding > 0 => Some(Poll::Blocked),
                Phase::Draining(next) => self.drained(next, now),
                Phase::Running => self.run(now, outstanding),
            };
            if let Some(answer) = answer {
                return answer;
            }
        }
    }

    /// Checks everything that can hold a request back; returns none if the pass has ended.
    fn run(&mut self, now: Time, outstanding: u32) -> Option<Poll> {
        if now >= self.deadline {
            self.phase = Phase::Draining(Next::Done);
            return None;
        }
        if now < self.not_before {
            return Some(Poll::At(self.not_before.min(self.deadline)));
        }
        if self.ramping && now >= self.ramp_until {
            self.ramping = false;
            self.progress.requests = 0;
        }
        let room = self.has_room(outstanding);
        if let Some(thinker) = &mut self.thinker {
            match thinker.think(now, outstanding, room, self.progress.issued, self.progress.completed) {
                Thought::Go => {}
                Thought::Drain => return Some(Poll::Blocked),
                Thought::Sleep(until) => {
                    self.not_before = until;
                    return Some(Poll::At(until.min(self.deadline)));
                }
            }
        }
        if !room {
            return Some(Poll::Blocked);
        }
        if self.progress.limit_reached(&self.job) {
            self.phase = Phase::Draining(self.progress.end_pass(&self.job, false));
            return None;
        }
        if self.flush_due {
            self.flush_due = false;
            if self.job.flushes.blocking {
                self.phase = Phase::Flushing;
            }
            return Some(Poll::Issue(self.flush(now)));
        }
        self.issue(now)
    }

    fn issue(&mut self, now: Time) -> Option<Poll> {
        let drawn = self.draw_direction();
        let (d, due) = match &self.pace {
            None => (drawn, now),
            Some(pace) => {
                let (d, due) = pace.choose(drawn, self.other(drawn), now.since(self.started));
                if pace.caps(d) { (d, later(self.started, due)) } else { (d, now) }
            }
        };
        if due > now {
            self.held = Some(d);
            return Some(Poll::At(due.min(self.deadline)));
        }
        // A pause is caused by the application: requests that fell due during it are not late before it ends.
        let at =
            self.thinker.as_ref().map_or(due, |t| if t.awake() <= now { due.max(t.awake()) } else { due });
        let request = match self.place(d, at) {
            Some(request) => request,
            None if self.progress.pass_bytes > 0 && self.job.limits.time_based => {
                // fio continues within the same pass: no drain, no flush, and its generators are not reseeded.
                self.progress.pass_bytes = 0;
                self.places.restart(&mut self.streams);
                self.held = Some(d);
                return None;
            }
            None => {
                self.phase = Phase::Draining(self.progress.end_pass(&self.job, true));
                return None;
            }
        };
        if let Some(pace) = &mut self.pace {
            pace.issued(d, request.bytes);
        }
        if let Some(thinker) = &mut self.thinker {
            thinker.issued();
        }
        self.flush_due = d == Direction::Write && self.progress.flush_due(&self.job);
        self.relax();
        Some(Poll::Issue(request))
    }

    /// Draws the place of a request and counts it.
    #[inline]
    fn place(&mut self, d: Direction, at: Time) -> Option<IoRequest> {
        let pair = self.job.access == Access::TrimWrite;
        let extent = match self.trimmed {
            Some(extent) if pair && d == Direction::Write => {
                self.trimmed = None;
                extent
            }
            _ => {
                let extent = self.places.next(d, &self.job, &mut self.streams)?;
                if pair {
                    self.trimmed = Some(extent);
                }
                extent
            }
        };
        self.progress.count(self.job.access, d, extent.bytes);
        self.unflushed |= d == Direction::Write;
        Some(IoRequest {
            at,
            op: d.op(),
            offset: extent.offset,
            bytes: extent.bytes,
            flow: self.job.flow,
            fua: self.job.fua && d == Direction::Write,
        })
    }

    #[inline]
    fn draw_direction(&mut self) -> Direction {
        if let Some(held) = self.held.take() {
            return held;
        }
        match self.job.access {
            Access::Read => Direction::Read,
            Access::Write => Direction::Write,
            Access::Trim => Direction::Trim,
            Access::TrimWrite if self.trimmed.is_some() => Direction::Write,
            Access::TrimWrite => Direction::Trim,
            Access::Mixed { read_percent } => {
                if self.direction.percent() <= read_percent {
                    Direction::Read
                } else {
                    Direction::Write
                }
            }
        }
    }

    /// Returns the direction that may replace `d` when `d` is ahead of its rate.
    fn other(&self, d: Direction) -> Option<Direction> {
        match (self.job.access, d) {
            (Access::Mixed { read_percent }, Direction::Read) if read_percent < 100 => Some(Direction::Write),
            (Access::Mixed { read_percent }, Direction::Write) if read_percent > 0 => Some(Direction::Read),
            _ => None,
        }
    }

    fn flush(&mut self, now: Time) -> IoRequest {
        self.unflushed = false;
        IoRequest { at: now, op: IoOp::Flush, offset: 0, bytes: 0, flow: self.job.flow, fua: false }
    }

    /// Opens the fast path of `poll` for as many requests as only the depth can hold back.
    fn relax(&mut self) {
        let flushes = &self.job.flushes;
        let paced = self.pace.is_some() || self.thinker.is_some();
        if !paced && flushes.fsync + flushes.fdatasync == 0 && !self.ramping {
            self.carefree_until = self.deadline;
            self.budget = self.progress.carefree_requests(&self.job);
        }
    }

    /// Handles the empty queue at the end of a pass: the flush, if one is due, then the next phase.
    fn drained(&mut self, next: Next, now: Time) -> Option<Poll> {
        if self.job.flushes.at_end && self.unflushed {
            self.phase = Phase::LastFlush(next);
            return Some(Poll::Issue(self.flush(now)));
        }
        self.begin(next);
        None
    }

    fn begin(&mut self, next: Next) {
        self.progress.pass_bytes = 0;
        self.flush_due = false;
        self.phase = match next {
            Next::Done => Phase::Done,
            Next::Pass => {
                if self.job.repeat {
                    (self.streams, self.direction) = streams(self.seed);
                }
                self.held = None;
                self.trimmed = None;
                self.places.restart(&mut self.streams);
                Phase::Running
            }
        };
    }
}

fn streams(seed: u64) -> (PlaceStreams, Stream) {
    let new = |purpose| Stream::new(seed, purpose);
    let places = PlaceStreams {
        offset: new(Purpose::Offset),
        size: new(Purpose::Size),
        mixture: new(Purpose::Mixture),
    };
    (places, new(Purpose::Direction))
}

/// Returns `a + b`, saturating at the largest time.
fn later(a: Time, b: Time) -> Time {
    a.checked_add(b).unwrap_or(Time::MAX)
}
