//! The machine: parts, wires, and the loop that runs them.

pub(crate) mod course;

use crate::parts::bill::{self, Span, Spender};
use crate::parts::complex::{Complex, Ooo, Processor, Simt};
use crate::parts::driven::Driven;
use crate::parts::governed::Governed;
use crate::parts::memory::Memory;
use crate::parts::pager::Pager;
use crate::parts::{Behind, Built, Drive, Hosted, Parts, Striped, Target};
use crate::wires::event::{Ev, Message};
use crate::wires::{Sender, Wires};
use config::Diagnostic;
use course::{Advance, End, Gauges};
use engine::{At, Event as _, Time};
use mem::stripe::Stripe;
use proto::file::Way;
use proto::memory::Tally;
use proto::{Account, Command, Completion, Place};
use requests::inject::Injector;
use serde_json::Value;
use spec::warmup::{Cut, Warmup};
use ssd::{Check, Device};
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps at one instant after which the machine is taken to be stuck.
const STALL_STEPS: u64 = 1_000_000;
/// The clock ends at 2^64 ps. What is scheduled next lies within an hour (`validate`) or at a source's own time, so a run
/// that ends a day before never passes the end.
const HORIZON: Time = Time::from_s(u64::MAX / 1_000_000_000_000 - 86_400);
/// Events between two looks at the outside: interrupts, progress.
const SLICE: u64 = 1 << 16;

/// A machine that runs.
pub struct Machine {
    wires: Wires,
    parts: Parts,
    /// Where requests come from.
    pub injector: Injector,
    /// Events run.
    pub events: u64,
    /// Start of the measured window.
    pub measured_from: Time,
    /// What begins the measured window, while it has not begun.
    pub(crate) warmup: Option<Warmup>,
    /// How the measured window began; none if it began with the run.
    pub(crate) cut: Option<Cut>,
    /// The completions of requests and the time at which it begins, where one of them decides; otherwise never.
    window: (u64, Time),
    /// Whether the jobs of a server may begin it: they are looked at after each event.
    counts_jobs: bool,
    /// The present instant as the search for stalls knows it, and the events run at it: longer than a slice.
    instant: Time,
    steps: u64,
    /// When work last advanced.
    pub(crate) advance: Advance,
    /// Events of a slice that a pause has left.
    left: u64,
    /// When the run ends, though its work may not be done.
    until: Option<Time>,
    /// The drive that has answered a stripe last.
    answered_by: u16,
    /// What drives look like over time.
    gauges: Gauges,
}

/// Whether a completion is that of a request of the host.
#[inline]
fn is_of_host(completion: Completion) -> bool {
    matches!(Sender::of(completion.to), Sender::Injector(_))
}

impl Machine {
    /// A machine at time zero.
    pub fn new(device: impl Into<Option<Device>>, injector: Injector, warmup: Option<Warmup>) -> Machine {
        let warmup = warmup.filter(|warmup| !warmup.is_none());
        let window = match warmup {
            Some(Warmup::Requests(requests)) => (requests, Time::MAX),
            Some(Warmup::Until(time)) => (u64::MAX, time),
            _ => course::NEVER,
        };
        let machine = Machine {
            wires: Wires::default(),
            parts: Parts::default(),
            injector,
            events: 0,
            measured_from: Time::ZERO,
            warmup,
            cut: None,
            window,
            counts_jobs: matches!(warmup, Some(Warmup::Steady { .. })),
            instant: Time::ZERO,
            steps: 0,
            advance: Advance::default(),
            answered_by: 0,
            gauges: Gauges::default(),
            left: 0,
            until: None,
        };
        match device.into() {
            Some(device) => machine.with_drive("flash", device),
            None => machine,
        }
    }

    /// Gives the machine another drive, of this name.
    #[must_use]
    pub(crate) fn with_drive(mut self, name: &str, device: Device) -> Machine {
        let number = self.parts.drives.len() as u16;
        self.parts.drives.push(Drive { name: name.to_owned(), device, claimed: 0, member: 0 });
        self.parts.targets.push(Target::Drive(number));
        self
    }

    /// Gives the machine a stripe of drives that it has, of this name.
    #[must_use]
    pub(crate) fn with_stripe(mut self, name: &str, stripe: Stripe, drives: Vec<u16>) -> Machine {
        for (member, drive) in (0..).zip(&drives) {
            self.parts.drives[usize::from(*drive)].member = member;
        }
        let number = self.parts.stripes.len() as u16;
        self.parts.stripes.push(Striped { name: name.to_owned(), stripe, drives });
        self.parts.targets.push(Target::Stripe(number));
        self
    }

    /// Gives the machine a coprocessor of a host that comes next.
    #[must_use]
    pub(crate) fn with_driven(mut self, driven: Driven) -> Machine {
        self.parts.driven.push(driven);
        self
    }

    /// Coprocessors of hosts.
    pub(crate) fn driven(&self) -> &[Driven] {
        &self.parts.driven
    }

    /// Gives the machine a host's path to drives or stripes that it has; the files that fill them are targets of the injector.
    #[must_use]
    pub(crate) fn with_host(mut self, hosted: Hosted) -> Machine {
        let host = self.parts.hosts.len() as u16;
        let disks = 0..hosted.drives.len() as u16;
        let files = disks.flat_map(|disk| Way::ALL.map(|way| Target::File { host, disk, way }));
        self.parts.targets.extend(files);
        self.parts.hosts.push(hosted);
        self
    }

    /// Gives the machine an accelerator with the flash that it governs.
    #[must_use]
    pub(crate) fn with_governed(mut self, governed: Governed) -> Machine {
        self.parts.governed.push(governed);
        self
    }

    /// The accelerators that have work, each with the flash that it governs.
    pub(crate) fn governed(&self) -> &[Governed] {
        &self.parts.governed
    }

    /// The hosts whose path to their drives is simulated.
    pub(crate) fn hosts(&self) -> &[Hosted] {
        &self.parts.hosts
    }

    /// What a target of the injector is called, where there are several.
    pub(crate) fn target_of(&self, target: u16) -> Option<&str> {
        let parts = &self.parts;
        if parts.targets.len() < 2 {
            return None;
        }
        parts.targets.get(usize::from(target)).map(|target| self.name_of(*target))
    }

    /// Whether requests of a flow of the injector go through a host's kernel.
    pub(crate) fn is_through_a_kernel(&self, flow: u16) -> bool {
        let target = self.injector.flows.get(usize::from(flow)).map(|flow| usize::from(flow.target));
        let target = target.and_then(|target| self.parts.targets.get(target));
        matches!(target, Some(Target::File { .. }))
    }

    /// Whether requests of the injector, which has opened their flows, go through a host's page cache.
    pub(crate) fn uses_a_page_cache(&self) -> bool {
        let of = |target: u16| self.parts.targets.get(usize::from(target));
        let is_buffered = |target| matches!(of(target), Some(Target::File { way: Way::Buffered, .. }));
        self.injector.flows.iter().any(|flow| is_buffered(flow.target))
    }

    /// What a target is called.
    pub(crate) fn name_of(&self, target: Target) -> &str {
        match target {
            Target::Drive(number) => &self.parts.drives[usize::from(number)].name,
            Target::Stripe(number) => &self.parts.stripes[usize::from(number)].name,
            Target::File { host, .. } => &self.parts.hosts[usize::from(host)].name,
        }
    }

    /// The stripes, each with its name.
    pub fn stripes(&self) -> impl Iterator<Item = (&str, &Stripe)> {
        self.parts.stripes.iter().map(|at| (at.name.as_str(), &at.stripe))
    }

    /// The drives, each with its name.
    pub fn drives(&self) -> impl Iterator<Item = (&str, &Device)> {
        self.parts.drives.iter().map(|drive| (drive.name.as_str(), &drive.device))
    }

    /// The drive of this number, with its name where there are several.
    pub(crate) fn drive_at(&self, number: u16) -> Option<(Option<String>, &Device)> {
        let drive = self.parts.drives.get(usize::from(number))?;
        Some(((self.parts.drives.len() > 1).then(|| drive.name.clone()), &drive.device))
    }

    /// The flash device.
    ///
    /// # Panics
    /// If the machine has none.
    pub fn device(&self) -> &Device {
        self.drive().expect("a machine with a flash device")
    }

    /// The flash device, if there is one.
    pub fn drive(&self) -> Option<&Device> {
        self.parts.drives.first().map(|drive| &drive.device)
    }

    /// Gives the machine a processor with its network, caches and memory.
    #[must_use]
    pub(crate) fn with(mut self, built: Built) -> Machine {
        if matches!(built.complex.processor, Processor::Ooo(_)) {
            // Jobs of the server count too.
            self.window.0 = u64::MAX;
            self.counts_jobs |= matches!(self.warmup, Some(Warmup::Requests(_)));
        }
        self.parts.add(built);
        self
    }

    /// Ends the run at a time, though its work may not be done.
    #[must_use]
    pub fn with_end(mut self, until: Option<Time>) -> Machine {
        self.until = until;
        self
    }

    /// When the run ends at the latest.
    pub(crate) fn until(&self) -> Option<Time> {
        self.until
    }

    /// The processors, each with what is around it.
    pub fn complexes(&self) -> &[Complex] {
        &self.parts.complexes
    }

    /// The cores of every server that has work, and what is around them.
    pub fn servers(&self) -> impl Iterator<Item = (&Complex, &Ooo)> {
        self.parts.complexes.iter().filter_map(|complex| match &complex.processor {
            Processor::Ooo(ooo) => Some((complex, &**ooo)),
            Processor::Simt(_) => None,
        })
    }

    /// The multiprocessors of every GPU that has work, and what is around them.
    pub fn gpus(&self) -> impl Iterator<Item = (&Complex, &Simt)> {
        self.parts.complexes.iter().filter_map(|complex| match &complex.processor {
            Processor::Simt(simt) => Some((complex, &**simt)),
            Processor::Ooo(_) => None,
        })
    }

    /// The cores of a server, if there are any, and what is around them.
    pub fn server(&self) -> Option<(&Complex, &Ooo)> {
        self.servers().next()
    }

    /// The multiprocessors of a GPU, if there are any, and what is around them.
    pub fn gpu(&self) -> Option<(&Complex, &Simt)> {
        self.gpus().next()
    }

    /// The drives, to change how they decide.
    pub(crate) fn drives_mut(&mut self) -> impl Iterator<Item = &mut Device> {
        self.parts.drives.iter_mut().map(|drive| &mut drive.device)
    }

    /// The processors, to change how they decide.
    pub(crate) fn complexes_mut(&mut self) -> impl Iterator<Item = &mut Complex> {
        self.parts.complexes.iter_mut()
    }

    /// The memory of a name.
    pub(crate) fn memory_called(&mut self, name: &str) -> Option<&mut Memory> {
        self.parts.memories.iter_mut().find(|at| at.name == name).map(|at| &mut at.memory)
    }

    fn cores(&mut self) -> Option<&mut Ooo> {
        self.parts.complexes.iter_mut().find_map(|complex| match &mut complex.processor {
            Processor::Ooo(ooo) => Some(&mut **ooo),
            Processor::Simt(_) => None,
        })
    }

    /// The memories behind that of a processor's shared cache, each with its name.
    pub(crate) fn memories_behind(&self, complex: &Complex) -> impl Iterator<Item = &Behind> {
        self.parts.memories_behind(complex)
    }

    /// The memory behind a processor's shared cache, and what it is called.
    pub(crate) fn place_of(&self, complex: &Complex) -> &Behind {
        self.parts.place_of(complex)
    }

    /// The drives that a memory's block commands come to.
    pub(crate) fn drives_of(&self, memory: &Behind) -> impl Iterator<Item = &Device> {
        let numbers = match memory.drive {
            Target::Drive(drive) => vec![drive],
            Target::Stripe(stripe) => self.parts.stripes[usize::from(stripe)].drives.clone(),
            Target::File { .. } => Vec::new(),
        };
        numbers
            .into_iter()
            .filter_map(|number| self.parts.drives.get(usize::from(number)))
            .map(|at| &at.device)
    }

    /// All memories on the network of a processor.
    pub(crate) fn memories_on(&self, complex: &Complex) -> impl Iterator<Item = &Memory> {
        self.parts.memories_of(complex)
    }

    /// The memory behind a processor's shared cache.
    pub fn memory_of(&self, complex: &Complex) -> &Memory {
        self.parts.memory_of(complex)
    }

    /// What brings pages that a processor misses.
    pub fn pager_of(&self, complex: &Complex) -> Option<&Pager> {
        self.parts.pager_of(complex)
    }

    /// Time that a processor's requests have waited for each stage, in all parts together.
    pub fn tally(&self, complex: &Complex) -> Tally {
        self.parts.tally(complex)
    }

    /// Requests, commands and packets under way in each part around a processor.
    pub fn inside(&self, complex: &Complex) -> [(&'static str, usize); 7] {
        self.parts.inside(complex)
    }

    /// Requests, commands and packets under way around a processor.
    pub fn outstanding(&self, complex: &Complex) -> usize {
        self.parts.outstanding(complex)
    }

    /// Accounts of a processor and of what is around it that must agree; `still` if nothing is pending.
    pub fn checks_of(&self, complex: &Complex, still: bool) -> Vec<Check> {
        self.parts.checks(complex, still, self.now())
    }

    /// Why the run cannot go on: a source's failure, or a kernel that fits on no multiprocessor.
    pub fn failure(&self) -> Option<Diagnostic> {
        self.injector.failure.clone().or_else(|| self.gpus().find_map(|(_, simt)| simt.failure()))
    }

    /// Commands at the drive of this number that do not come from the injector.
    pub fn claimed(&self, drive: usize) -> i64 {
        self.parts.drives[drive].claimed
    }

    /// Requests of the host that have been completed since the measured window began, or jobs of a server since the run began.
    pub fn completed(&self) -> u64 {
        self.injector.requests + self.servers().map(|(_, ooo)| ooo.cores.jobs_ended()).sum::<u64>()
    }

    /// All parts that spend energy.
    pub(crate) fn spenders(&self) -> Vec<Spender> {
        self.parts.spenders(self.now())
    }

    /// The check of every part's energy by counts and by the constants of the resolved spec.
    pub(crate) fn audit(&self, spec: &Value, spenders: &[Spender]) -> Check {
        let span = Span { from: self.measured_from, now: self.now() };
        bill::check(&self.parts.audit(spec, spenders, span))
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.wires.queue.now()
    }

    /// Runs to the end, or until `stop` is set. `watch` is called now and then.
    pub fn run(&mut self, stop: &AtomicBool, watch: impl FnMut(&Machine)) -> End {
        self.begin();
        // A pause beyond all time never comes.
        self.go_on(stop, Time::MAX, watch).unwrap_or(End::Horizon)
    }

    /// Starts everything; once, before the first [`Machine::go_on`].
    pub fn begin(&mut self) {
        self.read_gauges(self.now());
        self.injector.start(&mut self.wires.at(0));
        if let Some(warmup) = self.warmup {
            warmup.watch(self.cores().map(|server| &mut server.cores));
        }
        self.parts.begin(&mut self.wires);
        self.route();
    }

    /// Runs to the end, or until `stop` is set, or up to and with the first event at `pause` or later: then there is no end yet. What comes
    /// after a pause, or after `stop`, is the same bit for bit as without it.
    pub fn go_on(&mut self, stop: &AtomicBool, pause: Time, mut watch: impl FnMut(&Machine)) -> Option<End> {
        if pause < Time::MAX || self.until.is_some() || self.warmup.is_some() {
            self.parts.one_by_one();
        }
        loop {
            if let Some(end) = self.slice(pause) {
                return Some(end);
            }
            if self.left > 0 {
                return None;
            }
            if stop.load(Ordering::Relaxed) {
                self.parts.unfold(&mut self.wires);
                self.route();
                return Some(End::Interrupted);
            }
            if self.is_stuck() {
                return Some(End::Standstill);
            }
            watch(self);
            if self.now() >= pause {
                return None;
            }
        }
    }

    /// Runs a slice of events, or what a pause has left of it; the end, if it has come.
    fn slice(&mut self, pause: Time) -> Option<End> {
        let (mut instant, mut steps) = (self.instant, self.steps);
        let horizon = self.until.unwrap_or(HORIZON);
        let mut left = if self.left > 0 { self.left } else { SLICE };
        self.left = 0;
        while left > 0 {
            left -= 1;
            let Some(event) = self.wires.queue.pop_word() else { return Some(self.ended()) };
            self.events += 1;
            let now = self.wires.queue.now();
            if now == instant {
                steps += 1;
                if steps > STALL_STEPS {
                    return Some(End::Stall);
                }
            } else {
                instant = now;
                steps = 0;
                if now > horizon {
                    // A run lasts for what it was given, not up to whatever comes next.
                    self.until.iter().for_each(|until| self.wires.queue.end_at(*until));
                    return Some(if self.until.is_some() { End::Until } else { End::Horizon });
                }
                if now >= self.window.1 {
                    self.begin_at(self.window.1);
                }
                if now >= pause {
                    (self.left, left) = (left, 0);
                }
            }
            match Ev::from_word(event) {
                Ev::Drive(At { instance, event }) => {
                    let drive = &mut self.parts.drives[usize::from(instance)];
                    drive.device.handle(event, &mut self.wires.at(instance));
                }
                Ev::Injector(At { event, .. }) => {
                    self.injector.handle(event, &mut self.wires.at(0));
                    self.count();
                }
                Ev::Host(_) | Ev::Accelerator(_) | Ev::GroupFlash(_) => {
                    self.parts.handle(event, &mut self.wires);
                    self.route();
                    if self.is_done() {
                        return Some(End::Done);
                    }
                }
                _ => self.parts.handle(event, &mut self.wires),
            }
            self.route();
            if self.counts_jobs {
                self.consider_warmup();
            }
        }
        (self.instant, self.steps) = (instant, steps);
        self.failure().is_some().then_some(End::Failed)
    }

    /// Delivers messages, in order, until none is left.
    #[inline]
    fn route(&mut self) {
        // Looked at where it lies: of most messages only a part is copied.
        while let Some(message) = self.wires.messages.front() {
            match *message {
                Message::Drive(from, ssd::Out::Complete(completion)) => {
                    self.wires.messages.pop_front();
                    self.complete(from, completion);
                }
                Message::Injector(from, requests::inject::Out::Submit { target, command }) => {
                    let command = Command { from: Sender::Injector(from).port(), ..command };
                    self.wires.messages.pop_front();
                    self.parts.inject(target, command, &mut self.wires);
                }
                Message::Injector(_, requests::inject::Out::Open { target, flow, batches, advice }) => {
                    self.wires.messages.pop_front();
                    self.parts.open_flow(target, flow, batches, advice);
                }
                Message::Stripe(_, mem::stripe::Out::Complete(completion)) if is_of_host(completion) => {
                    self.wires.messages.pop_front();
                    // Its last command has just been answered.
                    self.answered(self.answered_by, completion);
                }
                Message::Host(_, linux::path::Out::Complete(completion)) => {
                    self.wires.messages.pop_front();
                    self.injector.complete(completion, &mut self.wires.at(0));
                    self.count();
                }
                _ => self.parts.deliver(&mut self.wires),
            }
        }
    }

    /// A completion goes to whoever has sent the command.
    #[inline]
    fn complete(&mut self, drive: u16, completion: Completion) {
        if is_of_host(completion) {
            self.answered(drive, completion);
        } else {
            self.answered_by = drive;
            self.parts.completed(drive, completion, &mut self.wires);
        }
    }

    /// The host has its answer, for which the last command of a drive was waited for.
    #[inline]
    fn answered(&mut self, drive: u16, completion: Completion) {
        let device = &self.parts.drives[usize::from(drive)].device;
        let account = || {
            let account = device.account()?;
            let place = account.place.map(|place| Place { drive, ..place });
            Some(Account { place, ..account })
        };
        self.injector.complete_with(completion, account, &mut self.wires.at(0));
        self.count();
    }

    /// A request may have completed: it may be the last one of the warm-up.
    #[inline]
    fn count(&mut self) {
        if self.injector.requests >= self.window.0 {
            self.begin_at(self.now());
        }
        let turns = self.injector.series.turns();
        if self.gauges.are_due(turns) {
            self.read_gauges(self.now());
        }
    }

    #[cold]
    fn read_gauges(&mut self, now: Time) {
        let turns = self.injector.series.turns();
        self.gauges.read(turns, now, self.parts.drives.iter().map(|drive| &drive.device));
    }

    /// What drives looked like over time.
    pub(crate) fn gauges(&self) -> &Gauges {
        &self.gauges
    }

    /// Whether all work is done. A host may still have dirty pages, which nobody waits for.
    fn is_done(&self) -> bool {
        self.parts.is_done() && self.injector.outstanding() == 0 && self.injector.is_done()
    }

    fn ended(&self) -> End {
        if self.failure().is_some() {
            End::Failed
        } else if !self.is_done() {
            End::Deadlock
        } else {
            End::Done
        }
    }
}
