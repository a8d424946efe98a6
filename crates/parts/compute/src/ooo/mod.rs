//! Out-of-order cores of a server, with user-level threads.
//!
//! A core computes in program order when each operation of its thread is dispatched, executed and retired, as far as it can
//! know: an operation that needs data which are under way stays open, and with it whatever needs its result. Answers make it
//! go on. So there is an event for each first-level miss and for each quantum of time that a core runs ahead of the machine's
//! clock, none for an instruction. Branches are known; so is everything about the front end but the instruction cache.
//!
//! When an answer says that a page is in flash, its operation waits until all that is older has retired and every older
//! store is done; then the window is flushed, the thread halts, and the scheduler chooses another. A store that has retired
//! is undone in the same way: the thread goes back to it, with all that has retired behind it. The thread goes on with the
//! same operation, whose accesses are then completed whatever it takes: the forward-progress bit.
//!
//! Source: AstriFlash, sections III-B1, IV-C, IV-D, Table I.

mod core;
mod execute;
mod l1;
mod load;
mod run;
pub mod sched;
mod spec;
#[cfg(test)]
mod tests;
mod window;

pub use core::{CoresStats, Event, Out};
pub use load::Queue;
pub use spec::{
    Arrivals, CpuEnergySpec, CpuSpec, L1Spec, LoadSpec, MissAction, Poisson, TableSharing, ThreadsSpec,
    TlbSpec,
};
pub use window::Spent;

use self::core::{Core, Shape, Shared, What};
use config::SpecError;
use core::{LINE, TEXT};
use engine::{Cx, Mutant, Slab, Time, planted_nth};
use load::Load;
use proto::cpu::Service;
use proto::memory::{Absent, Access, AccessKind, Stage, Tally, Translation};
use proto::{Probe, Probed};
use stats::{EnergyReport, Mser};

/// The cores of a server.
pub struct Cores {
    cores: Vec<Core>,
    shared: Shared,
}

impl Cores {
    /// Idle cores. A translation covers `page` bytes.
    ///
    /// # Errors
    /// A value that cannot be built.
    pub fn new(spec: &CpuSpec, page: u64, seed: u64) -> Result<Cores, SpecError> {
        spec.check()?;
        Ok(Cores {
            cores: (0..spec.cores).map(|number| Core::new(spec, number, seed)).collect(),
            shared: Shared {
                shape: Shape::new(spec, page),
                load: Load::new(&spec.load, spec.cores, seed),
                sends: Slab::default(),
                stats: CoresStats::default(),
                tally: Tally::default(),
                changed: 0,
                settling: None,
                responses: (0, 0),
                over_at: None,
                latest: Time::ZERO,
                lead: 0,
            },
        })
    }

    /// Threads are scheduled by others from now on, one made for each core.
    pub fn set_schedulers(&mut self, made: &dyn Fn() -> Box<dyn sched::ThreadScheduler>) {
        self.cores.iter_mut().for_each(|core| core.scheduler = made());
    }

    /// They serve so many jobs and no others, whatever the spec says.
    pub fn serve_only(&mut self, jobs: u64) {
        self.shared.load.only(jobs);
    }

    /// Lines that cores have changed since the beginning and had not changed before, and those of them that they still have.
    /// O(lines).
    pub fn changed_lines(&self) -> (u64, u64) {
        let is_changed = |held: &l1::Held| *held == l1::Held::Modified;
        let here = |core: &Core| core.l1d.lines().filter(|(_, held)| is_changed(held)).count() as u64;
        (self.shared.changed, self.cores.iter().map(here).sum())
    }

    /// Every copy of a line: its core, its first byte, and whether the core may change it without asking.
    pub fn copies(&self) -> impl Iterator<Item = (u16, u64, bool)> {
        self.cores.iter().flat_map(|core| {
            let lines = core.l1d.lines().chain(core.l1i.lines());
            lines.map(|(line, held)| (core.number, line * LINE, held != l1::Held::Shared))
        })
    }

    /// Cores.
    pub fn cores(&self) -> u16 {
        self.cores.len() as u16
    }

    /// Bytes of addresses that a service takes, its text behind its data.
    pub fn footprint(&self, service: &dyn Service) -> u64 {
        text(&self.shared.shape, service) + u64::from(service.text())
    }

    /// What has been counted.
    pub fn stats(&self) -> &CoresStats {
        &self.shared.stats
    }

    /// Time that requests have waited inside cores.
    pub fn tally(&self) -> &Tally {
        &self.shared.tally
    }

    /// A cycle.
    pub fn cycle(&self) -> Time {
        self.shared.shape.cycle
    }

    /// Slots of a cycle.
    pub fn width(&self) -> u64 {
        self.shared.shape.width
    }

    /// Jobs that have ended.
    pub fn jobs_ended(&self) -> u64 {
        self.shared.load.ended
    }

    /// Share of the jobs that have ended.
    pub fn progress(&self) -> f64 {
        self.shared.load.progress()
    }

    /// Jobs that have begun.
    pub fn jobs_begun(&self) -> u64 {
        self.shared.load.begun()
    }

    /// What came in the window until now; none if there is always another job.
    pub fn queue(&self, now: Time) -> Option<Queue> {
        self.shared.load.queue(now)
    }

    /// From now on the times of jobs are looked at until counters begin anew.
    pub fn watch(&mut self) {
        self.shared.settling = Some(Mser::new());
    }

    /// Whether the times of jobs, which are looked at, are steady.
    pub fn is_steady(&self) -> bool {
        self.shared.settling.as_ref().is_some_and(Mser::is_steady)
    }

    /// Jobs that threads have.
    pub fn jobs_running(&self) -> u64 {
        self.cores.iter().map(|core| (core.threads.len() - core.free.len()) as u64).sum()
    }

    /// When the last job has ended.
    pub fn over_at(&self) -> Option<Time> {
        self.shared.over_at
    }

    /// Whether every job has ended and nothing is under way.
    pub fn is_done(&self) -> bool {
        self.shared.load.is_over() && self.outstanding() == 0
    }

    /// Requests under way.
    pub fn outstanding(&self) -> usize {
        let of = |core: &Core| core.l1d.outstanding() + core.l1i.outstanding() + core.asks.len();
        self.cores.iter().map(of).sum()
    }

    /// Slots that the cores may have accounted for beyond the end of a window: how far they run ahead, what an operation
    /// takes that ends there, and how long the kernel has had a core in advance.
    pub fn ahead(&self) -> u64 {
        const OPERATION: u64 = 1 << 16;
        (self.shared.shape.quantum + OPERATION + self.shared.lead) * self.width() * u64::from(self.cores())
    }

    /// Accounts for every core's time up to now.
    pub fn account(&mut self, now: Time) {
        let slot = self.shared.shape.cycle_of(now) * self.shared.shape.width;
        for core in &mut self.cores {
            let what = core.waits_for();
            core.spend(slot, what, &mut self.shared.stats);
        }
    }

    /// Slots since counters began, by what they were spent for: up to now, also where a core has waited since it retired something last.
    pub fn spent(&self, now: Time) -> [u64; Spent::COUNT] {
        let slot = self.shared.shape.cycle_of(now) * self.shared.shape.width;
        let mut spent = self.shared.stats.spent;
        for core in &self.cores {
            spent[core.waits_for() as usize] += slot.saturating_sub(core.retire);
        }
        spent
    }

    /// How far the cores together are accounted for beyond a time, in slots.
    pub fn lead(&self, now: Time) -> u64 {
        let slot = self.shared.shape.cycle_of(now) * self.shared.shape.width;
        self.cores.iter().map(|core| core.retire.saturating_sub(slot)).sum()
    }

    /// Energy of the cores since counters began, and of the rest of their chip; `None` if the spec does not say what they cost.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        // A core that waits for something is at work, though it is not accounted for yet.
        let until = |core: &Core| if core.waits_for() == Spent::Idle { core.retire } else { u64::MAX };
        let mut all =
            self.cores.iter().filter_map(|core| Some(core.meter.as_ref()?.report(now, until(core))));
        let mut sum = all.next()?;
        all.for_each(|one| sum.add(&one));
        Some(sum)
    }

    /// Counters begin anew.
    pub fn reset_stats(&mut self, now: Time) {
        self.account(now);
        for core in &mut self.cores {
            let until = core.retire;
            core.meter.iter_mut().for_each(|meter| meter.reset(now, until));
        }
        self.shared.stats = CoresStats::default();
        self.shared.tally = Tally::default();
        self.shared.settling = None;
        self.shared.load.begin_window(now);
    }

    /// The cores begin to run.
    pub fn begin(&mut self, service: &mut dyn Service, cx: &mut impl Cx<Event, Out>) {
        self.shared.shape.text = text(&self.shared.shape, service);
        for number in 0..self.cores.len() {
            self.cores[number].sleeping = true;
            self.go(number, service, cx);
        }
    }

    /// A core goes on; with the last job everybody's time is accounted for.
    fn go(&mut self, core: usize, service: &mut dyn Service, cx: &mut impl Cx<Event, Out>) {
        let before = self.shared.over_at;
        self.cores[core].go(&mut self.shared, service, cx);
        if let (None, Some(over)) = (before, self.shared.over_at) {
            self.account(over);
        }
    }

    /// Something happens.
    pub fn handle(&mut self, event: Event, service: &mut dyn Service, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Go(core) => {
                self.cores[usize::from(core)].wake = None;
                self.go(core.into(), service, cx);
            }
            Event::Send(name) => self.sent(name, cx),
        }
    }

    /// A page has come from flash after such a time: what ageing is measured against.
    pub fn flash_response(
        &mut self,
        response: Time,
        service: &mut dyn Service,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let first = self.shared.responses.1 == 0;
        self.shared.responses.0 += u128::from(response.ps());
        self.shared.responses.1 += 1;
        if first {
            // Until now nobody knew how long to sleep.
            for number in 0..self.cores.len() {
                if self.cores[number].sleeping {
                    self.go(number, service, cx);
                }
            }
        }
    }

    /// The cores are told that a virtual page is in memory now.
    pub fn arrived(&mut self, page: u64, service: &mut dyn Service, cx: &mut impl Cx<Event, Out>) {
        for number in 0..self.cores.len() {
            let core = &mut self.cores[number];
            core.came(page, &self.shared.shape);
            let mut told = false;
            for (job, (_, waits_for)) in core.halted.iter_mut().zip(&core.halted_threads) {
                if *waits_for == page && !job.arrived {
                    job.arrived = true;
                    told = true;
                }
            }
            if told && core.sleeping {
                self.go(number, service, cx);
            }
        }
    }

    /// A virtual page is not where it was: its translation leaves all first-level TLBs.
    pub fn invalidate(&mut self, page: u64) {
        for core in &mut self.cores {
            core.dtlb.invalidate(page);
            core.itlb.invalidate(page);
        }
    }

    /// The kernel takes a core for so long, from where the core has got to.
    pub fn interrupt(&mut self, core: u16, time: Time, cx: &impl Cx<Event, Out>) {
        let shape = self.shared.shape;
        let core = &mut self.cores[usize::from(core)];
        let now = shape.cycle_of(cx.now());
        let reached = core.dispatch.div_ceil(shape.width);
        core.kernel = core.kernel.max(now).max(reached) + time.ps().div_ceil(shape.cycle.ps());
        self.shared.lead = self.shared.lead.max(core.kernel - now);
    }

    /// A request is sent now.
    fn sent(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let core::Send { core: number, what, mut since } = self.shared.sends[name];
        self.shared.sends.remove(name);
        let core = &mut self.cores[usize::from(number)];
        let (tag, miss) = match what {
            What::Page(page) => {
                let wait = core.asks.iter().any(|ask| ask.page == page && ask.wait);
                let absent = if wait { Absent::Wait } else { Absent::Signal };
                cx.emit(Out::Translate(Translation { port: number, app: 0, page, frame: 0, absent, since }));
                return;
            }
            What::Data(register) => (u32::from(register), *core.l1d.waits_for(register)),
            What::Text(register) => (u32::from(register) | TEXT, *core.l1i.waits_for(register)),
        };
        core.since[usize::from(tag & TEXT != 0)][(tag & 0xff) as usize] = since;
        // A frame that had data may have text now, or the other way round: the directory knows a core, not which of its caches.
        let other = if tag & TEXT != 0 { &mut core.l1d } else { &mut core.l1i };
        match other.give(miss.line, true) {
            Some(l1::Held::Modified) => {
                self.shared.stats.write_backs += 1;
                cx.emit(Out::Access(execute::write_back(number, miss.line, cx.now())));
            }
            Some(_) => cx.emit(Out::Dropped { core: number, address: miss.line * LINE }),
            None => {}
        }
        self.shared.stats.requests += 1;
        self.shared.tally.reach(Stage::L1, false, &mut since, cx.now());
        cx.emit(Out::Access(Access {
            tag,
            kind: if miss.own { AccessKind::Own } else { AccessKind::Read },
            address: miss.line * LINE,
            bytes: LINE as u8,
            app: 0,
            port: number,
            warp: 0,
            // A page walk has zero.
            pc: 1,
            absent: miss.absent,
            since,
        }));
    }

    /// Another core wants a line.
    pub fn probe(&mut self, probe: Probe, cx: &mut impl Cx<Event, Out>) {
        let core = &mut self.cores[usize::from(probe.core)];
        let line = probe.address / LINE;
        let held = core.l1d.give(line, probe.invalidate).or_else(|| core.l1i.give(line, probe.invalidate));
        self.shared.stats.probed += u64::from(held.is_some());
        let dirty = held == Some(l1::Held::Modified) && !planted_nth(Mutant::HiddenChange, 4);
        cx.emit(Out::Probed(Probed { probe, found: held.is_some(), dirty }));
    }
}

/// Where the text of a service begins: on the first page behind its data.
fn text(shape: &Shape, service: &dyn Service) -> u64 {
    service.footprint().next_multiple_of(shape.page)
}
