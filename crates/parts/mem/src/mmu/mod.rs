//! Translation from virtual to physical addresses.
//!
//! After Power, Hill and Wood, "Supporting x86-64 address translation for 100s of GPU lanes", HPCA 2014, which ZnG takes
//! (section II-A), with a TLB that all multiprocessors share in front: a highly threaded walker, a page walk buffer
//! that merges translations of one page, a page walk cache, and a page fault handler. A walker thread does not wait for
//! a page fault; when the fault has been served, what waited for the page is answered without another walk.

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

/// What leaves a memory management unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A page walk reads an entry of a table through the shared cache.
    Walk(Access),
    /// A translation is known; or it is not, and the requester does not wait for an absent page ([`Absent::Signalled`]).
    Translated(Translation),
    /// A page is not resident, or the unit does not know ([`Residency::Asked`]). Said once for a page until [`Mmu::resolve`] is
    /// called, or [`Mmu::refuse`] and nothing waits for the page any more. It waits for the page if anything does.
    Fault(Translation),
}

engine::events! {
    /// What happens inside a memory management unit.
    pub enum Event {
        /// The look-up of a translation in the shared TLB has ended.
        Looked(u32),
        /// A walker thread has done what precedes its next read, or the end of its walk.
        Walker(u32),
    }
}

/// Counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MmuStats {
    /// Translations asked for.
    pub translations: u64,
    /// Of them, found in the shared TLB.
    pub tlb_hits: u64,
    /// Of them, joined to a walk for the same page.
    pub merged: u64,
    /// Of them, joined to a page fault under way.
    pub fault_merged: u64,
    /// Page walks.
    pub walks: u64,
    /// Page walks that had to wait for a thread of the walker.
    pub walks_queued: u64,
    /// Entries that walks have read from memory.
    pub walk_reads: u64,
    /// Entries that walks have found in the walk cache.
    pub walk_cached: u64,
    /// Page faults; of applications that the unit does not know the residency of, questions.
    pub faults: u64,
    /// Translations answered without a frame.
    pub signalled: u64,
}

/// The memory management unit that all multiprocessors share.
pub struct Mmu {
    port: u16,
    /// Bytes of a line.
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
    /// Pages that wait for a thread: the page walk buffer.
    queue: VecDeque<u32>,
    bound: usize,
    /// Counters.
    pub stats: MmuStats,
    /// Time waited, by stage. Translations count as reads.
    pub tally: Tally,
}

/// A thread of the walker.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// The pending page that it walks for.
    page: u32,
    /// How far it has come, as the table says it.
    level: u8,
    /// What it reads next; none at the end of the walk.
    read: Option<u64>,
}

impl Mmu {
    /// An idle unit without applications. `port` is its own port of the network, for page walks, which read
    /// lines of `line` bytes.
    ///
    /// # Errors
    /// A value that cannot be built.
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

    /// Bytes that one translation covers.
    pub fn reach(&self) -> u64 {
        self.table.reach()
    }

    /// Bytes of virtual addresses that an application can have at most.
    pub fn span(&self) -> u64 {
        self.table.span()
    }

    /// Lays out an application's addresses from zero to `bytes`, in frames of their own, in the order of the calls. What
    /// is not resident faults at its first use. The page tables move behind the new data.
    ///
    /// # Panics
    /// If the application has addresses already, needs more than [`Mmu::span`], or translations are under way.
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
    /// If translations are under way.
    pub fn set_tables(&mut self, base: u64) {
        assert!(self.outstanding() == 0, "page tables move while translations are under way");
        debug_assert!(base >= self.spaces.frames() * self.reach(), "behind the data");
        self.top = self.table.lay_out(&self.spaces.pages(), base);
    }

    /// The application that owns the frame of a physical address; none if it is not data, or if the unit does not know.
    pub fn owner(&self, address: u64) -> Option<u8> {
        self.spaces.owner(address / self.reach())
    }

    /// Bytes of the page tables, in memory or in the unit itself.
    pub fn table_bytes(&self) -> u64 {
        self.table.bytes()
    }

    /// End of the physical memory that data and page tables take.
    pub fn top(&self) -> u64 {
        self.top
    }

    /// Translations inside.
    pub fn outstanding(&self) -> usize {
        self.pending.waiting()
    }

    /// At most so many translations will be inside: what all multiprocessors together can ask for. More are a panic.
    pub fn bound(&mut self, translations: usize) {
        self.bound = translations;
    }

    /// Counters begin anew.
    pub fn reset_stats(&mut self, _now: Time) {
        self.stats = MmuStats::default();
        self.tally = Tally::default();
    }

    /// A multiprocessor asks for a translation.
    pub fn translate(&mut self, translation: Translation, cx: &mut impl Cx<Event, Out>) {
        self.stats.translations += 1;
        let name = self.pending.enter(translation);
        assert!(self.outstanding() <= self.bound, "more than {} translations at the same time", self.bound);
        // The port is busy for a cycle of the look-up; its latency is pipelined.
        let begun = self.tlb_port.grant(cx.now(), self.cycle) - self.cycle;
        cx.after((begun + self.latency).since(cx.now()), Event::Looked(name));
    }

    /// Something happens.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Looked(name) => self.looked(name, cx),
            Event::Walker(thread) => self.work(thread, cx),
        }
    }

    /// A look-up in the shared TLB has ended.
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

    /// A thread begins a walk.
    fn begin(&mut self, thread: u32, page: u32, cx: &mut impl Cx<Event, Out>) {
        self.threads[thread as usize] = Thread { page, level: 0, read: None };
        self.step(thread, cx);
    }

    /// A thread finds out what it does next, and the unit's own work for that begins.
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

    /// The unit's own work of a step is done: the thread reads, or its walk ends.
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

    /// The answer to a read of a walk. Without data, what does not wait for an absent page is answered; for the rest the
    /// thread reads again, and waits.
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

    /// A walk has ended: its page is known, or faults. The thread takes the next walk.
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

    /// A thread takes the next walk.
    fn next_walk(&mut self, thread: u32, cx: &mut impl Cx<Event, Out>) {
        match self.queue.pop_front() {
            Some(slot) => self.begin(thread, slot, cx),
            None => self.idle.push(thread),
        }
    }

    /// A fault has been served: the page is resident now, whether anything waits for it or not. Where the unit does not know
    /// by itself what is resident, the page is in `translation.frame`, and only what waits for it learns that.
    pub fn resolve(&mut self, translation: Translation, cx: &mut impl Cx<Event, Out>) {
        let (app, page, now) = (translation.app, translation.page, cx.now());
        self.spaces.set_resident(app, page, true);
        // A page that is still being walked for is found resident at the end of its walk.
        if let Some(slot) = self.pending.faulting(app, page) {
            let tally = &mut self.tally;
            self.pending.each(slot, |waiter| tally.reach(Stage::Fault, false, &mut waiter.since, now));
            let frame = self.spaces.frame(app, page).unwrap_or(translation.frame);
            self.answer(slot, frame, cx);
        }
    }

    /// A fault will be served, but that takes long: what does not wait for an absent page is answered, now and until the
    /// fault is resolved. Whether anything is left that waits; if not, the next translation of the page is walked for again.
    pub fn refuse(&mut self, translation: Translation, cx: &mut impl Cx<Event, Out>) -> bool {
        let Some(slot) = self.pending.faulting(translation.app, translation.page) else {
            return false;
        };
        self.pending.refuse(slot);
        self.signal(slot, Stage::Fault, cx)
    }

    /// Answers what waits for a page, but not for an absent one. Whether anything is left.
    fn signal(&mut self, slot: u32, stage: Stage, cx: &mut impl Cx<Event, Out>) -> bool {
        let (now, tally, stats) = (cx.now(), &mut self.tally, &mut self.stats);
        self.pending.take_signals(slot, |mut translation| {
            tally.reach(stage, false, &mut translation.since, now);
            translation.absent = Absent::Signalled;
            stats.signalled += 1;
            cx.emit(Out::Translated(translation));
        })
    }

    /// Answers everything that waits for a page.
    fn answer(&mut self, slot: u32, frame: u64, cx: &mut impl Cx<Event, Out>) {
        let (app, page) = self.pending.page(slot);
        self.tlb.fill(app, page, frame);
        self.pending.take(slot, |mut translation| {
            translation.frame = frame;
            cx.emit(Out::Translated(translation));
        });
    }

    /// A page is not resident any more: neither in the TLB here nor, where the unit knows that, after the next walk.
    pub fn evict(&mut self, app: u8, page: u64) {
        self.spaces.set_resident(app, page, false);
        self.tlb.invalidate(app, page);
    }
}

// A memory management unit as a user writes it.

/// The memory management unit that all multiprocessors share: Power, Hill and Wood, HPCA 2014.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MmuSpec {
    /// Clock of the unit: its latencies are cycles of it.
    pub clock: Frequency,
    /// The shared TLB behind those of the multiprocessors.
    pub tlb: SharedTlbSpec,
    /// Page walks under way at the same time: threads of the walker.
    #[schemars(range(min = 1, max = 65_536))]
    pub walkers: u32,
    /// The page table: its form, and where it lies.
    pub table: PageTable,
}

/// The TLB that all multiprocessors share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedTlbSpec {
    /// Translations that it holds; least recently used out first.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub entries: u32,
    /// Ways a set; as many as entries for a fully associative one.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub ways: u32,
    /// Cycles of a look-up. One look-up can begin in every cycle.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub latency: u32,
}

impl MmuSpec {
    /// Whether a unit can be built.
    ///
    /// # Errors
    /// The first value that cannot be; its key is relative to the table `mmu`.
    pub fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("clock", self.clock.hz())?;
        SpecError::positive("walkers", self.walkers.into())?;
        sets("tlb", self.tlb.entries, self.tlb.ways)?;
        self.table.check()
    }

    /// The time of `cycles`.
    pub(crate) fn cycles(&self, cycles: u32) -> Time {
        Time::period(self.clock.hz()).times(cycles.into())
    }
}

/// Whether `entries` can be arranged in sets of `ways`.
fn sets(table: &str, entries: u32, ways: u32) -> Result<(), SpecError> {
    SpecError::positive(&format!("{table}.entries"), entries.into())?;
    SpecError::positive(&format!("{table}.ways"), ways.into())?;
    if !entries.is_multiple_of(ways) {
        let what = format!("{entries} entries cannot be arranged in sets of {ways}");
        return Err(SpecError::new(&format!("{table}.ways"), what).help(
            "give a divisor of the entries, or as many ways as entries for a fully associative buffer",
        ));
    }
    Ok(())
}
