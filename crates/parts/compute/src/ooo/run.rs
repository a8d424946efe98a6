//! Progress of a core as far as it can know: dispatch, retirement, jobs.

use super::core::{Core, Event, Fetching, LINE, Out, Shared, Translated, What};
use super::l1::Miss;
use super::sched::{Choice, Halted, Moment, ThreadView};
use super::window::{Doing, Entry, Spent, State, Store};
use engine::{Cx, Time};
use proto::cpu::{Op, OpKind, Service};
use proto::memory::Absent;

impl Core {
    /// Goes on as far as possible.
    pub(super) fn go(
        &mut self,
        shared: &mut Shared,
        service: &mut dyn Service,
        cx: &mut impl Cx<Event, Out>,
    ) {
        while !shared.load.is_over() {
            if self.running.is_none() && !self.choose(Moment::Ended, shared, service, cx) {
                return;
            }
            self.settle(shared, cx);
            if self.halts(shared, service, cx) {
                continue;
            }
            let thread = self.thread();
            if thread.next == thread.end() {
                if !thread.ended {
                    self.step(shared, service);
                } else if !self.finishes(shared) {
                    return;
                }
                continue;
            }
            let cycle = self.dispatch / shared.shape.width;
            if cycle > shared.shape.cycle_of(cx.now()) + shared.shape.quantum {
                return self.look_again(shared.shape.time_of(cycle), cx);
            }
            if !self.dispatch(shared, cx) {
                return;
            }
        }
    }

    /// Schedules the next wake-up of the core, at `at` at the latest.
    pub(super) fn look_again(&mut self, at: Time, cx: &mut impl Cx<Event, Out>) {
        let at = at.max(cx.now());
        match self.wake {
            Some((earlier, _)) if earlier <= at => {}
            wake => {
                if let Some((_, ticket)) = wake {
                    cx.cancel(ticket);
                }
                self.wake = Some((at, cx.after(at - cx.now(), Event::Go(self.number))));
            }
        }
    }

    /// Lets the service execute the running job a little further.
    fn step(&mut self, shared: &Shared, service: &mut dyn Service) {
        let running = self.running.expect("a thread runs");
        let slot = self.slot(running, &shared.shape);
        let head = self.window.head;
        let keep = self.stores.oldest().map_or(head, |store| store.min(head));
        let thread = &mut self.threads[running as usize];
        thread.ended = !service.step(slot, thread.tape(keep));
    }

    /// Dispatches the next operation, if its instructions are available and the window has room.
    fn dispatch(&mut self, shared: &mut Shared, cx: &mut impl Cx<Event, Out>) -> bool {
        let thread = self.thread();
        let number = thread.next;
        let op = *thread.op(number);
        if self.fetching.is_some() || !self.fetch(&op, shared, cx) {
            return false;
        }
        let width = shared.shape.width;
        let Some((first, last)) = self.window.make_room(op.count, width) else { return false };
        let kernel = self.kernel * width;
        if kernel > self.dispatch {
            if self.window.is_settled() && self.retire >= self.dispatch {
                // Nothing older is under way: later waits are this operation's own.
                self.spend(kernel, Spent::Kernel, &mut shared.stats);
            } else {
                self.delayed = Some(Spent::Kernel);
            }
            self.dispatch = kernel;
        }
        let begins = self.dispatch.max(first);
        self.dispatch = (begins + u64::from(op.count)).max(last);
        let absolute = |away: u16| if away == 0 { 0 } else { number - u64::from(away) };
        self.window.push(Entry {
            kind: op.kind,
            state: State::Waiting,
            cause: self.delayed.take().unwrap_or(Spent::Latency),
            blocked: false,
            count: op.count,
            needs: op.needs.map(absolute),
            fence: self.fence,
            address: op.address,
            physical: u64::MAX,
            begins: begins / width,
            ready: self.dispatch.div_ceil(width),
            done: 0,
            retire: 0,
        });
        if op.kind == OpKind::Atomic {
            self.fence = number;
        }
        self.thread().next = number + 1;
        self.execute(number, shared, cx);
        true
    }

    /// Returns whether the instructions of an operation are available; requests them if not.
    #[inline]
    fn fetch(&mut self, op: &Op, shared: &mut Shared, cx: &mut impl Cx<Event, Out>) -> bool {
        let last = shared.shape.text + u64::from(op.pc);
        let first = last.saturating_sub(4 * (u64::from(op.count) - 1)).max(shared.shape.text);
        if first / LINE == self.fetched && last / LINE == self.fetched {
            return true;
        }
        self.fetch_lines(first, last, shared, cx)
    }

    fn fetch_lines(
        &mut self,
        first: u64,
        last: u64,
        shared: &mut Shared,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        let (page, at) = (shared.shape.page, self.dispatch / shared.shape.width);
        // An operation may have more lines than the cache: it goes on with the line that it has waited for.
        for line in self.fetch_from.take().unwrap_or(first / LINE)..=last / LINE {
            let address = line * LINE;
            let Some(frame) = self.itlb.look_up(address / page) else {
                // A core without instructions waits for them.
                self.fetch_from = Some(line);
                if let Translated::Asked = self.ask(address / page, true, at, shared, cx) {
                    self.fetching = Some(Fetching::Page(address / page));
                }
                return false;
            };
            shared.stats.fetches += 1;
            let physical = (frame * page + address % page) / LINE;
            if self.l1i.look(physical).is_some() {
                shared.stats.fetch_hits += 1;
                self.fetched = line;
                continue;
            }
            self.fetch_from = Some(line);
            let register = match self.l1i.missing(physical) {
                Some(register) => Some(register),
                None => {
                    let register = self.l1i.miss(Miss { line: physical, own: false, absent: Absent::Wait });
                    if let Some(register) = register {
                        let since = shared.shape.time_of(at).max(cx.now());
                        let sent = shared.shape.time_of(at + self.l1i.latency).max(cx.now());
                        self.send(What::Text(register), since, sent, shared, cx);
                    }
                    register
                }
            };
            self.fetching = register.map(Fetching::Line);
            return false;
        }
        true
    }

    /// Notes the time since which instructions are available.
    pub(super) fn fetched_at(&mut self, now: Time, shared: &Shared) {
        self.fetching = None;
        let at = shared.shape.cycle_of(now) * shared.shape.width;
        if at > self.dispatch {
            self.dispatch = at;
            self.delayed = Some(Spent::Fetch);
        }
    }

    /// Executes and retires all operations that can be.
    fn settle(&mut self, shared: &mut Shared, cx: &mut impl Cx<Event, Out>) {
        loop {
            if self.unsettled {
                self.unsettled = false;
                self.store_again(shared, cx);
                for number in self.window.retired..self.window.tail {
                    if self.window.get(number).state == State::Waiting {
                        self.execute(number, shared, cx);
                    }
                }
            }
            if !self.retire_all(shared, cx) {
                return;
            }
        }
    }

    /// Retries stores that found no register, or got a line that they may not change.
    fn store_again(&mut self, shared: &mut Shared, cx: &mut impl Cx<Event, Out>) {
        let now = shared.shape.cycle_of(cx.now());
        for n in 0..self.stores.len() {
            let store = self.stores.get(n);
            if store.doing == Doing::Again {
                let doing = self.store((store.op, store.address), now, shared, cx);
                self.stores.set(n, doing);
            }
        }
    }

    /// Retires finished operations in order. Returns whether this affects younger ones.
    fn retire_all(&mut self, shared: &mut Shared, cx: &mut impl Cx<Event, Out>) -> bool {
        let width = shared.shape.width;
        let mut atomics = false;
        while !self.window.is_settled() {
            let number = self.window.retired;
            let mut entry = *self.window.get(number);
            if entry.kind == OpKind::Atomic && entry.state == State::Waiting {
                self.execute(number, shared, cx);
                entry = *self.window.get(number);
            }
            if entry.state != State::Done {
                break;
            }
            let in_turn = self.retire + u64::from(entry.count);
            let mut at = in_turn.max(entry.done * width + 1);
            let mut cause = entry.cause;
            if entry.kind == OpKind::Store {
                let Some(room) = self.stores.make_room(at.div_ceil(width)) else { break };
                if room * width > at {
                    (at, cause) = (room * width, Spent::Stores);
                }
                let width = self.thread().op(number).width;
                let cycle = at.div_ceil(shared.shape.width);
                let doing = self.store((number, entry.physical), cycle, shared, cx);
                self.stores.push(Store { op: number, address: entry.physical, width, doing });
            }
            self.spend(at - u64::from(entry.count), cause, &mut shared.stats);
            self.spend(at, Spent::Retiring, &mut shared.stats);
            self.window.get_mut(number).retire = at;
            self.window.retired += 1;
            shared.stats.instructions += u64::from(entry.count);
            atomics |= entry.kind == OpKind::Atomic;
        }
        self.unsettled |= atomics;
        atomics
    }

    /// Halts the job, and chooses a different one, if a miss is known and all older operations are done.
    fn halts(
        &mut self,
        shared: &mut Shared,
        service: &mut dyn Service,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        let width = shared.shape.width;
        let (number, settled, store) = match self.stores.missed() {
            Some((number, settled)) => (number, settled, true),
            None => {
                let retired = self.window.retired;
                let missed = !self.window.is_settled() && self.window.get(retired).state == State::Missed;
                match self.stores.settled() {
                    Some(settled) if missed => (retired, settled, false),
                    _ => return false,
                }
            }
        };
        let running = self.running.take().expect("a thread runs");
        let (retired, tail) = (self.window.retired, self.window.tail);
        let thread = &mut self.threads[running as usize];
        let page = thread.op(number).address / shared.shape.page;
        thread.next = number;
        thread.must = number;
        let stats = &mut shared.stats;
        stats.halts += 1;
        stats.store_halts += u64::from(store);
        stats.squashed += thread.instructions(retired..tail);
        stats.repeated += thread.instructions(number..retired);
        let now = shared.shape.cycle_of(cx.now()).max(settled).max(self.retire.div_ceil(width));
        self.spend(now * width, Spent::Drain, stats);
        self.spend((now + shared.shape.flush) * width, Spent::Flush, stats);
        let arrived = self.early.contains(&page);
        self.empty();
        let since = shared.shape.time_of(now);
        self.halted.push(Halted { since, arrived });
        self.halted_threads.push((running, page));
        self.choose(Moment::Missed, shared, service, cx);
        true
    }

    /// Empties the window and the store buffer.
    fn empty(&mut self) {
        self.stores.clear();
        self.early.clear();
        self.fence = 0;
        self.fetching = None;
        self.fetch_from = None;
        self.unsettled = false;
    }

    /// Ends the running job if all of it is done.
    fn finishes(&mut self, shared: &mut Shared) -> bool {
        let (true, Some(settled)) = (self.window.is_settled(), self.stores.settled()) else { return false };
        let width = shared.shape.width;
        self.spend(settled * width, Spent::Stores, &mut shared.stats);
        self.empty();
        let running = self.running.take().expect("a thread runs");
        self.free.push(running);
        let at = shared.shape.time_of(self.retire.div_ceil(width));
        let thread = &self.threads[running as usize];
        shared.stats.jobs += 1;
        let latency = at.since(thread.arrived).ps();
        shared.stats.service.record(at.since(thread.begun).ps());
        shared.stats.latency.record(latency);
        if let Some(settling) = &mut shared.settling {
            settling.push(latency as f64);
        }
        shared.load.ended += 1;
        // A core runs ahead: the last job to end here is not the last in time.
        shared.latest = shared.latest.max(at);
        if shared.load.is_over() {
            shared.over_at = Some(shared.latest);
        }
        true
    }

    /// Chooses the next job to run; returns whether one runs.
    fn choose(
        &mut self,
        moment: Moment,
        shared: &mut Shared,
        service: &mut dyn Service,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        let width = shared.shape.width;
        // A core that has slept is behind the clock.
        let now = shared.shape.cycle_of(cx.now());
        if self.sleeping {
            self.spend(now * width, Spent::Idle, &mut shared.stats);
        }
        self.spend(self.kernel * width, Spent::Kernel, &mut shared.stats);
        let time = shared.shape.time_of(self.retire.div_ceil(width));
        let crowded =
            moment == Moment::Missed && self.halted.len() >= shared.shape.pending || self.free.is_empty();
        let choice = if crowded {
            shared.stats.crowded += 1;
            Choice::Resume(0)
        } else {
            self.scheduler.choose(&ThreadView {
                moment,
                now: time,
                new: shared.load.has(self.number, time),
                halted: &self.halted,
                response: shared.response(),
            })
        };
        self.sleeping = false;
        let switch = self.retire + shared.shape.switch * width;
        match choice {
            Choice::New => {
                if moment == Moment::Missed {
                    self.spend(switch, Spent::Switch, &mut shared.stats);
                }
                self.begin(shared, service);
            }
            Choice::Resume(n) => {
                self.halted.remove(n as usize);
                let (thread, _) = self.halted_threads.remove(n as usize);
                self.spend(switch, Spent::Switch, &mut shared.stats);
                self.running = Some(thread);
                self.window.reset(self.threads[thread as usize].next);
            }
            Choice::Sleep(until) => {
                if moment == Moment::Missed {
                    self.spend(switch, Spent::Switch, &mut shared.stats);
                }
                self.sleeping = true;
                let job = shared.load.next(self.number).filter(|_| !self.free.is_empty());
                if let Some(at) = until.into_iter().chain(job).min() {
                    self.look_again(at.max(shared.shape.time_of(self.retire.div_ceil(width))), cx);
                }
                return false;
            }
        }
        self.dispatch = self.retire;
        self.delayed = None;
        true
    }

    /// Gives the next job to a thread.
    fn begin(&mut self, shared: &mut Shared, service: &mut dyn Service) {
        let begun = shared.shape.time_of(self.retire.div_ceil(shared.shape.width));
        let (job, arrived) = shared.load.take(self.number, begun);
        let thread = self.free.pop().expect("a new job is chosen when a thread is free");
        service.start(self.slot(thread, &shared.shape), job);
        self.threads[thread as usize].begin(arrived, begun);
        self.running = Some(thread);
        self.window.reset(1);
    }
}
