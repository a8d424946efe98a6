//! Exchanges: a promoted page, and the demoted one that makes room for it.
//!
//! From the decision on, commands for the page that rises wait. Once those under way have been answered, a page without
//! commands under way is chosen to make room; its commands wait from then on. Both are read, as a whole, each from its
//! memory; then both are written, each to the frame of the other. A page's commands go on, in order of arrival, as soon
//! as it has been written. So no command overtakes another, and none goes to a frame whose page is not there.

use super::policy::{Place, Verdict};
use super::{Event, Out, Placement, Tag};
use engine::{Cx, List, Mutant, Time, planted};
use proto::Port;
use proto::memory::{Absent, MemCommand, PAGE, Stage};

/// Index of the rising page in an exchange.
const RISES: usize = 0;
const SINKS: usize = 1;

/// State that keeps a page in place, in one word: the number of commands under way or, with the highest bit, an
/// exchange and the page's side in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Held(u32);

const MOVES: u32 = 1 << 31;

impl Held {
    /// State of a page on the move.
    fn by(exchange: u32, side: usize) -> Held {
        Held(MOVES | exchange << 1 | side as u32)
    }

    /// Exchange and side of a page on the move.
    #[inline]
    pub(super) fn mover(self) -> Option<(u32, usize)> {
        (self.0 & MOVES != 0).then_some((self.0 & !MOVES) >> 1).map(|name| (name, (self.0 & 1) as usize))
    }
}

/// Exchange under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    /// Page that rises, and the one that makes room, once known.
    pages: [u32; 2],
    /// Places of the pages before the exchange.
    places: [Place; 2],
    /// Unanswered commands for the page that rises.
    under_way: u32,
    /// Number of pages read.
    read: u8,
    /// Number of pages written.
    written: u8,
    /// Application and bank of the command that started the exchange.
    app: u8,
    port: u16,
    /// Commands that wait for each page.
    waiting: [List; 2],
}

impl Exchange {
    /// Number of pages read and not written yet.
    pub(super) fn pages_inside(&self) -> u64 {
        (self.read - self.written).into()
    }
}

impl Placement {
    /// Notes a command for a page, sent to its place, which may make the page rise.
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

    /// Notes an answered command for a page.
    pub(super) fn let_go(&mut self, page: u32, cx: &mut impl Cx<Event, Out>) {
        let held = &mut self.held[page as usize];
        let Some((name, _)) = held.mover() else {
            held.0 -= 1;
            return;
        };
        // Only the rising page begins to move with commands under way.
        let exchange = &mut self.exchanges[name];
        exchange.under_way -= 1;
        if exchange.under_way == 0 {
            self.begin(name, cx);
        }
    }

    /// Makes a command wait until its page has moved.
    pub(super) fn wait(&mut self, (exchange, side): (u32, usize), name: u32) {
        self.waiters.push(&mut self.exchanges[exchange].waiting[side], name);
    }

    /// Starts the move once the rising page has no commands under way: a page to demote is chosen, and both are read.
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

    /// Handles a page of an exchange that has been read: after the second, both are written.
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

    /// Handles a page of an exchange that has been written to the place of the other.
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

    /// Resumes the commands that waited for a page that no longer moves.
    fn go_on(&mut self, page: u32, waiting: &mut List, cx: &mut impl Cx<Event, Out>) {
        self.held[page as usize] = Held::default();
        while let Some(name) = self.waiters.pop(waiting) {
            if let Some(mover) = self.held[page as usize].mover() {
                // The page moves again, because of one of them.
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
            unreachable!("{tag:?} is not a page of an exchange");
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

// Statistics of a placement.

/// Statistics of one measured window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlacementStats {
    /// Statistics of each memory, in order.
    pub targets: Vec<TargetStats>,
    /// Pages that were given a frame at their first use; zero where a page's frame follows from its address.
    pub first_touches: u64,
    /// Hot pages: candidates for promotion.
    pub candidates: u64,
    /// Candidates beyond the rate limit.
    pub limited: u64,
    /// Candidates beyond the limit of concurrent exchanges.
    pub crowded: u64,
    /// Candidates for which no page could make room.
    pub without_room: u64,
    /// Pages promoted to an earlier memory.
    pub promotions: u64,
    /// Pages demoted to a later memory, to make room.
    pub demotions: u64,
    /// Bytes written by exchanges; they have read as many.
    pub moved_bytes: u64,
    /// Commands that waited because their page was on the move.
    pub waits: u64,
    /// Total time of these waits.
    pub wait: Time,
}

/// Statistics of one memory: its commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TargetStats {
    /// Commands that read.
    pub reads: u64,
    /// Commands that write.
    pub writes: u64,
    /// Lines requested by reads.
    pub lines_read: u64,
    /// Lines requested by writes.
    pub lines_written: u64,
    /// Pages read by exchanges, which leave; not included above.
    pub pages_out: u64,
    /// Pages written by exchanges, which arrive; not included above.
    pub pages_in: u64,
}

/// Pair of numbers that must agree, each counted differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// Name of the account.
    pub name: &'static str,
    /// One of the numbers, with its name.
    pub one: (&'static str, u64),
    /// The other number, with its name.
    pub other: (&'static str, u64),
}

impl Account {
    /// Returns true if they agree.
    pub fn holds(&self) -> bool {
        self.one.1 == self.other.1
    }
}

/// Counts since the beginning, for the accounts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ledger {
    /// Commands received, and commands answered.
    pub(super) came: u64,
    pub(super) done: u64,
    /// Lines of commands received, and of those sent to targets.
    pub(super) lines_came: u64,
    pub(super) lines_sent: u64,
    /// Bytes read and written by targets for exchanges.
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
}
