//! A coprocessor behind a host, in time: it does what a host's programs order, each kind of order one after another.
//!
//! It has no storage. What a step works on has come over the link before, and stays in memory until its room is needed; what has to be where is [planned](Plan) before time. A step begins
//! with all cores and is over when the last of them has written its caches back. Cores of a step share memory with each other, orders to send and to receive share it one after another; a step
//! and a transfer at once, which several programs could order, do not slow each other down.

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
            meter: spec.energy.as_ref().map(|costs| Box::new(self::meter(costs, spec.cores))),
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

// Looking on at a coprocessor: what its cores and its link did when.

/// What took a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act<'a> {
    /// A step was executed, its launch apart.
    Step {
        /// Its program.
        program: &'a str,
        /// Which of the program's it is.
        step: u32,
    },
    /// A core computed its share of the step under way.
    Share {
        /// The core.
        core: u16,
        /// The step's program.
        program: &'a str,
        /// Of the time, the part for which it waited for its caches or for memory.
        stalled: Time,
    },
    /// Data crossed the link on their way to the memory.
    Sends {
        /// Bytes.
        bytes: u64,
    },
    /// Data crossed it on their way back.
    Receives {
        /// Bytes.
        bytes: u64,
    },
}

/// Something that a coprocessor did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done<'a> {
    /// What.
    pub act: Act<'a>,
    /// From when.
    pub from: Time,
    /// Until when: of the link, it may lie ahead.
    pub to: Time,
}

/// Looks on at everything that a coprocessor does, when its end is known.
///
/// An observer cannot schedule anything: a result is the same bit for bit with it and without.
pub trait Observer {
    /// Something is done, or will be.
    fn done(&mut self, done: &Done<'_>);
}

// What a coprocessor spends, on its link as well.

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

/// So many idle cores.
fn meter(costs: &CoprocessorEnergySpec, cores: u16) -> ChipMeter {
    let on = [(MEMORY + 1, costs.memory_on), (LINK + 1, costs.link_on), (LINK + 2, costs.chip_on)];
    let on = on.map(|(activity, power)| (activity, power.microwatts()));
    let carries = [(MEMORY, costs.memory_transfer), (LINK, costs.link_transfer)];
    ChipMeter::new(&ACTIVITIES, (costs.worker, cores), on, carries)
}

impl Coprocessor {
    /// Energy since the measured window began; `None` if the spec does not say what things cost.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.meter.as_ref().map(|meter| meter.report(now))
    }

    /// So many cores go from one state to another.
    fn turn(&mut self, now: Time, cores: usize, from: State, to: State) {
        if let Some(meter) = &mut self.meter {
            meter.turn(now, cores, (from, to));
        }
    }

    /// Bytes have crossed memory in a time, or will have.
    fn carry(&mut self, from: Time, to: Time, bytes: u64) {
        self.stats.memory_bytes += bytes;
        if let Some(meter) = &mut self.meter {
            meter.carry(MEMORY, from, to, bytes);
        }
    }

    /// Bytes will have crossed the link in a time.
    fn cross(&mut self, from: Time, to: Time, bytes: u64) {
        if let Some(meter) = &mut self.meter {
            meter.carry(LINK, from, to, bytes);
        }
    }
}

/// Orders of a kind that are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// How many.
    pub count: u64,
    /// Bytes that they have moved.
    pub bytes: u64,
    /// From an order until its end is known to the host, all together.
    pub time: Time,
}

impl Orders {
    fn add(&mut self, bytes: u64, time: Time) {
        self.count += 1;
        self.bytes += bytes;
        self.time += time;
    }
}

/// What a coprocessor has counted in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoprocessorStats {
    /// Orders to send.
    pub sent: Orders,
    /// Orders to receive.
    pub received: Orders,
    /// Orders to execute a step; they move no bytes.
    pub worked: Orders,
    /// Time in which steps were executed, launches apart.
    pub executing: Time,
    /// Bytes that have crossed memory: between it and the link, and between it and caches.
    pub memory_bytes: u64,
    /// Of each core: time in which it computed, as steps cost it, and of that the part for which it waited for its caches or for memory.
    pub busy: Vec<Time>,
    /// The latter.
    pub stalled: Vec<Time>,
    /// Of each core: time in which it computed, from one event to the next.
    pub computed: Vec<Time>,
    /// Steps that were over before their longest core could be, or before all cores together could have done their work.
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

/// Bytes to the memory and back since the run began: as orders said, and as plans have them for the steps that were ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// To the memory, by orders.
    pub sent: u64,
    /// To the memory, by plans.
    pub loads: u64,
    /// From it, by orders.
    pub received: u64,
    /// From it, by plans.
    pub stores: u64,
}

// The page groups of a program's arrays, numbered one array after another.

/// Of an array, the number of its first group among those of all.
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

    /// Of each group, the array.
    fn groups(&self) -> impl Iterator<Item = &Area> {
        self.arrays.iter().flat_map(|array| (0..array.bytes.div_ceil(GROUP)).map(move |_| array))
    }

    fn array_of(&self, group: u32) -> usize {
        self.firsts.partition_point(|first| *first <= group) - 1
    }

    /// Groups in the order of their numbers, as stretches: consecutive ones of an array are one.
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

/// Of all of them.
fn bytes(stretches: &[Stretch]) -> u64 {
    stretches.iter().map(|one| one.bytes).sum()
}

/// The groups that parts need, each once, in the order of their numbers.
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
