//! Exchanges: a page that rises, and one that makes room for it.
//!
//! From the decision on, commands for the page that rises wait. Once those under way have been answered, a page that has none
//! under way is chosen to make room; its commands wait from then on. Both are read, whole, each from its memory; then both are
//! written, each to the frame of the other. A page's commands go on, in the order in which they came, as soon as it has been
//! written. So nothing overtakes, and no command goes to a frame whose page is not there.

use super::policy::{Place, Verdict};
use super::{Event, Out, Placement, Tag};
use engine::{Cx, List, Mutant, Time, planted};
use proto::Port;
use proto::memory::{Absent, MemCommand, PAGE, Stage};

/// The two pages of an exchange.
const RISES: usize = 0;
const SINKS: usize = 1;

/// What keeps a page where it is, in one word: so many commands under way or, with the highest bit, an exchange and which of
/// its pages it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Held(u32);

const MOVES: u32 = 1 << 31;

impl Held {
    /// On the move.
    fn by(exchange: u32, side: usize) -> Held {
        Held(MOVES | exchange << 1 | side as u32)
    }

    /// The exchange and the side of a page on the move.
    #[inline]
    pub(super) fn mover(self) -> Option<(u32, usize)> {
        (self.0 & MOVES != 0).then_some((self.0 & !MOVES) >> 1).map(|name| (name, (self.0 & 1) as usize))
    }
}

/// What is known of an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    /// The page that rises, and the one that makes room, once it is known.
    pages: [u32; 2],
    /// Where they were.
    places: [Place; 2],
    /// Commands for the page that rises that have not been answered yet.
    under_way: u32,
    /// Pages that have been read.
    read: u8,
    /// Pages that have been written.
    written: u8,
    /// The application and the bank of the command that it began with.
    app: u8,
    port: u16,
    /// Commands that wait for each page.
    waiting: [List; 2],
}

impl Exchange {
    /// Pages that have been read and not been written yet.
    pub(super) fn pages_inside(&self) -> u64 {
        (self.read - self.written).into()
    }
}

impl Placement {
    /// A command for a page is under way to its place, which may make the page rise.
    pub(super) fn hold(
        &mut self,
        page: u32,
        place: Place,
        command: &MemCommand,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let held = &mut self.held[page as usize];
        held.0 += 1;
        let under_way = held.0;
        let verdict = self.policy.used(page, place, cx.now());
        if verdict == Verdict::Stay {
            return;
        }
        self.stats.candidates += 1;
        if verdict == Verdict::Limited {
            self.stats.limited += 1;
        } else if self.exchanges.len() == self.most_exchanges {
            self.stats.crowded += 1;
        } else {
            let exchange = self.exchanges.insert(Exchange {
                pages: [page; 2],
                places: [place; 2],
                under_way,
                read: 0,
                written: 0,
                app: command.app,
                port: command.port,
                waiting: [List::EMPTY; 2],
            });
            self.held[page as usize] = Held::by(exchange, RISES);
        }
    }

    /// A command for a page has been answered.
    pub(super) fn let_go(&mut self, page: u32, cx: &mut impl Cx<Event, Out>) {
        let held = &mut self.held[page as usize];
        let Some((name, _)) = held.mover() else {
            held.0 -= 1;
            return;
        };
        // Only the page that rises begins to move with commands under way.
        let exchange = &mut self.exchanges[name];
        exchange.under_way -= 1;
        if exchange.under_way == 0 {
            self.begin(name, cx);
        }
    }

    /// A command waits until its page has moved.
    pub(super) fn wait(&mut self, (exchange, side): (u32, usize), name: u32) {
        self.waiters.push(&mut self.exchanges[exchange].waiting[side], name);
    }

    /// The page that rises has no commands under way: another one makes room, and both are read.
    fn begin(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let held = &self.held;
        let Some(sinks) = self.policy.makes_room(&|page| held[page as usize] == Held::default()) else {
            self.stats.without_room += 1;
            let Exchange { pages, mut waiting, .. } = self.exchanges[name];
            self.exchanges.remove(name);
            self.go_on(pages[RISES], &mut waiting[RISES], cx);
            return;
        };
        let place = self.policy.find(sinks).expect("a page that makes room has a place");
        let exchange = &mut self.exchanges[name];
        exchange.pages[SINKS] = sinks;
        exchange.places[SINKS] = place;
        self.held[sinks as usize] = Held::by(name, SINKS);
        for side in [RISES, SINKS] {
            let place = self.exchanges[name].places[side];
            self.stats.targets[usize::from(place.target)].pages_out += 1;
            self.send_page(Tag::Read(name, side), place, cx);
        }
    }

    /// A page of an exchange has been read: both are written when both have been.
    pub(super) fn page_read(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let exchange = &mut self.exchanges[name];
        exchange.read += 1;
        if exchange.read < 2 {
            return;
        }
        let Exchange { pages, places, .. } = *exchange;
        if !planted(Mutant::StaleTable) {
            self.policy.exchanged(pages[RISES], pages[SINKS], cx.now());
        }
        for side in [RISES, SINKS] {
            let place = places[if planted(Mutant::UnmovedPage) { side } else { 1 - side }];
            self.stats.targets[usize::from(place.target)].pages_in += 1;
            self.send_page(Tag::Write(name, side), place, cx);
        }
    }

    /// A page of an exchange has been written where the other one was.
    pub(super) fn page_written(&mut self, name: u32, side: usize, cx: &mut impl Cx<Event, Out>) {
        let exchange = &mut self.exchanges[name];
        exchange.written += 1;
        let mut waiting = exchange.waiting[side].take();
        let Exchange { pages, places, written, .. } = *exchange;
        let (from, to) = (places[side].target, places[1 - side].target);
        self.stats.promotions += u64::from(to < from);
        self.stats.demotions += u64::from(to > from);
        self.stats.moved_bytes += PAGE;
        if written == 2 {
            self.exchanges.remove(name);
        }
        self.go_on(pages[side], &mut waiting, cx);
    }

    /// A page does not move any more: those who have waited for it go on.
    fn go_on(&mut self, page: u32, waiting: &mut List, cx: &mut impl Cx<Event, Out>) {
        self.held[page as usize] = Held::default();
        while let Some(name) = self.waiters.pop(waiting) {
            if let Some(mover) = self.held[page as usize].mover() {
                // It moves again, because of one of them.
                self.wait(mover, name);
                continue;
            }
            let command = &mut self.requests[name].command;
            self.stats.wait += cx.now() - command.since;
            self.tally.command(Stage::Migration, command, cx.now());
            self.send(name, page, cx);
        }
    }

    /// Sends a command of an exchange for all lines of a frame.
    fn send_page(&mut self, tag: Tag, place: Place, cx: &mut impl Cx<Event, Out>) {
        let (Tag::Read(name, _) | Tag::Write(name, _)) = tag else {
            unreachable!("{tag:?} is no page of an exchange");
        };
        let Exchange { app, port, .. } = self.exchanges[name];
        let command = MemCommand {
            tag: tag.word(),
            from: Port::default(),
            page: u64::from(place.frame) * PAGE,
            lines: self.lines.all(),
            write: matches!(tag, Tag::Write(..)),
            demand: false,
            app,
            port,
            pc: 0,
            absent: Absent::Wait,
            since: cx.now(),
        };
        cx.emit(Out::Target { target: place.target, command });
    }
}

// What a placement has counted.

/// Counters of one measured window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlacementStats {
    /// Those of each memory, in order.
    pub targets: Vec<TargetStats>,
    /// Pages that were given a frame because they were used for the first time; none where a page's frame follows from its address.
    pub first_touches: u64,
    /// Pages that were hot, and might have risen.
    pub candidates: u64,
    /// Of them, those beyond the rate.
    pub limited: u64,
    /// Of them, those for which too many exchanges were under way.
    pub crowded: u64,
    /// Of them, those for which no page could make room.
    pub without_room: u64,
    /// Pages moved to an earlier memory.
    pub promotions: u64,
    /// Pages moved to a later memory, to make room.
    pub demotions: u64,
    /// Bytes that exchanges have written; they have read as many.
    pub moved_bytes: u64,
    /// Commands that have waited because their page was on the move.
    pub waits: u64,
    /// Time that they have waited, summed over them.
    pub wait: Time,
}

/// Counters of one memory: what it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TargetStats {
    /// Commands that read.
    pub reads: u64,
    /// Commands that write.
    pub writes: u64,
    /// Lines to be read.
    pub lines_read: u64,
    /// Lines to be written.
    pub lines_written: u64,
    /// Pages read by exchanges, which leave; not among the above.
    pub pages_out: u64,
    /// Pages written by exchanges, which come; not among the above.
    pub pages_in: u64,
}

/// Two numbers that must agree, each counted in another way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// What they count.
    pub name: &'static str,
    /// One of them, and what it is of.
    pub one: (&'static str, u64),
    /// The other.
    pub other: (&'static str, u64),
}

impl Account {
    /// Whether they agree.
    pub fn holds(&self) -> bool {
        self.one.1 == self.other.1
    }
}

/// What has happened since the beginning, for the accounts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ledger {
    /// Commands that have come, and that have gone back.
    pub(super) came: u64,
    pub(super) done: u64,
    /// Lines of commands that have come, and of those that targets were sent.
    pub(super) lines_came: u64,
    pub(super) lines_sent: u64,
    /// Bytes that targets have read and written for exchanges.
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
}
