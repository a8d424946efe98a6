//! Inner DRAM: names of commands, and the forwarding of its events and answers.

use super::{Backing, DramCache, Event, Out};
use crate::dram;
use engine::{Cx, Ticket, Time};
use proto::{
    Command, IoOp,
    memory::{Absent, MemCommand, PAGE},
};

/// Waiter for a command to the DRAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waiter {
    /// No waiter.
    Nobody,
    /// A request.
    Request(u32),
    /// A fetch.
    Fetch(u32),
    /// Look-up of a controller in its miss status row.
    Search(u16),
}

const KINDS: u32 = 4;

impl Waiter {
    /// Tag of a command with this waiter.
    pub(super) fn tag(self) -> u32 {
        match self {
            Waiter::Nobody => 0,
            Waiter::Request(name) => name * KINDS + 1,
            Waiter::Fetch(name) => name * KINDS + 2,
            Waiter::Search(controller) => u32::from(controller) * KINDS + 3,
        }
    }

    /// Waiter of a tag.
    pub(super) fn of(tag: u32) -> Waiter {
        let name = tag / KINDS;
        match tag % KINDS {
            0 => Waiter::Nobody,
            1 => Waiter::Request(name),
            2 => Waiter::Fetch(name),
            _ => Waiter::Search(name as u16),
        }
    }
}

/// Command to the DRAM, whose lines are columns. Milestones of the requests behind it are counted outside.
pub(super) fn command(waiter: Waiter, page: u64, columns: u64, write: bool, now: Time) -> MemCommand {
    MemCommand {
        from: proto::Port::default(),
        tag: waiter.tag(),
        page,
        lines: columns,
        write,
        demand: false,
        app: 0,
        port: 0,
        pc: 0,
        absent: Absent::Wait,
        since: now,
    }
}

/// Context of the inner DRAM within that of the cache.
pub(super) struct Inside<'a, C> {
    pub(super) cx: &'a mut C,
    /// Completed command.
    pub(super) done: Option<MemCommand>,
}

impl<C: Cx<Event, Out>> Cx<dram::Event, dram::Out> for Inside<'_, C> {
    fn now(&self) -> Time {
        self.cx.now()
    }
    fn after(&mut self, delay: Time, event: dram::Event) -> Ticket {
        self.cx.after(delay, Event::Dram(event))
    }
    fn late(&mut self, delay: Time, event: dram::Event) -> Ticket {
        self.cx.late(delay, Event::Dram(event))
    }
    fn reserve(&mut self) -> Ticket {
        self.cx.reserve()
    }
    fn reserve_late(&mut self) -> Ticket {
        self.cx.reserve_late()
    }
    fn at_place(&mut self, place: Ticket, delay: Time, event: dram::Event) {
        self.cx.at_place(place, delay, Event::Dram(event));
    }
    fn cancel(&mut self, ticket: Ticket) {
        self.cx.cancel(ticket);
    }
    fn emit(&mut self, out: dram::Out) {
        let dram::Out::Done(command) = out;
        assert!(self.done.is_none(), "an event of the DRAM ends one command at most");
        self.done = Some(command);
    }
}

// Backing store of the cache: pages are read from there and written there.

/// Priorities at the flash device: a read has waiters; a write is not urgent (section IV-B).
const READ_PRIORITY: u8 = 1;

const WRITE_PRIORITY: u8 = 3;

impl DramCache {
    /// Requests the page of a fetch. Tags of reads are even, those of writes odd.
    pub(super) fn read_page(&self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let fetch = &self.fetches[name];
        match &self.backing {
            Backing::fixed(times) => {
                cx.after(times.read.time(), Event::Read(name));
            }
            Backing::device => {
                let command = Command::new(name * 2, IoOp::Read, fetch.page, PAGE);
                cx.emit(Out::Submit(Command { priority: READ_PRIORITY, ..command }));
            }
            Backing::memory => cx.emit(Out::Backing(MemCommand {
                from: proto::Port::default(),
                tag: name * 2,
                page: fetch.page,
                lines: self.lines.all(),
                write: false,
                demand: fetch.demand,
                app: fetch.app,
                port: fetch.controller,
                pc: fetch.pc,
                absent: Absent::Wait,
                since: cx.now(),
            })),
        }
    }

    /// Writes back an evicted page.
    pub(super) fn write_page(&self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let leaving = &self.leaving[name];
        match &self.backing {
            Backing::fixed(times) => {
                cx.after(times.write.time(), Event::Written(name));
            }
            Backing::device => {
                let command = Command::new(name * 2 + 1, IoOp::Write, leaving.page, PAGE);
                cx.emit(Out::Submit(Command { priority: WRITE_PRIORITY, ..command }));
            }
            Backing::memory => cx.emit(Out::Backing(MemCommand {
                from: proto::Port::default(),
                tag: name * 2 + 1,
                page: leaving.page,
                lines: self.lines.all(),
                write: true,
                demand: false,
                app: leaving.app,
                port: leaving.controller,
                pc: 0,
                absent: Absent::Wait,
                since: cx.now(),
            })),
        }
    }

    /// Handles a completed command with this tag.
    pub(super) fn answered(&mut self, tag: u32, cx: &mut impl Cx<Event, Out>) {
        let name = tag / 2;
        if tag.is_multiple_of(2) {
            self.responded(name, cx);
        } else {
            self.written(name, cx);
        }
    }
}
