//! What is behind the cache: pages are read from there and written there.

use super::{Backing, DramCache, Event, Out};
use engine::Cx;
use proto::memory::{Absent, MemCommand, PAGE};
use proto::{Command, IoOp};

/// Priorities at the flash device: somebody waits for a read; a write has time (section IV-B).
const READ_PRIORITY: u8 = 1;
const WRITE_PRIORITY: u8 = 3;

impl DramCache {
    /// Asks for the page of a fetch. The tags of reads are even, those of writes odd.
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

    /// Gives back a page that leaves.
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

    /// A command with this tag has been done.
    pub(super) fn answered(&mut self, tag: u32, cx: &mut impl Cx<Event, Out>) {
        let name = tag / 2;
        if tag.is_multiple_of(2) {
            self.responded(name, cx);
        } else {
            self.written(name, cx);
        }
    }
}
