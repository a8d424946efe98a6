//! Answers to the requests of cores.

use super::Cores;
use super::core::{Core, Fetching, Shape, Shared};
use super::event::{Event, LINE, Out, TEXT, WRITE_BACK};
use super::execute::page_of;
use super::l1::Held;
use super::stores::Doing;
use super::window::{Entry, State};
use engine::{Cx, Mutant, Time, planted_nth};
use proto::cpu::{OpKind, Service};
use proto::memory::{Absent, Access, AccessKind, Translation};

impl Cores {
    /// The answer to a request for a line.
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

    /// The answer to a request for a translation.
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

/// A changed line on its way back to memory.
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

    /// The page of a line is in flash: whoever waits for it must go, unless it must not.
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

    /// The page of a line is in flash, and has not been asked for: it is next if no other one is awaited.
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

    /// The awaited page has come: who stands behind it tries again.
    fn next_turn(&mut self) {
        self.turn = None;
        self.each(State::Behind, |_, entry| entry.state = State::Waiting);
        for store in self.stores.iter_mut().filter(|store| store.doing == Doing::Behind) {
            store.doing = Doing::Again;
        }
    }

    /// A page has come. The running job may be about to be halted because of it.
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

    /// A line has come.
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
            // Who asks for a line to change it may have been given another core's changes with it.
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
            // A copy for which the right to change it has been asked stays noted: the answer counts as the line.
            Some((line, false))
                if self.l1d.missing(line).is_none() && !planted_nth(Mutant::SilentDrop, 16) =>
            {
                cx.emit(Out::Dropped { core: self.number, address: line * LINE });
            }
            _ => {}
        }
    }

    /// A translation is known, or its page is in flash.
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
