//! Executing operations: when their results are there, and what they ask for.

use super::core::{Ask, Core, Send, Shared, What};
use super::event::{Event, LINE, Out};
use super::l1::{Held, Miss};
use super::stores::Doing;
use super::window::{Spent, State};
use engine::{Cx, Time};
use proto::cpu::OpKind;
use proto::memory::{Absent, PAGE};

/// The outcome of a look at a TLB.
pub(super) enum Translated {
    /// The first byte of the page, physical.
    Frame(u64),
    /// It has been asked for.
    Asked,
    /// It cannot be asked for now.
    Full,
}

/// The outcome of a look at a first-level cache.
enum Looked {
    Hit,
    /// The line is on its way, in this register.
    Coming(u8),
    /// There is no register.
    Full,
}

/// The page, physical, of a line.
pub(super) fn page_of(line: u64) -> u64 {
    line * LINE / PAGE
}

impl Core {
    /// Executes an operation of the window, if what it needs is there.
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
                // Not before all that is older has retired, and every store is done.
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

    /// From which cycle on the results of operations are there; none if that is not known.
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

    /// The physical address of an operation; none if its translation is not known.
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

    /// Asks for a translation.
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

    /// The operation whose access must be completed.
    #[inline]
    pub(super) fn must(&self) -> u64 {
        self.running.map_or(0, |running| self.threads[running as usize].must)
    }

    /// A load, or the load of an atomic.
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

    /// Looks for a line in the data cache, and asks for it if it is not there as it is wanted.
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

    /// A request is sent when its time has come.
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

    /// A retired store goes to the cache in cycle `at`; how far it gets.
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
