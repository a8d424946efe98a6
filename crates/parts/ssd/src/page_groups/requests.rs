//! Requests of kernels: reads, writes and mapped sections; and the concurrent steps of Storengine.

use super::access::{Access, Purpose};
use super::{Event, GroupsFlash};
use engine::{Cx, Time};
use ftl::page_groups::{
    GroupCounters, Logical, Step, Task, Write,
    locks::{self, GroupRange, Lock, Owner},
};
use nand::dies::op::Class;
use proto::groups::{Groups, Tell, Work};

/// Read or write that has not been answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    tag: u32,
    groups: Groups,
    is_write: bool,
    /// Groups that have begun or failed.
    pub(super) begun: u32,
    pub(super) under_way: u32,
    failed: u32,
    pub(super) since: Time,
}

impl Request {
    /// Number of groups that are not done.
    pub(super) fn open(&self) -> u32 {
        self.groups.count() - self.begun + self.under_way
    }

    /// Answer to the requester when all groups are done.
    pub(super) fn told(&self) -> Tell {
        Tell::Done { tag: self.tag, failed: self.failed }
    }

    fn next(&self) -> Logical {
        Logical(self.groups.first + self.begun)
    }

    fn is_begun(&self) -> bool {
        self.begun == self.groups.count()
    }
}

impl GroupsFlash {
    fn request(&mut self, tag: u32, groups: Groups, is_write: bool, now: Time) -> u32 {
        assert!(groups.first <= groups.last, "a range: {groups:?}");
        self.ledger.requests += 1;
        self.ledger.asked += u64::from(groups.count());
        let request = Request { tag, groups, is_write, begun: 0, under_way: 0, failed: 0, since: now };
        self.requests.insert(request)
    }

    /// Starts a kernel's read of groups.
    pub(super) fn read(&mut self, tag: u32, groups: Groups, cx: &mut impl Cx<Event, Tell>) {
        let now = cx.now();
        let name = self.request(tag, groups, false, now);
        let first = self.batches.next_group();
        while !self.requests[name].is_begun() {
            let logical = self.requests[name].next();
            let found = self.visor.read(logical);
            if let Some(shadow) = &mut self.shadow {
                shadow.looked_up(logical, found.ok().flatten());
            }
            let request = &mut self.requests[name];
            request.begun += 1;
            match found {
                Ok(Some(group)) => {
                    request.under_way += 1;
                    self.batches.groups.push((logical, group));
                }
                Ok(None) => {
                    self.stats.groups_unwritten += 1;
                    self.ledger.done += 1;
                }
                Err(_) => self.fail(name),
            }
        }
        self.begin_reads(name, first, cx);
        self.answer(name, cx);
    }

    /// Marks a group of a request as failed.
    fn fail(&mut self, request: u32) {
        self.requests[request].failed += 1;
        self.stats.groups_failed += 1;
        self.ledger.done += 1;
    }

    /// Starts a kernel's write of groups.
    pub(super) fn write(&mut self, tag: u32, groups: Groups, cx: &mut impl Cx<Event, Tell>) {
        let name = self.request(tag, groups, true, cx.now());
        if self.short.is_empty() && self.begin_writes(name, cx) {
            self.answer(name, cx);
        } else {
            self.short.push_back(name);
            // If a number is missing, reclaim may have a block to begin with.
            self.stirred = true;
        }
    }

    /// Starts the groups of a write that have numbers. Returns true if all have.
    fn begin_writes(&mut self, name: u32, cx: &mut impl Cx<Event, Tell>) -> bool {
        while !self.requests[name].is_begun() {
            let logical = self.requests[name].next();
            let number = self.visor.write(logical);
            if matches!(number, Ok(None)) {
                return false;
            }
            self.requests[name].begun += 1;
            match number {
                Ok(Some(write)) => {
                    self.requests[name].under_way += 1;
                    if let Some(shadow) = &mut self.shadow {
                        shadow.begin_write(write);
                    }
                    let purpose = Purpose::Write { request: name, write };
                    self.begin_program(purpose, write.group, Class::HostProgram, cx);
                }
                Ok(None) | Err(_) => self.fail(name),
            }
        }
        true
    }

    /// Resumes writes that waited for numbers, in order of arrival.
    pub(super) fn retry(&mut self, cx: &mut impl Cx<Event, Tell>) {
        while let Some(name) = self.short.front().copied() {
            if !self.begin_writes(name, cx) {
                return;
            }
            self.short.pop_front();
            self.stats.space_wait.record((cx.now() - self.requests[name].since).ps());
            self.answer(name, cx);
        }
    }

    /// Completes a group read into a kernel's memory.
    pub(super) fn group_read(
        &mut self,
        request: u32,
        logical: Logical,
        access: &Access,
        cx: &mut impl Cx<Event, Tell>,
    ) {
        if let Some(shadow) = &mut self.shadow {
            shadow.read(logical, access.group);
        }
        self.visor.read_done(access.group);
        self.stirred = true;
        self.stats.groups_read += 1;
        self.stats.group_read.record((cx.now() - access.since).ps());
        self.group_done(request, cx);
    }

    /// Completes a programmed group of a kernel's write.
    pub(super) fn group_written(
        &mut self,
        request: u32,
        write: Write,
        access: &Access,
        cx: &mut impl Cx<Event, Tell>,
    ) {
        if let Some(shadow) = &mut self.shadow {
            shadow.written(write);
        }
        self.visor.written(write);
        self.stirred = true;
        self.map_has_changed(cx);
        self.ledger.written += 1;
        self.stats.groups_written += 1;
        self.stats.group_write.record((cx.now() - access.since).ps());
        self.group_done(request, cx);
    }

    fn group_done(&mut self, request: u32, cx: &mut impl Cx<Event, Tell>) {
        self.requests[request].under_way -= 1;
        self.ledger.done += 1;
        self.answer(request, cx);
    }

    /// Answers a request if all its groups are done.
    fn answer(&mut self, name: u32, cx: &mut impl Cx<Event, Tell>) {
        let request = self.requests[name];
        if request.open() == 0 {
            self.answered(name, cx.now());
            cx.emit(request.told());
        }
    }

    /// Forgets an answered request.
    pub(super) fn answered(&mut self, name: u32, now: Time) {
        let Request { since, is_write, .. } = self.requests[name];
        self.requests.remove(name);
        self.ledger.answered += 1;
        let all = if is_write { &mut self.stats.write } else { &mut self.stats.read };
        all.record((now - since).ps());
    }
}

// Mapped data sections: range locks, and their waiters.

/// Section that is mapped, or waits to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    tag: u32,
    lock: Option<Lock>,
    pub(super) is_held: bool,
    since: Time,
}

impl GroupsFlash {
    /// Requests the lock of a section.
    pub(super) fn lock(&mut self, tag: u32, groups: Groups, write: bool, cx: &mut impl Cx<Event, Tell>) {
        self.ledger.locks += 1;
        self.stats.locks += 1;
        let section = Section { tag, lock: None, is_held: false, since: cx.now() };
        let name = self.sections.insert(section);
        let other = self.by_tag.insert(tag, name);
        assert!(other.is_none(), "two locks with the tag {tag}");
        let range = GroupRange { first: groups.first, last: groups.last };
        let access = if write { locks::Access::Write } else { locks::Access::Read };
        let (lock, is_held) = self.visor.locks.request(range, access, Owner::Section(name));
        let section = &mut self.sections[name];
        (section.lock, section.is_held) = (Some(lock), is_held);
        if is_held {
            cx.emit(Tell::Locked { tag });
        }
    }

    /// Returns a section, or withdraws its request.
    pub(super) fn unlock(&mut self, tag: u32) {
        let name = self.by_tag.remove(&tag).unwrap_or_else(|| panic!("no lock has the tag {tag}"));
        let lock = self.sections[name].lock.expect("it has been asked for");
        self.sections.remove(name);
        self.ledger.unlocks += 1;
        self.visor.locks.release(lock, &mut self.granted);
        self.stirred = true;
    }

    /// Tells waiters that their locks have been granted.
    pub(super) fn pass_on(&mut self, cx: &mut impl Cx<Event, Tell>) {
        let now = cx.now();
        for granted in self.granted.drain(..) {
            let Owner::Section(name) = granted.owner else { unreachable!("Storengine waits for no lock") };
            let section = &mut self.sections[name];
            section.is_held = true;
            self.stats.lock_wait.record((now - section.since).ps());
            cx.emit(Tell::Locked { tag: section.tag });
        }
    }
}

// Steps of Storengine: core time, then media.

/// Step under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chore {
    task: Task,
    step: Step,
    /// True if the core has done its work.
    is_begun: bool,
}

/// Timer of dumps.
pub(super) struct Timer {
    period: Time,
    /// True if a kernel has changed an entry since the last dump began: the next one is due.
    is_armed: bool,
    /// Number of completed dumps when one came due during another.
    missed: Option<u64>,
}

impl Timer {
    pub(super) fn new(period: Time) -> Timer {
        Timer { period, is_armed: false, missed: None }
    }

    /// Time from `now` to the next multiple of the period.
    fn wait(&self, now: Time) -> Time {
        Time::from_ps(self.period.ps() - now.ps() % self.period.ps())
    }
}

impl GroupsFlash {
    /// Starts possible steps of Storengine, passes on granted locks, and resumes writes.
    pub(super) fn keep(&mut self, cx: &mut impl Cx<Event, Tell>) {
        while std::mem::take(&mut self.stirred) {
            while let Some((task, step)) = self.next_step() {
                self.call_core(task, step, cx);
            }
            self.pass_on(cx);
            self.retry(cx);
        }
        self.make_up(cx);
    }

    fn next_step(&mut self) -> Option<(Task, Step)> {
        let entries = |counters: &GroupCounters| counters.lookups + counters.weighed;
        let before = entries(&self.visor.counters);
        let next = self.storengine.next(&mut self.visor, &mut self.granted);
        self.looked += entries(&self.visor.counters) - before;
        next
    }

    /// Requests the core that manages the flash.
    fn call_core(&mut self, task: Task, step: Step, cx: &mut impl Cx<Event, Tell>) {
        let (entries, operations) = match step {
            Step::ReadMeta { .. } | Step::Read { .. } => (0, 1),
            // The entry is changed at the end of the step.
            Step::Program { .. } => (1, 1),
            Step::Copy { entries } => (entries, 0),
            Step::WriteMeta { entries, .. } => (entries, 1),
            Step::Erase { .. } => (0, self.media.spread),
        };
        let looked = std::mem::take(&mut self.looked);
        let entries = u32::try_from(u64::from(entries) + looked).unwrap_or(u32::MAX);
        self.ledger.steps += 1;
        self.stats.steps += 1;
        self.stats.entries += u64::from(entries);
        let tag = self.chores.insert(Chore { task, step, is_begun: false });
        cx.emit(Tell::Work { tag, work: Work { entries, operations } });
    }

    /// Continues a step whose core work is done.
    pub(super) fn worked(&mut self, tag: u32, cx: &mut impl Cx<Event, Tell>) {
        let now = cx.now();
        let chore = &mut self.chores[tag];
        assert!(!chore.is_begun, "the work of step {tag} is done twice");
        chore.is_begun = true;
        let purpose = Purpose::Chore(tag);
        match chore.step {
            Step::ReadMeta { group } | Step::Read { group, .. } => {
                self.begin_read(purpose, group, Class::GcRead, now);
            }
            Step::Program { group, logical: Some(_) } => {
                self.begin_program(purpose, group, Class::GcProgram, cx);
            }
            Step::Program { group, logical: None } | Step::WriteMeta { group, .. } => {
                self.begin_program(purpose, group, Class::MapProgram, cx);
            }
            Step::Copy { .. } => self.performed(tag),
            Step::Erase { block } => {
                if let Some(shadow) = &mut self.shadow {
                    shadow.erased(block, self.visor.layout());
                }
                self.begin_erase(purpose, block, now);
            }
        }
    }

    /// Completes a step.
    pub(super) fn performed(&mut self, name: u32) {
        let Chore { task, step, .. } = self.chores[name];
        self.chores.remove(name);
        self.ledger.steps_done += 1;
        if let Some(shadow) = &mut self.shadow {
            shadow.performed(task, step);
        }
        self.storengine.done(task, &mut self.visor, &mut self.granted);
        self.stirred = true;
    }

    /// Notes that a kernel has changed an entry of the map: a dump is due at the next multiple of the period.
    pub(super) fn map_has_changed(&mut self, cx: &mut impl Cx<Event, Tell>) {
        if !self.timer.is_armed {
            self.timer.is_armed = true;
            cx.after(self.timer.wait(cx.now()), Event::Dump(0));
        }
    }

    /// Starts a dump that is due.
    pub(super) fn dump_is_due(&mut self) {
        if self.storengine.begin_dump() {
            self.timer.is_armed = false;
            self.stirred = true;
        } else {
            self.stats.dumps_late += 1;
            self.timer.missed = Some(self.visor.counters.dumps);
        }
    }

    /// Reschedules a dump that was delayed by another one, now complete.
    fn make_up(&mut self, cx: &mut impl Cx<Event, Tell>) {
        if self.timer.missed.is_some_and(|dumps| dumps < self.visor.counters.dumps) {
            self.timer = Timer::new(self.timer.period);
            self.map_has_changed(cx);
        }
    }
}
