//! Out-of-order cores of a server, with user-level threads.
//!
//! A core computes in program order when each operation of its thread is dispatched, executed and retired, as far as it
//! can know. An operation that needs data under way stays open, and so does every operation that needs its result;
//! answers make the core go on. So each first-level miss has an event, and so has each quantum of time that a core runs
//! ahead of the machine's clock; instructions have none. Branches are known; so is the front end except for the
//! instruction cache.
//!
//! When an answer says that a page is in flash, its operation waits until all older operations have retired and every
//! older store is done. Then the window is flushed, the thread halts, and the scheduler chooses a different one. A
//! store that has retired is undone in the same way: the thread returns to it, with all operations that retired behind
//! it. The thread resumes with the same operation, whose accesses are then completed in any case: the forward-progress
//! bit.
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

/// Cores of a server.
pub struct Cores {
    cores: Vec<Core>,
    shared: Shared,
}

impl Cores {
    /// Creates idle cores. A translation covers `page` bytes.
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

    /// Replaces the thread schedulers by new ones, one for each core.
    pub fn set_schedulers(&mut self, made: &dyn Fn() -> Box<dyn sched::ThreadScheduler>) {
        self.cores.iter_mut().for_each(|core| core.scheduler = made());
    }

    /// Limits the number of jobs, in place of the spec.
    pub fn serve_only(&mut self, jobs: u64) {
        self.shared.load.only(jobs);
    }

    /// Lines that cores have changed since the beginning, and how many of them the cores still hold. O(lines).
    pub fn changed_lines(&self) -> (u64, u64) {
        let is_changed = |held: &l1::Held| *held == l1::Held::Modified;
        let here = |core: &Core| core.l1d.lines().filter(|(_, held)| is_changed(held)).count() as u64;
        (self.shared.changed, self.cores.iter().map(here).sum())
    }

    /// Every copy of a line: its core, its first byte, and whether the core may change it without a request.
    pub fn copies(&self) -> impl Iterator<Item = (u16, u64, bool)> {
        self.cores.iter().flat_map(|core| {
            let lines = core.l1d.lines().chain(core.l1i.lines());
            lines.map(|(line, held)| (core.number, line * LINE, held != l1::Held::Shared))
        })
    }

    /// Number of cores.
    pub fn cores(&self) -> u16 {
        self.cores.len() as u16
    }

    /// Size of a service's address space, bytes; its text is behind its data.
    pub fn footprint(&self, service: &dyn Service) -> u64 {
        text(&self.shared.shape, service) + u64::from(service.text())
    }

    /// Counters of the cores.
    pub fn stats(&self) -> &CoresStats {
        &self.shared.stats
    }

    /// Time that requests have waited inside cores.
    pub fn tally(&self) -> &Tally {
        &self.shared.tally
    }

    /// Duration of a cycle.
    pub fn cycle(&self) -> Time {
        self.shared.shape.cycle
    }

    /// Slots per cycle.
    pub fn width(&self) -> u64 {
        self.shared.shape.width
    }

    /// Number of jobs that have ended.
    pub fn jobs_ended(&self) -> u64 {
        self.shared.load.ended
    }

    /// Share of the jobs that have ended.
    pub fn progress(&self) -> f64 {
        self.shared.load.progress()
    }

    /// Number of jobs that have begun.
    pub fn jobs_begun(&self) -> u64 {
        self.shared.load.begun()
    }

    /// Arrivals in the window until now; `None` in a closed loop.
    pub fn queue(&self, now: Time) -> Option<Queue> {
        self.shared.load.queue(now)
    }

    /// Starts the detection of steady job times, until counters are reset.
    pub fn watch(&mut self) {
        self.shared.settling = Some(Mser::new());
    }

    /// Returns whether job times are steady, by the detection.
    pub fn is_steady(&self) -> bool {
        self.shared.settling.as_ref().is_some_and(Mser::is_steady)
    }

    /// Number of jobs on threads.
    pub fn jobs_running(&self) -> u64 {
        self.cores.iter().map(|core| (core.threads.len() - core.free.len()) as u64).sum()
    }

    /// End of the last job.
    pub fn over_at(&self) -> Option<Time> {
        self.shared.over_at
    }

    /// Returns whether every job has ended and nothing is under way.
    pub fn is_done(&self) -> bool {
        self.shared.load.is_over() && self.outstanding() == 0
    }

    /// Number of requests under way.
    pub fn outstanding(&self) -> usize {
        let of = |core: &Core| core.l1d.outstanding() + core.l1i.outstanding() + core.asks.len();
        self.cores.iter().map(of).sum()
    }

    /// Slots that the cores may have accounted beyond the end of a window: how far they run ahead, the duration of an
    /// operation that ends there, and the kernel's time in advance.
    pub fn ahead(&self) -> u64 {
        const OPERATION: u64 = 1 << 16;
        (self.shared.shape.quantum + OPERATION + self.shared.lead) * self.width() * u64::from(self.cores())
    }

    /// Accounts every core's time up to now.
    pub fn account(&mut self, now: Time) {
        let slot = self.shared.shape.cycle_of(now) * self.shared.shape.width;
        for core in &mut self.cores {
            let what = core.waits_for();
            core.spend(slot, what, &mut self.shared.stats);
        }
    }

    /// Slots since counters were reset, by cause: up to now, also where a core has waited since its last retirement.
    pub fn spent(&self, now: Time) -> [u64; Spent::COUNT] {
        let slot = self.shared.shape.cycle_of(now) * self.shared.shape.width;
        let mut spent = self.shared.stats.spent;
        for core in &self.cores {
            spent[core.waits_for() as usize] += slot.saturating_sub(core.retire);
        }
        spent
    }

    /// Slots accounted by all cores beyond a time.
    pub fn lead(&self, now: Time) -> u64 {
        let slot = self.shared.shape.cycle_of(now) * self.shared.shape.width;
        self.cores.iter().map(|core| core.retire.saturating_sub(slot)).sum()
    }

    /// Energy of the cores since counters were reset, and of the rest of their chip; `None` without energy constants in
    /// the spec.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        // A core that waits is at work, though the time is not accounted yet.
        let until = |core: &Core| if core.waits_for() == Spent::Idle { core.retire } else { u64::MAX };
        let mut all =
            self.cores.iter().filter_map(|core| Some(core.meter.as_ref()?.report(now, until(core))));
        let mut sum = all.next()?;
        all.for_each(|one| sum.add(&one));
        Some(sum)
    }

    /// Resets the counters.
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

    /// Starts the cores.
    pub fn begin(&mut self, service: &mut dyn Service, cx: &mut impl Cx<Event, Out>) {
        self.shared.shape.text = text(&self.shared.shape, service);
        for number in 0..self.cores.len() {
            self.cores[number].sleeping = true;
            self.go(number, service, cx);
        }
    }

    /// Continues a core; with the last job, the time of all cores is accounted.
    fn go(&mut self, core: usize, service: &mut dyn Service, cx: &mut impl Cx<Event, Out>) {
        let before = self.shared.over_at;
        self.cores[core].go(&mut self.shared, service, cx);
        if let (None, Some(over)) = (before, self.shared.over_at) {
            self.account(over);
        }
    }

    /// Handles an event.
    pub fn handle(&mut self, event: Event, service: &mut dyn Service, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Go(core) => {
                self.cores[usize::from(core)].wake = None;
                self.go(core.into(), service, cx);
            }
            Event::Send(name) => self.sent(name, cx),
        }
    }

    /// Records a response time of flash: the reference for ageing.
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
            // Until now, the sleep time was unknown.
            for number in 0..self.cores.len() {
                if self.cores[number].sleeping {
                    self.go(number, service, cx);
                }
            }
        }
    }

    /// Notifies the cores that a virtual page is now in memory.
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

    /// Removes the translation of a virtual page from all first-level TLBs.
    pub fn invalidate(&mut self, page: u64) {
        for core in &mut self.cores {
            core.dtlb.invalidate(page);
            core.itlb.invalidate(page);
        }
    }

    /// Gives a core to the kernel for a time, from where the core has got to.
    pub fn interrupt(&mut self, core: u16, time: Time, cx: &impl Cx<Event, Out>) {
        let shape = self.shared.shape;
        let core = &mut self.cores[usize::from(core)];
        let now = shape.cycle_of(cx.now());
        let reached = core.dispatch.div_ceil(shape.width);
        core.kernel = core.kernel.max(now).max(reached) + time.ps().div_ceil(shape.cycle.ps());
        self.shared.lead = self.shared.lead.max(core.kernel - now);
    }

    /// Sends a request that is due.
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
        // A frame that had data may now have text, or vice versa: the directory knows a core, not which of its caches.
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

    /// Handles a probe for a line.
    pub fn probe(&mut self, probe: Probe, cx: &mut impl Cx<Event, Out>) {
        let core = &mut self.cores[usize::from(probe.core)];
        let line = probe.address / LINE;
        let held = core.l1d.give(line, probe.invalidate).or_else(|| core.l1i.give(line, probe.invalidate));
        self.shared.stats.probed += u64::from(held.is_some());
        let dirty = held == Some(l1::Held::Modified) && !planted_nth(Mutant::HiddenChange, 4);
        cx.emit(Out::Probed(Probed { probe, found: held.is_some(), dirty }));
    }
}

/// First byte of a service's text: on the first page behind its data.
fn text(shape: &Shape, service: &dyn Service) -> u64 {
    service.footprint().next_multiple_of(shape.page)
}
