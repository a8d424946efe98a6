//! DRAM cache of pages over flash: over a drive, or over a memory of another kind.
//!
//! A row of DRAM is a set: pages, and a column with their tags. The frontside controller opens the row of an access,
//! reads the tags, and then the data of a hit. It passes a miss on to the backside controller and, as the access
//! specifies, answers it without data or keeps it until the page has arrived. The backside controller is programmable
//! and does one thing at a time. It looks the page up in the miss status row: a miss whose page is in flight ends
//! there; one whose set of the row is full blocks those behind it. It then enters the page, requests it from flash,
//! reads the tags to find a victim, removes the victim from the tags, copies it to the evict buffer and, if it is
//! dirty, writes it to flash. When the page has arrived, it writes data and tags, removes the entry from the row, and
//! resumes the waiters. All of these are commands to a [`Dram`] of columns of 64 B, and wait for each other there; a
//! line of the caches in front is one or several columns. The order of page uses is kept without time.
//!
//! A page requested while it is in the evict buffer comes back from there, without flash. It is not evicted again
//! before its write has ended, so that writes of one page never overtake each other. A write that misses fetches its
//! page first. Pages with accesses under way, and pages that are just arriving, are not victims.
//!
//! A page that [admission](admit) rejects needs no victim: when it has arrived, its waiters are answered from the
//! controller's buffer, without DRAM, and it is dropped. If a later access has made it wanted by then, its victim is
//! chosen at that point.
//!
//! Source: AstriFlash, sections IV-A, IV-B and V-A.

pub mod admit;
mod backside;
mod evict;
mod frontside;
mod inner;
mod spec;
#[cfg(test)]
mod tests;

pub use spec::{Backing, BacksideSpec, DramCacheSpec, Fixed, FrontsideSpec, MissSpec, Partition};

use crate::cache::{Shape, Tags};
use crate::dram::{self, Dram};
use admit::Admission;
use backside::{Fetch, Search};
use config::SpecError;
use engine::resource::Serial;
use engine::{Cx, Lists, Slab, Time};
use evict::Leaving;
use frontside::Request;
use inner::{Inside, Waiter};
use proto::memory::{Lines, MemCommand, Tally};
use proto::{Command, Completion, Status};
use rustc_hash::FxHashMap;
use spec::{COLUMN, Layout};
use stats::EnergyReport;
use std::collections::VecDeque;
use std::ops::Range;

/// Messages sent by a DRAM cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command comes back: its lines have been read or written or, if so marked, have no data.
    Done(MemCommand),
    /// Page to read from a flash device, or to write there. Its offset is the page's physical address, its tag below
    /// 2^31.
    Submit(Command),
    /// Page to read from the memory behind the cache, or to write there: all its lines. The answer comes to
    /// [`DramCache::backed`]. A read is demanded if an access that counts milestones waits; its time is
    /// [`Stage::Refill`] of that access, whatever the memory behind calls it.
    ///
    /// [`Stage::Refill`]: proto::memory::Stage::Refill
    Backing(MemCommand),
    /// A page has arrived in the cache.
    Arrived {
        /// First byte of the page, physical.
        page: u64,
        /// Time since the request to flash.
        response: Time,
    },
}

engine::events! {
    /// Internal events of a DRAM cache.
    pub enum Event {
        /// An event of the DRAM.
        Dram(dram::Event),
        /// A frontside controller has issued something for a request.
        Issued(u32),
        /// A backside controller has issued something for a fetch.
        Stepped(u32),
        /// A backside controller has issued the look-up in its miss status row.
        Search(u16),
        /// A page has arrived, after the fixed time.
        Read(u32),
        /// A page has been written, after the fixed time.
        Written(u32),
    }
}

/// Invalid name.
const NONE: u32 = u32::MAX;

/// Record of a page in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Page {
    /// True while the page is arriving: its way is taken, its data are not there.
    coming: bool,
    /// True if the page differs from flash.
    dirty: bool,
    /// True while an earlier version of the page is being written to flash.
    writing: bool,
    /// Application that wrote it last.
    app: u8,
    /// Accesses to its data under way.
    pins: u32,
}

impl Page {
    fn may_go(&self) -> bool {
        !self.coming && !self.writing && self.pins == 0
    }
}

/// Data moves, for tests to replay with versions of the data.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Move {
    /// A page is used before the run, and possibly another is evicted.
    Warm(u64, bool, Option<u64>),
    /// A command finds its page.
    Serve(MemCommand),
    /// A page leaves the tags for the evict buffer.
    Evict(u64),
    /// A page is requested from flash.
    Ask(u64),
    /// A page is taken from the evict buffer.
    Reclaim(u64),
    /// A page leaves the evict buffer; true if flash has taken it.
    Gone(u64, bool),
    /// A page is in the cache.
    Install(u64),
    /// A command finds its page in flight, and ends there.
    Pass(MemCommand),
    /// A page has arrived, and is not put into the cache.
    Bypass(u64),
}

/// Records a [`Move`] in tests.
macro_rules! note {
    ($cache:expr, $($move:tt)+) => {
        #[cfg(test)]
        $cache.moves.push($crate::dram_cache::Move::$($move)+);
    };
}
use note;

/// Pair of a frontside and a backside controller.
struct Controller {
    tags: Tags<Page>,
    /// Server of the frontside controller's commands.
    front: Serial,
    /// Server of the backside controller's commands.
    back: Serial,
    /// Misses without room at the backside controller, followed by all requests that have read their tags since.
    blocked: VecDeque<u32>,
    /// Requests that have arrived since.
    waiting: VecDeque<u32>,
    /// Pages that the backside controller has not looked up yet.
    queue: VecDeque<u64>,
    search: Search,
    /// Entries in use in each set of the miss status row.
    entries: Vec<u8>,
    /// Pages in the evict buffer.
    buffer: Vec<u32>,
    /// Fetches whose victims wait for room in the evict buffer.
    without_room: VecDeque<u32>,
    /// Fetches whose sets have no evictable way.
    without_way: VecDeque<u32>,
}

/// Counts of page changes since the beginning, for the check.
#[derive(Clone, Copy, Debug, Default)]
struct Ledger {
    /// Clean pages that became dirty.
    dirtied: u64,
    /// Dirty pages sent to flash.
    stored: u64,
}

/// DRAM cache of pages.
pub struct DramCache {
    lines: Lines,
    layout: Layout,
    dram: Dram,
    controllers: Vec<Controller>,
    requests: Slab<Request>,
    /// Requests that wait for the pages of fetches.
    waiters: Lists<u32>,
    fetches: Slab<Fetch>,
    leaving: Slab<Leaving>,
    /// Fetch of each missing page.
    missing: FxHashMap<u64, u32>,
    admission: Box<dyn Admission>,
    front_command: Time,
    back_command: Time,
    queue: usize,
    miss_ways: u8,
    buffer: usize,
    burst: u32,
    backing: Backing,
    capacity: u64,
    bound: usize,
    ledger: Ledger,
    /// Statistics of the window.
    pub stats: DramCacheStats,
    /// Waiting time by stage.
    pub tally: Tally,
    #[cfg(test)]
    moves: Vec<Move>,
}

impl DramCache {
    /// Replaces the admission policy.
    pub fn set_admission(&mut self, admission: Box<dyn Admission>) {
        self.admission = admission;
    }

    /// Creates an empty cache, whose commands are for lines of `line` bytes.
    ///
    /// # Errors
    /// Returns the first invalid value of the spec; its key is relative to the spec's table. Line sizes other than 64,
    /// 128, 256 or 512 B are refused (key `line`).
    pub fn new(spec: &DramCacheSpec, line: u64) -> Result<DramCache, SpecError> {
        spec.check()?;
        let lines = crate::lines_of(line)?;
        let shape = Shape { sets: spec.sets, ways: spec.ways };
        let controller = |number: u16| Controller {
            tags: Tags::seeded(shape, &spec.replacement, number.into()),
            front: Serial::default(),
            back: Serial::default(),
            blocked: VecDeque::new(),
            waiting: VecDeque::new(),
            queue: VecDeque::with_capacity(spec.frontside.queue as usize),
            search: Search::Idle,
            entries: vec![0; spec.misses.sets as usize],
            buffer: Vec::with_capacity(spec.evict_buffer as usize),
            without_room: VecDeque::new(),
            without_way: VecDeque::new(),
        };
        let cycles = |hz: u64, count: u32| Time::period(hz).times(count.into());
        Ok(DramCache {
            lines,
            layout: Layout::new(spec, lines),
            dram: Dram::new(&spec.dram, COLUMN)?,
            controllers: (0..spec.dram.controllers).map(controller).collect(),
            requests: Slab::default(),
            waiters: Lists::default(),
            fetches: Slab::default(),
            leaving: Slab::default(),
            missing: FxHashMap::default(),
            admission: spec.admission.build(&spec.pages()),
            front_command: cycles(spec.frontside.clock.hz(), spec.frontside.command),
            back_command: cycles(spec.backside.clock.hz(), spec.backside.command),
            queue: spec.frontside.queue as usize,
            miss_ways: spec.misses.ways as u8,
            buffer: spec.evict_buffer as usize,
            burst: spec.backside.burst,
            backing: spec.backing.clone(),
            capacity: spec.capacity(),
            bound: usize::MAX,
            ledger: Ledger::default(),
            stats: DramCacheStats::default(),
            tally: Tally::default(),
            #[cfg(test)]
            moves: Vec::new(),
        })
    }

    /// Number of controllers.
    pub fn controllers(&self) -> u16 {
        self.controllers.len() as u16
    }

    /// Controller of a physical address: pages are assigned to controllers round-robin.
    pub fn controller_of(&self, address: u64) -> u16 {
        self.layout.controller_of(address)
    }

    /// Capacity in bytes of pages.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Location of page tables.
    pub fn partition(&self) -> Partition {
        self.layout.partition()
    }

    /// Marks these physical addresses as page tables: from now on they are where the partition says.
    pub fn set_tables(&mut self, addresses: Range<u64>) {
        self.layout.set_tables(addresses);
    }

    /// Returns true if a page is in the cache, or in a separate row.
    pub fn is_cached(&self, page: u64) -> bool {
        let controller = &self.controllers[usize::from(self.controller_of(page))];
        let found = controller.tags.find(self.layout.line_of(page));
        self.layout.flat(page).is_some() || found.is_some_and(|place| !controller.tags.meta(place).coming)
    }

    /// Uses a page, without time: before a run.
    pub fn warm(&mut self, page: u64, write: bool) {
        if self.layout.flat(page).is_some() {
            return;
        }
        let (number, line) = (self.controller_of(page), self.layout.line_of(page));
        let tags = &mut self.controllers[usize::from(number)].tags;
        let found = match tags.find(line) {
            Some(place) => {
                tags.touch(place);
                Some((place, None))
            }
            None => tags.insert(line, Page::default(), Page::may_go),
        };
        // No way is free: every other page of the set is in use.
        let Some(found) = found else { return };
        let page_of = tags.meta_mut(found.0);
        self.ledger.dirtied += u64::from(write && !page_of.dirty);
        page_of.dirty |= write;
        // Before the run nothing has to be written.
        self.ledger.stored += u64::from(found.1.is_some_and(|(_, gone): (u64, Page)| gone.dirty));
        note!(self, Warm(page, write, found.1.map(|(line, _)| self.layout.page_of(number, line))));
    }

    /// Number of dirty pages, counted twice: by their changes; and as pages sent to flash, present, or about to be
    /// sent.
    /// O(pages).
    pub fn changed_pages(&self) -> (u64, u64) {
        let dirty = |c: &Controller| {
            let held = |place: &u32| c.tags.line(*place).is_some() && c.tags.meta(*place).dirty;
            (0..c.tags.places()).filter(held).count() as u64
        };
        let here: u64 = self.controllers.iter().map(dirty).sum();
        let leaving = self.leaving.live().filter(|(_, leaving)| leaving.is_unsaved()).count() as u64;
        (self.ledger.dirtied, self.ledger.stored + here + leaving)
    }

    /// Number of commands, fetches and evictions inside.
    pub fn outstanding(&self) -> usize {
        self.requests.len() + self.fetches.len() + self.leaving.len() + self.dram.outstanding()
    }

    /// Bounds the commands inside, to the number that all sources together can have outstanding. Exceeding it is a
    /// panic.
    pub fn bound(&mut self, commands: usize) {
        self.bound = commands;
    }

    /// Statistics of the inner DRAM.
    pub fn dram_stats(&self) -> &dram::DramStats {
        &self.dram.stats
    }

    /// Inner DRAM.
    pub fn dram(&self) -> &Dram {
        &self.dram
    }

    /// Energy of the inner DRAM since the measured window began; `None` without energies in the spec.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.dram.energy(now)
    }

    /// Starts the measured window.
    pub fn reset_stats(&mut self, now: Time) {
        self.stats = DramCacheStats::default();
        self.tally = Tally::default();
        self.dram.reset_stats(now);
    }

    /// Accepts a command to read or write lines of a page.
    ///
    /// # Panics
    /// Panics if the command has no lines, or one beyond its page, or if the bound of commands is exceeded.
    pub fn command(&mut self, command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        self.arrive(command, cx);
    }

    /// Handles a completion of the flash device.
    pub fn completed(&mut self, completion: Completion, cx: &mut impl Cx<Event, Out>) {
        if completion.status != Status::Success {
            self.stats.errors += 1;
        }
        self.answered(completion.tag, cx);
    }

    /// Handles a completed command of the memory behind the cache.
    pub fn backed(&mut self, command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        debug_assert_eq!(command.write, command.tag % 2 == 1, "an answer to another: {command:?}");
        self.answered(command.tag, cx);
    }

    /// Runs one internal event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Dram(event) => {
                let mut inside = Inside { cx, done: None };
                self.dram.handle(event, &mut inside);
                let Some(done) = inside.done else { return };
                match Waiter::of(done.tag) {
                    Waiter::Nobody => {}
                    Waiter::Request(name) => self.accessed(name, cx),
                    Waiter::Fetch(name) => self.moved(name, cx),
                    Waiter::Search(controller) => self.searched(controller, cx),
                }
            }
            Event::Issued(name) => self.issued(name, cx),
            Event::Stepped(name) => self.stepped(name, cx),
            Event::Search(controller) => self.look_up(controller, cx),
            Event::Read(name) => self.responded(name, cx),
            Event::Written(name) => self.written(name, cx),
        }
    }

    #[inline]
    fn controller(&mut self, number: u16) -> &mut Controller {
        &mut self.controllers[usize::from(number)]
    }

    /// Sends a command to the DRAM.
    fn access_dram(
        &mut self,
        waiter: Waiter,
        page: u64,
        columns: u64,
        write: bool,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let command = inner::command(waiter, page, columns, write, cx.now());
        self.dram.command(command, &mut Inside { cx, done: None });
    }
}

// Statistics of a DRAM cache.

/// Statistics of one measured window, over all controllers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DramCacheStats {
    /// Accesses to page tables in separate rows.
    pub flat: u64,
    /// Accesses to data in the cache, including those that waited for their page.
    pub hits: u64,
    /// Accesses to data that waited for a page that was not put into the cache.
    pub passes: u64,
    /// Accesses that missed.
    pub misses: u64,
    /// Misses answered without data.
    pub signalled: u64,
    /// Accesses that missed and were answered without data, without requesting the page.
    pub probes: u64,
    /// Misses that waited for their page.
    pub waits: u64,
    /// Misses that the backside controller dropped because their page was already in flight, or present by then.
    pub merged: u64,
    /// Pages requested from flash.
    pub fetches: u64,
    /// Pages taken back from the evict buffer.
    pub reclaims: u64,
    /// Pages written to flash.
    pub write_backs: u64,
    /// Clean pages evicted.
    pub clean_evictions: u64,
    /// Dirty pages evicted.
    pub dirty_evictions: u64,
    /// Pages of page tables dropped after they had been read.
    pub drops: u64,
    /// Pages put into the cache.
    pub installs: u64,
    /// Pages that were read and not put into the cache.
    pub bypasses: u64,
    /// Misses that waited for an entry of the miss status row.
    pub full_misses: u64,
    /// Misses that found the queue of the backside controller full, and blocked its frontside controller.
    pub stalls: u64,
    /// Pages whose victim waited for room in the evict buffer.
    pub buffer_waits: u64,
    /// Pages that waited for a way because no page of their set was evictable.
    pub way_waits: u64,
    /// Pages that have come from flash.
    pub responses: u64,
    /// Time from the request for a page until its arrival, summed over all pages.
    pub response: Time,
    /// Commands that flash failed: pages that could not be read or written.
    pub errors: u64,
}
