//! Flash that holds programmed data, and a naive model of the expected data.

use crate::page_groups::locks::{Access, Granted, GroupRange, Lock, Owner};
use crate::page_groups::space::State;
use crate::page_groups::spec::GroupsSpec;
use crate::page_groups::{Flashvisor, Logical, Physical, Recovery, Step, Storengine, Task, Write, recover};
use engine::Rng;
use std::collections::BTreeMap;

/// Version of a logical group: its position in the order of all writes. Zero is the data present from the start.
type Version = u64;

/// Data section of a kernel.
struct Section {
    name: u32,
    range: GroupRange,
    access: Access,
    lock: Lock,
    is_mapped: bool,
}

/// Test rig: both cores, a flash, and the model.
pub(super) struct Rig {
    spec: GroupsSpec,
    pub(super) visor: Flashvisor,
    pub(super) storengine: Storengine,
    /// Content of each programmed group.
    flash: BTreeMap<Physical, (Option<Logical>, Version)>,
    /// Groups that Storengine has read and not programmed yet, in program order.
    moving: Vec<(Logical, Version)>,
    pub(super) steps: Vec<(Task, Step)>,
    /// Content that Storengine's programs in flight will leave.
    programming: BTreeMap<Physical, (Option<Logical>, Version)>,
    pub(super) writes: Vec<(Write, Version)>,
    reads: Vec<(Physical, Logical, Version)>,
    sections: Vec<Section>,
    /// Model: newest version of each group whose write is done.
    pub(super) newest: BTreeMap<Logical, Version>,
    version: Version,
    names: u32,
    pub(super) granted: Vec<Granted>,
}

impl Rig {
    pub(super) fn new(spec: GroupsSpec, base: u32) -> Rig {
        let mut visor = Flashvisor::new(&spec).expect("it can be built");
        visor.record_durable();
        visor.assume_written(base).expect("it fits");
        let storengine = Storengine::new(&spec);
        let flash = (0..base).map(|n| {
            let group = visor.lookup(Logical(n)).expect("in range").expect("it is there");
            (group, (Some(Logical(n)), 0))
        });
        Rig {
            flash: flash.collect(),
            newest: (0..base).map(|n| (Logical(n), 0)).collect(),
            spec,
            visor,
            storengine,
            moving: Vec::new(),
            steps: Vec::new(),
            programming: BTreeMap::new(),
            writes: Vec::new(),
            reads: Vec::new(),
            sections: Vec::new(),
            version: 0,
            names: 0,
            granted: Vec::new(),
        }
    }

    /// Begins a write; returns whether a number was available.
    pub(super) fn begin_write(&mut self, logical: Logical) -> bool {
        match self.visor.write(logical).expect("it fits") {
            Some(write) => {
                self.version += 1;
                self.writes.push((write, self.version));
                true
            }
            None => false,
        }
    }

    /// Ends a write in flight.
    pub(super) fn end_write(&mut self, which: usize) {
        let (write, version) = self.writes.swap_remove(which);
        self.program(write.group, Some(write.logical), version);
        self.visor.written(write);
        let newest = self.newest.entry(write.logical).or_default();
        *newest = version.max(*newest);
    }

    fn program(&mut self, group: Physical, logical: Option<Logical>, version: Version) {
        assert!(self.flash.insert(group, (logical, version)).is_none(), "{group:?} is programmed twice");
        let (_, index) = self.visor.layout().block_of(group);
        assert!(index >= self.visor.layout().metadata_groups() || logical.is_none());
    }

    /// Writes a group, from its number to its end, with the steps that Storengine must do first.
    pub(super) fn write(&mut self, logical: Logical) {
        let mut turns = 0;
        while !self.begin_write(logical) {
            assert!(self.step(), "a number is wanted, and nothing is under way");
            turns += 1;
            assert!(turns < 100_000, "no number comes");
        }
        self.end_write(self.writes.len() - 1);
    }

    /// Begins a read: the mapped data is the data written last.
    pub(super) fn begin_read(&mut self, logical: Logical) {
        let group = self.visor.read(logical).expect("in range");
        let expected = self.newest.get(&logical).copied();
        assert_eq!(group.map(|group| self.flash[&group]), expected.map(|version| (Some(logical), version)));
        if let (Some(group), Some(version)) = (group, expected) {
            self.reads.push((group, logical, version));
        }
    }

    /// Ends a read: the data that it found is still present.
    pub(super) fn end_read(&mut self, which: usize) {
        let (group, logical, version) = self.reads.swap_remove(which);
        assert_eq!(self.flash.get(&group), Some(&(Some(logical), version)));
        self.visor.read_done(group);
    }

    /// Takes all steps of Storengine.
    pub(super) fn pull(&mut self) {
        while let Some((task, step)) = self.storengine.next(&mut self.visor, &mut self.granted) {
            match step {
                Step::Program { group, logical } => {
                    let at = self.moving.iter().position(|(moving, _)| Some(*moving) == logical);
                    let version = at.map_or(0, |at| self.moving.remove(at).1);
                    self.programming.insert(group, (logical, version));
                }
                Step::Erase { block } => {
                    let first = self.visor.layout().group(block, 0).0;
                    let gone = Physical(first)..Physical(first + self.visor.layout().block_groups());
                    let reads = self.reads.iter().filter(|(group, ..)| gone.contains(group)).count();
                    assert_eq!(reads, 0, "a block is erased while it is read");
                    self.flash.retain(|group, _| !gone.contains(group));
                }
                _ => {}
            }
            self.steps.push((task, step));
            self.grant();
        }
        self.grant();
    }

    /// Performs a step in flight.
    pub(super) fn perform(&mut self, which: usize) {
        let (task, step) = self.steps.remove(which);
        match step {
            Step::Read { group, logical: Some(logical) } => {
                let (held, version) = self.flash[&group];
                assert_eq!(held, Some(logical));
                // Data overwritten before its program is left behind: one version of a group is moved at a time.
                self.moving.retain(|(moving, _)| *moving != logical);
                self.moving.push((logical, version));
            }
            Step::Program { group, .. } => {
                let (logical, version) = self.programming.remove(&group).expect("a program under way");
                self.program(group, logical, version);
            }
            Step::WriteMeta { group, .. } => self.program(group, None, 0),
            _ => {}
        }
        self.storengine.done(task, &mut self.visor, &mut self.granted);
        self.grant();
    }

    /// Takes Storengine's steps, and performs the oldest; returns whether any existed.
    pub(super) fn step(&mut self) -> bool {
        self.pull();
        let any = !self.steps.is_empty();
        if any {
            self.perform(0);
        }
        any
    }

    /// Passes granted locks on.
    fn grant(&mut self) {
        for granted in std::mem::take(&mut self.granted) {
            let Owner::Section(name) = granted.owner else { unreachable!("Storengine waits for no lock") };
            let section = self.sections.iter_mut().find(|section| section.name == name).expect("it waits");
            assert!(!section.is_mapped && section.lock == granted.lock);
            section.is_mapped = true;
        }
    }

    /// Maps a section for a kernel, or waits for it.
    pub(super) fn map(&mut self, range: GroupRange, access: Access) {
        self.names += 1;
        let name = self.names;
        let (lock, is_mapped) = self.visor.locks.request(range, access, Owner::Section(name));
        self.sections.push(Section { name, range, access, lock, is_mapped });
    }

    /// Unmaps a kernel's section, or withdraws its request.
    pub(super) fn unmap(&mut self, which: usize) {
        let section = self.sections.swap_remove(which);
        self.visor.locks.release(section.lock, &mut self.granted);
        self.grant();
    }

    pub(super) fn sections(&self) -> usize {
        self.sections.len()
    }

    /// Returns a group of a mapped section, and its access.
    pub(super) fn mapped(&self, rng: &mut Rng) -> Option<(Logical, Access)> {
        let mapped: Vec<_> = self.sections.iter().filter(|section| section.is_mapped).collect();
        let section = mapped.get(rng.below(mapped.len().max(1) as u64) as usize)?;
        let GroupRange { first, last } = section.range;
        Some((Logical(first + rng.below(u64::from(last - first) + 1) as u32), section.access))
    }

    pub(super) fn reads(&self) -> usize {
        self.reads.len()
    }

    /// Checks that every group reads its newest version, and that the counts of blocks match the map.
    pub(super) fn check(&mut self) {
        let mut valid = vec![0; self.visor.layout.blocks() as usize];
        let groups = self.visor.layout.groups();
        for logical in (0..groups).map(Logical) {
            let group = self.visor.map.get(logical.0, &self.visor.layout);
            let expected = self.newest.get(&logical).map(|version| (Some(logical), *version));
            assert_eq!(group.map(|group| self.flash[&group]), expected, "{logical:?} at {group:?}");
            group.into_iter().for_each(|group| valid[self.visor.block_of(group) as usize] += 1);
        }
        for number in 0..self.visor.layout.map_groups() {
            let group = self.visor.map.get(groups + number, &self.visor.layout);
            group.into_iter().for_each(|group| valid[self.visor.block_of(group) as usize] += 1);
        }
        let data = u64::from(self.visor.layout.data_groups());
        let (mut invalid, mut free) = (0, 0);
        for (block, valid) in (0..).zip(valid) {
            let space = &self.visor.space;
            assert_eq!(space.valid(block), valid, "block {block}");
            assert_eq!(space.used.has(block), space.state(block) == State::Used);
            free += u32::from(space.state(block) == State::Free);
            invalid += if space.used.has(block) { data - u64::from(valid) } else { 0 };
        }
        assert_eq!((self.visor.space.invalid(), self.visor.free_blocks()), (invalid, free));
        let under_way = self.writes.iter().map(|(write, _)| write.logical);
        let all: std::collections::BTreeSet<_> = self.newest.keys().copied().chain(under_way).collect();
        assert_eq!(self.visor.data() as usize, all.len());
    }

    /// Cuts power and recovers: work in flight is lost, completed work is present.
    pub(super) fn cut(&mut self) -> Recovery {
        let durable = self.visor.cut().expect("it is recorded");
        let (mut visor, found) = recover(&self.spec, durable).expect("it was built before");
        let is_between = self.storengine.is_idle();
        if is_between {
            for logical in (0..visor.layout().groups()).map(Logical) {
                assert_eq!(visor.lookup(logical), self.visor.lookup(logical), "{logical:?}");
            }
        }
        self.visor = visor;
        self.storengine = Storengine::new(&self.spec);
        self.steps.clear();
        self.writes.clear();
        self.reads.clear();
        self.sections.clear();
        self.moving.clear();
        self.programming.clear();
        // Blocks without valid data have been erased.
        let space = &self.visor.space;
        let is_free = |group: &Physical| space.state(self.visor.block_of(*group)) == State::Free;
        self.flash.retain(|group, _| !is_free(group));
        self.check();
        found
    }

    /// Runs at random: kernels map sections, read and write them, some with writes that end after the section was
    /// unmapped; dumps; steps in any order; and power cuts.
    pub(super) fn run(&mut self, turns: u32, cuts: bool, rng: &mut Rng) {
        let top = u64::from(self.visor.capacity());
        for turn in 0..turns {
            match rng.below(100) {
                0..6 => {
                    let first = rng.below(top) as u32;
                    let last = (u64::from(first) + rng.below(30)).min(top - 1) as u32;
                    let access = if rng.below(2) == 0 { Access::Read } else { Access::Write };
                    self.map(GroupRange { first, last }, access);
                }
                6..10 if self.sections() > 0 => self.unmap(rng.below(self.sections() as u64) as usize),
                10 => drop(self.storengine.begin_dump()),
                11 if cuts && rng.below(8) == 0 => drop(self.cut()),
                // A frame is written back after its section was unmapped, while Storengine has its group.
                12..15 if !self.steps.is_empty() => {
                    match self.steps[rng.below(self.steps.len() as u64) as usize].1 {
                        Step::Read { logical: Some(logical), .. }
                        | Step::Program { logical: Some(logical), .. } => {
                            self.begin_write(logical);
                        }
                        _ => {}
                    }
                }
                15..40 => match self.mapped(rng) {
                    Some((logical, Access::Write)) if self.writes.len() < 40 => {
                        self.begin_write(logical);
                    }
                    Some((logical, Access::Read)) if self.reads() < 10 => self.begin_read(logical),
                    _ => {}
                },
                40..60 if !self.writes.is_empty() => {
                    self.end_write(rng.below(self.writes.len() as u64) as usize);
                }
                60..65 if self.reads() > 0 => self.end_read(rng.below(self.reads() as u64) as usize),
                65..70 => self.pull(),
                70.. if !self.steps.is_empty() => {
                    self.perform(rng.below(self.steps.len() as u64) as usize);
                }
                _ => {}
            }
            if turn % 256 == 0 {
                self.check();
            }
        }
    }

    /// Ends everything in progress, sections last: no request waits for ever.
    pub(super) fn drain(&mut self) {
        (0..self.reads()).for_each(|_| self.end_read(0));
        (0..self.writes.len()).for_each(|_| self.end_write(0));
        while self.step() {}
        (0..self.sections()).for_each(|_| self.unmap(0));
        while self.step() {}
        assert!(self.storengine.is_idle() && self.visor.locks.counts() == (0, 0));
        self.check();
    }
}
