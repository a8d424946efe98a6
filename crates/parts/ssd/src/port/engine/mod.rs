//! HybridGPU's SSD engine, between a GPU's shared cache and an ordinary flash device.
//!
//! A request enters over the network into **one dispatcher**, which takes one at a time. It is then looked up in the
//! flash cache, the pages in the engine's DRAM: pages read from flash in the **read buffer**, written pages in the
//! **write buffer**. A hit crosses the DRAM's bus once. A miss costs an address translation ("flash core"), a read of
//! the page in the device, and two crossings: the page in, the lines out.
//!
//! Sources: Zhang et al., "FlashGPU", DAC 2019 (HybridGPU), following the configuration and the flash cache of its
//! published simulator, and sections I, II-C, III-A and V of Zhang and Jung, "ZnG", ISCA 2020. Open details were
//! decided as follows, before any result was seen:
//!
//! * The FTL is paid **for a page, on a miss of the flash cache only**, by reads and by evictions; a hit never pays it. The
//! * The page is put into the read buffer when it arrives, not when it is requested; a clean page is evicted for it.
//! * A prefetched page pays it like any other: the published cache calls the FTL once for each page of the superpage.
//! * The dispatcher is passed once, on the way in. Answers leave over the network that the machine has.
//! * A request that waits does not hold up the dispatcher: neither source has a queue limit there.
//! * The page is put into the read buffer when it arrives, not when it is asked for; a clean page makes room.
//! * The read buffer keeps its copy of a page that is being written, for the lines that are not written; it gives it up
//!   when the written page leaves. (The published cache gives it up at the first write and takes 128 B for the page.)
//! * A written page keeps the lines that were written. When it makes room and lines are missing, the read buffer's copy
//!   completes it at no cost beyond the crossing on its way out; without one, the page is first fetched from flash,
//!   through the FTL, and the missing lines cross the bus.
//! * A page that makes room pays the FTL, is read out of the DRAM (4 KiB cross the bus), and is then in the flash
//!   controllers' registers; its place is free from there on. A write that found its set full waits for the place; in the
//!   published cache it does not wait at all, since nothing there waits for room.
//! * Reads of a page on its way to flash wait for its program, as they would for the die.
//! * The page tracker is the published one with one entry for an instruction (it has entries for its warps besides, which a
//!   memory command here does not name) and the published configuration's count; the page behind the superpage of
//!   the last access counts as sequential too. A superpage is the aligned group of pages, one in each channel under
//!   CWDP striping.
//! * Look-ups in the buffers take no time beyond the dispatcher's.
//!
//! Simplifications: the NVMe-like host interface layer of the published simulator (its costs are zero there for a GPU),
//! and refresh and write-to-read turnaround of the DRAM: to include these, reduce `dram.bandwidth`.
//!
//! Bounds: the sources are closed, so requests are bounded by theirs. Pages with work under way are bounded by
//! requests, by evictions (one for each place of the write buffer, and `evictions` in flight) and by the pages of their
//! superpages.

mod cache;
mod spec;
mod stats;
#[cfg(test)]
mod tests;

pub use spec::{BufferDramSpec, EngineSpec, PageBufferSpec, PrefetchSpec};
pub use stats::{EngineBusy, EngineStats, LookUps};

use cache::{Busy, Fetch};
use config::SpecError;
use engine::resource::{Pool, Serial};
use engine::{Cx, Lists, Slab, Time};
use mem::cache::replace::ReplacementPolicy;
use mem::cache::{Shape, Tags};
use proto::memory::{Lines, MemCommand, PAGE, Stage, Tally};
use proto::{Command, Completion, IoOp, Status};
use rustc_hash::FxHashMap;
use spec::Dram;
use std::collections::VecDeque;

engine::events! {
    /// Internal events of the engine.
    pub enum Event {
        /// The dispatcher has taken a request.
        Dispatched(u32),
        /// A page to be read has been translated.
        Translated(u32),
        /// A page to be written has been translated.
        Placed(u32),
        /// A page has been read out of the DRAM, to be written to flash.
        ReadOut(u32),
        /// The DRAM has been accessed for a request.
        Answered(u32),
    }
}

/// Messages sent by the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A request of the shared cache is done.
    Done(MemCommand),
    /// A command to the flash device: one page.
    Submit(Command),
}

/// Page of the read buffer.
#[derive(Clone, Copy, Default)]
struct Copied {
    /// True if the page was prefetched and no request has asked for it yet.
    ahead: bool,
}

/// Page of the write buffer.
#[derive(Clone, Copy, Default)]
struct Written {
    /// Lines in the buffer.
    valid: u64,
    /// True while the place still holds the page that leaves it.
    pending: bool,
}

/// Row of a place. Places of consecutive sets are consecutive rows, so that consecutive pages are in different banks.
fn row(place: u32, ways: u32, places: u32) -> u32 {
    place % ways * (places / ways) + place / ways
}

/// HybridGPU's SSD engine.
pub struct Engine {
    lines: Lines,
    dispatcher: Serial,
    dispatch_time: Time,
    ftl: Pool,
    ftl_time: Time,
    dram: Dram,
    /// Buffer of pages read from flash.
    reads: Tags<Copied>,
    /// Buffer of written pages.
    writes: Tags<Written>,
    read_ways: u32,
    write_ways: u32,
    write_sets: u64,
    tracker: Option<Tracker>,
    /// Pages of the device; superpages end there.
    device_pages: u64,
    requests: Slab<MemCommand>,
    /// Requests that wait for pages.
    waiting: Lists<u32>,
    /// Pages with work under way, by name and by page.
    pages: Slab<Busy>,
    at: FxHashMap<u64, u32>,
    /// Busy pages for which no place is available yet, by set of the write buffer.
    without_place: Vec<VecDeque<u32>>,
    /// Leaving pages that wait until fewer are in flight to flash.
    held: VecDeque<u32>,
    outbound: u32,
    outbound_limit: u32,
    ledger: stats::Ledger,
    /// Statistics since the window began.
    pub stats: EngineStats,
    /// Waits of requests.
    pub tally: Tally,
    #[cfg(test)]
    trail: Vec<trail::Moved>,
}

impl Engine {
    /// Creates an idle engine with empty buffers, whose requests are for lines of `line` bytes.
    ///
    /// # Errors
    /// Returns the first value that cannot be built, with its key, or refuses a line size other than 64, 128, 256 or
    /// 512 B (key `line`).
    pub fn new(spec: &EngineSpec, line: u64) -> Result<Engine, SpecError> {
        spec.check()?;
        let lines = mem::lines_of(line)?;
        let shape = |buffer: &PageBufferSpec| Shape {
            sets: (buffer.pages() / u64::from(buffer.ways)) as u32,
            ways: buffer.ways,
        };
        let write_shape = shape(&spec.write_buffer);
        Ok(Engine {
            lines,
            dispatcher: Serial::default(),
            dispatch_time: spec.dispatch_time.time(),
            ftl: Pool::new(spec.ftl_in_service as usize),
            ftl_time: spec.ftl_time.time(),
            dram: Dram::new(&spec.dram),
            reads: Tags::new(shape(&spec.read_buffer), &ReplacementPolicy::lru),
            writes: Tags::new(write_shape, &ReplacementPolicy::lru),
            read_ways: spec.read_buffer.ways,
            write_ways: write_shape.ways,
            write_sets: write_shape.sets.into(),
            tracker: spec.prefetch.as_ref().map(Tracker::new),
            device_pages: u64::MAX,
            requests: Slab::default(),
            waiting: Lists::default(),
            pages: Slab::default(),
            at: FxHashMap::default(),
            without_place: vec![VecDeque::new(); write_shape.sets as usize],
            held: VecDeque::new(),
            outbound: 0,
            outbound_limit: spec.evictions,
            ledger: stats::Ledger::default(),
            stats: EngineStats::default(),
            tally: Tally::default(),
            #[cfg(test)]
            trail: Vec::new(),
        })
    }

    /// Sets the capacity of the device behind the engine: superpages end there. Without it, every superpage is assumed
    /// to be whole.
    pub fn set_capacity(&mut self, bytes: u64) {
        self.device_pages = bytes / PAGE;
    }

    /// Accepts a request of the shared cache.
    pub fn command(&mut self, command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        debug_assert!(
            command.page.is_multiple_of(PAGE) && command.lines != 0 && command.lines & !self.lines.all() == 0,
            "lines of a page: {command:?}"
        );
        let id = self.requests.insert(command);
        self.ledger.entered += 1;
        let end = self.dispatcher.grant(cx.now(), self.dispatch_time);
        cx.after(end - cx.now(), Event::Dispatched(id));
    }

    /// Handles a completion of the device.
    pub fn completed(&mut self, completion: Completion, cx: &mut impl Cx<Event, Out>) {
        self.ledger.completed += 1;
        self.stats.failed += u64::from(completion.status != Status::Success);
        let name = completion.tag;
        if self.pages[name].fetch == cache::Fetch::Reading {
            self.fetched(name, cx);
        } else {
            self.programmed(name, cx);
        }
    }

    /// Runs one internal event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Dispatched(id) => self.dispatched(id, cx),
            Event::Translated(name) => self.translated(name, cx),
            Event::Placed(name) => self.placed(name, cx),
            Event::ReadOut(name) => self.read_out_done(name, cx),
            Event::Answered(id) => self.answered(id, cx),
        }
    }

    /// Number of requests inside, plus pages with work under way.
    pub fn outstanding(&self) -> usize {
        self.requests.len() + self.pages.len()
    }

    fn answered(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let mut command = self.requests[id];
        self.requests.remove(id);
        self.ledger.answered += 1;
        self.tally.command(Stage::Buffer, &mut command, cx.now());
        cx.emit(Out::Done(command));
    }

    fn submit(&mut self, name: u32, op: IoOp, cx: &mut impl Cx<Event, Out>) {
        self.ledger.submitted += 1;
        cx.emit(Out::Submit(Command::new(name, op, self.pages[name].page * PAGE, PAGE)));
    }

    /// Row of a place of the read buffer.
    fn read_row(&self, place: u32) -> u32 {
        row(place, self.read_ways, self.reads.places())
    }

    /// Row of a place of the write buffer, after those of the read buffer.
    fn write_row(&self, place: u32) -> u32 {
        self.reads.places() + row(place, self.write_ways, self.writes.places())
    }

    /// Busy record of a page, created if necessary.
    fn busy_at(&mut self, page: u64) -> u32 {
        if let Some(name) = self.at.get(&page) {
            return *name;
        }
        let name = self.pages.insert(Busy::new(page));
        self.at.insert(page, name);
        name
    }

    /// Forgets a page without work under way.
    fn retire(&mut self, name: u32) {
        if self.pages[name].is_idle() {
            self.at.remove(&self.pages[name].page);
            self.pages.remove(name);
        }
    }

    /// Repeats the look-ups of all requests that wait for a page; they have stopped waiting for `stage`.
    fn wake(&mut self, name: u32, stage: Stage, cx: &mut impl Cx<Event, Out>) {
        let mut waiting = self.pages[name].take_waiting();
        while let Some(id) = self.waiting.pop(&mut waiting) {
            self.tally.command(stage, &mut self.requests[id], cx.now());
            self.look_up(id, false, cx);
        }
    }
}

// Pages in flight from flash to the DRAM.

impl Engine {
    /// Starts reading a page from flash, with the FTL.
    fn fetch(&mut self, name: u32, asked: bool, cx: &mut impl Cx<Event, Out>) {
        let state = &mut self.pages[name];
        (state.fetch, state.asked) = (Fetch::Translating, asked);
        self.ledger.fetches += 1;
        self.stats.flash_reads += 1;
        self.stats.prefetched += u64::from(!asked);
        let end = self.translate(cx);
        cx.after(end - cx.now(), Event::Translated(name));
    }

    /// Joins the FTL's queue; returns when the translation is done.
    fn translate(&mut self, cx: &impl Cx<Event, Out>) -> engine::Time {
        self.ledger.translations += 1;
        self.stats.ftl_requests += 1;
        self.ftl.grant(cx.now(), self.ftl_time)
    }

    /// Fetches the other pages of a superpage if the instruction reads in sequence.
    fn fetch_superpage(&mut self, command: &MemCommand, cx: &mut impl Cx<Event, Out>) {
        let Some(tracker) = &self.tracker else { return };
        let Some(superpage) = tracker.superpage(command.pc, command.page / PAGE) else { return };
        for page in superpage.start..superpage.end.min(self.device_pages) {
            let here = self.reads.find(page).is_some() || self.writes.find(page).is_some();
            if !here && !self.at.contains_key(&page) {
                let name = self.busy_at(page);
                self.fetch(name, false, cx);
            }
        }
    }

    fn translated(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let state = &mut self.pages[name];
        state.fetch = Fetch::Reading;
        for id in self.waiting.iter(state.waiting()) {
            self.tally.command(Stage::Ftl, &mut self.requests[*id], cx.now());
        }
        self.submit(name, IoOp::Read, cx);
    }

    /// Handles a page from flash: it enters the read buffer, or completes a page that is leaving the write buffer.
    fn fetched(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let all = self.lines.all();
        let state = &mut self.pages[name];
        state.fetch = Fetch::None;
        if let Some(leaving) = &mut state.leaving {
            let missing = all & !leaving.valid;
            leaving.valid = all;
            #[cfg(test)]
            self.trail.push(trail::Moved::Filled { page: state.page, row: leaving.row, lines: missing });
            if missing != 0 {
                self.stats.merged_from_flash += 1;
                self.dram.access(cx.now(), leaving.row, self.lines.bytes_of(missing));
            }
        } else {
            let (page, ahead) = (state.page, !state.asked);
            let (place, gone) =
                self.reads.insert(page, Copied { ahead }, |_| true).expect("any clean page may go");
            self.stats.prefetch_unused += u64::from(gone.is_some_and(|(_, copied)| copied.ahead));
            let row = self.read_row(place);
            #[cfg(test)]
            self.trail.push(trail::Moved::Filled { page, row, lines: all });
            self.dram.access(cx.now(), row, PAGE);
        }
        self.wake(name, Stage::Array, cx);
        self.advance(name, cx);
        self.retire(name);
    }
}

// Detection of load instructions that read in sequence.

/// No page yet.
const NONE: u64 = u64::MAX;

/// Tracker of load instructions: a table indexed by the address of the instruction, without tags. Instructions that
/// share an entry disturb each other, as in the simulator published by HybridGPU's authors.
struct Tracker {
    entries: Vec<Entry>,
    after: u32,
    pages: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    last: u64,
    count: u32,
}

impl Tracker {
    fn new(spec: &PrefetchSpec) -> Tracker {
        Tracker {
            entries: vec![Entry { last: NONE, count: 0 }; spec.entries as usize],
            after: spec.after,
            pages: u64::from(spec.pages),
        }
    }

    /// Notes that an instruction reads a page; address zero means no instruction.
    #[inline]
    fn observe(&mut self, pc: u32, page: u64) {
        if pc == 0 {
            return;
        }
        let index = pc as usize % self.entries.len();
        let entry = &mut self.entries[index];
        if entry.last == NONE {
            entry.count = 0;
        } else if page / self.pages == entry.last / self.pages || page == entry.last + 1 {
            entry.count = (entry.count + 1).min(self.after);
        } else {
            entry.count = entry.count.saturating_sub(1);
        }
        entry.last = page;
    }

    /// Superpage of a page missed by the instruction, if all of it is to be fetched.
    #[inline]
    fn superpage(&self, pc: u32, page: u64) -> Option<std::ops::Range<u64>> {
        if pc == 0 || self.entries[pc as usize % self.entries.len()].count < self.after {
            return None;
        }
        let first = page - page % self.pages;
        Some(first..first + self.pages)
    }
}

/// Record of the engine's data moves, for tests: they move versions along and check the answers.
#[cfg(test)]
mod trail {
    use proto::memory::MemCommand;

    /// Move of data, in the order of the DRAM's accesses.
    #[derive(Clone, Copy, Debug)]
    pub(super) enum Moved {
        /// Lines of a write go into a row.
        Stored { tag: u32, row: u32, lines: u64 },
        /// Lines of a read come out of a row, those of `newer` out of another.
        Loaded { tag: u32, row: u32, lines: u64, newer: Option<(u64, u32)> },
        /// Lines of a page from flash go into a row.
        Filled { page: u64, row: u32, lines: u64 },
        /// A page goes to flash: `lines` from its row, the rest from another.
        Out { page: u64, row: u32, lines: u64, rest: Option<u32> },
    }

    impl Moved {
        /// Lines of a request.
        pub(super) fn lines(command: &MemCommand, row: u32, newer: Option<(u64, u32)>) -> Moved {
            let MemCommand { tag, write, lines, .. } = *command;
            if write { Moved::Stored { tag, row, lines } } else { Moved::Loaded { tag, row, lines, newer } }
        }
    }
}
