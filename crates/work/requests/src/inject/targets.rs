//! What commands go to: drives or what stands before them, each with submission queues of its own.

use config::SleepSpec;
use engine::Time;
use proto::IoRequest;
use std::collections::VecDeque;

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
pub(super) struct Queue {
    /// Entries that are free.
    pub(super) room: u32,
    /// What waits for one, each with its source and the request that it is a fragment of, the first first.
    pub(super) waiting: VecDeque<(u16, IoRequest, u32)>,
    /// Commands that took an entry since the beginning.
    pub(super) issued: u64,
    /// Commands that have an entry, and that the host's software has not submitted yet.
    pub(super) preparing: u32,
}

/// Where the commands of a flow go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Path {
    /// Index into all queues.
    pub(super) at: u32,
    pub(super) target: u16,
    /// The number of the queue, and that of the flow, among those of the target.
    pub(super) queue: u16,
    pub(super) number: u16,
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
pub(super) struct Targets {
    targets: Vec<Target>,
    /// The queues of one target after those of the other.
    pub(super) queues: Vec<Queue>,
}

impl Targets {
    pub(super) fn new(targets: &[Queues]) -> Targets {
        let mut made = Targets { targets: Vec::with_capacity(targets.len()), queues: Vec::new() };
        for queues in targets {
            let (first, count, depth) = (made.queues.len() as u32, queues.count.max(1), queues.depth.max(1));
            made.targets.push(Target { first, count, depth, flows: 0, before: 0 });
            let queue = |_| Queue { room: depth, waiting: VecDeque::new(), issued: 0, preparing: 0 };
            made.queues.extend((0..count).map(queue));
        }
        made
    }

    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }

    /// A flow comes to a target that numbers so many apart: it takes the next of the target's queues.
    pub(super) fn open(&mut self, target: u16, flows: u16) -> Path {
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
    pub(super) fn inside(&self, target: u16) -> u64 {
        self.of(target).map(|(queue, taken)| taken - u64::from(queue.preparing)).sum()
    }

    /// Commands that have had an entry and have it no more.
    fn answered(&self, target: u16) -> u64 {
        self.of(target).map(|(queue, taken)| queue.issued - taken).sum()
    }

    /// Answers of a target in the measured window.
    pub(super) fn answered_in_window(&self, target: u16) -> u64 {
        self.answered(target) - self.targets[usize::from(target)].before
    }

    /// Starts the measured window.
    pub(super) fn reset(&mut self) {
        for target in 0..self.targets.len() {
            self.targets[target].before = self.answered(target as u16);
        }
    }
}
