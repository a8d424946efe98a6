//! Translation from virtual to physical addresses.
//!
//! After Power, Hill and Wood, "Supporting x86-64 address translation for 100s of GPU lanes", HPCA 2014, as used by ZnG
//! (section II-A), with a TLB shared by all multiprocessors in front. It consists of a highly threaded walker, a page
//! walk buffer that merges translations of one page, a page walk cache, and a page fault handler. A walker thread does
//! not wait for a page fault; when the fault has been served, translations that waited for the page are answered
//! without another walk.

mod pending;
pub mod table;
#[cfg(test)]
mod tests;
pub mod tlb;

use config::{SpecError, units::Frequency};
use engine::resource::Serial;
use engine::{Cx, Time};
pub use pending::Residency;
use pending::{Pending, Spaces, State};
use proto::memory::{Absent, Access, AccessKind, Stage, Tally, Translation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use table::{PageTable, Table};
use tlb::Tlb;

/// Messages sent by a memory management unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A page walk reads an entry of a table through the shared cache.
    Walk(Access),
    /// A translation is known; or it is not, and the requester does not wait for an absent page
    /// ([`Absent::Signalled`]).
    Translated(Translation),
    /// A page is not resident, or the unit does not know ([`Residency::Asked`]). Sent once per page until
    /// [`Mmu::resolve`] is called, or [`Mmu::refuse`] and no translation waits for the page any more. It waits for the
    /// page if any translation does.
    Fault(Translation),
}

engine::events! {
    /// Internal events of a memory management unit.
    pub enum Event {
        /// The look-up of a translation in the shared TLB has ended.
        Looked(u32),
        /// A walker thread has finished its work before its next read, or before the end of its walk.
        Walker(u32),
    }
}

/// Statistics of a memory management unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MmuStats {
    /// Translations requested.
    pub translations: u64,
    /// Translations found in the shared TLB.
    pub tlb_hits: u64,
    /// Translations that joined a walk for the same page.
    pub merged: u64,
    /// Translations that joined a page fault under way.
    pub fault_merged: u64,
    /// Page walks.
    pub walks: u64,
    /// Page walks that waited for a walker thread.
    pub walks_queued: u64,
    /// Entries read from memory by walks.
    pub walk_reads: u64,
    /// Entries found in the walk cache by walks.
    pub walk_cached: u64,
    /// Page faults; for applications of which the unit does not know the residency, questions.
    pub faults: u64,
    /// Translations answered without a frame.
    pub signalled: u64,
}

/// Memory management unit shared by all multiprocessors.
pub struct Mmu {
    port: u16,
    /// Size of a line in bytes.
    line: u64,
    cycle: Time,
    latency: Time,
    tlb: Tlb,
    tlb_port: Serial,
    table: Box<dyn Table>,
    spaces: Spaces,
    top: u64,
    pending: Pending,
    threads: Vec<Thread>,
    idle: Vec<u32>,
    /// Page walk buffer: pages that wait for a thread.
    queue: VecDeque<u32>,
    bound: usize,
    /// Statistics of the window.
    pub stats: MmuStats,
    /// Waiting time by stage. Translations count as reads.
    pub tally: Tally,
}

/// Thread of the walker.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// Pending page of the walk.
    page: u32,
    /// Level of the walk, as defined by the table.
    level: u8,
    /// Next read; `None` at the end of the walk.
    read: Option<u64>,
}

impl Mmu {
    /// Creates an idle unit without applications. `port` is its own port of the network, for page walks, which read
    /// lines of `line` bytes.
    ///
    /// # Errors
    /// Returns the first value that cannot be built.
    pub fn new(spec: &MmuSpec, port: u16, line: u64) -> Result<Mmu, SpecError> {
        spec.check()?;
        Ok(Mmu {
            port,
            line,
            cycle: spec.cycles(1),
            latency: spec.cycles(spec.tlb.latency),
            tlb: Tlb::new(spec.tlb.entries, spec.tlb.ways),
            tlb_port: Serial::default(),
            table: spec.table.build(&()),
            spaces: Spaces::default(),
            top: 0,
            pending: Pending::default(),
            threads: vec![Thread::default(); spec.walkers as usize],
            idle: (0..spec.walkers).rev().collect(),
            queue: VecDeque::new(),
            bound: usize::MAX,
            stats: MmuStats::default(),
            tally: Tally::default(),
        })
    }

    /// Size of the range that one translation covers, in bytes.
    pub fn reach(&self) -> u64 {
        self.table.reach()
    }

    /// Maximum virtual address space of an application, in bytes.
    pub fn span(&self) -> u64 {
        self.table.span()
    }

    /// Lays out an application's addresses from zero to `bytes`, in its own frames, in the order of the calls. Pages
    /// that are not resident fault at their first use. The page tables move behind the new data.
    ///
    /// # Panics
    /// Panics if the application already has addresses, needs more than [`Mmu::span`], or translations are under way.
    pub fn add_app(&mut self, app: u8, bytes: u64, residency: Residency) {
        assert!(self.outstanding() == 0, "an application is added while translations are under way");
        assert!(
            bytes <= self.span(),
            "application {app} needs {bytes} B of addresses; the table reaches {}",
            self.span()
        );
        self.spaces.add(app, bytes.div_ceil(self.reach()), residency);
        let data = self.spaces.frames() * self.reach();
        self.top = self.table.lay_out(&self.spaces.pages(), data);
    }

    /// Moves the page tables to `base`, behind the data.
    ///
    /// # Panics
    /// Panics if translations are under way.
    pub fn set_tables(&mut self, base: u64) {
        assert!(self.outstanding() == 0, "page tables move while translations are under way");
        debug_assert!(base >= self.spaces.frames() * self.reach(), "behind the data");
        self.top = self.table.lay_out(&self.spaces.pages(), base);
    }

    /// Application that owns the frame of a physical address; `None` if it is not data, or if the unit does not know.
    pub fn owner(&self, address: u64) -> Option<u8> {
        self.spaces.owner(address / self.reach())
    }

    /// Size of the page tables in bytes, in memory or in the unit itself.
    pub fn table_bytes(&self) -> u64 {
        self.table.bytes()
    }

    /// End of the physical memory taken by data and page tables.
    pub fn top(&self) -> u64 {
        self.top
    }

    /// Number of translations inside.
    pub fn outstanding(&self) -> usize {
        self.pending.waiting()
    }

    /// Bounds the translations inside, to the number that all multiprocessors together can request. Exceeding it is a
    /// panic.
    pub fn bound(&mut self, translations: usize) {
        self.bound = translations;
    }

    /// Starts the measured window.
    pub fn reset_stats(&mut self, _now: Time) {
        self.stats = MmuStats::default();
        self.tally = Tally::default();
    }

    /// Accepts a multiprocessor's request for a translation.
    pub fn translate(&mut self, translation: Translation, cx: &mut impl Cx<Event, Out>) {
        self.stats.translations += 1;
        let name = self.pending.enter(translation);
        assert!(self.outstanding() <= self.bound, "more than {} translations at the same time", self.bound);
        // A look-up occupies the port for one cycle; its latency is pipelined.
        let begun = self.tlb_port.grant(cx.now(), self.cycle) - self.cycle;
        cx.after((begun + self.latency).since(cx.now()), Event::Looked(name));
    }

    /// Runs one internal event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Looked(name) => self.looked(name, cx),
            Event::Walker(thread) => self.work(thread, cx),
        }
    }

    /// Handles the end of a look-up in the shared TLB.
    fn looked(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let translation = self.pending.waiter_mut(name);
        let (app, page) = (translation.app, translation.page);
        self.tally.reach(Stage::Tlb, false, &mut translation.since, now);
        if let Some(frame) = self.tlb.look_up(app, page) {
            self.stats.tlb_hits += 1;
            translation.frame = frame;
            let answer = self.pending.leave(name);
            cx.emit(Out::Translated(answer));
            return;
        }
        let (slot, new) = self.pending.join(name);
        if !new {
            match self.pending.state(slot) {
                State::Walk => self.stats.merged += 1,
                State::Fault => self.stats.fault_merged += 1,
                State::Refused => {
                    self.stats.fault_merged += 1;
                    self.signal(slot, Stage::Fault, cx);
                }
            }
            return;
        }
        self.stats.walks += 1;
        match self.idle.pop() {
            Some(thread) => self.begin(thread, slot, cx),
            None => {
                self.stats.walks_queued += 1;
                self.queue.push_back(slot);
            }
        }
    }

    /// Starts a walk on a thread.
    fn begin(&mut self, thread: u32, page: u32, cx: &mut impl Cx<Event, Out>) {
        self.threads[thread as usize] = Thread { page, level: 0, read: None };
        self.step(thread, cx);
    }

    /// Determines a thread's next step, and starts the unit's own work for it.
    fn step(&mut self, thread: u32, cx: &mut impl Cx<Event, Out>) {
        let at = &mut self.threads[thread as usize];
        let (app, page) = self.pending.page(at.page);
        let step = self.table.step(app, page, &mut at.level);
        at.read = step.read;
        self.stats.walk_cached += u64::from(step.cached);
        if step.cycles == 0 {
            self.work(thread, cx);
        } else {
            cx.after(self.cycle.times(step.cycles.into()), Event::Walker(thread));
        }
    }

    /// Finishes the unit's own work of a step: the thread reads, or its walk ends.
    fn work(&mut self, thread: u32, cx: &mut impl Cx<Event, Out>) {
        let at = self.threads[thread as usize];
        let Some(address) = at.read else {
            return self.end(thread, cx);
        };
        self.stats.walk_reads += 1;
        let (app, _) = self.pending.page(at.page);
        let absent = self.pending.absent(at.page);
        cx.emit(Out::Walk(Access {
            tag: thread,
            kind: AccessKind::Read,
            address: address / self.line * self.line,
            bytes: table::ENTRY as u8,
            app,
            port: self.port,
            warp: 0,
            pc: 0,
            absent,
            since: cx.now(),
        }));
    }

    /// Handles the answer to a read of a walk. Without data, translations that do not wait for an absent page are
    /// answered; for the rest, the thread reads again, and waits.
    pub fn walked(&mut self, access: Access, cx: &mut impl Cx<Event, Out>) {
        let thread = access.tag;
        if access.absent != Absent::Signalled {
            return self.step(thread, cx);
        }
        if self.signal(self.threads[thread as usize].page, Stage::Walk, cx) {
            self.work(thread, cx);
        } else {
            self.next_walk(thread, cx);
        }
    }

    /// Ends a walk: its page is known, or faults. The thread takes the next walk.
    fn end(&mut self, thread: u32, cx: &mut impl Cx<Event, Out>) {
        let slot = self.threads[thread as usize].page;
        let (app, page) = self.pending.page(slot);
        let now = cx.now();
        let tally = &mut self.tally;
        self.pending.each(slot, |waiter| tally.reach(Stage::Walk, false, &mut waiter.since, now));
        match self.spaces.frame(app, page) {
            Some(frame) => self.answer(slot, frame, cx),
            None => {
                self.stats.faults += 1;
                cx.emit(Out::Fault(self.pending.fault(slot)));
            }
        }
        self.next_walk(thread, cx);
    }

    /// Gives a thread the next walk.
    fn next_walk(&mut self, thread: u32, cx: &mut impl Cx<Event, Out>) {
        match self.queue.pop_front() {
            Some(slot) => self.begin(thread, slot, cx),
            None => self.idle.push(thread),
        }
    }

    /// Resolves a fault: the page is resident now, whether any translation waits for it or not. Where the unit does not
    /// know the residency itself, the page is in `translation.frame`, and only the waiting translations learn it.
    pub fn resolve(&mut self, translation: Translation, cx: &mut impl Cx<Event, Out>) {
        let (app, page, now) = (translation.app, translation.page, cx.now());
        self.spaces.set_resident(app, page, true);
        // A page whose walk is still under way is found resident at the end of the walk.
        if let Some(slot) = self.pending.faulting(app, page) {
            let tally = &mut self.tally;
            self.pending.each(slot, |waiter| tally.reach(Stage::Fault, false, &mut waiter.since, now));
            let frame = self.spaces.frame(app, page).unwrap_or(translation.frame);
            self.answer(slot, frame, cx);
        }
    }

    /// Handles a fault that takes long: translations that do not wait for an absent page are answered, now and until
    /// the fault is resolved. Returns true if any translation still waits; if not, the next translation of the page
    /// begins a new walk.
    pub fn refuse(&mut self, translation: Translation, cx: &mut impl Cx<Event, Out>) -> bool {
        let Some(slot) = self.pending.faulting(translation.app, translation.page) else {
            return false;
        };
        self.pending.refuse(slot);
        self.signal(slot, Stage::Fault, cx)
    }

    /// Answers translations of a page that do not wait for an absent one. Returns true if any are left.
    fn signal(&mut self, slot: u32, stage: Stage, cx: &mut impl Cx<Event, Out>) -> bool {
        let (now, tally, stats) = (cx.now(), &mut self.tally, &mut self.stats);
        self.pending.take_signals(slot, |mut translation| {
            tally.reach(stage, false, &mut translation.since, now);
            translation.absent = Absent::Signalled;
            stats.signalled += 1;
            cx.emit(Out::Translated(translation));
        })
    }

    /// Answers all translations of a page.
    fn answer(&mut self, slot: u32, frame: u64, cx: &mut impl Cx<Event, Out>) {
        let (app, page) = self.pending.page(slot);
        self.tlb.fill(app, page, frame);
        self.pending.take(slot, |mut translation| {
            translation.frame = frame;
            cx.emit(Out::Translated(translation));
        });
    }

    /// Removes a resident page: from the TLB here and, where the unit knows the residency, from later walks.
    pub fn evict(&mut self, app: u8, page: u64) {
        self.spaces.set_resident(app, page, false);
        self.tlb.invalidate(app, page);
    }
}

// Spec of a memory management unit.

/// Memory management unit shared by all multiprocessors: Power, Hill and Wood, HPCA 2014.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MmuSpec {
    /// Clock of the unit, in whose cycles latencies are given.
    pub clock: Frequency,
    /// Shared TLB behind those of the multiprocessors.
    pub tlb: SharedTlbSpec,
    /// Walker threads: concurrent page walks.
    #[schemars(range(min = 1, max = 65_536))]
    pub walkers: u32,
    /// Page table: its form and location.
    pub table: PageTable,
}

/// TLB shared by all multiprocessors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedTlbSpec {
    /// Capacity in translations; LRU replacement.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub entries: u32,
    /// Associativity: ways per set; equal to the entries for a fully associative TLB.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub ways: u32,
    /// Cycles of a look-up. One look-up can begin in every cycle.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub latency: u32,
}

impl MmuSpec {
    /// Checks that a unit can be built.
    ///
    /// # Errors
    /// Returns the first invalid value; its key is relative to the table `mmu`.
    pub fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("clock", self.clock.hz())?;
        SpecError::positive("walkers", self.walkers.into())?;
        sets("tlb", self.tlb.entries, self.tlb.ways)?;
        self.table.check()
    }

    /// Duration of `cycles`.
    pub(crate) fn cycles(&self, cycles: u32) -> Time {
        Time::period(self.clock.hz()).times(cycles.into())
    }
}

/// Checks that `entries` can be arranged in sets of `ways`.
fn sets(table: &str, entries: u32, ways: u32) -> Result<(), SpecError> {
    SpecError::positive(&format!("{table}.entries"), entries.into())?;
    SpecError::positive(&format!("{table}.ways"), ways.into())?;
    if !entries.is_multiple_of(ways) {
        let what = format!("{entries} entries are not a multiple of {ways} ways");
        return Err(SpecError::new(&format!("{table}.ways"), what).help(
            "choose a divisor of the entries, or as many ways as entries for a fully associative buffer",
        ));
    }
    Ok(())
}
