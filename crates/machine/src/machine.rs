//! The machine: parts, wires, and the loop that runs them.

use crate::event::Ev;
use crate::gpu::{CLAIMED, GpuSide};
use crate::route::{FlashCx, InjectCx, Message, Wires};
use crate::server::ServerSide;
use crate::warmup::{Cut, Warmup};
use config::Diagnostic;
use flash::Device;
use kernel::{Mutant, Time, planted};
use proto::Completion;
use std::sync::atomic::{AtomicBool, Ordering};
use workload::inject::Injector;

/// Steps at one instant after which the machine is taken to be stuck.
const STALL_STEPS: u64 = 1_000_000;
/// The clock ends at 2^64 ps. What is scheduled next lies within an hour (`validate`) or at a source's own time, so a run
/// that ends a day before never passes the end.
const HORIZON: Time = Time::from_s(u64::MAX / 1_000_000_000_000 - 86_400);
/// Events between two looks at the outside: interrupts, progress.
const SLICE: u64 = 1 << 16;
/// The same while the jobs of a server may be the warm-up.
const SHORT_SLICE: u64 = 64;
/// A measured window that neither a count of requests nor a time begins.
const NEVER: (u64, Time) = (u64::MAX, Time::MAX);

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// All work was done.
    Done,
    /// Somebody asked it to stop.
    Interrupted,
    /// Nothing is pending, but work is left.
    Deadlock,
    /// Time does not move any more.
    Stall,
    /// A source failed.
    Failed,
    /// Simulated time has come to the end of the clock.
    Horizon,
    /// The time is over that the run was given.
    Until,
}

/// A machine that runs.
pub struct Machine {
    wires: Wires,
    /// The flash device, if there is one.
    device: Option<Device>,
    /// The GPU and its memory, if there is one.
    gpu: Option<Box<GpuSide>>,
    /// The cores of a server and their memory, if there are any.
    server: Option<Box<ServerSide>>,
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
    /// The present instant as the search for stalls knows it, and the events run at it: longer than a slice.
    instant: Time,
    steps: u64,
    /// When the run ends, though its work may not be done.
    until: Option<Time>,
}

impl Machine {
    /// A machine at time zero.
    pub fn new(device: impl Into<Option<Device>>, injector: Injector, warmup: Option<Warmup>) -> Machine {
        let warmup = warmup.filter(|warmup| !warmup.is_none());
        let window = match warmup {
            Some(Warmup::Requests(requests)) => (requests, Time::MAX),
            Some(Warmup::Until(time)) => (u64::MAX, time),
            _ => NEVER,
        };
        Machine {
            wires: Wires::default(),
            device: device.into(),
            gpu: None,
            server: None,
            injector,
            events: 0,
            measured_from: Time::ZERO,
            warmup,
            cut: None,
            window,
            instant: Time::ZERO,
            steps: 0,
            until: None,
        }
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
        self.device.as_ref()
    }

    /// Gives the machine a GPU.
    #[must_use]
    pub fn with_gpu(mut self, gpu: Option<GpuSide>) -> Machine {
        self.gpu = gpu.map(Box::new);
        self
    }

    /// Gives the machine the cores of a server.
    #[must_use]
    pub fn with_server(mut self, server: Option<ServerSide>) -> Machine {
        if server.is_some() {
            // Its jobs count too: they are looked at between slices.
            self.window.0 = u64::MAX;
        }
        self.server = server.map(Box::new);
        self
    }

    /// Ends the run at a time, though its work may not be done.
    #[must_use]
    pub fn with_end(mut self, until: Option<Time>) -> Machine {
        self.until = until;
        self
    }

    /// The cores of a server and their memory, if there are any.
    pub fn server(&self) -> Option<&ServerSide> {
        self.server.as_deref()
    }

    /// The GPU and its memory, if there is one.
    pub fn gpu(&self) -> Option<&GpuSide> {
        self.gpu.as_deref()
    }

    /// Why the run cannot go on: a source's failure, or a kernel that fits on no multiprocessor.
    pub fn failure(&self) -> Option<Diagnostic> {
        self.injector.failure.clone().or_else(|| self.gpu.as_ref()?.failure())
    }

    /// Commands at the flash device that do not come from the injector.
    pub fn claimed(&self) -> i64 {
        let server = self.server.as_ref().map_or(0, |server| server.claimed());
        self.gpu.as_ref().map_or(server, |gpu| gpu.claimed())
    }

    /// Requests of the host that have been completed since the measured window began, or jobs of a server since the run began.
    pub fn completed(&self) -> u64 {
        self.injector.requests + self.server.as_ref().map_or(0, |server| server.jobs())
    }

    /// Share of the work that is done, zero to one, where it is known how much there is: of requests, of the jobs of a server,
    /// or of the time that the run was given.
    pub fn progress(&self) -> Option<f64> {
        let requests = self.injector.progress();
        let jobs = self.server.as_ref().map(|server| server.progress());
        let time = self.until.map(|until| self.now().ps() as f64 / until.ps().max(1) as f64);
        requests.into_iter().chain(jobs).chain(time).reduce(f64::max).map(|share| share.min(1.0))
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.wires.queue.now()
    }

    /// Runs to the end, or until `stop` is set. `watch` is called now and then.
    pub fn run(&mut self, stop: &AtomicBool, mut watch: impl FnMut(&Machine)) -> End {
        self.injector.start(&mut InjectCx(&mut self.wires));
        if let Some(gpu) = &mut self.gpu {
            gpu.begin(&mut self.wires);
        }
        if let Some(warmup) = self.warmup {
            warmup.watch(self.server.as_deref_mut());
        }
        if let Some(server) = &mut self.server {
            server.begin(&mut self.wires);
        }
        self.route();
        loop {
            match self.slice() {
                Some(end) => return end,
                None if stop.load(Ordering::Relaxed) => return End::Interrupted,
                None => watch(self),
            }
            self.consider_warmup();
        }
    }

    /// Runs a slice of events; the end, if it has come.
    fn slice(&mut self) -> Option<End> {
        let (mut instant, mut steps) = (self.instant, self.steps);
        let horizon = self.until.unwrap_or(HORIZON);
        let slice = if self.warmup.is_some() { SHORT_SLICE } else { SLICE };
        for _ in 0..slice {
            let Some(event) = self.wires.queue.pop() else { return Some(self.ended()) };
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
                    return Some(if self.until.is_some() { End::Until } else { End::Horizon });
                }
            }
            if now >= self.window.1 {
                self.begin_at(self.window.1);
            }
            match event {
                Ev::Flash(event) => {
                    if let Some(device) = &mut self.device {
                        device.handle(event, &mut FlashCx(&mut self.wires));
                    }
                }
                Ev::Inject(event) => {
                    self.injector.handle(event, &mut InjectCx(&mut self.wires));
                    self.count();
                }
                event => {
                    if let Some(gpu) = &mut self.gpu {
                        gpu.handle(event, &mut self.wires);
                    } else if let Some(server) = &mut self.server {
                        server.handle(event, &mut self.wires);
                    }
                }
            }
            self.route();
        }
        (self.instant, self.steps) = (instant, steps);
        self.failure().is_some().then_some(End::Failed)
    }

    /// Delivers messages, in order, until none is left.
    #[inline]
    fn route(&mut self) {
        while let Some(message) = self.wires.messages.pop_front() {
            match message {
                Message::FromFlash(flash::Out::Complete(completion)) => self.complete(completion),
                Message::FromInjector(workload::inject::Out::Submit(command)) => {
                    if let Some(device) = &mut self.device {
                        device.submit(command, &mut FlashCx(&mut self.wires));
                    }
                }
                message => {
                    if let Some(gpu) = &mut self.gpu {
                        gpu.deliver(message, self.device.as_mut(), &mut self.wires);
                    } else if let Some(server) = &mut self.server {
                        server.deliver(message, self.device.as_mut(), &mut self.wires);
                    }
                }
            }
        }
    }

    /// A completion goes to whoever has sent the command.
    #[inline]
    fn complete(&mut self, completion: Completion) {
        let is_claimed = completion.tag & CLAIMED != 0;
        match (&mut self.gpu, &mut self.server) {
            (Some(gpu), _) if is_claimed => gpu.completed(completion, &mut self.wires),
            (_, Some(server)) if is_claimed => server.completed(completion, &mut self.wires),
            _ => {
                self.injector.complete(completion, &mut InjectCx(&mut self.wires));
                self.count();
            }
        }
    }

    /// A request may have completed: it may be the last one of the warm-up.
    #[inline]
    fn count(&mut self) {
        if self.injector.requests >= self.window.0 {
            self.begin_at(self.now());
        }
    }

    fn ended(&self) -> End {
        let gpu_is_done = self.gpu.as_ref().is_none_or(|gpu| gpu.is_done());
        let server_is_done = self.server.as_ref().is_none_or(|server| server.is_done());
        let injector_is_done = self.injector.outstanding() == 0 && self.injector.is_done();
        if self.failure().is_some() {
            End::Failed
        } else if !(injector_is_done && gpu_is_done && server_is_done) {
            End::Deadlock
        } else {
            End::Done
        }
    }

    fn consider_warmup(&mut self) {
        let (completed, now) = (self.completed(), self.now());
        let over = |warmup: Warmup| warmup.over(completed, now, self.server.as_deref());
        if let Some(cut) = self.warmup.and_then(over) {
            self.begin_window(cut, now);
        }
    }

    /// The measured window begins, because of a count of requests or a time.
    #[cold]
    fn begin_at(&mut self, at: Time) {
        if let Some(by) = self.warmup {
            self.begin_window(Cut { by, jobs: self.completed(), steady: None }, at);
        }
    }

    /// What was measured before `now`, the present or a time since the last event, is forgotten.
    fn begin_window(&mut self, cut: Cut, now: Time) {
        self.warmup = None;
        self.window = NEVER;
        self.cut = Some(cut);
        self.measured_from = now;
        if let Some(device) = self.device.as_mut().filter(|_| !planted(Mutant::OldWindow)) {
            device.reset_stats(now);
        }
        if let Some(gpu) = &mut self.gpu {
            gpu.reset_stats(now);
        }
        if let Some(server) = &mut self.server {
            server.reset_stats(now);
        }
        self.injector.reset(now);
    }
}
