//! The part that issues requests and measures them: closed loops, open loops, several sources side by side,
//! each with its target.

pub mod explain;
mod injector;

pub use explain::Explain;
pub use injector::{Event, Injector, Out};

use crate::fio::{Guards, LaidOut};
use config::{Diagnostic, SleepSpec};
use engine::{Slab, Time};
use proto::{Account, Batches, IoOp, IoRequest, file::Advice};
use stats::{Histogram, OpStats, Span};
use std::collections::VecDeque;

// How long requests took where they were recorded.

/// Response times that a trace has of the requests it hands out, in picoseconds. Requests without one are not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Of reads.
    pub read: Histogram,
    /// Of writes, with those of zeroes.
    pub write: Histogram,
}

impl Recorded {
    /// Adds the response time of a request; those of trims and flushes are not kept.
    pub fn add(&mut self, op: IoOp, ps: u64) {
        match op {
            IoOp::Read => self.read.record(ps),
            IoOp::Write | IoOp::WriteZeroes => self.write.record(ps),
            IoOp::Trim | IoOp::Flush => {}
        }
    }
    /// Adds those of another trace.
    pub fn merge(&mut self, other: &Recorded) {
        self.read.merge(&other.read);
        self.write.merge(&other.write);
    }
    /// Whether none was recorded.
    pub fn is_empty(&self) -> bool {
        self.read.count() + self.write.count() == 0
    }
}

// What was measured of one flow.

/// Everything measured of one flow.
#[derive(Clone, Debug, Default)]
pub struct FlowStats {
    /// Its name.
    pub name: String,
    /// The target that it submits to.
    pub target: u16,
    /// Whether requests arrive at times of their own, whatever the device does.
    pub open: bool,
    /// When it was at work.
    pub span: Span,
    /// Reads.
    pub read: OpStats,
    /// Writes.
    pub write: OpStats,
    /// Deallocations and zeroing.
    pub trim: OpStats,
    /// Flushes.
    pub flush: OpStats,
}

impl FlowStats {
    /// Reads, writes, deallocations, flushes.
    pub fn by_kind(&self) -> [&OpStats; 4] {
        [&self.read, &self.write, &self.trim, &self.flush]
    }

    /// The part for one kind of request.
    #[inline]
    pub fn of(&mut self, op: IoOp) -> &mut OpStats {
        match op {
            IoOp::Read => &mut self.read,
            IoOp::Write => &mut self.write,
            IoOp::Trim | IoOp::WriteZeroes => &mut self.trim,
            IoOp::Flush => &mut self.flush,
        }
    }
}

// Looking on: who sees the requests without taking part, and who is told why they do not end.

/// A request that has completed, with the moments of its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Its number in the order in which requests were issued, from zero.
    pub id: u64,
    /// The request; `at` is when it arrived.
    pub request: IoRequest,
    /// The injector's number of its flow.
    pub flow: u16,
    /// When its source handed it out.
    pub issued: Time,
    /// When the command went to the device.
    pub submitted: Time,
    /// When the device had answered.
    pub answered: Time,
    /// When the application knew.
    pub completed: Time,
}

/// Looks on at every completion, warm-up included.
///
/// An observer cannot schedule anything: a result is the same bit for bit with it and without.
pub trait Observer {
    /// A request has completed; `account` is that of its last command, if accounts are kept and its target gives one.
    fn completed(&mut self, seen: &Seen, account: Option<&Account>);
}

impl Seen {
    /// From arrival to completion.
    pub fn latency(&self) -> Time {
        self.completed - self.request.at
    }
}

/// A request with the account of the command of it that ended last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Explained {
    /// The request.
    pub seen: Seen,
    /// What it waited for inside its device; none where nothing gave an account, as of requests through the host's kernel.
    pub account: Option<Account>,
}

/// A request in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The request.
    pub request: IoRequest,
    /// The source it came from.
    pub source: u16,
    /// When its source handed it out.
    pub issued: Time,
    /// When the command went to the device, if it has.
    pub submitted: Option<Time>,
    /// When the device answered, if it has.
    pub answered: Option<Time>,
}

// Requests that go to the device in several commands, because a trace's remap has put their bytes apart.

/// No request: what most commands are a fragment of.
const NONE: u32 = u32::MAX;

/// What was measured of requests that were split. They count in their flows too, as one request each.
#[derive(Default)]
pub struct Split {
    /// Such requests by themselves.
    pub requests: FlowStats,
    /// Their fragments, a command each.
    pub fragments: FlowStats,
    whole: Slab<Whole>,
}

/// A request of which fragments are to come or under way.
struct Whole {
    /// The first fragment, with the bytes of all.
    request: IoRequest,
    /// Fragments that have not completed.
    left: u32,
    /// Whether more are to come.
    open: bool,
    issued: Option<Time>,
    submitted: Time,
}

/// A request whose last fragment has completed.
struct Ended {
    /// The first fragment, with the bytes of all.
    request: IoRequest,
    /// When the first fragment was issued, and when it was submitted.
    issued: Time,
    submitted: Time,
}

impl Split {
    /// The next fragment of a request, [`NONE`] for the first; `more` says that others follow. The request's name.
    fn add(&mut self, whole: u32, fragment: IoRequest, more: bool) -> u32 {
        if whole == NONE {
            let first = Whole { request: fragment, left: 1, open: more, issued: None, submitted: Time::ZERO };
            return self.whole.insert(first);
        }
        let known = &mut self.whole[whole];
        known.request.bytes += fragment.bytes;
        known.left += 1;
        known.open = more;
        whole
    }

    /// A fragment has completed; the request, if it was the last.
    fn complete(&mut self, whole: u32, issued: Time, submitted: Time) -> Option<Ended> {
        let known = &mut self.whole[whole];
        known.left -= 1;
        // Fragments are issued in turn, but the first need not be the first to complete.
        let earlier = known.issued.is_none_or(|first| issued < first);
        if earlier {
            (known.issued, known.submitted) = (Some(issued), submitted);
        }
        if known.open || known.left > 0 {
            return None;
        }
        let ended = Ended { request: known.request, issued: known.issued?, submitted: known.submitted };
        self.whole.remove(whole);
        Some(ended)
    }

    /// Forgets what was measured.
    fn reset(&mut self) {
        self.requests = FlowStats::default();
        self.fragments = FlowStats::default();
    }
}

// Where requests come from.

/// What a source says when it is asked for its next request.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Issue this now. `at` is when it arrived, at the present or before.
    Issue(IoRequest),
    /// Issue this now: a fragment of a request whose others follow, the last of them as [`Next::Issue`]. All have the `at` of
    /// the request; it has completed when all of them have.
    Part(IoRequest),
    /// Nothing before this time.
    At(Time),
    /// Nothing before one of its requests completes.
    Blocked,
    /// Nothing ever again.
    Done,
}

/// A stream of requests.
///
/// Contract: `poll` is called with times that do not go back; after `Done` it says `Done` for ever; `Blocked` is said
/// only while requests are outstanding.
pub trait Source {
    /// The next request, or fragment of one, given how many requests of this source are in flight.
    ///
    /// # Errors
    /// If the input behind it turns out to be unusable.
    fn poll(&mut self, now: Time, outstanding: u32) -> Result<Next, Diagnostic>;
    /// One of its requests has completed; of one in fragments, the request is the first with the bytes of all.
    fn completed(&mut self, now: Time, request: &IoRequest);
    /// Requests of its own that may wait at the host for room in their submission queue; while so many do, it is not
    /// asked. A source that limits what it has outstanding needs no other limit.
    fn backlog(&self) -> u32 {
        u32::MAX
    }
    /// Names of its flows so far; [`IoRequest::flow`] is an index into them.
    fn flows(&self) -> Vec<String>;
    /// Which target a flow goes to, counted from the one that the source was given.
    fn target(&self, _flow: u16) -> u16 {
        0
    }
    /// Whether the requests of a flow arrive at times of their own, whatever the device does: an open loop.
    fn is_open(&self, _flow: u16) -> bool {
        false
    }
    /// Whether one thread issues and reaps all requests of a flow, and needs time of its own for each.
    fn has_thread(&self, _flow: u16) -> bool {
        false
    }
    /// The batches in which the thread of a flow submits its requests and takes their completions, if not one by one.
    fn batches(&self, _flow: u16) -> Option<Batches> {
        None
    }
    /// Completions that such a thread takes now, of `ended` that have come.
    fn takes(&mut self, _flow: u16, ended: u32) -> u32 {
        ended
    }
    /// What a flow says of its reads to come, if its requests are system calls: then its batches are those of its calls.
    fn advice(&self, _flow: u16) -> Option<Advice> {
        None
    }
    /// What a user must know about how it was read: skipped, moved, ignored.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
    /// How long its requests took where they were recorded, if it is a recording that says so.
    fn recorded(&self) -> Option<&Recorded> {
        None
    }
    /// The files that it goes over, where they lie on the device; those of sources beside it as well.
    fn files(&self) -> &[LaidOut] {
        &[]
    }
    /// What would have ended a flow elsewhere, if anything could.
    fn guards(&self, _flow: u16) -> Option<&Guards> {
        None
    }
    /// Requests that it has read from a recording so far, if it is one and all of them have a place: their times do not go back.
    fn handed_out(&self) -> Option<u64> {
        None
    }
    /// Share of the work done, if known.
    fn progress(&self) -> Option<f64> {
        None
    }
}

// What commands go to: drives or what stands before them, each with submission queues of its own.

/// The submission queues of a target. Its flows take them in turn, in the order in which they first appear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queues {
    /// How many.
    pub count: u16,
    /// Commands that may be outstanding in each: a command keeps its entry until it has completed, as in a driver.
    pub depth: u32,
}

impl Queues {
    /// One that is never full: a memory port.
    pub const UNBOUNDED: Queues = Queues { count: 1, depth: u32::MAX };
}

/// Host software time a request, spent on the issuing thread's side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostCost {
    /// From arrival to submission.
    pub submit: Time,
    /// From the completion's interrupt until the application knows.
    pub complete: Time,
    /// What the thread of a closed loop needs for a request beside its latency, one request after the other.
    pub thread: Time,
    /// Sleep of the core of such a thread, if it sleeps.
    pub sleep: Option<SleepSpec>,
}

/// A submission queue as the host's driver knows it.
struct Queue {
    /// Entries that are free.
    room: u32,
    /// What waits for one, each with its source and the request that it is a fragment of, the first first.
    waiting: VecDeque<(u16, IoRequest, u32)>,
    /// Commands that took an entry since the beginning.
    issued: u64,
    /// Commands that have an entry, and that the host's software has not submitted yet.
    preparing: u32,
}

/// Where the commands of a flow go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Path {
    /// Index into all queues.
    at: u32,
    target: u16,
    /// The number of the queue, and that of the flow, among those of the target.
    queue: u16,
    number: u16,
}

#[derive(Clone, Copy, Debug)]
struct Target {
    /// Its queues are these of all.
    first: u32,
    count: u16,
    depth: u32,
    /// Flows that it has seen.
    flows: u16,
    /// Answers that it gave before the measured window.
    before: u64,
}

/// All targets and their queues.
struct Targets {
    targets: Vec<Target>,
    /// The queues of one target after those of the other.
    queues: Vec<Queue>,
}

impl Targets {
    fn new(targets: &[Queues]) -> Targets {
        let mut made = Targets { targets: Vec::with_capacity(targets.len()), queues: Vec::new() };
        for queues in targets {
            let (first, count, depth) = (made.queues.len() as u32, queues.count.max(1), queues.depth.max(1));
            made.targets.push(Target { first, count, depth, flows: 0, before: 0 });
            let queue = |_| Queue { room: depth, waiting: VecDeque::new(), issued: 0, preparing: 0 };
            made.queues.extend((0..count).map(queue));
        }
        made
    }

    fn len(&self) -> usize {
        self.targets.len()
    }

    /// A flow comes to a target that numbers so many apart: it takes the next of the target's queues.
    fn open(&mut self, target: u16, flows: u16) -> Path {
        let of = &mut self.targets[usize::from(target)];
        let number = of.flows;
        of.flows = (number + 1).min(flows - 1);
        let queue = number % of.count;
        Path { at: of.first + u32::from(queue), target, queue, number }
    }

    /// The queues of a target, each with the entries that are taken.
    fn of(&self, target: u16) -> impl Iterator<Item = (&Queue, u64)> {
        let Target { first, count, depth, .. } = self.targets[usize::from(target)];
        let queues = self.queues[first as usize..][..usize::from(count)].iter();
        queues.map(move |queue| (queue, u64::from(depth - queue.room)))
    }

    /// Commands that a target has and has not answered.
    fn inside(&self, target: u16) -> u64 {
        self.of(target).map(|(queue, taken)| taken - u64::from(queue.preparing)).sum()
    }

    /// Commands that have had an entry and have it no more.
    fn answered(&self, target: u16) -> u64 {
        self.of(target).map(|(queue, taken)| queue.issued - taken).sum()
    }

    /// Answers of a target in the measured window.
    fn answered_in_window(&self, target: u16) -> u64 {
        self.answered(target) - self.targets[usize::from(target)].before
    }

    /// Starts the measured window.
    fn reset(&mut self) {
        for target in 0..self.targets.len() {
            self.targets[target].before = self.answered(target as u16);
        }
    }
}
