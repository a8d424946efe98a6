//! The machine: parts, wires, and the loop that runs them.

use crate::event::Ev;
use crate::route::{FlashCx, InjectCx, Message, Wires};
use flash::Device;
use kernel::Time;
use std::sync::atomic::{AtomicBool, Ordering};
use workload::inject::Injector;

/// Steps at one instant after which the machine is taken to be stuck.
const STALL_STEPS: u64 = 1_000_000;
/// The clock ends at 2^64 ps. What is scheduled next lies within an hour (`validate`) or at a source's own time, so a run
/// that ends a day before never passes the end.
const HORIZON: Time = Time::from_s(u64::MAX / 1_000_000_000_000 - 86_400);
/// Events between two looks at the outside: interrupts, progress.
const SLICE: u64 = 1 << 16;

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
}

/// When the measured window begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Warmup {
    /// After this many completions.
    Requests(u64),
    /// At this time.
    Until(Time),
}

/// A machine that runs.
pub struct Machine {
    wires: Wires,
    /// The flash device.
    pub device: Device,
    /// Where requests come from.
    pub injector: Injector,
    /// Events run.
    pub events: u64,
    /// Start of the measured window.
    pub measured_from: Time,
    warmup: Option<Warmup>,
    /// The present instant as the search for stalls knows it, and the events run at it: longer than a slice.
    instant: Time,
    steps: u64,
}

impl Machine {
    /// A machine at time zero.
    pub fn new(device: Device, injector: Injector, warmup: Option<Warmup>) -> Machine {
        Machine {
            wires: Wires::default(),
            device,
            injector,
            events: 0,
            measured_from: Time::ZERO,
            warmup,
            instant: Time::ZERO,
            steps: 0,
        }
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.wires.queue.now()
    }

    /// Runs to the end, or until `stop` is set. `watch` is called now and then.
    pub fn run(&mut self, stop: &AtomicBool, mut watch: impl FnMut(&Machine)) -> End {
        self.injector.start(&mut InjectCx(&mut self.wires));
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
        let slice = if self.warmup.is_some() { 64 } else { SLICE };
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
                if now > HORIZON {
                    return Some(End::Horizon);
                }
            }
            match event {
                Ev::Flash(event) => self.device.handle(event, &mut FlashCx(&mut self.wires)),
                Ev::Inject(event) => self.injector.handle(event, &mut InjectCx(&mut self.wires)),
            }
            self.route();
        }
        (self.instant, self.steps) = (instant, steps);
        self.injector.failure.is_some().then_some(End::Failed)
    }

    /// Delivers messages, in order, until none is left.
    #[inline]
    fn route(&mut self) {
        while let Some(message) = self.wires.messages.pop_front() {
            match message {
                Message::FromFlash(flash::Out::Complete(completion)) => {
                    self.injector.complete(completion, &mut InjectCx(&mut self.wires));
                }
                Message::FromInjector(workload::inject::Out::Submit(command)) => {
                    self.device.submit(command, &mut FlashCx(&mut self.wires));
                }
            }
        }
    }

    fn ended(&self) -> End {
        if self.injector.failure.is_some() {
            End::Failed
        } else if self.injector.outstanding() > 0 || !self.injector.is_done() {
            End::Deadlock
        } else {
            End::Done
        }
    }

    fn consider_warmup(&mut self) {
        let over = match self.warmup {
            None => false,
            Some(Warmup::Requests(n)) => self.injector.completed >= n,
            Some(Warmup::Until(time)) => self.now() >= time,
        };
        if over {
            self.warmup = None;
            self.measured_from = self.now();
            self.device.reset_stats(self.now());
            self.injector.reset(self.now());
        }
    }
}
