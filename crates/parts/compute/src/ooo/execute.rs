//! Execution of operations: the times of their results, their requests, and the answers.

use super::Cores;
use super::core::{
    Ask, Core, Event, Fetching, LINE, Out, Send, Shape, Shared, TEXT, Translated, WRITE_BACK, What,
};
use super::l1::{Held, Miss};
use super::window::{Doing, Entry, Spent, State};
use engine::{Cx, Mutant, Time, planted_nth};
use proto::cpu::{OpKind, Service};
use proto::memory::{Absent, Access, AccessKind, PAGE, Translation};

/// Outcome of a look-up in a first-level cache.
enum Looked {
    Hit,
    /// The line is under way, in this register.
    Coming(u8),
    /// All registers are in use.
    Full,
}

/// Physical page of a line.
pub(super) fn page_of(line: u64) -> u64 {
    line * LINE / PAGE
}

impl Core {
    /// Executes an operation of the window, if its inputs are available.
    pub(super) fn execute(&mut self, number: u64, shared: &mut Shared, cx: &mut impl Cx<Event, Out>) {
        let entry = *self.window.get(number);
        let Some(needed) = self.needed(entry.needs) else { return };
        let blocked = if entry.blocked { shared.shape.cycle_of(cx.now()) } else { 0 };
        match entry.kind {
            OpKind::Compute | OpKind::Taken | OpKind::NotTaken => {
                self.finish(number, entry.ready.max(needed) + 1);
            }
            OpKind::Chain => {
                let done = (entry.begins.max(needed) + u64::from(entry.count)).max(entry.ready + 1);
                self.finish(number, done);
            }
            OpKind::Store => {
                let at = entry.ready.max(needed).max(blocked);
                if self.address(number, at, shared, cx).is_some() {
                    self.finish(number, at + 1);
                }
            }
            OpKind::Load => {
                let Some(fence) = self.needed([entry.fence, 0]) else { return };
                let at = entry.ready.max(needed).max(fence).max(blocked);
                self.load(number, at, false, shared, cx);
            }
            OpKind::Atomic => {
                // Not before all older operations have retired, and every store is done.
                let Some(stores) = self.stores.settled() else { return };
                if self.window.retired != number {
                    return;
                }
                let before = self.retire.div_ceil(shared.shape.width).max(stores);
                let at = entry.ready.max(needed).max(before).max(blocked);
                if before > entry.ready.max(needed) {
                    self.window.get_mut(number).cause = Spent::Stores;
                }
                self.load(number, at, true, shared, cx);
            }
        }
    }

    /// Cycle from which the results of operations are available; `None` if unknown.
    #[inline]
    fn needed(&self, needs: [u64; 2]) -> Option<u64> {
        let mut at = 0;
        for need in needs {
            if need != 0 && self.window.knows(need) {
                let entry = self.window.get(need);
                if entry.state != State::Done {
                    return None;
                }
                at = at.max(entry.done);
            }
        }
        Some(at)
    }

    #[inline]
    fn finish(&mut self, number: u64, done: u64) {
        let entry = self.window.get_mut(number);
        entry.done = done;
        entry.state = State::Done;
    }

    /// Physical address of an operation; `None` if its translation is unknown.
    fn address(
        &mut self,
        number: u64,
        at: u64,
        shared: &mut Shared,
        cx: &mut impl Cx<Event, Out>,
    ) -> Option<u64> {
        let entry = *self.window.get(number);
        if entry.physical != u64::MAX {
            return Some(entry.physical);
        }
        let page = entry.address / shared.shape.page;
        let must = self.must() == number;
        let found = match self.dtlb.look_up(page) {
            Some(frame) => Translated::Frame(frame * shared.shape.page),
            None => self.ask(page, must, at, shared, cx),
        };
        let entry = self.window.get_mut(number);
        match found {
            Translated::Frame(first) => {
                entry.physical = first + entry.address % shared.shape.page;
                return Some(entry.physical);
            }
            Translated::Asked => {
                entry.state = State::Translating(page);
                entry.cause = if must { Spent::Resume } else { Spent::Translation };
            }
            Translated::Full => entry.blocked = true,
        }
        None
    }

    /// Requests a translation.
    pub(super) fn ask(
        &mut self,
        page: u64,
        must: bool,
        at: u64,
        shared: &mut Shared,
        cx: &mut impl Cx<Event, Out>,
    ) -> Translated {
        if self.asks.iter().any(|ask| ask.page == page) {
            return Translated::Asked;
        }
        if self.asks.len() == shared.shape.translations {
            return Translated::Full;
        }
        let since = shared.shape.time_of(at).max(cx.now());
        self.asks.push(Ask { page, wait: must || shared.shape.waits, since });
        shared.stats.translations += 1;
        self.send(What::Page(page), since, since, shared, cx);
        Translated::Asked
    }

    /// Operation whose access must be completed.
    #[inline]
    pub(super) fn must(&self) -> u64 {
        self.running.map_or(0, |running| self.threads[running as usize].must)
    }

    /// Executes a load, or the load of an atomic.
    fn load(&mut self, number: u64, at: u64, own: bool, shared: &mut Shared, cx: &mut impl Cx<Event, Out>) {
        let Some(address) = self.address(number, at, shared, cx) else { return };
        // Ports are taken in the order in which operations get here, at the earliest when they enter or come back.
        let ports = shared.shape.ports;
        let entry = self.window.get(number);
        let comes = if entry.blocked { shared.shape.cycle_of(cx.now()) } else { entry.ready };
        self.port = self.port.max(comes * ports) + 1;
        let at = at.max(self.port / ports);
        shared.stats.data_accesses += 1;
        let must = self.must() == number;
        let width = self.thread().op(number).width;
        let forwards = !own && self.stores.len() > 0;
        let looked =
            if forwards && self.l1d.look(address / LINE).is_none() && self.stores.forwards(address, width) {
                shared.stats.forwarded += 1;
                Looked::Hit
            } else {
                self.look(address / LINE, own, must, at, shared, cx)
            };
        let latency = self.l1d.latency;
        let entry = self.window.get_mut(number);
        match looked {
            Looked::Hit => {
                entry.done = at + latency;
                entry.state = State::Done;
            }
            Looked::Coming(register) => {
                entry.state = State::Fetching(register);
                entry.cause = if must { Spent::Resume } else { Spent::Memory };
            }
            Looked::Full => {
                entry.blocked = true;
                entry.cause = Spent::Memory;
                shared.stats.data_accesses -= 1;
            }
        }
    }

    /// Looks for a line in the data cache, and requests it if it is missing or held without the needed right.
    fn look(
        &mut self,
        line: u64,
        own: bool,
        must: bool,
        at: u64,
        shared: &mut Shared,
        cx: &mut impl Cx<Event, Out>,
    ) -> Looked {
        match self.l1d.look(line) {
            Some(_) if !own => {
                shared.stats.data_hits += 1;
                return Looked::Hit;
            }
            Some(held) if *held != Held::Shared => {
                shared.changed += u64::from(*held == Held::Exclusive);
                *held = Held::Modified;
                shared.stats.data_hits += 1;
                return Looked::Hit;
            }
            _ => {}
        }
        if let Some(register) = self.l1d.missing(line) {
            return Looked::Coming(register);
        }
        let is_turn = self.turn == Some(page_of(line));
        let absent = if must || is_turn { Absent::Wait } else { shared.shape.absent };
        let Some(register) = self.l1d.miss(Miss { line, own, absent }) else {
            return Looked::Full;
        };
        let since = shared.shape.time_of(at).max(cx.now());
        let sent = shared.shape.time_of(at + self.l1d.latency).max(cx.now());
        self.send(What::Data(register), since, sent, shared, cx);
        Looked::Coming(register)
    }

    /// Sends a request once it is due.
    pub(super) fn send(
        &mut self,
        what: What,
        since: Time,
        at: Time,
        shared: &mut Shared,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let name = shared.sends.insert(Send { core: self.number, what, since });
        cx.after(at - cx.now(), Event::Send(name));
    }

    /// Sends a retired store to the cache in cycle `at`; returns its progress.
    pub(super) fn store(
        &mut self,
        (op, address): (u64, u64),
        at: u64,
        shared: &mut Shared,
        cx: &mut impl Cx<Event, Out>,
    ) -> Doing {
        let must = self.must() == op;
        let at = at.max(self.stores.port + 1);
        self.stores.port = at;
        shared.stats.data_accesses += 1;
        match self.look(address / LINE, true, must, at, shared, cx) {
            Looked::Hit => Doing::Known(at),
            Looked::Coming(register) => Doing::Fetching(register),
            Looked::Full => {
                shared.stats.data_accesses -= 1;
                Doing::Again
            }
        }
    }
}

// Answers to requests of cores.

impl Cores {
    /// Handles the answer to a request for a line.
    pub fn answer(&mut self, access: Access, service: &mut dyn Service, cx: &mut impl Cx<Event, Out>) {
        if access.tag & WRITE_BACK != 0 {
            return;
        }
        let core = &mut self.cores[usize::from(access.port)];
        let (register, text) = (access.tag as u8, access.tag & TEXT != 0);
        let since = core.since[usize::from(text)][usize::from(register)];
        self.shared.stats.waited += u128::from(cx.now().since(since).ps());
        match (access.absent, text) {
            (Absent::Signalled, _) => {
                self.shared.stats.signals += 1;
                let line = core.l1d.end(register).line;
                if self.shared.shape.waits {
                    core.probed(register, page_of(line));
                } else {
                    core.signalled(register);
                }
            }
            (_, false) => core.line(register, access.kind, &mut self.shared, cx),
            (_, true) => {
                let miss = core.l1i.end(register);
                if let Some((line, _)) = core.l1i.fill(miss.line, Held::Shared) {
                    cx.emit(Out::Dropped { core: access.port, address: line * LINE });
                }
                if core.fetching == Some(Fetching::Line(register)) {
                    core.fetched_at(cx.now(), &self.shared);
                }
            }
        }
        core.unsettled = true;
        self.go(access.port.into(), service, cx);
    }

    /// Handles the answer to a request for a translation.
    pub fn translated(
        &mut self,
        translation: Translation,
        service: &mut dyn Service,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let core = &mut self.cores[usize::from(translation.port)];
        let asked = core.asks.iter().position(|ask| ask.page == translation.page);
        let ask = core.asks.swap_remove(asked.expect("an answer to what has been asked"));
        self.shared.stats.waited += u128::from(cx.now().since(ask.since).ps());
        let signalled = translation.absent == Absent::Signalled;
        self.shared.stats.signals += u64::from(signalled);
        core.page(translation.page, (!signalled).then_some(translation.frame), &self.shared, cx);
        core.unsettled = true;
        self.go(translation.port.into(), service, cx);
    }
}

/// Dirty line on its way back to memory.
pub(super) fn write_back(core: u16, line: u64, now: Time) -> Access {
    Access {
        tag: WRITE_BACK,
        kind: AccessKind::Write,
        address: line * LINE,
        bytes: LINE as u8,
        app: 0,
        port: core,
        warp: 0,
        pc: 1,
        absent: Absent::Wait,
        since: now,
    }
}

impl Core {
    /// Visits the operations of the window that are in a state.
    fn each(&mut self, state: State, mut visit: impl FnMut(u64, &mut Entry)) {
        for number in self.window.retired..self.window.tail {
            let entry = self.window.get_mut(number);
            if entry.state == state {
                visit(number, entry);
            }
        }
    }

    /// Handles a line whose page is in flash: its waiters must halt, unless they must complete.
    fn signalled(&mut self, register: u8) {
        let must = self.must();
        self.each(State::Fetching(register), |number, entry| {
            entry.state = if number == must { State::Waiting } else { State::Missed };
            entry.blocked = true;
        });
        for store in self.stores.iter_mut().filter(|store| store.doing == Doing::Fetching(register)) {
            store.doing = if store.op == must { Doing::Again } else { Doing::Missed };
        }
    }

    /// Handles a line whose page is in flash and not yet requested: it is next if no other page is awaited.
    fn probed(&mut self, register: u8, page: u64) {
        let is_turn = *self.turn.get_or_insert(page) == page;
        self.each(State::Fetching(register), |_, entry| {
            entry.state = if is_turn { State::Waiting } else { State::Behind };
            entry.blocked = true;
        });
        for store in self.stores.iter_mut().filter(|store| store.doing == Doing::Fetching(register)) {
            store.doing = if is_turn { Doing::Again } else { Doing::Behind };
        }
    }

    /// Retries the accesses behind the awaited page, which has arrived.
    fn next_turn(&mut self) {
        self.turn = None;
        self.each(State::Behind, |_, entry| entry.state = State::Waiting);
        for store in self.stores.iter_mut().filter(|store| store.doing == Doing::Behind) {
            store.doing = Doing::Again;
        }
    }

    /// Notes the arrival of a page. The running job may be about to be halted because of it.
    pub(super) fn came(&mut self, page: u64, shape: &Shape) {
        let Some(running) = self.running else { return };
        let mut missed = self.stores.iter_mut().any(|store| {
            store.doing == Doing::Missed
                && self.threads[running as usize].op(store.op).address / shape.page == page
        });
        for number in self.window.retired..self.window.tail {
            missed |= self.window.get(number).state == State::Missed
                && self.threads[running as usize].op(number).address / shape.page == page;
        }
        if missed {
            self.early.push(page);
        }
    }

    /// Handles the arrival of a line.
    fn line(&mut self, register: u8, kind: AccessKind, shared: &mut Shared, cx: &mut impl Cx<Event, Out>) {
        let miss = self.l1d.end(register);
        if self.turn == Some(page_of(miss.line)) {
            self.next_turn();
        }
        let only = kind == AccessKind::Own;
        let now = shared.shape.cycle_of(cx.now());
        let mut changed = false;
        self.each(State::Fetching(register), |_, entry| {
            let atomic = entry.kind == OpKind::Atomic;
            if atomic && !only {
                entry.state = State::Waiting;
                entry.blocked = true;
            } else {
                entry.state = State::Done;
                entry.done = now;
                changed |= atomic;
            }
        });
        for store in self.stores.iter_mut().filter(|store| store.doing == Doing::Fetching(register)) {
            store.doing = if only { Doing::Known(now) } else { Doing::Again };
            changed |= only;
        }
        let held = match (only, changed || miss.own) {
            (false, _) => Held::Shared,
            (true, false) => Held::Exclusive,
            // A line requested for a change may come with the changes of a different core.
            (true, true) => Held::Modified,
        };
        let changes = held == Held::Modified && self.l1d.held(miss.line) != Some(Held::Modified);
        shared.changed += u64::from(changes);
        match self.l1d.fill(miss.line, held) {
            Some((_, true)) if planted_nth(Mutant::LostWriteBackOfCore, 16) => {}
            Some((line, true)) => {
                shared.stats.write_backs += 1;
                cx.emit(Out::Access(write_back(self.number, line, cx.now())));
            }
            // A copy with a pending request for the right to change it stays noted: the answer counts as the line.
            Some((line, false))
                if self.l1d.missing(line).is_none() && !planted_nth(Mutant::SilentDrop, 16) =>
            {
                cx.emit(Out::Dropped { core: self.number, address: line * LINE });
            }
            _ => {}
        }
    }

    /// Handles a known translation, or a page in flash.
    fn page(&mut self, page: u64, frame: Option<u64>, shared: &Shared, cx: &impl Cx<Event, Out>) {
        let text = page * shared.shape.page >= shared.shape.text;
        if let Some(frame) = frame {
            if text { self.itlb.fill(page, frame) } else { self.dtlb.fill(page, frame) }
        }
        let must = self.must();
        self.each(State::Translating(page), |number, entry| {
            let goes_on = frame.is_some() || number == must;
            entry.state = if goes_on { State::Waiting } else { State::Missed };
            entry.blocked = true;
        });
        if self.fetching == Some(Fetching::Page(page)) {
            self.fetched_at(cx.now(), shared);
        }
    }
}
