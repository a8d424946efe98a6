//! A coprocessor behind a host, in time: it does what a host's programs order, each kind of order one after another.
//!
//! It has no storage. What a step works on has come over the link before, and stays in memory until its room is needed; what has to be where is [planned](Plan) before time. A step begins
//! with all cores and is over when the last of them has written its caches back. Cores of a step share memory with each other, orders to send and to receive share it one after another; a step
//! and a transfer at once, which several programs could order, do not slow each other down.

mod deal;
mod energy;
mod kept;
pub mod observe;
mod places;
mod plan;
mod spec;
mod stats;
mod step;
#[cfg(test)]
mod tests;

pub use self::spec::{BulkLinkSpec, CoprocessorEnergySpec, CoprocessorSpec, ParallelSpec};
pub use self::stats::{CoprocessorStats, Moved, Orders};

use self::observe::{Act, Done, Observer};
use self::plan::Planned;
use self::step::{Ordered, Running};
use super::meter::ChipMeter;
use super::program::{Costing, Program};
use config::SpecError;
use engine::resource::Serial;
use engine::{Cx, Time};
use nest::Kernel;
use nest::executed::Executed;
use proto::offload::{Order, Plan};
use std::collections::VecDeque;
use std::sync::Arc;

engine::events! {
    /// What happens in a coprocessor.
    pub enum Event {
        /// The host knows that an order is done.
        Done(u32),
        /// The step of an order has been launched: its parallel loop begins.
        Launched(u32),
        /// Cores have their shares of the step of an order.
        Dealt(u32),
        /// A core has computed its share.
        Computed(u16),
        /// A core's caches are written back.
        Clean(u16),
    }
}

/// What a coprocessor says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// An order is done: its tag.
    Done(u32),
}

/// A coprocessor.
pub struct Coprocessor {
    spec: CoprocessorSpec,
    programs: Vec<Planned>,
    running: Option<Running>,
    waiting: VecDeque<Ordered>,
    /// Since when each core computes.
    since: Vec<Time>,
    /// Orders that are not done.
    open: usize,
    to: Serial,
    from: Serial,
    memory: Serial,
    meter: Option<Box<ChipMeter>>,
    moved: Moved,
    /// Looks on at everything that is done.
    pub observer: Option<Box<dyn Observer>>,
    /// What was measured.
    pub stats: CoprocessorStats,
}

impl Coprocessor {
    /// An idle coprocessor.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key.
    pub fn new(spec: &CoprocessorSpec) -> Result<Coprocessor, SpecError> {
        spec.check()?;
        Ok(Coprocessor {
            programs: Vec::new(),
            running: None,
            waiting: VecDeque::new(),
            since: vec![Time::ZERO; spec.cores.into()],
            open: 0,
            to: Serial::default(),
            from: Serial::default(),
            memory: Serial::default(),
            meter: spec.energy.as_ref().map(|costs| Box::new(energy::meter(costs, spec.cores))),
            moved: Moved::default(),
            observer: None,
            stats: CoprocessorStats::new(spec.cores),
            spec: spec.clone(),
        })
    }

    /// A kernel that can be ordered: its number.
    ///
    /// # Errors
    /// A section that memory has no room for; work by a table that says nothing of the kernel.
    pub fn add(&mut self, kernel: Kernel) -> Result<u32, SpecError> {
        let number = self.programs.len() as u32;
        let program = |kernel| Program::new(kernel, &self.costing(), self.spec.cores.into());
        let planned = Planned::of_kernel(kernel, number, &self.spec, program)?;
        self.programs.push(planned);
        Ok(number)
    }

    /// The same of a program that is executed on its data, once, before time.
    ///
    /// # Errors
    /// A piece that memory has no room for; work by a table.
    pub fn add_executed(&mut self, program: &Arc<dyn Executed>) -> Result<u32, SpecError> {
        let program = Program::executed(program, &self.costing(), self.spec.frames_of_a_step())?;
        let number = self.programs.len() as u32;
        self.programs.push(Planned::of(&program, number, &self.spec)?);
        Ok(number)
    }

    fn costing(&self) -> Costing<'_> {
        let CoprocessorSpec { core, work, sums, sample, .. } = &self.spec;
        Costing { core, work: *work, sums: *sums, sample: *sample }
    }

    /// What an instance of a program has to do, from an empty memory on.
    pub fn plan(&self, program: u32) -> &Plan {
        &self.programs[program as usize].plan
    }

    /// Cores.
    pub fn cores(&self) -> u16 {
        self.spec.cores
    }

    /// Orders that are not done.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Bytes to the memory and back, by orders and by plans; equal when every instance has done all that its plan says.
    pub fn moved(&self) -> Moved {
        self.moved
    }

    /// How long the link has carried data to the memory and back.
    pub fn link_busy(&self, now: Time) -> [Time; 2] {
        [&self.to, &self.from].map(|serial| serial.busy(now))
    }

    /// How long memory needs for what has crossed it.
    pub fn memory_busy(&self) -> Time {
        Time::transfer(self.stats.memory_bytes, self.spec.memory.bandwidth.bytes_per_s())
    }

    /// Starts the measured window.
    pub fn reset_stats(&mut self, now: Time) {
        self.stats = CoprocessorStats::new(self.spec.cores);
        if let Some(meter) = &mut self.meter {
            meter.reset(now);
        }
    }

    /// Runs an event.
    ///
    /// # Panics
    /// On an event of a step that is not under way.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Done(tag) => {
                self.open -= 1;
                cx.emit(Out::Done(tag));
            }
            Event::Launched(_) => self.launched(cx),
            Event::Dealt(_) => self.dealt(cx),
            Event::Computed(core) => self.computed(core, cx),
            Event::Clean(_) => self.clean(cx),
        }
    }

    /// A host's program orders something, and calls it by a tag.
    pub fn order(&mut self, tag: u32, order: Order, cx: &mut impl Cx<Event, Out>) {
        self.open += 1;
        match order {
            Order::Send { bytes } => {
                self.moved.sent += bytes;
                let time = Time::transfer(bytes, self.spec.link.send.bytes_per_s());
                let crossed = self.to.grant(cx.now(), time);
                let took = self.deliver(tag, Act::Sends { bytes }, (bytes, crossed - time, crossed), cx);
                self.stats.sent.add(bytes, took);
            }
            Order::Receive { bytes } => {
                self.moved.received += bytes;
                let time = Time::transfer(bytes, self.spec.link.receive.bytes_per_s());
                let crossed = self.from.grant(cx.now(), time);
                let took = self.deliver(tag, Act::Receives { bytes }, (bytes, crossed - time, crossed), cx);
                self.stats.received.add(bytes, took);
            }
            Order::Work { program, step } => {
                let order = Ordered { tag, at: cx.now(), program: program as usize, step: step as usize };
                let of = &self.programs[order.program].steps[order.step];
                self.moved.loads += of.loads;
                self.moved.stores += of.stores;
                self.waiting.push_back(order);
                self.launch(cx);
            }
        }
    }

    /// Bytes cross the link in a time, and memory; how long the order takes, until the host knows.
    fn deliver(
        &mut self,
        tag: u32,
        act: Act<'_>,
        (bytes, crosses, crossed): (u64, Time, Time),
        cx: &mut impl Cx<Event, Out>,
    ) -> Time {
        if let Some(observer) = &mut self.observer {
            observer.done(&Done { act, from: crosses, to: crossed });
        }
        self.cross(crosses, crossed, bytes);
        let latency = self.spec.link.latency.time();
        let service = Time::transfer(bytes, self.spec.memory.bandwidth.bytes_per_s());
        let stored = self.memory.grant(cx.now(), service);
        self.carry(stored - service, stored, bytes);
        let took = crossed.max(stored) - cx.now() + latency + latency;
        cx.after(took, Event::Done(tag));
        took
    }
}
