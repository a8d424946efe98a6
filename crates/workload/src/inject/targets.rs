//! What commands go to: drives or what stands before them, each with submission queues of its own.

use kernel::Time;
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
}

/// A submission queue as the host's driver knows it.
pub(super) struct Queue {
    /// Entries that are free.
    pub(super) room: u32,
    /// What waits for one, each with its source and the request that it is a fragment of, the first first.
    pub(super) waiting: VecDeque<(u16, IoRequest, u32)>,
    /// Its target, and its number there.
    pub(super) target: u16,
    pub(super) number: u16,
    /// Commands given to the target since the beginning, and answers that it has given.
    pub(super) submitted: u64,
    pub(super) answered: u64,
}

/// Where the commands of a flow go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Path {
    /// Index into all queues.
    pub(super) queue: u32,
    /// The flow's number among those of its target.
    pub(super) number: u16,
}

#[derive(Clone, Copy, Debug)]
struct Target {
    /// Its queues are these of all.
    first: u32,
    count: u16,
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
        for (target, queues) in targets.iter().enumerate() {
            let (first, count) = (made.queues.len() as u32, queues.count.max(1));
            made.targets.push(Target { first, count, flows: 0, before: 0 });
            made.queues.extend((0..count).map(|number| Queue {
                room: queues.depth.max(1),
                waiting: VecDeque::new(),
                target: target as u16,
                number,
                submitted: 0,
                answered: 0,
            }));
        }
        made
    }

    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }

    /// A flow comes to a target that numbers so many apart: it takes the next of the target's queues.
    pub(super) fn open(&mut self, target: u16, flows: u16) -> Path {
        let target = &mut self.targets[usize::from(target)];
        let number = target.flows;
        target.flows = (number + 1).min(flows - 1);
        Path { queue: target.first + u32::from(number % target.count), number }
    }

    fn of(&self, target: u16) -> impl Iterator<Item = &Queue> {
        let Target { first, count, .. } = self.targets[usize::from(target)];
        self.queues[first as usize..][..usize::from(count)].iter()
    }

    /// Commands that a target has and has not answered.
    pub(super) fn inside(&self, target: u16) -> u64 {
        self.of(target).map(|queue| queue.submitted - queue.answered).sum()
    }

    fn answered(&self, target: u16) -> u64 {
        self.of(target).map(|queue| queue.answered).sum()
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
