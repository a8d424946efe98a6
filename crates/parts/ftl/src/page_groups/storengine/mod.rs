//! Storengine: metadata, dumps of the map, and reclaim, as steps that its caller performs.

mod dump;
mod job;

use super::durable::Spare;
use super::flashvisor::Flashvisor;
use super::locks::{Access, Granted, GroupRange, Lock, Owner};
use super::space::Stream;
use super::spec::GroupsSpec;
use super::victim::Victim;
use super::{Logical, Physical};
use dump::Dump;
use engine::Slab;
use job::Job;
use std::collections::VecDeque;

/// A step under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task(pub u32);

/// What Storengine wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Metadata of a victim is read from flash.
    ReadMeta {
        /// Which group.
        group: Physical,
    },
    /// A group that is moved is read.
    Read {
        /// Which group.
        group: Physical,
        /// What it holds; `None` for a group of the map.
        logical: Option<Logical>,
    },
    /// A group that has been read, or copied from the map, is programmed.
    Program {
        /// Where it goes.
        group: Physical,
        /// What it holds; `None` for a group of the map.
        logical: Option<Logical>,
    },
    /// Entries are copied from the map, for a dump.
    Copy {
        /// How many.
        entries: u32,
    },
    /// Metadata of a full block is programmed.
    WriteMeta {
        /// Which group.
        group: Physical,
        /// Entries that it holds.
        entries: u32,
    },
    /// A block is erased.
    Erase {
        /// Which one.
        block: u32,
    },
}

/// What a task is about.
#[derive(Clone, Copy, Debug)]
enum Work {
    Meta,
    Move(Move),
    Erase,
    Dump,
}

/// A group on its way to a new number.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// What it holds.
    index: u32,
    from: Physical,
    /// Its new number, once it has been read.
    to: Option<Physical>,
    lock: Option<Lock>,
}

/// What Storengine has under way.
///
/// The caller takes steps with [`next`](Storengine::next) until there is none, performs them in any order and says
/// [`done`](Storengine::done) for each. There may be more after that, after a write or a read of a kernel's that is done, and after
/// [`begin_dump`](Storengine::begin_dump). It waits for no lock.
pub struct Storengine {
    victim: Box<dyn Victim>,
    /// Free blocks below which it reclaims; at least one more than writes of kernels leave.
    below: u32,
    moves: u32,
    tasks: Slab<Work>,
    /// Moves that have been read and are to be programmed.
    read: VecDeque<u32>,
    job: Job,
    dump: Dump,
}

impl Storengine {
    /// Nothing under way.
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

    /// Begins a dump of the map. Whether it does: not while one is under way.
    pub fn begin_dump(&mut self) -> bool {
        self.dump.begin()
    }

    /// Whether nothing is under way, steps that have to wait among it.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty() && matches!(self.job, Job::Idle) && self.dump.is_idle()
    }

    /// The next step, if there is one that need not wait. Requests that need not wait any more are added to `granted`.
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

    /// A step has been performed. Requests that need not wait any more are added to `granted`.
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

    /// A group is at its new place: the map names it, if it still named the old one.
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
    /// The logical group that an index names; `None` for a group of the map.
    fn logical(&self, index: u32) -> Option<Logical> {
        (index < self.layout.groups()).then_some(Logical(index))
    }

    /// A copy of a group is programmed.
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
