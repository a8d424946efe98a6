//! Flows as the injector knows them: opened when they are first seen, named at the end; with their rate floors, and threads
//! that submit and complete in batches.

use super::super::FlowStats;
use super::{Event, FLOWS, Flow, Injector, Out, Pending, UNSEEN};
use crate::fio::{Floors, Guards};
use engine::{Cx, Time};
use proto::{Batches, IoOp, IoRequest};
use std::collections::VecDeque;

impl Injector {
    /// A source's flow as the injector knows it; it is opened when it is first seen.
    #[inline]
    pub(super) fn flow(&mut self, source: u16, flow: u16, cx: &mut impl Cx<Event, Out>) -> Flow {
        let known = &self.sources[usize::from(source)].flows;
        match known.get(usize::from(flow)) {
            Some(known) if known.index != UNSEEN.index => *known,
            _ => self.open(source, flow, cx),
        }
    }

    #[cold]
    fn open(&mut self, source: u16, flow: u16, cx: &mut impl Cx<Event, Out>) -> Flow {
        if self.flows.len() < FLOWS {
            self.flows.push(FlowStats::default());
        }
        // The last one is shared by all that come later.
        let index = (self.flows.len() - 1) as u16;
        let running = &mut self.sources[usize::from(source)];
        let target = running.target + running.source.target(flow);
        let path = self.targets.open(target, FLOWS as u16);
        self.floors.open(index, running.source.guards(flow));
        let mut opened = Flow { index, thread: NO_THREAD, path };
        let batches = running.source.batches(flow);
        if let Some(advice) = running.source.advice(flow) {
            cx.emit(Out::Open { target, flow: path.number, batches, advice });
        } else if let Some(batches) = batches {
            opened.thread = running.in_batches.len() as u16;
            running.in_batches.push(Thread::new(flow, &batches));
        }
        if running.flows.len() <= usize::from(flow) {
            running.flows.resize(usize::from(flow) + 1, UNSEEN);
            running.threads.resize(usize::from(flow) + 1, Time::ZERO);
        }
        running.flows[usize::from(flow)] = opened;
        opened
    }

    /// Gives the flows what their sources know of them by now: names, and which are open loops.
    pub fn name_flows(&mut self) {
        for running in &self.sources {
            let names = running.source.flows();
            let seen = running.flows.iter().enumerate().filter(|(_, flow)| flow.index != UNSEEN.index);
            for (number, Flow { index, path, .. }) in seen {
                let shared = usize::from(*index) == FLOWS - 1;
                let name = names.get(number).filter(|_| !shared).cloned();
                let flow = &mut self.flows[usize::from(*index)];
                flow.name = name.unwrap_or_else(|| "other".into());
                flow.target = path.target;
                flow.open = !shared && running.source.is_open(number as u16);
            }
        }
    }
}

// Rate floors of the flows that have some.

/// Rate floors by the injector's number of the flow; empty if none has any.
#[derive(Debug, Default)]
pub(super) struct FloorsOfFlows(Vec<Option<Floors>>);

impl FloorsOfFlows {
    /// A flow is opened. The last number is shared by all that come later, and has none.
    pub(super) fn open(&mut self, index: u16, guards: Option<&Guards>) {
        let Some(floors) = guards.and_then(Floors::of) else { return };
        let at = usize::from(index);
        if at < FLOWS - 1 {
            self.0.resize(self.0.len().max(at + 1), None);
            self.0[at] = Some(floors);
        }
    }

    /// A request of a flow has completed.
    #[inline]
    pub(super) fn completed(&mut self, index: u16, request: &IoRequest, now: Time) {
        if let Some(Some(floors)) = self.0.get_mut(usize::from(index)) {
            floors.completed(request, now);
        }
    }

    /// Starts every first cycle anew.
    pub(super) fn reset(&mut self, now: Time) {
        self.0.iter_mut().flatten().for_each(|floors| floors.reset(now));
    }

    pub(super) fn of(&self, index: u16) -> Option<&Floors> {
        self.0.get(usize::from(index))?.as_ref()
    }
}

// Threads that submit requests and take completions in batches.
//
// A request that such a thread has drawn is **gathered** until its batch is complete or the thread has nothing more to submit. A completion
// that has come **waits** until the thread takes it; the life of the request goes on until then.

/// The flow has no such thread.
pub(super) const NO_THREAD: u16 = u16::MAX;

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
        (self.flow.thread != NO_THREAD && !alone).then_some(usize::from(self.flow.thread))
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
