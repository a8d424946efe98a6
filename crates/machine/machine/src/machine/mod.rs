//! The machine: parts, wires, and the event loop.

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

/// Steps at one instant after which the machine counts as stuck.
const STALL_STEPS: u64 = 1_000_000;
/// End of the run: the clock ends at 2^64 ps. The next event is within an hour (`validate`) or at a source's own time,
/// so a run that ends a day earlier never passes the end of the clock.
const HORIZON: Time = Time::from_s(u64::MAX / 1_000_000_000_000 - 86_400);
/// Events between two checks for interrupts and progress reports.
const SLICE: u64 = 1 << 16;

/// Machine under simulation.
pub struct Machine {
    wires: Wires,
    parts: Parts,
    /// Source of requests.
    pub injector: Injector,
    /// Number of events run.
    pub events: u64,
    /// Start of the measured window.
    pub measured_from: Time,
    /// Condition that begins the measured window, until it has begun.
    pub(crate) warmup: Option<Warmup>,
    /// Actual start of the measured window; `None` if it began with the run.
    pub(crate) cut: Option<Cut>,
    /// Number of completions and time at which the window begins, if one of them decides; otherwise never.
    window: (u64, Time),
    /// True if the jobs of a server may begin the window: they are checked after each event.
    counts_jobs: bool,
    /// Present instant of the search for stalls, and the events run at it, across slices.
    instant: Time,
    steps: u64,
    /// Last progress of the work.
    pub(crate) advance: Advance,
    /// Events of a slice left over by a pause.
    left: u64,
    /// Time limit of the run.
    until: Option<Time>,
    /// Drive that last answered a stripe.
    answered_by: u16,
    /// Readings of drives over time.
    gauges: Gauges,
}

/// Returns whether a completion belongs to a request of the host.
#[inline]
fn is_of_host(completion: Completion) -> bool {
    matches!(Sender::of(completion.to), Sender::Injector(_))
}

impl Machine {
    /// Creates a machine at time zero.
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

    /// Adds a drive with this name.
    #[must_use]
    pub(crate) fn with_drive(mut self, name: &str, device: Device) -> Machine {
        let number = self.parts.drives.len() as u16;
        self.parts.drives.push(Drive { name: name.to_owned(), device, claimed: 0, member: 0 });
        self.parts.targets.push(Target::Drive(number));
        self
    }

    /// Adds a stripe of existing drives with this name.
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

    /// Adds a coprocessor of a host that is added next.
    #[must_use]
    pub(crate) fn with_driven(mut self, driven: Driven) -> Machine {
        self.parts.driven.push(driven);
        self
    }

    /// Returns the coprocessors of hosts.
    pub(crate) fn driven(&self) -> &[Driven] {
        &self.parts.driven
    }

    /// Adds a host's path to existing drives or stripes; the files that fill them become targets of the injector.
    #[must_use]
    pub(crate) fn with_host(mut self, hosted: Hosted) -> Machine {
        let host = self.parts.hosts.len() as u16;
        let disks = 0..hosted.drives.len() as u16;
        let files = disks.flat_map(|disk| Way::ALL.map(|way| Target::File { host, disk, way }));
        self.parts.targets.extend(files);
        self.parts.hosts.push(hosted);
        self
    }

    /// Adds an accelerator with the flash that it governs.
    #[must_use]
    pub(crate) fn with_governed(mut self, governed: Governed) -> Machine {
        self.parts.governed.push(governed);
        self
    }

    /// Returns the accelerators that have work, each with its flash.
    pub(crate) fn governed(&self) -> &[Governed] {
        &self.parts.governed
    }

    /// Returns the hosts whose path to their drives is simulated.
    pub(crate) fn hosts(&self) -> &[Hosted] {
        &self.parts.hosts
    }

    /// Name of a target of the injector, if there are several.
    pub(crate) fn target_of(&self, target: u16) -> Option<&str> {
        let parts = &self.parts;
        if parts.targets.len() < 2 {
            return None;
        }
        parts.targets.get(usize::from(target)).map(|target| self.name_of(*target))
    }

    /// Returns whether requests of an injector's flow go through a host's kernel.
    pub(crate) fn is_through_a_kernel(&self, flow: u16) -> bool {
        let target = self.injector.flows.get(usize::from(flow)).map(|flow| usize::from(flow.target));
        let target = target.and_then(|target| self.parts.targets.get(target));
        matches!(target, Some(Target::File { .. }))
    }

    /// Returns whether requests of the injector go through a host's page cache; flows must be open.
    pub(crate) fn uses_a_page_cache(&self) -> bool {
        let of = |target: u16| self.parts.targets.get(usize::from(target));
        let is_buffered = |target| matches!(of(target), Some(Target::File { way: Way::Buffered, .. }));
        self.injector.flows.iter().any(|flow| is_buffered(flow.target))
    }

    /// Name of a target.
    pub(crate) fn name_of(&self, target: Target) -> &str {
        match target {
            Target::Drive(number) => &self.parts.drives[usize::from(number)].name,
            Target::Stripe(number) => &self.parts.stripes[usize::from(number)].name,
            Target::File { host, .. } => &self.parts.hosts[usize::from(host)].name,
        }
    }

    /// Returns the stripes with their names.
    pub fn stripes(&self) -> impl Iterator<Item = (&str, &Stripe)> {
        self.parts.stripes.iter().map(|at| (at.name.as_str(), &at.stripe))
    }

    /// Returns the drives with their names.
    pub fn drives(&self) -> impl Iterator<Item = (&str, &Device)> {
        self.parts.drives.iter().map(|drive| (drive.name.as_str(), &drive.device))
    }

    /// Returns the drive with this number, with its name if there are several.
    pub(crate) fn drive_at(&self, number: u16) -> Option<(Option<String>, &Device)> {
        let drive = self.parts.drives.get(usize::from(number))?;
        Some(((self.parts.drives.len() > 1).then(|| drive.name.clone()), &drive.device))
    }

    /// Returns the flash device.
    ///
    /// # Panics
    /// If the machine has no flash device.
    pub fn device(&self) -> &Device {
        self.drive().expect("a machine with a flash device")
    }

    /// Returns the flash device, if present.
    pub fn drive(&self) -> Option<&Device> {
        self.parts.drives.first().map(|drive| &drive.device)
    }

    /// Adds a processor with its network, caches and memory.
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

    /// Sets a time limit for the run.
    #[must_use]
    pub fn with_end(mut self, until: Option<Time>) -> Machine {
        self.until = until;
        self
    }

    /// Time limit of the run.
    pub(crate) fn until(&self) -> Option<Time> {
        self.until
    }

    /// Returns the processors, each with its surrounding parts.
    pub fn complexes(&self) -> &[Complex] {
        &self.parts.complexes
    }

    /// Returns the cores of every server that has work, with their surrounding parts.
    pub fn servers(&self) -> impl Iterator<Item = (&Complex, &Ooo)> {
        self.parts.complexes.iter().filter_map(|complex| match &complex.processor {
            Processor::Ooo(ooo) => Some((complex, &**ooo)),
            Processor::Simt(_) => None,
        })
    }

    /// Returns the multiprocessors of every GPU that has work, with their surrounding parts.
    pub fn gpus(&self) -> impl Iterator<Item = (&Complex, &Simt)> {
        self.parts.complexes.iter().filter_map(|complex| match &complex.processor {
            Processor::Simt(simt) => Some((complex, &**simt)),
            Processor::Ooo(_) => None,
        })
    }

    /// Returns the cores of a server with their surrounding parts, if present.
    pub fn server(&self) -> Option<(&Complex, &Ooo)> {
        self.servers().next()
    }

    /// Returns the multiprocessors of a GPU with their surrounding parts, if present.
    pub fn gpu(&self) -> Option<(&Complex, &Simt)> {
        self.gpus().next()
    }

    /// Returns the drives, to change their policies.
    pub(crate) fn drives_mut(&mut self) -> impl Iterator<Item = &mut Device> {
        self.parts.drives.iter_mut().map(|drive| &mut drive.device)
    }

    /// Returns the processors, to change their policies.
    pub(crate) fn complexes_mut(&mut self) -> impl Iterator<Item = &mut Complex> {
        self.parts.complexes.iter_mut()
    }

    /// Returns the memory with this name.
    pub(crate) fn memory_called(&mut self, name: &str) -> Option<&mut Memory> {
        self.parts.memories.iter_mut().find(|at| at.name == name).map(|at| &mut at.memory)
    }

    fn cores(&mut self) -> Option<&mut Ooo> {
        self.parts.complexes.iter_mut().find_map(|complex| match &mut complex.processor {
            Processor::Ooo(ooo) => Some(&mut **ooo),
            Processor::Simt(_) => None,
        })
    }

    /// Returns the memories behind that of a processor's shared cache, with their names.
    pub(crate) fn memories_behind(&self, complex: &Complex) -> impl Iterator<Item = &Behind> {
        self.parts.memories_behind(complex)
    }

    /// Returns the memory behind a processor's shared cache, with its name.
    pub(crate) fn place_of(&self, complex: &Complex) -> &Behind {
        self.parts.place_of(complex)
    }

    /// Returns the drives that receive a memory's block commands.
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

    /// Returns all memories on the network of a processor.
    pub(crate) fn memories_on(&self, complex: &Complex) -> impl Iterator<Item = &Memory> {
        self.parts.memories_of(complex)
    }

    /// Returns the memory behind a processor's shared cache.
    pub fn memory_of(&self, complex: &Complex) -> &Memory {
        self.parts.memory_of(complex)
    }

    /// Returns the pager of a processor's missing pages.
    pub fn pager_of(&self, complex: &Complex) -> Option<&Pager> {
        self.parts.pager_of(complex)
    }

    /// Time that a processor's requests have waited in each stage, summed over all parts.
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

    /// Checks of the accounts of a processor and its surrounding parts; `still` if no event is pending.
    pub fn checks_of(&self, complex: &Complex, still: bool) -> Vec<Check> {
        self.parts.checks(complex, still, self.now())
    }

    /// Reason why the run cannot continue: a source's failure, or a kernel that fits on no multiprocessor.
    pub fn failure(&self) -> Option<Diagnostic> {
        self.injector.failure.clone().or_else(|| self.gpus().find_map(|(_, simt)| simt.failure()))
    }

    /// Number of commands at the drive with this number that do not come from the injector.
    pub fn claimed(&self, drive: usize) -> i64 {
        self.parts.drives[drive].claimed
    }

    /// Host requests completed since the measured window began, or server jobs completed since the run began.
    pub fn completed(&self) -> u64 {
        self.injector.requests + self.servers().map(|(_, ooo)| ooo.cores.jobs_ended()).sum::<u64>()
    }

    /// Returns all parts that spend energy.
    pub(crate) fn spenders(&self) -> Vec<Spender> {
        self.parts.spenders(self.now())
    }

    /// Check of every part's energy against its counts and the constants of the resolved spec.
    pub(crate) fn audit(&self, spec: &Value, spenders: &[Spender]) -> Check {
        let span = Span { from: self.measured_from, now: self.now() };
        bill::check(&self.parts.audit(spec, spenders, span))
    }

    /// Present simulated time.
    pub fn now(&self) -> Time {
        self.wires.queue.now()
    }

    /// Runs to the end, or until `stop` is set. `watch` is called from time to time.
    pub fn run(&mut self, stop: &AtomicBool, watch: impl FnMut(&Machine)) -> End {
        self.begin();
        // A pause at the end of all time never comes.
        self.go_on(stop, Time::MAX, watch).unwrap_or(End::Horizon)
    }

    /// Starts all parts; call once, before the first [`Machine::go_on`].
    pub fn begin(&mut self) {
        self.read_gauges(self.now());
        self.injector.start(&mut self.wires.at(0));
        if let Some(warmup) = self.warmup {
            warmup.watch(self.cores().map(|server| &mut server.cores));
        }
        self.parts.begin(&mut self.wires);
        self.route();
    }

    /// Runs to the end, until `stop` is set, or through the first event at `pause` or later; then this returns `None`.
    /// The run after a pause, or after `stop`, is bit for bit the same as without it.
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

    /// Runs a slice of events, or the rest that a pause left; returns the end, if reached.
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
                    // A run lasts for its time limit, not until the next event.
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

    /// Delivers messages in order until none is left.
    #[inline]
    fn route(&mut self) {
        // Read in place: of most messages only a part is copied.
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
                    // The stripe's last command has just been answered.
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

    /// Delivers a completion to the part that sent the command.
    #[inline]
    fn complete(&mut self, drive: u16, completion: Completion) {
        if is_of_host(completion) {
            self.answered(drive, completion);
        } else {
            self.answered_by = drive;
            self.parts.completed(drive, completion, &mut self.wires);
        }
    }

    /// Completes a request of the host whose last command has been answered.
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

    /// Counts a completion, which may be the last of the warm-up.
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

    /// Readings of drives over time.
    pub(crate) fn gauges(&self) -> &Gauges {
        &self.gauges
    }

    /// Returns whether all work is done. A host may still have dirty pages, which delay no program.
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
