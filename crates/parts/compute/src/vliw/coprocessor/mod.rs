//! Timed model of a coprocessor behind a host: it executes the orders of a host's programs, each kind one after
//! another.
//!
//! It has no storage. The data of a step have come over the link before, and stay in memory until their room is needed;
//! placement is [planned](Plan) before time. A step begins with all cores and is over when the last of them has written
//! its caches back. Cores of a step share memory with each other; orders to send and to receive use it one after
//! another. A step and a transfer at once, which several programs could order, do not slow each other down.

mod plan;
#[cfg(test)]
mod tests;

pub use super::spec::{BulkLinkSpec, CoprocessorEnergySpec, CoprocessorSpec, ParallelSpec};

use self::plan::{Ordered, Planned, Running};
use super::program::{Costing, Program};
use super::{CHIP_ON, CORES, ChipMeter, MEMORY_ON, MEMORY_TRANSFER, State};
use crate::vliw::{GROUP, program::Part};
use config::SpecError;
use engine::resource::Serial;
use engine::{Cx, Time};
use nest::Kernel;
use nest::executed::{Area, Executed};
use plan::Need;
use proto::offload::{Order, Plan, Stretch};
use stats::{Activity, EnergyReport};
use std::collections::VecDeque;
use std::sync::Arc;

engine::events! {
    /// Event of a coprocessor.
    pub enum Event {
        /// The host is notified that an order is done.
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

/// Output of a coprocessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// Tag of an order that is done.
    Done(u32),
}

/// Coprocessor.
pub struct Coprocessor {
    spec: CoprocessorSpec,
    programs: Vec<Planned>,
    running: Option<Running>,
    waiting: VecDeque<Ordered>,
    /// Start of each core's computation.
    since: Vec<Time>,
    /// Number of orders that are not done.
    open: usize,
    to: Serial,
    from: Serial,
    memory: Serial,
    meter: Option<Box<ChipMeter>>,
    moved: Moved,
    /// Observer of all actions.
    pub observer: Option<Box<dyn Observer>>,
    /// Counters of the coprocessor.
    pub stats: CoprocessorStats,
}

impl Coprocessor {
    /// Creates an idle coprocessor.
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
            meter: spec.energy.as_ref().map(|costs| Box::new(self::meter(costs, spec.cores))),
            moved: Moved::default(),
            observer: None,
            stats: CoprocessorStats::new(spec.cores),
            spec: spec.clone(),
        })
    }

    /// Adds a kernel that can be ordered; returns its number.
    ///
    /// # Errors
    /// A section that exceeds memory; work by a table without an entry for the kernel.
    pub fn add(&mut self, kernel: Kernel) -> Result<u32, SpecError> {
        let number = self.programs.len() as u32;
        let program = |kernel| Program::new(kernel, &self.costing(), self.spec.cores.into());
        let planned = Planned::of_kernel(kernel, number, &self.spec, program)?;
        self.programs.push(planned);
        Ok(number)
    }

    /// Adds a program that is executed on its data, once, before time.
    ///
    /// # Errors
    /// A piece that exceeds memory; work by a table.
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

    /// Plan of an instance of a program, starting from empty memory.
    pub fn plan(&self, program: u32) -> &Plan {
        &self.programs[program as usize].plan
    }

    /// Number of cores.
    pub fn cores(&self) -> u16 {
        self.spec.cores
    }

    /// Number of orders that are not done.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Bytes to the memory and back, by orders and by plans; equal when every instance has executed its whole plan.
    pub fn moved(&self) -> Moved {
        self.moved
    }

    /// Times for which the link has carried data to the memory and back.
    pub fn link_busy(&self, now: Time) -> [Time; 2] {
        [&self.to, &self.from].map(|serial| serial.busy(now))
    }

    /// Time that memory needs for the data that have crossed it.
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

    /// Accepts an order of a host's program, with a tag.
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

    /// Moves bytes over the link and memory; returns the duration of the order, until the host is notified.
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

// Observation of a coprocessor: actions of its cores and its link, with times.

/// Kind of action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act<'a> {
    /// Execution of a step, without its launch.
    Step {
        /// Program of the step.
        program: &'a str,
        /// Number of the step in the program.
        step: u32,
    },
    /// Computation of a core's share of the step under way.
    Share {
        /// Number of the core.
        core: u16,
        /// Program of the step.
        program: &'a str,
        /// Time for which the core waited for its caches or for memory.
        stalled: Time,
    },
    /// Transfer over the link to the memory.
    Sends {
        /// Bytes.
        bytes: u64,
    },
    /// Transfer over the link from the memory.
    Receives {
        /// Bytes.
        bytes: u64,
    },
}

/// Action of a coprocessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done<'a> {
    /// Kind of action.
    pub act: Act<'a>,
    /// Start of the action.
    pub from: Time,
    /// End of the action; for the link, it may lie ahead.
    pub to: Time,
}

/// Observer of a coprocessor's actions, called when their end is known.
///
/// An observer cannot schedule anything: a result is bit for bit the same with and without it.
pub trait Observer {
    /// Reports an action that is done, or will be.
    fn done(&mut self, done: &Done<'_>);
}

// Energy of a coprocessor, its link included.

const MEMORY: usize = 3;

const LINK: usize = 5;

const ACTIVITIES: [Activity; 8] = [
    CORES[0],
    CORES[1],
    CORES[2],
    MEMORY_TRANSFER,
    MEMORY_ON,
    Activity::operation("link transfer"),
    Activity::state("link on"),
    CHIP_ON,
];

/// Creates a meter for `cores` idle cores.
fn meter(costs: &CoprocessorEnergySpec, cores: u16) -> ChipMeter {
    let on = [(MEMORY + 1, costs.memory_on), (LINK + 1, costs.link_on), (LINK + 2, costs.chip_on)];
    let on = on.map(|(activity, power)| (activity, power.microwatts()));
    let carries = [(MEMORY, costs.memory_transfer), (LINK, costs.link_transfer)];
    ChipMeter::new(&ACTIVITIES, (costs.worker, cores), on, carries)
}

impl Coprocessor {
    /// Energy since the measured window began; `None` without energy constants in the spec.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.meter.as_ref().map(|meter| meter.report(now))
    }

    /// Meters the change of state of `cores` cores.
    fn turn(&mut self, now: Time, cores: usize, from: State, to: State) {
        if let Some(meter) = &mut self.meter {
            meter.turn(now, cores, (from, to));
        }
    }

    /// Meters bytes that cross memory in a time, possibly ahead.
    fn carry(&mut self, from: Time, to: Time, bytes: u64) {
        self.stats.memory_bytes += bytes;
        if let Some(meter) = &mut self.meter {
            meter.carry(MEMORY, from, to, bytes);
        }
    }

    /// Meters bytes that cross the link in a time.
    fn cross(&mut self, from: Time, to: Time, bytes: u64) {
        if let Some(meter) = &mut self.meter {
            meter.carry(LINK, from, to, bytes);
        }
    }
}

/// Completed orders of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Number of orders.
    pub count: u64,
    /// Bytes that the orders moved.
    pub bytes: u64,
    /// Total time from each order until the host is notified of its end.
    pub time: Time,
}

impl Orders {
    fn add(&mut self, bytes: u64, time: Time) {
        self.count += 1;
        self.bytes += bytes;
        self.time += time;
    }
}

/// Counters of a coprocessor in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoprocessorStats {
    /// Orders to send data.
    pub sent: Orders,
    /// Orders to receive data.
    pub received: Orders,
    /// Orders to execute a step; they move no bytes.
    pub worked: Orders,
    /// Time in which steps were executed, without launches.
    pub executing: Time,
    /// Bytes that crossed memory: between it and the link, and between it and caches.
    pub memory_bytes: u64,
    /// Time in which each core computed, as steps cost it, stalls included.
    pub busy: Vec<Time>,
    /// Time in which each core waited for its caches or for memory; part of `busy`.
    pub stalled: Vec<Time>,
    /// Time in which each core computed, from one event to the next.
    pub computed: Vec<Time>,
    /// Steps that ended before their longest core could, or before all cores together could have done their work.
    pub short: u64,
}

impl CoprocessorStats {
    fn new(cores: u16) -> CoprocessorStats {
        let none = vec![Time::ZERO; cores.into()];
        CoprocessorStats {
            busy: none.clone(),
            stalled: none.clone(),
            computed: none,
            ..CoprocessorStats::default()
        }
    }
}

/// Bytes to the memory and back since the run began: by orders, and by the plans of the steps that were ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes to the memory, by orders.
    pub sent: u64,
    /// Bytes to the memory, by plans.
    pub loads: u64,
    /// Bytes from the memory, by orders.
    pub received: u64,
    /// Bytes from the memory, by plans.
    pub stores: u64,
}

// Page groups of a program's arrays, numbered one array after another.

/// Number of each array's first group among those of all.
struct Places<'p> {
    arrays: &'p [Area],
    firsts: Vec<u32>,
}

impl Places<'_> {
    fn of(arrays: &[Area]) -> Places<'_> {
        let mut next = 0;
        let mut firsts = Vec::new();
        for array in arrays {
            firsts.push(next);
            next += array.bytes.div_ceil(GROUP) as u32;
        }
        Places { arrays, firsts }
    }

    /// Array of each group.
    fn groups(&self) -> impl Iterator<Item = &Area> {
        self.arrays.iter().flat_map(|array| (0..array.bytes.div_ceil(GROUP)).map(move |_| array))
    }

    fn array_of(&self, group: u32) -> usize {
        self.firsts.partition_point(|first| *first <= group) - 1
    }

    /// Merges groups, in the order of their numbers, into stretches: consecutive groups of an array are one.
    fn stretches(&self, groups: &[u32]) -> Vec<Stretch> {
        let mut found: Vec<Stretch> = Vec::new();
        for group in groups {
            let array = self.array_of(*group);
            let first = u64::from(group - self.firsts[array]) * GROUP;
            let bytes = GROUP.min(self.arrays[array].bytes - first);
            match found.last_mut() {
                Some(last) if usize::from(last.array) == array && last.first + last.bytes == first => {
                    last.bytes += bytes;
                }
                _ => found.push(Stretch { array: array as u16, first, bytes }),
            }
        }
        found
    }
}

/// Total bytes of stretches.
fn bytes(stretches: &[Stretch]) -> u64 {
    stretches.iter().map(|one| one.bytes).sum()
}

/// Collects the groups that parts need, each once, in the order of their numbers.
fn needs_of(program: &Program, parts: &[Part], places: &Places<'_>, into: &mut Vec<Need>) {
    into.clear();
    for part in parts {
        program.touches(part, |array, groups, _, writes| {
            let first = places.firsts[array];
            into.extend(groups.map(|group| Need { group: first + group, writes }));
        });
    }
    into.sort_unstable_by_key(|need| need.group);
    into.dedup_by(|next, kept| {
        let same = next.group == kept.group;
        kept.writes |= same && next.writes;
        same
    });
}
