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
    /// Events of the injector.
    pub enum Event {
        /// A source wants to be polled again.
        Ask(u16),
        /// The host's software has prepared a command.
        Submit(u32),
        /// The host's software has seen a completion.
        Seen(u32),
        /// The thread that saw a completion is free for its next request.
        Free(u32),
    }
}

/// Messages sent by the injector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command for a target.
    Submit {
        /// Number of the target.
        target: u16,
        /// Command. Its flow and placement are numbered per target.
        command: Command,
    },
    /// Announces how a flow will use a file of a kernel.
    Open {
        /// Target of the kernel.
        target: u16,
        /// Flow number, as in its commands.
        flow: u16,
        /// Batches in which the flow submits requests and takes completions, if not one by one.
        batches: Option<Batches>,
        /// Advice about upcoming reads.
        advice: Advice,
    },
}

/// Flow of a source in the injector.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Index into the injector's flows, [`UNSEEN`] at first.
    index: u16,
    /// Index into the batching threads of its source, or [`flows::NO_THREAD`].
    thread: u16,
    path: Path,
}

const UNSEEN: Flow =
    Flow { index: u16::MAX, thread: flows::NO_THREAD, path: Path { at: 0, target: 0, queue: 0, number: 0 } };

struct Running {
    source: Box<dyn Source>,
    /// Target of its requests.
    target: u16,
    /// Requests in flight.
    outstanding: u32,
    /// Request whose next fragment is to come, usually [`NONE`].
    open: u32,
    /// Number of requests that wait for room in their queues.
    held: u32,
    /// Time of the pending `Ask`.
    asked: Option<Time>,
    /// Flows by the source's flow number.
    flows: Vec<Flow>,
    /// End of the current work of each flow's thread, by the same number; zero without a thread.
    threads: Vec<Time>,
    /// Threads that work in batches, and whether they are being visited.
    in_batches: Vec<Thread>,
    settles: bool,
    done: bool,
    /// Number of requests issued, the latest arrival among them, and how many arrived before one that was issued
    /// earlier.
    taken: u64,
    latest: Time,
    early: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    request: IoRequest,
    id: u64,
    source: u16,
    /// True if its account is kept until its answer is seen.
    explained: bool,
    flow: Flow,
    /// Request of which it is a fragment, or [`NONE`].
    whole: u32,
    issued: Time,
    submitted: Time,
    answered: Time,
}

/// Number of flows measured separately; the rest share the last one.
const FLOWS: usize = 1024;

/// Issues requests and measures them.
pub struct Injector {
    sources: Vec<Running>,
    pending: Slab<Pending>,
    /// Requests that have been seen and whose threads still work on them, each with its source.
    threads: Slab<(u16, IoRequest)>,
    cost: HostCost,
    targets: Targets,
    /// Measurements by flow.
    pub flows: Vec<FlowStats>,
    floors: FloorsOfFlows,
    /// Completions of all flows over time.
    pub series: Series,
    /// Time at which the last request of the window completed.
    pub last_completion: Time,
    /// Longest delay of an issued request in the window: for lack of room in its submission queue, or because its
    /// job's depth was reached when it was due.
    pub held_max: Time,
    /// Number of commands issued since the beginning: one per request, several for fragmented ones.
    pub issued: u64,
    /// Number of commands completed since the beginning.
    pub completed: u64,
    /// Number of requests that ended before the measured window.
    before: u64,
    /// Number of requests completed since the beginning.
    pub requests: u64,
    /// Requests that were split, and their fragments.
    pub split: Split,
    /// Number of requests whose completion reported an error.
    pub errors: u64,
    /// Commands in flight, for Little's law.
    pub in_flight: Little,
    /// Reason why it stopped early.
    pub failure: Option<Diagnostic>,
    /// Observer of every completion.
    pub observer: Option<Box<dyn Observer>>,
    /// Waits of slow requests, if they are kept.
    pub explain: Option<Box<Explain>>,
}

impl Injector {
    /// Creates an injector without work.
    pub fn idle() -> Injector {
        Injector::new(Vec::new(), Queues::UNBOUNDED, HostCost::default())
    }

    /// Creates an injector over sources that submit to one target's queues.
    pub fn new(sources: Vec<Box<dyn Source>>, queues: Queues, cost: HostCost) -> Injector {
        Injector::over(sources.into_iter().map(|source| (source, 0)).collect(), vec![queues], cost)
    }

    /// Creates an injector over sources that each submit to the queues of their target, an index into `targets`.
    ///
    /// # Panics
    /// If a source's target is not in `targets`.
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

    /// Polls every source for its first requests.
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

    /// Takes from a source the requests that it issues now.
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
                    // An earlier poll may already be scheduled; the source will give the same answer then.
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

    /// Issues the next fragment of a request.
    fn part(&mut self, source: u16, fragment: IoRequest, more: bool, cx: &mut impl Cx<Event, Out>) {
        let running = &mut self.sources[usize::from(source)];
        running.outstanding += u32::from(running.open == NONE);
        let whole = self.split.add(running.open, fragment, more);
        running.open = if more { whole } else { NONE };
        self.issue(source, fragment, whole, cx);
    }

    /// Puts a request, or a fragment of `whole`, into its queue; if that is full, the request waits at the host.
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

    /// Submits a command that the host's software has prepared.
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
            // Data of different flows have different lifetimes: a device with several streams separates them.
            placement: path.number.min(u8::MAX.into()) as u8,
            ..Command::new(tag, request.op, request.offset, request.bytes)
        };
        cx.emit(Out::Submit { target: path.target, command });
    }

    /// Handles the answer of a target to a command.
    #[inline]
    pub fn complete(&mut self, completion: Completion, cx: &mut impl Cx<Event, Out>) {
        self.complete_with(completion, || None, cx);
    }

    /// Handles the answer of a target to a command, with an account of it if one is wanted.
    #[inline]
    pub fn complete_with(
        &mut self,
        completion: Completion,
        account: impl FnOnce() -> Option<Account>,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let thread = self.pending[completion.tag].thread();
        // The time at which a thread takes a batch is not known in advance.
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

    /// Returns when the host's software sees a completion that arrives now: after the flow's thread has finished the
    /// earlier ones.
    #[inline]
    fn sees(&mut self, tag: u32, now: Time) -> Time {
        let earliest = now + self.cost.complete;
        if self.cost.thread == Time::ZERO && self.cost.sleep.is_none() {
            return earliest;
        }
        let Pending { source, request, whole, .. } = self.pending[tag];
        // Fragments are seen together with the rest of their request: the thread works on the request.
        if whole != NONE || !self.has_thread(source, &request) {
            return earliest;
        }
        let until = &mut self.sources[usize::from(source)].threads[usize::from(request.flow)];
        // The core has been idle since its thread finished the previous completion.
        let wakes = self.cost.sleep.map_or(Time::ZERO, |sleep| sleep.wait(*until, now));
        let seen = (earliest + wakes).max(*until);
        *until = seen + self.cost.thread;
        seen
    }

    /// Frees an entry of a queue: the longest waiter gets it.
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

    /// Ends the thread's work on a request that it has seen.
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

    /// Measures a fragment; if it was the last, measures and returns its request.
    #[cold]
    fn fragment_ended(&mut self, pending: &Pending, tag: u32, now: Time) -> Option<IoRequest> {
        let Pending { request, whole, issued, submitted, answered, .. } = *pending;
        let device = answered - submitted;
        let fragments = self.split.fragments.of(request.op);
        fragments.record(request.bytes, submitted - request.at, device, now - request.at);
        let Some(Ended { request, issued, submitted }) = self.split.complete(whole, issued, submitted) else {
            // Only the account of the last fragment is the request's.
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

    /// Takes the account of a command, which is not kept any longer.
    fn account(&mut self, pending: &Pending, tag: u32) -> Option<Account> {
        self.explain.as_mut().filter(|_| pending.explained)?.take(tag)
    }

    /// Reports a request to the observer, and keeps it if it is slow.
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

    /// Starts the measured window: earlier measurements are cleared.
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
