//! Flows of the injector: opened when first seen, named at the end; with their rate floors, and with threads that
//! submit and complete in batches.

use super::super::FlowStats;
use super::{Event, FLOWS, Flow, Injector, Out, Pending, UNSEEN};
use crate::fio::{Floors, Guards};
use engine::{Cx, Time};
use proto::{Batches, IoOp, IoRequest};
use std::collections::VecDeque;

impl Injector {
    /// Returns the injector's flow of a source's flow, which is opened when it is first seen.
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
        // The last flow is shared by all later ones.
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

    /// Updates the flows from their sources: names, and which are open loops.
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

// Rate floors of flows.

/// Rate floors by the injector's flow number; empty if no flow has any.
#[derive(Debug, Default)]
pub(super) struct FloorsOfFlows(Vec<Option<Floors>>);

impl FloorsOfFlows {
    /// Opens a flow. The last number is shared by all later flows and has no floors.
    pub(super) fn open(&mut self, index: u16, guards: Option<&Guards>) {
        let Some(floors) = guards.and_then(Floors::of) else { return };
        let at = usize::from(index);
        if at < FLOWS - 1 {
            self.0.resize(self.0.len().max(at + 1), None);
            self.0[at] = Some(floors);
        }
    }

    /// Counts a completed request of a flow.
    #[inline]
    pub(super) fn completed(&mut self, index: u16, request: &IoRequest, now: Time) {
        if let Some(Some(floors)) = self.0.get_mut(usize::from(index)) {
            floors.completed(request, now);
        }
    }

    /// Restarts every first cycle.
    pub(super) fn reset(&mut self, now: Time) {
        self.0.iter_mut().flatten().for_each(|floors| floors.reset(now));
    }

    pub(super) fn of(&self, index: u16) -> Option<&Floors> {
        self.0.get(usize::from(index))?.as_ref()
    }
}

// Threads that submit requests and take completions in batches.
//
// A request drawn by such a thread is **gathered** until its batch is complete or the thread has nothing more to
// submit. A completion **waits** until the thread takes it; the request lives until then.

/// Marker for a flow without such a thread.
pub(super) const NO_THREAD: u16 = u16::MAX;

/// Thread of a flow.
pub(super) struct Thread {
    /// Flow number in the source.
    flow: u16,
    /// Number of requests per submission.
    submit: u32,
    /// Requests drawn and not yet submitted, in order.
    gathered: Vec<u32>,
    /// Ended requests that the thread has not taken, in order.
    ended: VecDeque<u32>,
    /// Number of completions left in the batch that the thread works on.
    taking: u32,
}

impl Thread {
    pub(super) fn new(flow: u16, batches: &Batches) -> Thread {
        let submit = batches.submit;
        Thread { flow, submit, gathered: Vec::new(), ended: VecDeque::new(), taking: 0 }
    }
}

impl Pending {
    /// Returns the number of the thread that takes the request in batches, if any. Flushes and fragmented requests
    /// are submitted and taken individually.
    #[inline]
    pub(super) fn thread(&self) -> Option<usize> {
        let alone = self.request.op == IoOp::Flush || self.whole != super::super::NONE;
        (self.flow.thread != NO_THREAD && !alone).then_some(usize::from(self.flow.thread))
    }
}

impl Injector {
    /// Gathers a request of such a thread, which has its entry in a queue.
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

    /// Queues an ended request for the thread that takes it.
    #[cold]
    pub(super) fn wait_for_thread(&mut self, tag: u32, thread: usize, cx: &mut impl Cx<Event, Out>) {
        let source = self.pending[tag].source;
        self.sources[usize::from(source)].in_batches[thread].ended.push_back(tag);
        self.settle(source, cx);
    }

    /// Counts a request that was taken and reported to its source. Fragmented requests belong to no batch and are not
    /// counted.
    #[cold]
    pub(super) fn took(&mut self, source: u16, thread: usize) {
        let taking = &mut self.sources[usize::from(source)].in_batches[thread].taking;
        *taking = taking.saturating_sub(1);
    }

    /// Lets the idle threads of a source, which have drawn all they could, submit what they have gathered and take
    /// what they wait for.
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

    /// Takes a batch for an idle thread, if it wants one.
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
