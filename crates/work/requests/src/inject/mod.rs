//! The component that issues requests and measures them: closed loops, open loops, several sources side by side, each
//! with its target.

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

// Recorded response times of requests.

/// Response times that a trace has for the requests it hands out, in picoseconds. Requests without one are not
/// counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Response times of reads.
    pub read: Histogram,
    /// Response times of writes, including zeroing writes.
    pub write: Histogram,
}

impl Recorded {
    /// Adds the response time of a request; trims and flushes are not kept.
    pub fn add(&mut self, op: IoOp, ps: u64) {
        match op {
            IoOp::Read => self.read.record(ps),
            IoOp::Write | IoOp::WriteZeroes => self.write.record(ps),
            IoOp::Trim | IoOp::Flush => {}
        }
    }
    /// Adds the response times of a different trace.
    pub fn merge(&mut self, other: &Recorded) {
        self.read.merge(&other.read);
        self.write.merge(&other.write);
    }
    /// Returns true if no response time was recorded.
    pub fn is_empty(&self) -> bool {
        self.read.count() + self.write.count() == 0
    }
}

// Measurements of one flow.

/// Measurements of one flow.
#[derive(Clone, Debug, Default)]
pub struct FlowStats {
    /// Name of the flow.
    pub name: String,
    /// Target that the flow submits to.
    pub target: u16,
    /// True for an open loop: requests arrive independently of the device.
    pub open: bool,
    /// Time span of activity.
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
    /// Returns reads, writes, deallocations, flushes.
    pub fn by_kind(&self) -> [&OpStats; 4] {
        [&self.read, &self.write, &self.trim, &self.flush]
    }

    /// Returns the statistics of one kind of request.
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

// Observers, which see requests without taking part and learn why they do not end.

/// A completed request with the times of its milestones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Number in the order in which requests were issued, from zero.
    pub id: u64,
    /// The request; `at` is its arrival time.
    pub request: IoRequest,
    /// Number of its flow in the injector.
    pub flow: u16,
    /// Time at which its source handed it out.
    pub issued: Time,
    /// Time at which the command went to the device.
    pub submitted: Time,
    /// Time at which the device answered.
    pub answered: Time,
    /// Time at which the application was notified.
    pub completed: Time,
}

/// Observer of every completion, warm-up included.
///
/// Observers cannot schedule anything: results are identical bit for bit with and without them.
pub trait Observer {
    /// Reports a completed request; `account` is that of its last command, if accounts are kept and its target gives
    /// one.
    fn completed(&mut self, seen: &Seen, account: Option<&Account>);
}

impl Seen {
    /// Returns the time from arrival to completion.
    pub fn latency(&self) -> Time {
        self.completed - self.request.at
    }
}

/// A request with the account of its command that finished last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Explained {
    /// The request.
    pub seen: Seen,
    /// Account of its waits inside the device; none if the target gave none, as for requests through the host's
    /// kernel.
    pub account: Option<Account>,
}

/// A request in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The request.
    pub request: IoRequest,
    /// Source of the request.
    pub source: u16,
    /// Time at which its source handed it out.
    pub issued: Time,
    /// Time at which the command went to the device, if it has.
    pub submitted: Option<Time>,
    /// Time at which the device answered, if it has.
    pub answered: Option<Time>,
}

// Requests that go to the device as several commands, because a trace's remap has separated their bytes.

/// Marker for commands that are not a fragment of a request.
const NONE: u32 = u32::MAX;

/// Measurements of requests that were split. They also count in their flows, as one request each.
#[derive(Default)]
pub struct Split {
    /// Statistics of split requests.
    pub requests: FlowStats,
    /// Statistics of their fragments, one command each.
    pub fragments: FlowStats,
    whole: Slab<Whole>,
}

/// A request with fragments outstanding or still to come.
struct Whole {
    /// First fragment, with the bytes of all.
    request: IoRequest,
    /// Number of fragments that have not completed.
    left: u32,
    /// True if more fragments follow.
    open: bool,
    issued: Option<Time>,
    submitted: Time,
}

/// A request whose last fragment has completed.
struct Ended {
    /// First fragment, with the bytes of all.
    request: IoRequest,
    /// Times at which the first fragment was issued and submitted.
    issued: Time,
    submitted: Time,
}

impl Split {
    /// Adds the next fragment of a request, [`NONE`] for the first; `more` says that others follow. Returns the
    /// request's index.
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

    /// Counts a completed fragment; returns the request if it was the last fragment.
    fn complete(&mut self, whole: u32, issued: Time, submitted: Time) -> Option<Ended> {
        let known = &mut self.whole[whole];
        known.left -= 1;
        // Fragments are issued in order, but the first need not complete first.
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

    /// Clears the measurements.
    fn reset(&mut self) {
        self.requests = FlowStats::default();
        self.fragments = FlowStats::default();
    }
}

// Sources of requests.

/// Answer of a source to a poll for its next request.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Issue this now. `at` is the arrival time, now or earlier.
    Issue(IoRequest),
    /// Issue this now: a fragment of a request whose other fragments follow, the last as [`Next::Issue`]. All have
    /// the `at` of the request, which completes when all fragments have.
    Part(IoRequest),
    /// No request before this time.
    At(Time),
    /// No request before one of the source's requests completes.
    Blocked,
    /// No more requests.
    Done,
}

/// A stream of requests.
///
/// Contract: the times of `poll` calls never decrease; after `Done` the answer is always `Done`; `Blocked` is
/// returned only while requests are outstanding.
pub trait Source {
    /// Returns the next request or fragment, given how many requests of this source are in flight.
    ///
    /// # Errors
    /// If the source's input turns out to be unusable.
    fn poll(&mut self, now: Time, outstanding: u32) -> Result<Next, Diagnostic>;
    /// Reports a completed request; for a fragmented request, the first fragment with the bytes of all.
    fn completed(&mut self, now: Time, request: &IoRequest);
    /// Returns how many of its requests may wait at the host for room in their submission queue; while that many
    /// wait, the source is not polled. A source that limits its outstanding requests needs no other limit.
    fn backlog(&self) -> u32 {
        u32::MAX
    }
    /// Returns the names of its flows so far; [`IoRequest::flow`] is an index into them.
    fn flows(&self) -> Vec<String>;
    /// Returns the target of a flow, relative to the target that the source was given.
    fn target(&self, _flow: u16) -> u16 {
        0
    }
    /// Returns true if a flow is an open loop: its requests arrive independently of the device.
    fn is_open(&self, _flow: u16) -> bool {
        false
    }
    /// Returns true if one thread issues and reaps all requests of a flow and needs time for each.
    fn has_thread(&self, _flow: u16) -> bool {
        false
    }
    /// Returns the batches in which the thread of a flow submits requests and takes completions, if not one by one.
    fn batches(&self, _flow: u16) -> Option<Batches> {
        None
    }
    /// Returns how many of `ended` completions such a thread takes now.
    fn takes(&mut self, _flow: u16, ended: u32) -> u32 {
        ended
    }
    /// Returns a flow's advice about upcoming reads, if its requests are system calls; its batches are then those of
    /// its calls.
    fn advice(&self, _flow: u16) -> Option<Advice> {
        None
    }
    /// Returns remarks for the user on how the source was read: skipped, moved, ignored.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
    /// Returns the recorded response times of its requests, if it is a recording that has them.
    fn recorded(&self) -> Option<&Recorded> {
        None
    }
    /// Returns the files that it accesses, at their places on the device; those of sources beside it as well.
    fn files(&self) -> &[LaidOut] {
        &[]
    }
    /// Returns the guards that would have ended a flow in fio, if any.
    fn guards(&self, _flow: u16) -> Option<&Guards> {
        None
    }
    /// Returns the requests read from a recording so far, if it is one and all have a place: their times never
    /// decrease.
    fn handed_out(&self) -> Option<u64> {
        None
    }
    /// Returns the share of the work done, if known.
    fn progress(&self) -> Option<f64> {
        None
    }
}

// Targets of commands: drives or components in front of them, each with its own submission queues.

/// Submission queues of a target. Flows are assigned to them round-robin, in the order of first appearance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queues {
    /// Number of queues.
    pub count: u16,
    /// Maximum commands outstanding in each: a command keeps its entry until it has completed, as in a driver.
    pub depth: u32,
}

impl Queues {
    /// A single queue that is never full: a memory port.
    pub const UNBOUNDED: Queues = Queues { count: 1, depth: u32::MAX };
}

/// Host software time per request, spent on the issuing thread's side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostCost {
    /// Time from arrival to submission.
    pub submit: Time,
    /// Time from the completion's interrupt until the application is notified.
    pub complete: Time,
    /// Thread time per request of a closed loop besides the latency, one request after the other.
    pub thread: Time,
    /// Sleep of the core of such a thread, if any.
    pub sleep: Option<SleepSpec>,
}

/// A submission queue as the host's driver knows it.
struct Queue {
    /// Number of free entries.
    room: u32,
    /// Requests that wait for an entry, in order, each with its source and the request of which it is a fragment.
    waiting: VecDeque<(u16, IoRequest, u32)>,
    /// Number of commands that took an entry since the beginning.
    issued: u64,
    /// Number of commands that have an entry and that the host's software has not submitted yet.
    preparing: u32,
}

/// Path of the commands of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Path {
    /// Index among all queues.
    at: u32,
    target: u16,
    /// Number of the queue and of the flow within the target.
    queue: u16,
    number: u16,
}

#[derive(Clone, Copy, Debug)]
struct Target {
    /// Index of its first queue among all.
    first: u32,
    count: u16,
    depth: u32,
    /// Number of flows seen.
    flows: u16,
    /// Number of answers before the measured window.
    before: u64,
}

/// Targets and their queues.
struct Targets {
    targets: Vec<Target>,
    /// Queues of all targets, concatenated.
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

    /// Opens a flow at a target that distinguishes `flows` flows: it takes the next of the target's queues.
    fn open(&mut self, target: u16, flows: u16) -> Path {
        let of = &mut self.targets[usize::from(target)];
        let number = of.flows;
        of.flows = (number + 1).min(flows - 1);
        let queue = number % of.count;
        Path { at: of.first + u32::from(queue), target, queue, number }
    }

    /// Returns the queues of a target, each with the number of taken entries.
    fn of(&self, target: u16) -> impl Iterator<Item = (&Queue, u64)> {
        let Target { first, count, depth, .. } = self.targets[usize::from(target)];
        let queues = self.queues[first as usize..][..usize::from(count)].iter();
        queues.map(move |queue| (queue, u64::from(depth - queue.room)))
    }

    /// Returns the commands that a target has not answered.
    fn inside(&self, target: u16) -> u64 {
        self.of(target).map(|(queue, taken)| taken - u64::from(queue.preparing)).sum()
    }

    /// Returns the commands that have released their entry.
    fn answered(&self, target: u16) -> u64 {
        self.of(target).map(|(queue, taken)| queue.issued - taken).sum()
    }

    /// Returns the answers of a target in the measured window.
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
