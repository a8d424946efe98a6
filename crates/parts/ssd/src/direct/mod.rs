//! Flash as memory: planes behind flash controllers on the cores' network, without an SSD engine (ZnG, sections III-B to
//! IV-C).
//!
//! The dispatcher of its controller takes a command, which then crosses the flash network. A read is served by the
//! registers of its package if they hold all its lines. Otherwise the array of its plane senses the page into the
//! plane's data register, which is occupied until the page has left through a port. A write is done when a register has
//! taken its lines. A page evicted from its register is programmed into the log block of its data block.
//!
//! Commands for a page take effect in order of arrival: writes follow each other on one path, and a read waits for a
//! write of the lines it reads. The pages of an application are its own: a merge delays only its commands.
//!
//! Addresses are those of the block table's logical side: caches in front are indexed by them, and a merge moves data
//! to other blocks but does not change addresses.

mod access;
mod array;
mod merge;
mod shadow;
pub mod spec;
mod stats;
#[cfg(test)]
mod tests;

pub use ftl::log::mapping::Place;
pub use nand::planes::Spread;
pub use spec::{DirectHelper, DirectSpec};
pub use stats::{DirectBusy, DirectCounts, DirectEnergySpec, DirectStats, Dirty};

use access::{Checker, Waiter};
use array::{Cargo, Op};
use config::SpecError;
use engine::resource::Serial;
use engine::{Cx, Inside, Rng, Slab, Time};
use ftl::log::Blocks;
use ftl::log::mapping::Layout;
use merge::{App, Job, Reclaim};
use nand::numbers::{NONE, Packages};
use nand::planes::Planes;
use nand::planes::network::{self, Network};
use nand::registers::{Link, RegisterNetwork, Registers};
use proto::memory::{Help, Lines, MemCommand, PAGE, Stage, Tally};
use rustc_hash::FxHashMap;
use shadow::Shadow;
use spec::Transfer;
use stats::{DirectMeter, Ledger, PageSet};
use std::collections::BTreeMap;
use std::ops::Range;

engine::events! {
    /// Internal events of the component.
    pub enum Event {
        /// A read has reached its package.
        Arrived(u32),
        /// A write leaves its controller.
        Dispatched(u32),
        /// An event of the network.
        Network(network::Event),
        /// The array of a plane has finished.
        ArrayDone(u32),
        /// The data register of a plane may be free.
        PlaneFree(u32),
        /// The shared cache has taken the page in a register, unless it has refused it.
        Taken(u32),
    }
}

impl From<network::Event> for Event {
    #[inline]
    fn from(event: network::Event) -> Event {
        Event::Network(event)
    }
}

/// Messages sent by the component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command is done: the lines of a read are at the controller, those of a write in a register.
    Done(MemCommand),
    /// The registers thrash: the shared cache must keep these lines of a page, or refuse with [`Direct::refused`]
    /// before time advances.
    ///
    /// The cache refuses a page with its own writes under way: they are newer than these lines. A read of the page
    /// under way may bring older lines: the ones offered here are newer.
    Park {
        /// First byte of the page.
        page: u64,
        /// Dirty lines of the page.
        lines: u64,
        /// Application that wrote them last.
        app: u8,
    },
    /// Request to the helper thread of a merge to execute instructions; answered by [`Direct::helped`].
    Help(Help),
    /// Begin or end of the time in which merges of log blocks block an application.
    Reclaim {
        /// Number of the application.
        app: u8,
        /// True at the beginning.
        begins: bool,
    },
}

/// Times of the array.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Search of the log's page table, plus the read.
    sense: Time,
    program: Time,
    erase: Time,
}

/// Command inside.
#[derive(Clone, Copy, Debug)]
struct Active {
    command: MemCommand,
    place: Place,
    /// Time at which the command left its controller.
    left: Time,
    /// Next command that shares the fetch, or waits for the same register, merge or write.
    after: u32,
    /// Latest read that waits for this write.
    readers: u32,
}

/// Writes to a page in flight to its register.
#[derive(Clone, Copy, Debug)]
struct Coming {
    /// Latest of these writes.
    last: u32,
    lines: u64,
}

/// Flash as memory.
pub struct Direct {
    lines: Lines,
    layout: Layout,
    packages: Packages,
    times: Times,
    blocks: Blocks,
    registers: Registers,
    register_network: RegisterNetwork,
    /// Path of pages from a register to the data register of another plane.
    link: Link,
    planes: Planes<Op>,
    network: Network<Cargo>,
    transfer: Transfer,
    dispatchers: Vec<Serial>,
    dispatch: Time,
    latency: Time,
    active: Slab<Active>,
    /// Reads that others may join, by page.
    fetches: Option<FxHashMap<u64, u32>>,
    /// Writes in flight, by page.
    coming: FxHashMap<u64, Coming>,
    waiters: Slab<Waiter>,
    /// Pages that wait for a register.
    waiting: FxHashMap<u64, u32>,
    /// Registers of a set kept free.
    reserve: u32,
    /// Thrashing checkers of the packages.
    checkers: Option<Vec<Checker>>,
    threshold: (u32, u32),
    merges: Slab<Job>,
    helper: DirectHelper,
    /// Helper threads so far: one per merge.
    threads: u32,
    /// Merges of each set of planes.
    reclaims: Vec<Reclaim>,
    /// Sets of registers where pages wait for a merge, so that others may have to leave.
    short: Vec<u32>,
    apps: Vec<App>,
    read: PageSet,
    programmed: PageSet,
    written: PageSet,
    rng: Rng,
    ledger: Ledger,
    shadow: Option<Box<Shadow>>,
    meter: Option<Box<DirectMeter>>,
    reach: u64,
    /// Statistics since the window began.
    pub stats: DirectStats,
    /// Waits of commands.
    pub tally: Tally,
}

/// Registers of a set kept free: the spec's share, rounded down.
fn reserve(spec: &DirectSpec, packages: &Packages, private: bool) -> u32 {
    let planes = if private { 1 } else { packages.package_planes };
    let registers = f64::from(planes * (spec.registers.count - 1));
    (registers * spec.registers.reserve.get()) as u32
}

impl Direct {
    /// Creates idle flash, whose commands are for lines of `line` bytes. Keys of errors are relative to the part's
    /// table.
    ///
    /// # Errors
    /// Returns the errors of [`DirectSpec::check`], or refuses a line size other than 64, 128, 256 or 512 B (key
    /// `line`).
    pub fn new(spec: &DirectSpec, seed: u64, line: u64) -> Result<Direct, SpecError> {
        spec.check()?;
        let lines = mem::lines_of(line)?;
        let (geometry, array) = (&spec.geometry, &spec.array);
        let (layout, packages) = (Layout::new(geometry, &spec.mapping), geometry.packages());
        let private = spec.registers.network == RegisterNetwork::private;
        let pages = || PageSet::new(layout.pages);
        Ok(Direct {
            lines,
            times: Times {
                sense: spec.mapping.search.time() + array.read.time(),
                program: array.program.time(),
                erase: array.erase.time(),
            },
            blocks: Blocks::new(&spec.mapping, layout.planes, geometry.blocks, geometry.pages),
            registers: Registers::new(&packages, spec.registers.count - 1, private),
            register_network: spec.registers.network.clone(),
            link: Link::new(&spec.registers.network, layout.planes, PAGE),
            planes: Planes::new(layout.planes, array.scheduler.build(&())),
            network: Network::new(
                geometry,
                &spec.network,
                (spec.controller.count, spec.command.get()),
                lines,
            )?,
            transfer: spec.transfer,
            dispatchers: vec![Serial::default(); spec.controller.count as usize],
            dispatch: spec.controller.dispatch.time(),
            latency: spec.controller.latency.time(),
            active: Slab::default(),
            fetches: array.merge_reads.then(FxHashMap::default),
            coming: FxHashMap::default(),
            waiters: Slab::default(),
            waiting: FxHashMap::default(),
            reserve: reserve(spec, &packages, private),
            checkers: spec.redirect.as_ref().map(|_| vec![Checker::default(); packages.count() as usize]),
            threshold: spec
                .redirect
                .as_ref()
                .map_or((0, 0), |r| (r.window, r.threshold.of(r.window.into()) as u32)),
            merges: Slab::default(),
            helper: spec.helper.unwrap_or_default(),
            threads: 0,
            reclaims: vec![Reclaim::default(); (layout.planes / layout.group()) as usize],
            short: Vec::new(),
            apps: vec![App::default(); usize::from(u8::MAX) + 1],
            read: pages(),
            programmed: pages(),
            written: pages(),
            rng: Rng::stream(seed, "direct/logs"),
            ledger: Ledger::default(),
            shadow: None,
            meter: spec.energy.map(|costs| Box::new(DirectMeter::new(costs, layout.planes))),
            reach: spec.reach(),
            stats: DirectStats { plane_writes: vec![0; layout.planes as usize], ..DirectStats::default() },
            tally: Tally::default(),
            layout,
            packages,
        })
    }

    /// Number of flash controllers.
    pub fn controllers(&self) -> u16 {
        self.dispatchers.len() as u16
    }

    /// Controller of the page at an address.
    #[inline]
    pub fn controller_of(&self, page: u64) -> u16 {
        self.network.controller(self.packages.package(self.layout.place(page / PAGE).plane).0)
    }

    /// Bytes of the address space.
    pub fn capacity(&self) -> u64 {
        self.layout.pages * PAGE
    }

    /// Bytes of the address space that one entry of the block table covers.
    pub fn reach(&self) -> u64 {
        self.reach
    }

    /// Number of commands inside.
    pub fn outstanding(&self) -> usize {
        self.active.len()
    }

    /// Leaves only `left` free pages in the log blocks of the addresses in `bytes`, filling them with copies of random
    /// pages of `bytes`. Takes no time; a precondition. The range begins with an entry of the block table.
    ///
    /// # Panics
    /// Panics if the range reaches beyond the address space.
    pub fn fill_logs(&mut self, bytes: Range<u64>, left: u32) {
        assert!(bytes.end <= self.capacity(), "{bytes:?} of {} bytes", self.capacity());
        let mut logs: BTreeMap<(u32, u32), Vec<(u32, u32)>> = BTreeMap::new();
        for (place, pages) in self.data_blocks(bytes) {
            let log = logs.entry((place.plane, self.blocks.share_of(place.slot)));
            log.or_default().push((place.slot, pages));
        }
        for ((plane, _), slots) in logs {
            self.blocks.fill(plane, &slots, left, &mut self.rng);
        }
    }

    /// Marks only these bytes of the address space as holding data; all before them belong to applications named
    /// earlier. The range begins with an entry of the block table.
    pub fn occupy(&mut self, bytes: Range<u64>) {
        for (place, pages) in self.data_blocks(bytes) {
            self.blocks.occupy(place.plane, place.slot, pages);
        }
    }

    /// Data blocks of an address range that begins with an entry of the block table: the place of the first page of
    /// each, and the number of its pages in the range.
    fn data_blocks(&self, bytes: Range<u64>) -> Vec<(Place, u32)> {
        let (entry_pages, group) = (self.reach / PAGE, u64::from(self.layout.group()));
        let entries = bytes.start / self.reach..bytes.end.div_ceil(self.reach);
        let blocks = entries.flat_map(|entry| (0..group).map(move |member| (entry * entry_pages, member)));
        let held = |(first, member): (u64, u64)| {
            let held = bytes.end.div_ceil(PAGE).saturating_sub(first).min(entry_pages);
            let pages = held.saturating_sub(member).div_ceil(group);
            (self.layout.place(first + member), pages as u32)
        };
        blocks.map(held).collect()
    }

    /// Accepts a command at its controller.
    ///
    /// # Panics
    /// Panics if the page is beyond the address space, or if the command requests no line or a line beyond its page.
    pub fn command(&mut self, mut command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        let page = command.page / PAGE;
        assert!(page < self.layout.pages, "the address {:#x} is beyond {:#x}", command.page, self.capacity());
        assert!(command.lines != 0 && command.lines & !self.lines.all() == 0, "lines of a page: {command:?}");
        command.page = page * PAGE;
        let place = self.layout.place(page);
        let id = self.active.insert(Active { command, place, left: Time::ZERO, after: NONE, readers: NONE });
        self.ledger.arrived += 1;
        if let Some(shadow) = &mut self.shadow {
            shadow.arrived(id, &command);
        }
        if command.write {
            self.stats.writes += 1;
            self.stats.plane_writes[place.plane as usize] += 1;
            self.stats.pages_written += u64::from(self.written.add(page));
            let coming = self.coming.entry(page).or_insert(Coming { last: id, lines: 0 });
            (coming.last, coming.lines) = (id, coming.lines | command.lines);
        } else {
            self.stats.reads += 1;
            // Commands overtake data: a read must not overtake a write of what it reads.
            let coming = self.coming.get(&page).filter(|coming| coming.lines & command.lines != 0);
            if let Some(last) = coming.map(|coming| coming.last) {
                self.stats.held_reads += 1;
                self.active[id].after = std::mem::replace(&mut self.active[last].readers, id);
                return;
            }
        }
        self.go_on(id, cx);
    }

    /// Sends a command that waits for no other to its controller, unless a merge blocks it.
    fn go_on(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        if self.is_blocked(&self.active[id].command) {
            self.block(id);
        } else {
            self.admit(id, cx);
        }
    }

    /// Queues a command at the dispatcher.
    fn admit(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let (now, active) = (cx.now(), &mut self.active[id]);
        let package = self.packages.package(active.place.plane).0;
        let dispatcher = &mut self.dispatchers[usize::from(self.network.controller(package))];
        active.left = dispatcher.grant(now, self.dispatch) + self.latency;
        let left = active.left - now;
        if active.command.write {
            cx.after(left, Event::Dispatched(id));
        } else {
            cx.after(left + self.network.command(package), Event::Arrived(id));
        }
    }

    /// Runs one internal event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Arrived(id) => self.read_arrived(id, cx),
            Event::Dispatched(id) => self.write_dispatched(id, cx),
            Event::Network(network::Event::Head(id)) => self.network.head(id, &mut Inside::of(cx)),
            Event::Network(network::Event::Delivered(id)) => self.delivered(id, cx),
            Event::ArrayDone(plane) => self.array_done(plane, cx),
            Event::PlaneFree(plane) => {
                self.planes.get(plane).woken = false;
                self.advance(plane, cx);
            }
            Event::Taken(register) => self.taken(register, cx),
        }
        self.settle(cx);
    }

    /// Sends lines of a page of `plane` between its package and the package's controller. Returns the time at which
    /// they have left their source.
    fn send(&mut self, cargo: Cargo, plane: u32, lines: u64, cx: &mut impl Cx<Event, Out>) -> Time {
        if let Some(meter) = &mut self.meter {
            meter.transfer(self.lines.bytes_of(lines), cx.now());
        }
        let lines = lines.count_ones();
        self.network.send(&self.packages, (cargo, cargo.way()), plane, lines, &mut Inside::of(cx))
    }

    /// Queues an operation for its plane.
    fn join(&mut self, op: Op, now: Time) -> u32 {
        self.planes.join(now, op.place.plane, op.work(), op)
    }

    fn delivered(&mut self, message: u32, cx: &mut impl Cx<Event, Out>) {
        match self.network.delivered(message) {
            Cargo::Fetched(op) => self.fetched(op, cx),
            Cargo::Held(id) => self.complete(id, Stage::FlashNetwork, cx),
            Cargo::Write(id) => self.write_arrived(id, cx),
            Cargo::CopyOut(op) => self.copied_out(op, cx),
            Cargo::CopyIn(op) => self.program(op, Time::ZERO, cx),
            Cargo::Parked => {}
        }
    }

    /// Completes a command after its last wait.
    fn complete(&mut self, id: u32, stage: Stage, cx: &mut impl Cx<Event, Out>) {
        let mut command = self.active[id].command;
        self.active.remove(id);
        self.tally.command(stage, &mut command, cx.now());
        self.ledger.done += 1;
        if let Some(shadow) = &mut self.shadow {
            shadow.done(id, &command);
        }
        cx.emit(Out::Done(command));
    }

    /// Register contents that are not on flash: at the end of a run they stay in the registers.
    pub fn dirty(&self) -> Dirty {
        let (registers, lines) = self.registers.used();
        Dirty { registers, lines }
    }

    /// Busy times of resources since the window began.
    pub fn busy(&self, now: Time) -> DirectBusy {
        let (ports, links) = self.network.busy(now);
        DirectBusy { planes: self.planes.busy(now), ports, links }
    }

    /// Activity of the planes since the window began, and at present.
    pub fn counts(&self) -> DirectCounts {
        let (planes, busy_ps) = self.planes.booked();
        DirectCounts { planes, at_work: self.planes.at_work(), busy_ps }
    }

    /// Starts the measured window and clears the statistics.
    pub fn reset_stats(&mut self, now: Time) {
        let mut plane_writes = std::mem::take(&mut self.stats.plane_writes);
        plane_writes.fill(0);
        self.stats = DirectStats { since: now, plane_writes, ..DirectStats::default() };
        self.tally = Tally::default();
        for pages in [&mut self.read, &mut self.programmed, &mut self.written] {
            pages.clear();
        }
        self.network.reset(now);
        self.planes.reset(now);
        if let Some(meter) = &mut self.meter {
            meter.reset(now);
        }
    }

    /// Attaches a shadow that follows the data of every line; it costs memory and time, and does not change results.
    /// The component must be idle, before its first command.
    pub fn attach_shadow(&mut self) {
        assert!(self.ledger.arrived == 0, "a shadow sees every command");
        self.shadow = Some(Box::default());
    }
}
