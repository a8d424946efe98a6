//! Storengine: metadata, dumps of the map, and reclaim, as steps that its caller performs.

mod job;

use super::flashvisor::Flashvisor;
use super::locks::{Access, Granted, GroupRange, Lock, Owner};
use super::space::Stream;
use super::spec::GroupsSpec;
use super::victim::Victim;
use super::{Dumped, Logical, Physical, Spare};
use crate::page_groups::spec::DumpExtent;
use engine::Slab;
use job::Job;
use std::collections::VecDeque;

/// Step in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task(pub u32);

/// Step that Storengine requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Reads metadata of a victim from flash.
    ReadMeta {
        /// Metadata group.
        group: Physical,
    },
    /// Reads a group that is moved.
    Read {
        /// Group to read.
        group: Physical,
        /// Content of the group; `None` for a group of the map.
        logical: Option<Logical>,
    },
    /// Programs a group that has been read, or copied from the map.
    Program {
        /// Destination group.
        group: Physical,
        /// Content of the group; `None` for a group of the map.
        logical: Option<Logical>,
    },
    /// Copies entries from the map, for a dump.
    Copy {
        /// Number of entries.
        entries: u32,
    },
    /// Programs metadata of a full block.
    WriteMeta {
        /// Metadata group.
        group: Physical,
        /// Number of entries in the group.
        entries: u32,
    },
    /// Erases a block.
    Erase {
        /// Block number.
        block: u32,
    },
}

/// Subject of a task.
#[derive(Clone, Copy, Debug)]
enum Work {
    Meta,
    Move(Move),
    Erase,
    Dump,
}

/// Group on its way to a new number.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// Logical group, or group of the map.
    index: u32,
    from: Physical,
    /// New number, once the group has been read.
    to: Option<Physical>,
    lock: Option<Lock>,
}

/// Storengine's work in progress.
///
/// The caller takes steps with [`next`](Storengine::next) until it returns `None`, performs them in any order and calls
/// [`done`](Storengine::done) for each. More steps may exist after that, after a completed write or read of a kernel,
/// and after [`begin_dump`](Storengine::begin_dump). Storengine waits for no lock.
pub struct Storengine {
    victim: Box<dyn Victim>,
    /// Number of free blocks below which it reclaims; at least one more than writes of kernels leave.
    below: u32,
    moves: u32,
    tasks: Slab<Work>,
    /// Moves that have been read and are to be programmed.
    read: VecDeque<u32>,
    job: Job,
    dump: Dump,
}

impl Storengine {
    /// Creates an idle Storengine.
    pub fn new(spec: &GroupsSpec) -> Storengine {
        Storengine {
            victim: spec.reclaim.victim.build(&()),
            below: spec.reclaim.below.max(spec.reclaim.reserve + 1),
            moves: spec.reclaim.moves,
            tasks: Slab::default(),
            read: VecDeque::new(),
            job: Job::Idle,
            dump: Dump::new(spec.dump.extent),
        }
    }

    /// Begins a dump of the map. Returns false while one is in progress.
    pub fn begin_dump(&mut self) -> bool {
        self.dump.begin()
    }

    /// Returns whether nothing is in progress, including steps that must wait.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty() && matches!(self.job, Job::Idle) && self.dump.is_idle()
    }

    /// Returns the next step that need not wait, if any. Requests that become granted are added to `granted`.
    pub fn next(&mut self, visor: &mut Flashvisor, granted: &mut Vec<Granted>) -> Option<(Task, Step)> {
        while let Some(name) = self.read.pop_front() {
            if let Some(step) = self.program_moved(name, visor, granted) {
                return Some((Task(name), step));
            }
        }
        if let Some(step) = self.next_of_dump(visor) {
            return Some((Task(self.tasks.insert(Work::Dump)), step));
        }
        let (work, step) = self.next_of_job(visor)?;
        Some((Task(self.tasks.insert(work)), step))
    }

    /// Registers a completed step. Requests that become granted are added to `granted`.
    pub fn done(&mut self, task: Task, visor: &mut Flashvisor, granted: &mut Vec<Granted>) {
        match self.tasks[task.0] {
            Work::Move(Move { to: None, .. }) => return self.read.push_back(task.0),
            Work::Move(moved) => self.moved(moved, visor, granted),
            Work::Meta => self.metadata_done(visor),
            Work::Erase => self.erased(visor),
            Work::Dump => self.dump_done(visor, granted),
        }
        self.tasks.remove(task.0);
    }

    /// Gives a group that has been read its new number; `None` if a kernel has written it meanwhile.
    fn program_moved(
        &mut self,
        name: u32,
        visor: &mut Flashvisor,
        granted: &mut Vec<Granted>,
    ) -> Option<Step> {
        let Work::Move(mut moved) = self.tasks[name] else { unreachable!("only moves are read") };
        visor.counters.lookups += 1;
        if visor.map.get(moved.index, &visor.layout) != Some(moved.from) {
            visor.counters.overwritten += 1;
            self.tasks.remove(name);
            self.move_ends(moved, visor, granted);
            return None;
        }
        let to = visor.space.take(Stream::Move).expect("blocks are kept free for reclaim");
        visor.begin_copy(moved.index, moved.from, to);
        moved.to = Some(to);
        self.tasks[name] = Work::Move(moved);
        Some(Step::Program { group: to, logical: visor.logical(moved.index) })
    }

    /// Registers a group at its new place: the map names it, if it still named the old one.
    fn moved(&mut self, moved: Move, visor: &mut Flashvisor, granted: &mut Vec<Granted>) {
        let Move { index, from, .. } = moved;
        let to = moved.to.expect("it has been programmed");
        visor.program_ends(index, to);
        visor.counters.moves += 1;
        if visor.map.get(index, &visor.layout) == Some(from) {
            visor.name(index, to);
        } else {
            visor.counters.overwritten += 1;
        }
        self.move_ends(moved, visor, granted);
    }

    fn move_ends(&mut self, moved: Move, visor: &mut Flashvisor, granted: &mut Vec<Granted>) {
        if let Some(lock) = moved.lock {
            visor.locks.release(lock, granted);
        }
        self.move_has_ended();
    }

    /// Begins to move a group, under a lock if its range is free.
    fn begin_move(&mut self, index: u32, from: Physical, visor: &mut Flashvisor) -> (Work, Step) {
        let logical = visor.logical(index);
        let range = logical.map(|group| GroupRange { first: group.0, last: group.0 });
        let lock = range.and_then(|range| visor.locks.try_lock(range, Access::Read, Owner::Storengine));
        (Work::Move(Move { index, from, to: None, lock }), Step::Read { group: from, logical })
    }
}

impl Flashvisor {
    /// Returns the logical group of an index; `None` for a group of the map.
    fn logical(&self, index: u32) -> Option<Logical> {
        (index < self.layout.groups()).then_some(Logical(index))
    }

    /// Begins to program a copy of a group.
    fn begin_copy(&mut self, index: u32, from: Physical, to: Physical) {
        self.stamp += 1;
        let made = self.stamp;
        let Some(durable) = &mut self.durable else { return };
        let version = durable.spare(from, &self.layout).expect("it has been read").version;
        if let Some(dumped) = durable.dumps.get(&from.0).cloned() {
            durable.dump(to, dumped);
        }
        self.program_begins(to, Spare { index, version, made });
    }
}

// Dump of the map, one group of it after the other.
//
// Entries are copied as they are, under a lock if their range is free. A section that is mapped for writes does not
// delay a dump or a move: kernels that write for hours would leave no chance for one. Groups programmed meanwhile are
// found by their spare areas.

/// Dump in progress, if any.
#[derive(Clone, Debug)]
struct Dump {
    extent: DumpExtent,
    state: State,
}

/// State of a dump, with the number of the group of the map.
#[derive(Clone, Debug)]
enum State {
    Idle,
    /// Searches the next group from here.
    Next(u32),
    /// Entries are to be copied.
    Found(u32),
    /// Entries are being copied, under the lock on their logical groups if they were free.
    Copying(u32, Option<Lock>),
    /// Waits for a number. The copy is kept if it must be durable.
    Copied(u32, Option<Box<Dumped>>),
    Programming(u32, Physical),
}

impl Dump {
    fn new(extent: DumpExtent) -> Dump {
        Dump { extent, state: State::Idle }
    }

    fn begin(&mut self) -> bool {
        let is_idle = self.is_idle();
        if is_idle {
            self.state = State::Next(0);
        }
        is_idle
    }

    fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }
}

impl Storengine {
    /// Returns the next step of the dump.
    fn next_of_dump(&mut self, visor: &mut Flashvisor) -> Option<Step> {
        if let State::Next(from) = self.dump.state {
            self.next_group(from, visor);
        }
        match std::mem::replace(&mut self.dump.state, State::Idle) {
            State::Found(number) => {
                let range = range(number, visor);
                let lock = visor.locks.try_lock(range, Access::Read, Owner::Storengine);
                self.dump.state = State::Copying(number, lock);
                Some(Step::Copy { entries: range.last - range.first + 1 })
            }
            // A reclaim in progress has reserved the free space.
            State::Copied(number, content) if !self.is_moving() && visor.space.has_number(Stream::Dump) => {
                let group = visor.space.take(Stream::Dump)?;
                visor.begin_dumped(number, group, content);
                self.dump.state = State::Programming(number, group);
                Some(Step::Program { group, logical: None })
            }
            other => {
                self.dump.state = other;
                None
            }
        }
    }

    /// Advances to the next group that this dump writes.
    fn next_group(&mut self, from: u32, visor: &mut Flashvisor) {
        let map_groups = visor.layout.map_groups();
        let next = match self.dump.extent {
            DumpExtent::changed => visor.map.next_changed(from, map_groups),
            DumpExtent::whole => Some(from).filter(|number| *number < map_groups),
        };
        visor.counters.dumps += u64::from(next.is_none());
        self.dump.state = next.map_or(State::Idle, State::Found);
    }

    fn dump_done(&mut self, visor: &mut Flashvisor, granted: &mut Vec<Granted>) {
        self.dump.state = match std::mem::replace(&mut self.dump.state, State::Idle) {
            State::Copying(number, lock) => {
                let content = visor.copy_entries(number);
                if let Some(lock) = lock {
                    visor.locks.release(lock, granted);
                }
                State::Copied(number, content)
            }
            State::Programming(number, group) => {
                let index = visor.layout.groups() + number;
                visor.program_ends(index, group);
                visor.name(index, group);
                visor.counters.dumped += 1;
                State::Next(number + 1)
            }
            state => unreachable!("no step of a dump is in flight: {state:?}"),
        };
    }
}

/// Returns the logical groups whose entries a group of the map holds.
fn range(number: u32, visor: &Flashvisor) -> GroupRange {
    let entries = visor.layout.group_entries();
    let first = number * entries;
    GroupRange { first, last: (first + (entries - 1)).min(visor.layout.groups() - 1) }
}

impl Flashvisor {
    /// Copies the entries of a group of the map: from now on it is unchanged.
    fn copy_entries(&mut self, number: u32) -> Option<Box<Dumped>> {
        let GroupRange { first, last } = range(number, self);
        self.map.copied(number);
        let mark = self.durable.as_ref()?.mark(self.stamp + 1);
        let entries = (first..=last).map(|index| self.map.get(index, &self.layout)).collect();
        Some(Box::new(Dumped { entries, mark }))
    }

    fn begin_dumped(&mut self, number: u32, group: Physical, content: Option<Box<Dumped>>) {
        self.stamp += 1;
        let (index, made) = (self.layout.groups() + number, self.stamp);
        if let (Some(durable), Some(content)) = (&mut self.durable, content) {
            durable.dump(group, *content);
        }
        self.program_begins(group, Spare { index, version: made, made });
    }
}
