//! The injector: asks its sources, submits commands to their targets, measures completions.

mod flows;
mod look;

use self::flows::{FloorsOfFlows, Thread};
use super::explain::Explain;
use super::{
    Ended, Explained, FlowStats, HostCost, NONE, Next, Observer, Path, Queues, Seen, Source, Split, Targets,
};
use config::Diagnostic;
use engine::{Cx, Mutant, Slab, Time, planted_nth};
use proto::file::Advice;
use proto::{Account, Batches, Command, Completion, IoRequest, Status};
use stats::{Little, Series};

engine::events! {
    /// The injector's own events.
    pub enum Event {
        /// A source wants to be asked again.
        Ask(u16),
        /// The host's software has prepared a command.
        Submit(u32),
        /// The host's software has seen a completion.
        Seen(u32),
        /// The thread that saw it is free for its next request.
        Free(u32),
    }
}

/// Messages that the injector sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command for a target.
    Submit {
        /// Which of them.
        target: u16,
        /// The command. Its flow, and its placement with it, counts those of this target.
        command: Command,
    },
    /// How a flow is about to go about a file of a kernel.
    Open {
        /// Which target the kernel's door is.
        target: u16,
        /// The flow, counted as those of its commands are.
        flow: u16,
        /// The batches in which it submits requests and takes completions, if not one by one.
        batches: Option<Batches>,
        /// What it says of its reads to come.
        advice: Advice,
    },
}

/// A flow of a source as the injector knows it.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Index into the injector's flows, [`UNSEEN`] at first.
    index: u16,
    /// Index into the threads of its source that work in batches, or [`flows::NO_THREAD`].
    thread: u16,
    path: Path,
}

const UNSEEN: Flow =
    Flow { index: u16::MAX, thread: flows::NO_THREAD, path: Path { at: 0, target: 0, queue: 0, number: 0 } };

struct Running {
    source: Box<dyn Source>,
    /// Where its requests go.
    target: u16,
    /// Requests in flight.
    outstanding: u32,
    /// The request whose next fragment is to come, [`NONE`] as a rule.
    open: u32,
    /// Requests that wait for room in their queues.
    held: u32,
    /// Time of the pending `Ask`.
    asked: Option<Time>,
    /// By the source's flow number.
    flows: Vec<Flow>,
    /// Until when the thread of each flow is at work, by the same number; zero where there is none.
    threads: Vec<Time>,
    /// Threads that work in batches, and whether they are being looked at.
    in_batches: Vec<Thread>,
    settles: bool,
    done: bool,
    /// Requests that it has issued, the latest arrival among them, and how many arrived before one that was issued earlier.
    taken: u64,
    latest: Time,
    early: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    request: IoRequest,
    id: u64,
    source: u16,
    /// Its account is kept until its answer is seen.
    explained: bool,
    flow: Flow,
    /// The request that it is a fragment of, or [`NONE`].
    whole: u32,
    issued: Time,
    submitted: Time,
    answered: Time,
}

/// Flows that are measured apart; the rest share the last one.
const FLOWS: usize = 1024;

/// Issues requests and measures them.
pub struct Injector {
    sources: Vec<Running>,
    pending: Slab<Pending>,
    /// Requests that have been seen, and whose threads are still at work on them, each with its source.
    threads: Slab<(u16, IoRequest)>,
    cost: HostCost,
    targets: Targets,
    /// What was measured, by flow.
    pub flows: Vec<FlowStats>,
    floors: FloorsOfFlows,
    /// Completions of all flows over time.
    pub series: Series,
    /// When the last request of the window completed.
    pub last_completion: Time,
    /// The longest that a request of the window was late when it was issued: for want of room in its submission queue, or because
    /// the depth of its own job was reached when it was due.
    pub held_max: Time,
    /// Commands issued since the beginning: one a request, several for one in fragments.
    pub issued: u64,
    /// Commands completed since the beginning.
    pub completed: u64,
    /// Requests ended before the measured window.
    before: u64,
    /// Requests completed since the beginning.
    pub requests: u64,
    /// Requests that were split, and their fragments.
    pub split: Split,
    /// Requests whose completion reported an error.
    pub errors: u64,
    /// Commands in flight, for Little's law.
    pub in_flight: Little,
    /// Why it stopped early.
    pub failure: Option<Diagnostic>,
    /// Looks on at every completion.
    pub observer: Option<Box<dyn Observer>>,
    /// What slow requests waited for, if that is kept.
    pub explain: Option<Box<Explain>>,
}

impl Injector {
    /// An injector without work.
    pub fn idle() -> Injector {
        Injector::new(Vec::new(), Queues::UNBOUNDED, HostCost::default())
    }

    /// An injector over sources that submit to one target's queues.
    pub fn new(sources: Vec<Box<dyn Source>>, queues: Queues, cost: HostCost) -> Injector {
        Injector::over(sources.into_iter().map(|source| (source, 0)).collect(), vec![queues], cost)
    }

    /// An injector over sources that submit each to the queues of its target, an index into `targets`.
    ///
    /// # Panics
    /// If a source's target is none of them.
    pub fn over(sources: Vec<(Box<dyn Source>, u16)>, targets: Vec<Queues>, cost: HostCost) -> Injector {
        let running = |(source, target): (Box<dyn Source>, u16)| {
            assert!(usize::from(target) < targets.len(), "target {target} of {}", targets.len());
            let (flows, threads) = (Vec::new(), Vec::new());
            Running {
                source,
                target,
                outstanding: 0,
                open: NONE,
                held: 0,
                asked: None,
                flows,
                threads,
                in_batches: Vec::new(),
                settles: false,
                done: false,
                taken: 0,
                latest: Time::ZERO,
                early: 0,
            }
        };
        Injector {
            sources: sources.into_iter().map(running).collect(),
            flows: Vec::new(),
            floors: FloorsOfFlows::default(),
            series: Series::of_run(),
            last_completion: Time::ZERO,
            held_max: Time::ZERO,
            pending: Slab::default(),
            threads: Slab::default(),
            cost,
            targets: Targets::new(&targets),
            issued: 0,
            completed: 0,
            before: 0,
            requests: 0,
            split: Split::default(),
            errors: 0,
            in_flight: Little::new(Time::ZERO),
            failure: None,
            observer: None,
            explain: None,
        }
    }

    /// Asks every source for its first requests.
    pub fn start(&mut self, cx: &mut impl Cx<Event, Out>) {
        for source in 0..self.sources.len() {
            self.ask(source as u16, cx);
        }
    }

    /// Runs one of the injector's own events.
    #[inline]
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Ask(source) => {
                self.sources[usize::from(source)].asked = None;
                self.ask(source, cx);
            }
            Event::Submit(tag) => self.prepared(tag, cx),
            Event::Seen(tag) => self.seen(tag, cx),
            Event::Free(tag) => self.free(tag, cx),
        }
    }

    /// Takes from a source what it has to issue now.
    #[inline]
    fn ask(&mut self, source: u16, cx: &mut impl Cx<Event, Out>) {
        self.draw(source, cx);
        if !self.sources[usize::from(source)].in_batches.is_empty() {
            self.settle(source, cx);
        }
    }

    #[inline]
    fn draw(&mut self, source: u16, cx: &mut impl Cx<Event, Out>) {
        loop {
            let running = &mut self.sources[usize::from(source)];
            if running.held >= running.source.backlog() {
                return;
            }
            match running.source.poll(cx.now(), running.outstanding) {
                Ok(Next::Issue(request)) if running.open == NONE => {
                    running.outstanding += 1;
                    running.takes(request.at);
                    self.issue(source, request, NONE, cx);
                }
                Ok(Next::Issue(last)) => {
                    running.takes(last.at);
                    self.part(source, last, false, cx);
                }
                Ok(Next::Part(request)) => self.part(source, request, true, cx),
                Ok(Next::At(time)) => {
                    // An earlier call may already have been arranged; the source will say the same again then.
                    if running.asked.is_none_or(|asked| asked > time) {
                        running.asked = Some(time);
                        cx.after(time.since(cx.now()), Event::Ask(source));
                    }
                    return;
                }
                Ok(Next::Blocked) => return,
                Ok(Next::Done) => {
                    running.done = true;
                    return;
                }
                Err(diagnostic) => {
                    running.done = true;
                    self.failure.get_or_insert(diagnostic);
                    return;
                }
            }
        }
    }

    /// The next fragment of a request.
    fn part(&mut self, source: u16, fragment: IoRequest, more: bool, cx: &mut impl Cx<Event, Out>) {
        let running = &mut self.sources[usize::from(source)];
        running.outstanding += u32::from(running.open == NONE);
        let whole = self.split.add(running.open, fragment, more);
        running.open = if more { whole } else { NONE };
        self.issue(source, fragment, whole, cx);
    }

    /// Puts a request, or a fragment of `whole`, into its queue; if that is full, it waits at the host.
    #[inline]
    fn issue(&mut self, source: u16, request: IoRequest, whole: u32, cx: &mut impl Cx<Event, Out>) {
        let flow = self.flow(source, request.flow, cx);
        let queue = &mut self.targets.queues[flow.path.at as usize];
        if queue.room == 0 {
            queue.waiting.push_back((source, request, whole));
            self.sources[usize::from(source)].held += 1;
            return;
        }
        queue.room -= 1;
        queue.issued += 1;
        let now = cx.now();
        let id = self.issued;
        self.issued += 1;
        self.held_max = self.held_max.max(now.since(request.at));
        self.in_flight.arrive(now);
        let tag = self.pending.insert(Pending {
            request,
            id,
            source,
            explained: false,
            flow,
            whole,
            issued: now,
            submitted: now,
            answered: now,
        });
        if let Some(thread) = self.pending[tag].thread() {
            self.gather(tag, thread, cx);
        } else if self.cost.submit == Time::ZERO {
            self.submit(tag, cx);
        } else {
            self.targets.queues[flow.path.at as usize].preparing += 1;
            cx.after(self.cost.submit, Event::Submit(tag));
        }
    }

    /// The host's software has prepared a command.
    #[inline]
    fn prepared(&mut self, tag: u32, cx: &mut impl Cx<Event, Out>) {
        self.targets.queues[self.pending[tag].flow.path.at as usize].preparing -= 1;
        self.submit(tag, cx);
    }

    #[inline]
    fn submit(&mut self, tag: u32, cx: &mut impl Cx<Event, Out>) {
        let pending = &mut self.pending[tag];
        pending.submitted = cx.now();
        let Pending { request, flow: Flow { path, .. }, .. } = *pending;
        let command = Command {
            fua: request.fua,
            queue: path.queue,
            flow: path.number,
            // Data of different flows dies at different times: a device with several streams keeps it apart.
            placement: path.number.min(u8::MAX.into()) as u8,
            ..Command::new(tag, request.op, request.offset, request.bytes)
        };
        cx.emit(Out::Submit { target: path.target, command });
    }

    /// The target of a command has answered.
    #[inline]
    pub fn complete(&mut self, completion: Completion, cx: &mut impl Cx<Event, Out>) {
        self.complete_with(completion, || None, cx);
    }

    /// The target of a command has answered, and gives an account of it if it is asked.
    #[inline]
    pub fn complete_with(
        &mut self,
        completion: Completion,
        account: impl FnOnce() -> Option<Account>,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let thread = self.pending[completion.tag].thread();
        // When a thread takes a batch is not known before it does.
        let seen = if thread.is_some() { cx.now() } else { self.sees(completion.tag, cx.now()) };
        let pending = &mut self.pending[completion.tag];
        pending.answered = cx.now();
        if let Some(explain) = &mut self.explain {
            let latency = seen - pending.request.at;
            if (thread.is_some()
                || self.observer.is_some()
                || explain.wants(pending.request.op, latency, pending.id))
                && let Some(account) = account()
            {
                explain.answered(completion.tag, account);
                pending.explained = true;
            }
        }
        let queue = pending.flow.path.at;
        self.errors += u64::from(completion.status != Status::Success);
        self.make_room(queue, cx);
        if let Some(thread) = thread {
            self.wait_for_thread(completion.tag, thread, cx);
        } else if seen == cx.now() {
            self.seen(completion.tag, cx);
        } else {
            cx.after(seen.since(cx.now()), Event::Seen(completion.tag));
        }
    }

    /// When the host's software sees a completion that has come now: the thread of a flow when it has done with those before.
    #[inline]
    fn sees(&mut self, tag: u32, now: Time) -> Time {
        let earliest = now + self.cost.complete;
        if self.cost.thread == Time::ZERO && self.cost.sleep.is_none() {
            return earliest;
        }
        let Pending { source, request, whole, .. } = self.pending[tag];
        // A fragment is seen with the others of its request: the thread works on the request.
        if whole != NONE || !self.has_thread(source, &request) {
            return earliest;
        }
        let until = &mut self.sources[usize::from(source)].threads[usize::from(request.flow)];
        // The core has been idle since its thread had done with the completion before.
        let wakes = self.cost.sleep.map_or(Time::ZERO, |sleep| sleep.wait(*until, now));
        let seen = (earliest + wakes).max(*until);
        *until = seen + self.cost.thread;
        seen
    }

    /// An entry of a queue is free: who has waited longest for one goes on.
    #[inline]
    fn make_room(&mut self, queue: u32, cx: &mut impl Cx<Event, Out>) {
        let queue = &mut self.targets.queues[queue as usize];
        queue.room += 1;
        if let Some((source, request, whole)) = queue.waiting.pop_front() {
            self.sources[usize::from(source)].held -= 1;
            self.issue(source, request, whole, cx);
            self.ask(source, cx);
        }
    }

    #[inline]
    fn seen(&mut self, tag: u32, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let pending = self.pending[tag];
        self.pending.remove(tag);
        self.in_flight.depart(now, pending.issued);
        self.completed += 1;
        self.last_completion = now;
        let ended = if pending.whole == NONE {
            self.ended(&pending, tag, now);
            Some(pending.request)
        } else {
            self.fragment_ended(&pending, tag, now)
        };
        if let Some(request) = ended {
            if self.cost.thread > Time::ZERO && self.has_thread(pending.source, &request) {
                let seen = self.threads.insert((pending.source, request));
                cx.after(self.cost.thread, Event::Free(seen));
                return;
            }
            self.tell(pending.source, &request, now);
        }
        self.ask(pending.source, cx);
    }

    /// The thread has done what it had to do for a request that it has seen.
    fn free(&mut self, seen: u32, cx: &mut impl Cx<Event, Out>) {
        let (source, request) = self.threads[seen];
        self.threads.remove(seen);
        self.tell(source, &request, cx.now());
        self.ask(source, cx);
    }

    /// Tells a source that one of its requests has ended.
    #[inline]
    fn tell(&mut self, source: u16, request: &IoRequest, now: Time) {
        let running = &mut self.sources[usize::from(source)];
        running.outstanding -= 1;
        running.source.completed(now, request);
        let thread = running.flows[usize::from(request.flow)].thread;
        if thread != flows::NO_THREAD && request.op != proto::IoOp::Flush {
            self.took(source, usize::from(thread));
        }
    }

    fn has_thread(&self, source: u16, request: &IoRequest) -> bool {
        self.sources[usize::from(source)].source.has_thread(request.flow)
    }

    /// Measures a fragment, and its request, which it gives back, if it was the last.
    #[cold]
    fn fragment_ended(&mut self, pending: &Pending, tag: u32, now: Time) -> Option<IoRequest> {
        let Pending { request, whole, issued, submitted, answered, .. } = *pending;
        let device = answered - submitted;
        let fragments = self.split.fragments.of(request.op);
        fragments.record(request.bytes, submitted - request.at, device, now - request.at);
        let Some(Ended { request, issued, submitted }) = self.split.complete(whole, issued, submitted) else {
            // Only that of the last one is the request's.
            let _ = self.account(pending, tag);
            return None;
        };
        let requests = self.split.requests.of(request.op);
        requests.record(request.bytes, submitted - request.at, answered - submitted, now - request.at);
        self.ended(&Pending { request, issued, submitted, ..*pending }, tag, now);
        Some(request)
    }

    /// Measures a request.
    #[inline(always)]
    fn ended(&mut self, pending: &Pending, tag: u32, now: Time) {
        let Pending { request, flow, submitted, answered, .. } = *pending;
        let latency = now - request.at;
        if self.observer.is_some() || pending.explained {
            self.show(pending, tag, now);
        } else if let Some(explain) = &mut self.explain {
            if explain.is_slowest(latency) {
                self.show(pending, tag, now);
            } else {
                explain.count(request.op);
            }
        }
        self.floors.completed(flow.index, &request, now);
        let flow = &mut self.flows[usize::from(flow.index)];
        flow.span.record(request.at, now);
        if planted_nth(Mutant::Unmeasured, 101) {
            *flow.of(request.op) = stats::OpStats::default();
        }
        flow.of(request.op).record(request.bytes, submitted - request.at, answered - submitted, latency);
        self.series.record(now, request.bytes, latency);
        if planted_nth(Mutant::MeasuredTwice, 101) {
            flow.of(request.op).record(request.bytes, submitted - request.at, answered - submitted, latency);
        }
        self.requests += 1;
    }

    /// The account that was given of a command, which is not kept any longer.
    fn account(&mut self, pending: &Pending, tag: u32) -> Option<Account> {
        self.explain.as_mut().filter(|_| pending.explained)?.take(tag)
    }

    /// Shows a request to who looks on, and keeps it if it is slow.
    fn show(&mut self, pending: &Pending, tag: u32, now: Time) {
        let account = self.account(pending, tag);
        let Pending { id, request, flow, issued, submitted, answered, .. } = *pending;
        let seen = Seen { id, request, flow: flow.index, issued, submitted, answered, completed: now };
        if let Some(observer) = &mut self.observer {
            observer.completed(&seen, account.as_ref());
        }
        if let Some(explain) = &mut self.explain {
            explain.ended(&Explained { seen, account });
        }
    }

    /// Starts the measured window: what was measured before is forgotten.
    pub fn reset(&mut self, now: Time) {
        self.flows.iter_mut().for_each(|flow| *flow = FlowStats::default());
        self.floors.reset(now);
        self.split.reset();
        self.series.reset(now);
        self.in_flight.reset(now);
        self.before = self.requests;
        self.targets.reset();
        self.last_completion = now;
        self.held_max = Time::ZERO;
        self.explain.iter_mut().for_each(|explain| explain.reset());
    }
}
