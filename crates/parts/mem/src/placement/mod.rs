//! Placement of the physical addresses behind a shared cache over several memories: each page is in a frame of one of
//! them.
//!
//! A placement speaks the memory protocol on both sides. A command is looked up in the table; then it goes, with the
//! address of its page's frame, to the memory of that frame, and the answer goes back with the original address.
//! Everything else in the command is kept, so that the memory counts the milestones of its requester. The table is
//! below all caches: when a page moves, no translation changes, and no line has to be purged.
//!
//! A [family of policies](policy) decides on the place of each page. A policy that moves pages selects the page to
//! rise; `exchange` moves it, by the placement's own commands. A command for a page on the move waits, and its wait is
//! [`Stage::Migration`]; the look-up is [`Stage::Controller`]. A placement adds no other time.
//!
//! Page tables are ordinary pages where a page's frame follows from its address. Where pages get frames at their first
//! use, page tables have theirs before all data (chosen), from the first frame of the first memory on, and never move:
//! a walk never waits for a move.

mod exchange;
pub mod policy;
mod shadow;
#[cfg(test)]
mod tests;

pub use exchange::{Account, PlacementStats, TargetStats};
pub use policy::{Extent, Place, PlacementPolicy, Targets};
pub use shadow::Shadowed;

use config::SpecError;
use config::units::{Bytes, Duration};
use engine::{Cx, Lists, Slab, Time};
use exchange::{Exchange, Held, Ledger};
use policy::Placing;
use proto::Port;
use proto::memory::{Lines, MemCommand, PAGE, Stage, Tally};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shadow::Shadow;
use std::ops::Range;

/// Messages sent by a placement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command comes back, completed.
    Done(MemCommand),
    /// Command for one of the memories, whose page is a frame there, counted from zero; the tag is the placement's own.
    /// The answer comes to [`Placement::answered`].
    Target {
        /// Number of the memory in the list.
        target: u8,
        /// Command for that memory.
        command: MemCommand,
    },
}

engine::events! {
    /// Internal events of a placement.
    pub enum Event {
        /// The page of a command has been looked up.
        Found(u32),
    }
}

/// Owner of a command that a memory answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tag {
    /// Command of a request.
    Request(u32),
    /// Read of a page of an exchange.
    Read(u32, usize),
    /// Write of a page of an exchange.
    Write(u32, usize),
}

impl Tag {
    /// Bits of a tag that encode its variant and page.
    const KIND: u32 = 3;

    #[inline]
    fn word(self) -> u32 {
        match self {
            Tag::Request(name) => name << Tag::KIND,
            Tag::Read(name, side) => name << Tag::KIND | 2 | side as u32,
            Tag::Write(name, side) => name << Tag::KIND | 4 | side as u32,
        }
    }

    #[inline]
    fn of(word: u32) -> Tag {
        let (name, side) = (word >> Tag::KIND, (word & 1) as usize);
        match word & 6 {
            0 => Tag::Request(name),
            2 => Tag::Read(name, side),
            _ => Tag::Write(name, side),
        }
    }
}

/// Command inside.
#[derive(Clone, Copy, Debug)]
struct Request {
    command: MemCommand,
    /// True if the command has been sent to its memory.
    sent: bool,
}

/// Several memories behind one shared cache.
pub struct Placement {
    lines: Lines,
    latency: Time,
    targets: Targets,
    policy: Box<dyn Placing>,
    most_exchanges: usize,
    /// Number of pages in front of the placement.
    pages: u32,
    requests: Slab<Request>,
    exchanges: Slab<Exchange>,
    /// Commands that wait for pages on the move.
    waiters: Lists<u32>,
    /// State that keeps each page in place; empty if pages never move.
    held: Vec<Held>,
    bound: usize,
    ledger: Ledger,
    shadow: Option<Box<Shadow>>,
    /// Statistics of the window.
    pub stats: PlacementStats,
    /// Waiting time by stage.
    pub tally: Tally,
}

impl Placement {
    /// Creates a placement without pages, whose commands are for lines of `line` bytes.
    ///
    /// # Errors
    /// Returns the first invalid value of the spec; its key is relative to the spec's table. Line sizes other than 64,
    /// 128, 256 or 512 B are refused (key `line`).
    pub fn new(spec: &PlacementSpec, line: u64) -> Result<Placement, SpecError> {
        spec.check()?;
        let targets = spec.targets();
        let policy = spec.policy.build(&targets);
        let mut placement = Placement {
            lines: crate::lines_of(line)?,
            latency: spec.latency.time(),
            targets,
            most_exchanges: policy.exchanges() as usize,
            policy,
            pages: 0,
            requests: Slab::default(),
            exchanges: Slab::default(),
            waiters: Lists::default(),
            held: Vec::new(),
            bound: usize::MAX,
            ledger: Ledger::default(),
            shadow: None,
            stats: PlacementStats::default(),
            tally: Tally::default(),
        };
        placement.reset_stats(Time::ZERO);
        Ok(placement)
    }

    /// Sets the physical addresses in front: data, and page tables from `data` up to `top`. Call it once, before the
    /// first command.
    ///
    /// # Errors
    /// Returns an error if they exceed the memories.
    pub fn set_extent(&mut self, data: u64, top: u64) -> Result<(), SpecError> {
        let room = u64::from(self.targets.total()) * PAGE;
        if top > room {
            let what = format!(
                "data and page tables take {}, but the memories have only {} together: a placement with a hole",
                Bytes::new(top),
                Bytes::new(room)
            );
            return Err(SpecError::new("sizes", what).help("choose larger sizes, or a smaller workload"));
        }
        let extent = Extent { tables: (data.min(top) / PAGE) as u32, end: top.div_ceil(PAGE) as u32 };
        self.pages = extent.end;
        self.policy.settle(&extent);
        if self.most_exchanges > 0 {
            self.held = vec![Held::default(); extent.end as usize];
        }
        Ok(())
    }

    /// Number of memories.
    pub fn targets(&self) -> usize {
        self.targets.count().into()
    }

    /// Addresses of a memory, from zero, that it may be asked for: it must hold these at the start. After
    /// [`Placement::set_extent`], as many as the pages in front of the placement need.
    pub fn frames(&self, target: u8) -> Range<u64> {
        0..u64::from(self.policy.frames(target)) * PAGE
    }

    /// Memory of a physical address, and the address there. `None` if its page has no frame yet, or does not exist.
    pub fn place_of(&self, address: u64) -> Option<(u8, u64)> {
        let place = self.policy.find(u32::try_from(address / PAGE).ok()?)?;
        Some((place.target, u64::from(place.frame) * PAGE + address % PAGE))
    }

    /// Physical address of an address of a memory: the inverse of [`Placement::place_of`]. Used for addresses reported
    /// by a memory itself, such as a page that has arrived in a DRAM cache.
    pub fn address_of(&self, target: u8, address: u64) -> Option<u64> {
        let frame =
            u32::try_from(address / PAGE).ok().filter(|frame| *frame < self.targets.frames(target))?;
        let page = self.policy.page_in(Place { target, frame })?;
        Some(u64::from(page) * PAGE + address % PAGE)
    }

    /// Uses a page, without time: before a run.
    pub fn warm(&mut self, address: u64) {
        let page = self.page(address);
        self.policy.place(page, Time::ZERO);
    }

    /// Number of commands and exchanges inside.
    pub fn outstanding(&self) -> usize {
        self.requests.len() + self.exchanges.len()
    }

    /// Bounds the commands inside, to the number that all sources together can have outstanding. Exceeding it is a
    /// panic.
    pub fn bound(&mut self, commands: usize) {
        self.bound = commands;
    }

    /// Attaches a shadow, which follows the contents of each frame. Call it before the first command.
    pub fn attach_shadow(&mut self) {
        self.shadow = Some(Box::new(Shadow::new(&self.targets)));
    }

    /// Results of the shadow, if any.
    pub fn shadowed(&self) -> Option<&Shadowed> {
        self.shadow.as_deref().map(Shadow::found)
    }

    /// Starts the measured window.
    pub fn reset_stats(&mut self, _now: Time) {
        self.stats = PlacementStats {
            targets: vec![TargetStats::default(); self.targets()],
            ..PlacementStats::default()
        };
        self.tally = Tally::default();
    }

    /// Pairs of numbers since the beginning that must agree, at any time. O(pages).
    pub fn accounts(&self) -> [Account; 4] {
        let Ledger { came, done, lines_came, lines_sent, bytes_read, bytes_written } = self.ledger;
        let (mut placed, mut found) = (0, 0);
        for page in 0..self.pages {
            if let Some(place) = self.policy.find(page) {
                placed += 1;
                found += u64::from(self.policy.page_in(place) == Some(page));
            }
        }
        let waiting = self.requests.live().filter(|(_, request)| !request.sent);
        let lines: u64 = waiting.map(|(_, request)| u64::from(request.command.lines.count_ones())).sum();
        let moving: u64 = self.exchanges.live().map(|(_, exchange)| exchange.pages_inside()).sum();
        let account = |name, one, other| Account { name, one, other };
        [
            account(
                "commands to a placement come back or are there",
                ("came", came),
                ("came back or are there", done + self.requests.len() as u64),
            ),
            account(
                "lines of commands to a placement go to its memories or wait",
                ("came", lines_came),
                ("were sent or wait", lines_sent + lines),
            ),
            account(
                "each page of a placement has a frame of its own",
                ("pages", placed),
                ("pages that their frames hold", found),
            ),
            account(
                "bytes that a placement reads to move pages are written or there",
                ("read", bytes_read),
                ("written or there", bytes_written + moving * PAGE),
            ),
        ]
    }

    /// Accepts a command to read or write lines of a page.
    ///
    /// # Panics
    /// Panics if the command has no lines, one beyond its page, or a page that does not exist, or if the bound of
    /// commands is exceeded.
    pub fn command(&mut self, command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        assert!(command.lines != 0 && command.lines & !self.lines.all() == 0, "lines of a page: {command:?}");
        self.ledger.came += 1;
        self.ledger.lines_came += u64::from(command.lines.count_ones());
        let name = self.requests.insert(Request { command, sent: false });
        assert!(self.requests.len() <= self.bound, "more than {} commands at the same time", self.bound);
        if self.latency == Time::ZERO {
            self.found(name, cx);
        } else {
            cx.after(self.latency, Event::Found(name));
        }
    }

    /// Runs one internal event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        let Event::Found(name) = event;
        self.found(name, cx);
    }

    /// Handles a completed command of a memory.
    pub fn answered(&mut self, target: u8, command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        debug_assert!(usize::from(target) < self.targets(), "an answer of memory {target}");
        let place = || Place { target, frame: (command.page / PAGE) as u32 };
        match Tag::of(command.tag) {
            Tag::Request(name) => {
                let original = self.requests[name].command;
                if let Some(shadow) = &mut self.shadow {
                    shadow.done((original.page / PAGE) as u32, place(), original.write);
                }
                self.requests.remove(name);
                self.ledger.done += 1;
                cx.emit(Out::Done(MemCommand { since: command.since, absent: command.absent, ..original }));
                if self.most_exchanges > 0 {
                    self.let_go((original.page / PAGE) as u32, cx);
                }
            }
            Tag::Read(name, side) => {
                if let Some(shadow) = &mut self.shadow {
                    shadow.read(name, side, place());
                }
                self.ledger.bytes_read += self.lines.bytes_of(command.lines);
                self.page_read(name, cx);
            }
            Tag::Write(name, side) => {
                if let Some(shadow) = &mut self.shadow {
                    shadow.written(name, side, place());
                }
                self.ledger.bytes_written += self.lines.bytes_of(command.lines);
                self.page_written(name, side, cx);
            }
        }
    }

    /// Page of an address.
    #[inline]
    fn page(&self, address: u64) -> u32 {
        let page = address / PAGE;
        assert!(page < self.pages.into(), "there are {} pages, none of address {address}", self.pages);
        page as u32
    }

    /// Handles the end of a command's look-up.
    fn found(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let command = &mut self.requests[name].command;
        self.tally.command(Stage::Controller, command, cx.now());
        let address = command.page;
        let page = self.page(address);
        if self.most_exchanges > 0
            && let Some(mover) = self.held[page as usize].mover()
        {
            self.stats.waits += 1;
            self.wait(mover, name);
            return;
        }
        self.send(name, page, cx);
    }

    /// Sends a command to the place of its page.
    fn send(&mut self, name: u32, page: u32, cx: &mut impl Cx<Event, Out>) {
        let (place, is_new) = self.policy.place(page, cx.now());
        let request = &mut self.requests[name];
        request.sent = true;
        let command = request.command;
        let lines = u64::from(command.lines.count_ones());
        self.ledger.lines_sent += lines;
        self.stats.first_touches += u64::from(is_new);
        let stats = &mut self.stats.targets[usize::from(place.target)];
        if command.write {
            stats.writes += 1;
            stats.lines_written += lines;
        } else {
            stats.reads += 1;
            stats.lines_read += lines;
        }
        let page_there = u64::from(place.frame) * PAGE;
        let (tag, from) = (Tag::Request(name).word(), Port::default());
        let asked = MemCommand { tag, from, page: page_there, ..command };
        cx.emit(Out::Target { target: place.target, command: asked });
        if self.most_exchanges > 0 {
            self.hold(page, place, &command, cx);
        }
    }
}

// Spec of a placement.

/// Maximum number of memories behind a placement.
const TARGETS: usize = 255;

/// Maximum capacity of all memories in bytes: pages are counted in 31 bits.
const MOST: u64 = PAGE << 31;

/// Placement of pages over several memories behind one shared cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacementSpec {
    /// Capacity of each memory, in the order in which they are named: whole pages of 4 KiB, and at most 8 TiB together.
    /// A memory may be larger than the part in use.
    pub sizes: Vec<Bytes>,
    /// Latency of the table look-up of each command. Look-ups run concurrently.
    pub latency: Duration,
    /// Placement policy.
    pub policy: PlacementPolicy,
}

impl PlacementSpec {
    /// Checks that the placement can be built.
    ///
    /// # Errors
    /// Returns the first invalid value; its key is relative to this table.
    pub fn check(&self) -> Result<(), SpecError> {
        self.check_sizes()?;
        self.policy.build(&self.targets()).check()
    }

    fn check_sizes(&self) -> Result<(), SpecError> {
        let count = self.sizes.len();
        if count == 0 || count > TARGETS {
            let what = format!("{count} sizes; allowed are 1 to {TARGETS}, one for each memory");
            return Err(SpecError::new("sizes", what));
        }
        if let Some(size) = self.sizes.iter().find(|size| size.get() == 0 || !size.get().is_multiple_of(PAGE))
        {
            let what = format!("{size} is not a multiple of the page size, {PAGE} B");
            return Err(SpecError::new("sizes", what));
        }
        let sum = self.sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(size.get()));
        if sum > MOST {
            let what = format!("a total of {} exceeds the page table of the placement", Bytes::new(sum));
            return Err(
                SpecError::new("sizes", what).help(format!("choose at most {} in all", Bytes::new(MOST)))
            );
        }
        Ok(())
    }

    /// Capacities of the memories, in pages.
    fn targets(&self) -> Targets {
        Targets::new(self.sizes.iter().map(|size| (size.get() / PAGE) as u32))
    }
}
