//! DRAM that is a cache of pages over flash: a drive, or a memory of another kind.
//!
//! A row of DRAM is a set: pages, and a column with their tags. The frontside controller opens the row of an access, reads
//! the tags, and then the data of a hit; it passes a miss on to the backside controller and, as the access says, answers
//! it without data or keeps it until the page is there. The backside controller is programmable and does one thing
//! after another: it looks the page up in the miss status row (a miss whose page is on its way ends there; one whose set
//! of the row is full holds up those behind it), enters it, asks flash for it, reads the tags to find a victim, takes the
//! victim out of the tags, copies it to the evict buffer and, if it has changed, writes it to flash; when the page has
//! come it writes data and tags, takes the entry out of the row, and lets those go on who wait. All of these are
//! commands to a [`Dram`] of columns of 64 B, and wait for each other there; a line of the caches in front is one of them or
//! several. The order in which pages were used is kept without time.
//!
//! A page that is asked for while it is in the evict buffer comes back from there, without flash; it does not leave
//! again before its write has ended, so that writes of one page never overtake each other. A write that misses brings its
//! page first. Pages with accesses under way, and pages that are just coming, are no victims.
//!
//! A page that [admission](admit) does not want looks for no victim: when it has come, those who wait for it are answered from the
//! controller's buffer, without DRAM, and it is gone. If it is wanted by then, because of an access that has come meanwhile, its victim is
//! looked for then.
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

/// What a DRAM cache sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command comes back: its lines have been read or written or, if it says so, there are no data.
    Done(MemCommand),
    /// A page to read from a flash device, or to write there. Its offset is the page's physical address, its tag below 2^31.
    Submit(Command),
    /// A page to read from the memory behind the cache, or to write there: all its lines. The answer comes to
    /// [`DramCache::backed`]. A read is demanded if an access waits that counts milestones; its time is [`Stage::Refill`] of
    /// that access, whatever the memory behind calls it.
    ///
    /// [`Stage::Refill`]: proto::memory::Stage::Refill
    Backing(MemCommand),
    /// A page has come into the cache.
    Arrived {
        /// First byte of the page, physical.
        page: u64,
        /// Time since flash was asked for it.
        response: Time,
    },
}

engine::events! {
    /// What happens inside a DRAM cache.
    pub enum Event {
        /// Something in the DRAM.
        Dram(dram::Event),
        /// A frontside controller has issued something for a request.
        Issued(u32),
        /// A backside controller has issued something for a fetch.
        Stepped(u32),
        /// A backside controller has issued the look-up in its miss status row.
        Search(u16),
        /// A page has come, after the fixed time.
        Read(u32),
        /// A page has been written, after the fixed time.
        Written(u32),
    }
}

/// No name.
const NONE: u32 = u32::MAX;

/// What the cache knows of a page in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Page {
    /// It is just coming: its way is taken, its data are not there.
    coming: bool,
    /// It differs from what flash holds.
    dirty: bool,
    /// An earlier version of it is being written to flash.
    writing: bool,
    /// The application that wrote it last.
    app: u8,
    /// Accesses to its data under way.
    pins: u32,
}

impl Page {
    fn may_go(&self) -> bool {
        !self.coming && !self.writing && self.pins == 0
    }
}

/// Where data go, for tests to replay with versions of the data.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Move {
    /// A page is used before the run, and another makes room.
    Warm(u64, bool, Option<u64>),
    /// A command finds its page.
    Serve(MemCommand),
    /// A page leaves the tags for the evict buffer.
    Evict(u64),
    /// A page is asked from flash.
    Ask(u64),
    /// A page is taken from the evict buffer.
    Reclaim(u64),
    /// A page leaves the evict buffer; whether flash has taken it.
    Gone(u64, bool),
    /// A page is in the cache.
    Install(u64),
    /// A command finds its page on the way, which ends there.
    Pass(MemCommand),
    /// A page has come, and is not put into the cache.
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

/// A frontside and a backside controller.
struct Controller {
    tags: Tags<Page>,
    /// Serves commands of the frontside controller.
    front: Serial,
    /// Serves commands of the backside controller.
    back: Serial,
    /// Misses that the backside controller has no room for, in front of all that have read their tags since.
    blocked: VecDeque<u32>,
    /// Requests that have come since.
    waiting: VecDeque<u32>,
    /// Pages that the backside controller has not looked up yet.
    queue: VecDeque<u64>,
    search: Search,
    /// Entries in use of each set of the miss status row.
    entries: Vec<u8>,
    /// What is in the evict buffer.
    buffer: Vec<u32>,
    /// Fetches whose victims wait for room there.
    without_room: VecDeque<u32>,
    /// Fetches whose sets have no way that may go.
    without_way: VecDeque<u32>,
}

/// What happened to pages since the beginning, for the check.
#[derive(Clone, Copy, Debug, Default)]
struct Ledger {
    /// Clean pages that were changed.
    dirtied: u64,
    /// Changed pages that flash was given.
    stored: u64,
}

/// A DRAM cache.
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
    /// The fetch of each page that is missing.
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
    /// Counters.
    pub stats: DramCacheStats,
    /// Time waited, by stage.
    pub tally: Tally,
    #[cfg(test)]
    moves: Vec<Move>,
}

impl DramCache {
    /// Which missing pages are kept is decided by another policy from now on.
    pub fn set_admission(&mut self, admission: Box<dyn Admission>) {
        self.admission = admission;
    }

    /// An empty cache, whose commands are for lines of `line` bytes.
    ///
    /// # Errors
    /// The first value of the spec that does not fit; its key is relative to the spec's table. A line of another size than
    /// 64, 128, 256 or 512 B (key `line`).
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

    /// Controllers.
    pub fn controllers(&self) -> u16 {
        self.controllers.len() as u16
    }

    /// The controller in front of a physical address: pages go to the controllers in turn.
    pub fn controller_of(&self, address: u64) -> u16 {
        self.layout.controller_of(address)
    }

    /// Bytes of pages that it holds.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Where page tables lie.
    pub fn partition(&self) -> Partition {
        self.layout.partition()
    }

    /// These physical addresses are page tables: from now on they lie where the partition says.
    pub fn set_tables(&mut self, addresses: Range<u64>) {
        self.layout.set_tables(addresses);
    }

    /// Whether a page is in the cache, or in rows of its own.
    pub fn is_cached(&self, page: u64) -> bool {
        let controller = &self.controllers[usize::from(self.controller_of(page))];
        let found = controller.tags.find(self.layout.line_of(page));
        self.layout.flat(page).is_some() || found.is_some_and(|place| !controller.tags.meta(place).coming)
    }

    /// A page is used, without time: before a run.
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
        // None: everything else in the set is in use.
        let Some(found) = found else { return };
        let page_of = tags.meta_mut(found.0);
        self.ledger.dirtied += u64::from(write && !page_of.dirty);
        page_of.dirty |= write;
        // Before the run nothing has to be written.
        self.ledger.stored += u64::from(found.1.is_some_and(|(_, gone): (u64, Page)| gone.dirty));
        note!(self, Warm(page, write, found.1.map(|(line, _)| self.layout.page_of(number, line))));
    }

    /// Changed pages, by who changed them; and as what flash was given, what is here, and what is about to go to flash.
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

    /// Commands, fetches and evictions inside.
    pub fn outstanding(&self) -> usize {
        self.requests.len() + self.fetches.len() + self.leaving.len() + self.dram.outstanding()
    }

    /// At most so many commands will be inside: what all sources together can have outstanding. More are a panic.
    pub fn bound(&mut self, commands: usize) {
        self.bound = commands;
    }

    /// Counters of the DRAM inside.
    pub fn dram_stats(&self) -> &dram::DramStats {
        &self.dram.stats
    }

    /// The DRAM inside.
    pub fn dram(&self) -> &Dram {
        &self.dram
    }

    /// Energy of the DRAM inside since counters began; `None` if the spec does not say what things cost.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.dram.energy(now)
    }

    /// Counters begin anew.
    pub fn reset_stats(&mut self, now: Time) {
        self.stats = DramCacheStats::default();
        self.tally = Tally::default();
        self.dram.reset_stats(now);
    }

    /// Lines of a page are to be read or written.
    ///
    /// # Panics
    /// If it has no lines, or one beyond its page, or if there are more commands than the bound.
    pub fn command(&mut self, command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        self.arrive(command, cx);
    }

    /// The flash device has done a command.
    pub fn completed(&mut self, completion: Completion, cx: &mut impl Cx<Event, Out>) {
        if completion.status != Status::Success {
            self.stats.errors += 1;
        }
        self.answered(completion.tag, cx);
    }

    /// The memory behind the cache has done a command.
    pub fn backed(&mut self, command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        debug_assert_eq!(command.write, command.tag % 2 == 1, "an answer to another: {command:?}");
        self.answered(command.tag, cx);
    }

    /// One of its events has come.
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

// What a DRAM cache has counted.

/// Counters of one measured window, over all controllers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DramCacheStats {
    /// Accesses to page tables in rows of their own.
    pub flat: u64,
    /// Accesses to data in the cache, those included that had waited for their page.
    pub hits: u64,
    /// Accesses to data that had waited for a page that was not put into the cache.
    pub passes: u64,
    /// Accesses that did not find their page.
    pub misses: u64,
    /// Of them, answered without data.
    pub signalled: u64,
    /// Accesses that did not find their page and were answered without data; no page was asked for.
    pub probes: u64,
    /// Of the misses, those that waited for their page.
    pub waits: u64,
    /// Misses that the backside controller dropped because their page was on its way already, or there by then.
    pub merged: u64,
    /// Pages asked from flash.
    pub fetches: u64,
    /// Pages taken back from the evict buffer.
    pub reclaims: u64,
    /// Pages written to flash.
    pub write_backs: u64,
    /// Unchanged pages that made room.
    pub clean_evictions: u64,
    /// Changed pages that made room.
    pub dirty_evictions: u64,
    /// Pages of tables that left because they had been read.
    pub drops: u64,
    /// Pages put into the cache.
    pub installs: u64,
    /// Pages that were read and not put into the cache.
    pub bypasses: u64,
    /// Misses that waited for an entry of the miss status row.
    pub full_misses: u64,
    /// Misses that found no room in the queue of the backside controller, and held up its frontside controller.
    pub stalls: u64,
    /// Pages whose victim waited for room in the evict buffer.
    pub buffer_waits: u64,
    /// Pages that waited for a way because none of their set might go.
    pub way_waits: u64,
    /// Pages that have come from flash.
    pub responses: u64,
    /// Time from the request for a page to the page, summed over them.
    pub response: Time,
    /// Commands that flash has failed: pages that could not be read or written.
    pub errors: u64,
}
