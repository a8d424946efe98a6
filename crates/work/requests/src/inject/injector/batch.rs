//! Threads that submit requests and take completions in batches.
//!
//! A request that such a thread has drawn is **gathered** until its batch is complete or the thread has nothing more to submit. A completion
//! that has come **waits** until the thread takes it; the life of the request goes on until then.

use super::{Event, Injector, Out, Pending};
use engine::{Cx, Time};
use proto::{Batches, IoOp};
use std::collections::VecDeque;

/// The flow has no such thread.
pub(super) const NONE: u16 = u16::MAX;

/// The thread of a flow.
pub(super) struct Thread {
    /// The source's number of the flow.
    flow: u16,
    /// Requests of a submission.
    submit: u32,
    /// Requests that it has drawn and not submitted, in order.
    gathered: Vec<u32>,
    /// Requests that have ended and that it has not taken, in order.
    ended: VecDeque<u32>,
    /// Completions of the batch that it has taken and is at work on.
    taking: u32,
}

impl Thread {
    pub(super) fn new(flow: u16, batches: &Batches) -> Thread {
        let submit = batches.submit;
        Thread { flow, submit, gathered: Vec::new(), ended: VecDeque::new(), taking: 0 }
    }
}

impl Pending {
    /// The number of the thread that takes it with others, if there is one. Flushes and requests in fragments are submitted and taken by
    /// themselves.
    #[inline]
    pub(super) fn thread(&self) -> Option<usize> {
        let alone = self.request.op == IoOp::Flush || self.whole != super::super::NONE;
        (self.flow.thread != NONE && !alone).then_some(usize::from(self.flow.thread))
    }
}

impl Injector {
    /// A request of such a thread has its entry in a queue.
    #[cold]
    pub(super) fn gather(&mut self, tag: u32, thread: usize, cx: &mut impl Cx<Event, Out>) {
        let Pending { source, flow, .. } = self.pending[tag];
        self.targets.queues[flow.path.at as usize].preparing += 1;
        let thread_of = &mut self.sources[usize::from(source)].in_batches[thread];
        thread_of.gathered.push(tag);
        if thread_of.gathered.len() >= thread_of.submit as usize {
            self.submit_gathered(source, thread, cx);
        }
    }

    fn submit_gathered(&mut self, source: u16, thread: usize, cx: &mut impl Cx<Event, Out>) {
        let gathered = &mut self.sources[usize::from(source)].in_batches[thread].gathered;
        let mut tags = std::mem::take(gathered);
        for tag in tags.drain(..) {
            if self.cost.submit == Time::ZERO {
                self.prepared(tag, cx);
            } else {
                cx.after(self.cost.submit, Event::Submit(tag));
            }
        }
        self.sources[usize::from(source)].in_batches[thread].gathered = tags;
    }

    /// A request has ended that such a thread takes.
    #[cold]
    pub(super) fn wait_for_thread(&mut self, tag: u32, thread: usize, cx: &mut impl Cx<Event, Out>) {
        let source = self.pending[tag].source;
        self.sources[usize::from(source)].in_batches[thread].ended.push_back(tag);
        self.settle(source, cx);
    }

    /// A request has been taken, and its source knows. One in fragments belongs to no batch, and is not counted on.
    #[cold]
    pub(super) fn took(&mut self, source: u16, thread: usize) {
        let taking = &mut self.sources[usize::from(source)].in_batches[thread].taking;
        *taking = taking.saturating_sub(1);
    }

    /// The threads of a source have drawn what they could: those that are not at work submit what they have gathered, and take what they wait for.
    pub(super) fn settle(&mut self, source: u16, cx: &mut impl Cx<Event, Out>) {
        let threads = self.sources[usize::from(source)].in_batches.len();
        for thread in 0..threads {
            let known = &self.sources[usize::from(source)].in_batches[thread];
            if known.taking == 0 && !known.gathered.is_empty() {
                self.submit_gathered(source, thread, cx);
            }
        }
        if std::mem::replace(&mut self.sources[usize::from(source)].settles, true) {
            return;
        }
        for thread in 0..threads {
            while self.take_batch(source, thread, cx) {}
        }
        self.sources[usize::from(source)].settles = false;
    }

    /// A thread that is not at work takes a batch, if it wants one.
    fn take_batch(&mut self, source: u16, thread: usize, cx: &mut impl Cx<Event, Out>) -> bool {
        let running = &mut self.sources[usize::from(source)];
        let known = &mut running.in_batches[thread];
        if known.taking > 0 || known.ended.is_empty() {
            return false;
        }
        known.taking = running.source.takes(known.flow, known.ended.len() as u32);
        let taken = known.taking;
        for _ in 0..taken {
            let known = &mut self.sources[usize::from(source)].in_batches[thread];
            let Some(tag) = known.ended.pop_front() else { break };
            let seen = self.sees(tag, cx.now());
            if seen == cx.now() {
                self.seen(tag, cx);
            } else {
                cx.after(seen.since(cx.now()), Event::Seen(tag));
            }
        }
        taken > 0
    }
}
