//! Timed model of an accelerator that governs its own flash: workers execute the screens of kernels section by section,
//! Flashvisor assigns work and maps sections, Storengine's core works for flash.
//!
//! A message is a visit to Flashvisor's core, one after another. A section is claimed group by group: missing groups
//! are requested from flash, and the worker computes once all are in memory. Meanwhile, the next sections are claimed.
//! A changed group goes to flash when its frame is needed, or when its kernel has ended. A kernel begins when all its
//! arrays are locked, and is over when all its results are on flash.

mod account;
mod load;
#[cfg(test)]
mod tests;
mod work;

pub use account::{AcceleratorStats, KernelTimes};

use self::account::AcceleratorMeter;
use self::load::{Admitted, Instance};
use self::work::{Fetch, Slot, Worker};
use super::frames::Frames;
use super::memory::Sharing;
use super::program::{Costing, Program};
use super::sched::AcceleratorScheduler;
use super::spec::AcceleratorSpec;
use super::{Act, Chain, Done, GROUP, Instance as Number, Observer};
use crate::vliw::program::Part;
use config::SpecError;
use engine::resource::Serial;
use engine::{Cx, List, Lists, Slab, Time};
use nest::Kernel;
use nest::executed::Executed;
use proto::groups::{Ask, Tell};
use std::sync::Arc;

engine::events! {
    /// Event of an accelerator.
    pub enum Event {
        /// A kernel's description table is in memory, and Flashvisor is interrupted.
        Downloaded(u32),
        /// Flashvisor's core has served a message.
        Served(u32),
        /// A worker begins its assignment.
        Begins(u16),
        /// A worker knows that a section is in memory.
        There(u32),
        /// A worker has computed a section, if memory had the expected bandwidth.
        Computed(u16),
        /// A worker's caches are written back: its screen is over.
        Clean(u16),
        /// Storengine's core has done work for flash.
        Kept(u32),
    }
}

/// Output of an accelerator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// Request to its flash.
    Ask(Ask),
    /// End of a kernel: all its results are on flash.
    Over(Number),
}

/// Message to Flashvisor.
#[derive(Clone, Copy, Debug)]
enum Message {
    /// A kernel's arrays are locked: it may be scheduled.
    Offloaded(Number),
    /// A section is to be mapped.
    Map(u32),
    /// A worker's screen is over.
    Ended(u16),
}

/// Request to flash that is under way.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// Lock of an array of a kernel.
    Lock(Number),
    /// Read of groups.
    Read(Fetch),
    /// Program of a group.
    Write(u32),
}

/// Accelerator.
pub struct Accelerator {
    spec: AcceleratorSpec,
    programs: Vec<Admitted>,
    instances: Vec<Instance>,
    /// Number of kernels that are not over.
    open: usize,
    /// Kernels, by their number in the chain.
    chained: Vec<Number>,
    chain: Chain,
    scheduler: Box<dyn AcceleratorScheduler>,
    workers: Vec<Worker>,
    slots: Vec<Slot>,
    frames: Frames,
    /// Groups assigned to data on flash from the start (from the first up), and to everything else (from the last
    /// down).
    inputs: u32,
    others: u32,
    groups: u32,
    /// Kernel whose output each group is, and whether flash has it.
    owner: Vec<Number>,
    on_flash: Vec<bool>,
    /// Slots that wait for a group, by group; and for frames.
    waiting: Lists<u32>,
    waits: Vec<List>,
    hungry: std::collections::VecDeque<u32>,
    /// Needs of the section being worked out: stretches, and groups without a frame.
    stretches: Vec<Stretch>,
    absent: Vec<Need>,
    asked: Slab<Asked>,
    messages: Slab<Message>,
    visor: Serial,
    storengine: Serial,
    sharing: Sharing,
    /// Bytes that have crossed memory.
    moved: u64,
    scratch: Vec<u64>,
    meter: Option<Box<AcceleratorMeter>>,
    /// Observer of all actions.
    pub observer: Option<Box<dyn Observer>>,
    /// Counters of the accelerator.
    pub stats: AcceleratorStats,
}

impl Accelerator {
    /// Creates an idle accelerator over flash with `groups` page groups.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key.
    pub fn new(spec: &AcceleratorSpec, groups: u32) -> Result<Accelerator, SpecError> {
        let frames = spec.memory.size.get() / GROUP;
        let slots = usize::from(spec.workers) * (spec.ahead as usize + 1);
        if frames < 4 * slots as u64 || frames > u64::from(u32::MAX) {
            let what = format!(
                "{} of memory has {frames} page groups, for {} workers with {} sections each",
                spec.memory.size,
                spec.workers,
                spec.ahead + 1
            );
            return Err(
                SpecError::new("memory.size", what).help("at least four page groups per section are needed")
            );
        }
        spec.core.check().map_err(|fault| fault.within("core"))?;
        spec.energy
            .as_ref()
            .map_or(Ok(()), |energy| energy.check().map_err(|fault| fault.within("energy")))?;
        Ok(Accelerator {
            programs: Vec::new(),
            instances: Vec::new(),
            open: 0,
            chained: Vec::new(),
            chain: Chain::default(),
            scheduler: spec.scheduler.build(&spec.workers),
            workers: (0..spec.workers).map(|_| Worker::default()).collect(),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            frames: Frames::new(frames as u32, groups),
            inputs: 0,
            others: 0,
            groups,
            owner: vec![Number::MAX; groups as usize],
            on_flash: vec![false; groups as usize],
            waiting: Lists::default(),
            waits: vec![List::EMPTY; groups as usize],
            hungry: std::collections::VecDeque::new(),
            stretches: Vec::new(),
            absent: Vec::new(),
            asked: Slab::default(),
            messages: Slab::default(),
            visor: Serial::default(),
            storengine: Serial::default(),
            sharing: Sharing::new(spec.workers, spec.memory.bandwidth.bytes_per_s()),
            moved: 0,
            scratch: Vec::new(),
            meter: spec.energy.as_ref().map(|costs| Box::new(AcceleratorMeter::new(costs, spec.workers))),
            observer: None,
            stats: AcceleratorStats::new(spec.workers),
            spec: spec.clone(),
        })
    }

    /// Adds a kernel that can be offloaded; returns its number for [`Accelerator::instance`]. Its input, which
    /// instances share, is on flash from the start.
    ///
    /// # Errors
    /// More input than the flash holds; sections so small that the kernel has too many.
    pub fn add(&mut self, kernel: Kernel) -> Result<usize, SpecError> {
        let program = Program::new(kernel, &self.costing(), self.most())?;
        self.admit(program)
    }

    /// Adds a program that is executed on its data, once, before time.
    ///
    /// # Errors
    /// More input than the flash holds; work by a table; a piece that exceeds memory.
    pub fn add_executed(&mut self, program: &Arc<dyn Executed>) -> Result<usize, SpecError> {
        let program = Program::executed(program, &self.costing(), self.room() / GROUP)?;
        self.admit(program)
    }

    fn costing(&self) -> Costing<'_> {
        let AcceleratorSpec { core, work, sums, sample, .. } = &self.spec;
        Costing { core, work: *work, sums: *sums, sample: *sample }
    }

    /// Most screens of a microblock.
    fn most(&self) -> u64 {
        if self.scheduler.splits() { self.spec.workers.into() } else { 1 }
    }

    /// Bytes of memory for each section that is present or under way.
    fn room(&self) -> u64 {
        self.spec.section_bytes()
    }

    fn admit(&mut self, program: Program) -> Result<usize, SpecError> {
        self.programs.push(Admitted::new(program, self.most(), self.room())?);
        self.place_inputs(self.programs.len() - 1)?;
        Ok(self.programs.len() - 1)
    }

    /// Page groups that are read before anything is written: on flash from the start, first ones up.
    pub fn inputs(&self) -> u32 {
        self.inputs
    }

    /// Number of workers.
    pub fn workers(&self) -> u16 {
        self.spec.workers
    }

    /// Number of kernels that are not over.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Number of unanswered requests to flash.
    pub fn asked(&self) -> usize {
        self.asked.live().filter(|(_, asked)| !matches!(asked, Asked::Lock(_))).count()
    }

    /// Number of sections that wait for a frame of memory.
    pub fn hungry(&self) -> usize {
        self.hungry.len()
    }

    /// Returns whether no worker waits while something may begin.
    pub fn is_greedy(&self) -> bool {
        self.scheduler.is_greedy()
    }

    /// Busy times of Flashvisor's core, Storengine's core, and memory.
    pub fn busy(&self, now: Time) -> [Time; 3] {
        let memory = Time::transfer(self.moved, self.spec.memory.bandwidth.bytes_per_s());
        [self.visor.busy(now), self.storengine.busy(now), memory]
    }

    /// Returns whether every kernel is over.
    pub fn is_idle(&self) -> bool {
        self.open == 0 && self.messages.is_empty()
    }

    /// Runs an event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Downloaded(instance) => self.lock(instance, cx),
            Event::Served(message) => self.served(message, cx),
            Event::Begins(worker) => self.begins(worker, cx),
            Event::There(slot) => self.there(slot, cx),
            Event::Computed(worker) => self.may_have_computed(worker, cx),
            Event::Clean(worker) => self.send(Message::Ended(worker), 0, cx),
            Event::Kept(tag) => cx.emit(Out::Ask(Ask::Worked { tag })),
        }
    }

    /// Handles an answer of flash.
    pub fn told(&mut self, tell: Tell, cx: &mut impl Cx<Event, Out>) {
        match tell {
            Tell::Locked { tag } => {
                let Asked::Lock(instance) = self.asked[tag] else { unreachable!("the tag of a lock") };
                self.locked(instance, tag, cx);
            }
            Tell::Done { tag, failed } => {
                self.stats.failed += u64::from(failed);
                let asked = self.asked[tag];
                self.asked.remove(tag);
                match asked {
                    Asked::Read(fetch) => self.fetched(fetch, cx),
                    Asked::Write(group) => self.programmed(group, cx),
                    Asked::Lock(_) => unreachable!("a lock is held, not done"),
                }
            }
            Tell::Work { tag, work } => {
                let entries = u64::from(work.entries) * u64::from(self.spec.costs.entry);
                let operations = u64::from(work.operations) * u64::from(self.spec.costs.message);
                let service = self.time(entries + operations);
                let end = self.storengine.grant(cx.now(), service);
                self.firmware(Act::Storengine, end, service);
                cx.after(end - cx.now(), Event::Kept(tag));
            }
        }
    }

    fn time(&self, cycles: u64) -> Time {
        self.spec.core.time(cycles)
    }

    fn ask(&mut self, asked: Asked, ask: impl FnOnce(u32) -> Ask, cx: &mut impl Cx<Event, Out>) -> u32 {
        let tag = self.asked.insert(asked);
        cx.emit(Out::Ask(ask(tag)));
        tag
    }

    /// Sends a message to Flashvisor, whose core needs `cycles` cycles for it besides receiving it.
    fn send(&mut self, message: Message, cycles: u64, cx: &mut impl Cx<Event, Out>) {
        let service = self.time(u64::from(self.spec.costs.message) + cycles);
        let end = self.visor.grant(cx.now(), service);
        self.firmware(Act::Flashvisor, end, service);
        let name = self.messages.insert(message);
        cx.after(end - cx.now(), Event::Served(name));
    }

    fn served(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let message = self.messages[name];
        self.messages.remove(name);
        match message {
            Message::Offloaded(instance) => self.chain_up(instance, cx.now()),
            Message::Map(slot) => return self.claim(slot, cx),
            Message::Ended(worker) => self.end_screen(worker, cx),
        }
        self.schedule(cx);
    }
}

// Reports to observers.

impl Accelerator {
    /// Reports an action for a kernel or by firmware.
    fn show(&mut self, act: Act<'_>, kernel: Option<Number>, from: Time, to: Time) {
        let Some(observer) = &mut self.observer else { return };
        let program = kernel.map_or("", |kernel| {
            let program = self.instances[kernel as usize].program;
            &self.programs[program].program.name
        });
        observer.done(&Done { act, kernel, program, from, to });
    }

    /// Reports the data-section locks of a kernel, which it requested when it was downloaded and now releases.
    fn show_locks(&mut self, kernel: Number, now: Time) {
        let Some(observer) = &mut self.observer else { return };
        let instance = &self.instances[kernel as usize];
        let program = &self.programs[instance.program].program;
        for (array, (asked, held)) in program.arrays.iter().zip(&instance.locked) {
            let array = &array.name;
            let done = |act, from, to| Done { act, kernel: Some(kernel), program: &program.name, from, to };
            if held > asked {
                observer.done(&done(Act::Waits { array }, *asked, *held));
            }
            observer.done(&done(Act::Holds { array }, *held, now));
        }
    }
}

/// Page group that a section needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Need {
    group: u32,
    reads: bool,
    writes: bool,
}

/// Consecutive page groups that a section needs.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: u32,
    last: u32,
    reads: bool,
    writes: bool,
}

impl Stretch {
    /// Returns whether a stretch that begins with this group is part of this one, or continues it.
    fn goes_on(&self, first: u32, reads: bool, writes: bool) -> bool {
        (self.first..=self.last + 1).contains(&first) && (self.reads, self.writes) == (reads, writes)
    }
}

/// Merges the groups of stretches, each once and in the order of their numbers.
fn join(stretches: &mut [Stretch], into: &mut Vec<Need>) {
    stretches.sort_unstable_by_key(|stretch| stretch.first);
    into.clear();
    for &Stretch { first, last, reads, writes } in &*stretches {
        // The stretch that reaches farthest began no later than this one: the common groups are the end of the list.
        let shared = into.last().map_or(0, |need| (need.group + 1).saturating_sub(first));
        let from = into.len() - shared as usize;
        for need in into[from..].iter_mut().take_while(|need| need.group <= last) {
            (need.reads, need.writes) = (need.reads || reads, need.writes || writes);
        }
        into.extend((first + shared..=last).map(|group| Need { group, reads, writes }));
    }
}

impl Accelerator {
    /// Collects the page groups that a section of a worker's screen needs, each once, in the order of their numbers.
    fn needs(&mut self, worker: u16, part: &Part, into: &mut Vec<Need>) {
        let kernel = self.kernel_of(worker) as usize;
        let instance = &self.instances[kernel];
        let stretches = &mut self.stretches;
        stretches.clear();
        self.programs[instance.program].program.touches(part, |array, groups, reads, writes| {
            let first = instance.arrays[array] + groups.start();
            let last = instance.arrays[array] + groups.end();
            match stretches.last_mut() {
                Some(stretch) if stretch.goes_on(first, reads, writes) => {
                    stretch.last = stretch.last.max(last);
                }
                _ => stretches.push(Stretch { first, last, reads, writes }),
            }
        });
        join(stretches, into);
    }
}

#[cfg(test)]
mod needs_tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Compared with a map, group by group.
        #[test]
        fn each_group_once(given in prop::collection::vec((0u32..60, 0u32..20, any::<bool>(), any::<bool>()), 0..12)) {
            let mut naive = BTreeMap::new();
            for (first, more, reads, writes) in &given {
                for group in *first..=first + more {
                    let of: &mut (bool, bool) = naive.entry(group).or_default();
                    *of = (of.0 || *reads, of.1 || *writes);
                }
            }
            let stretch = |(first, more, reads, writes)| Stretch { first, last: first + more, reads, writes };
            let mut stretches: Vec<Stretch> = given.into_iter().map(stretch).collect();
            let mut found = Vec::new();
            join(&mut stretches, &mut found);
            let naive: Vec<Need> =
                naive.into_iter().map(|(group, (reads, writes))| Need { group, reads, writes }).collect();
            prop_assert_eq!(found, naive);
        }
    }
}
