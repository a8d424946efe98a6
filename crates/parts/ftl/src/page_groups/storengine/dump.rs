//! A dump of the map, one group of it after the other.
//!
//! Entries are copied as they stand, under a lock if their range is free. A section that is mapped for writes does not stop a dump, as it does not stop a move: kernels that write for hours
//! would leave none. What is programmed meanwhile is found by its spare area.

use super::{Flashvisor, Physical, Step, Storengine, Stream};
use crate::page_groups::durable::{Dumped, Spare};
use crate::page_groups::locks::{Access, Granted, GroupRange, Lock, Owner};
use crate::page_groups::spec::DumpExtent;

/// The dump under way, if there is one.
#[derive(Clone, Debug)]
pub(super) struct Dump {
    extent: DumpExtent,
    state: State,
}

/// Where it stands, with the number of the group of the map.
#[derive(Clone, Debug)]
enum State {
    Idle,
    /// The next group is to be found from here.
    Next(u32),
    /// Entries are to be copied.
    Found(u32),
    /// Entries are being copied, under the lock on their logical groups if they were free.
    Copying(u32, Option<Lock>),
    /// Waits for a number. What was copied is kept if it is to be durable.
    Copied(u32, Option<Box<Dumped>>),
    Programming(u32, Physical),
}

impl Dump {
    pub(super) fn new(extent: DumpExtent) -> Dump {
        Dump { extent, state: State::Idle }
    }

    pub(super) fn begin(&mut self) -> bool {
        let is_idle = self.is_idle();
        if is_idle {
            self.state = State::Next(0);
        }
        is_idle
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }
}

impl Storengine {
    /// The next step of the dump.
    pub(super) fn next_of_dump(&mut self, visor: &mut Flashvisor) -> Option<Step> {
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
            // A reclaim under way has been promised what is free.
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

    /// Goes to the next group that this dump writes.
    fn next_group(&mut self, from: u32, visor: &mut Flashvisor) {
        let map_groups = visor.layout.map_groups();
        let next = match self.dump.extent {
            DumpExtent::changed => visor.map.next_changed(from, map_groups),
            DumpExtent::whole => Some(from).filter(|number| *number < map_groups),
        };
        visor.counters.dumps += u64::from(next.is_none());
        self.dump.state = next.map_or(State::Idle, State::Found);
    }

    pub(super) fn dump_done(&mut self, visor: &mut Flashvisor, granted: &mut Vec<Granted>) {
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
            state => unreachable!("no step of a dump is under way: {state:?}"),
        };
    }
}

/// The logical groups whose entries a group of the map holds.
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
