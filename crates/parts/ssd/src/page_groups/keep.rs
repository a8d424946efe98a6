//! What Storengine does, step by step: core time, then media.

use super::access::Purpose;
use super::{Event, GroupsFlash};
use engine::{Cx, Time};
use ftl::page_groups::{GroupCounters, Step, Task};
use nand::dies::op::Class;
use proto::groups::{Tell, Work};

/// A step under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chore {
    task: Task,
    step: Step,
    /// Whether the core has done its work.
    is_begun: bool,
}

/// When dumps begin.
pub(super) struct Timer {
    period: Time,
    /// A kernel has changed an entry since the last dump began: the next one is due.
    is_armed: bool,
    /// It was due while one was under way; how many had ended then.
    missed: Option<u64>,
}

impl Timer {
    pub(super) fn new(period: Time) -> Timer {
        Timer { period, is_armed: false, missed: None }
    }

    /// From `now` to the next multiple of the period.
    fn wait(&self, now: Time) -> Time {
        Time::from_ps(self.period.ps() - now.ps() % self.period.ps())
    }
}

impl GroupsFlash {
    /// Takes what Storengine can do now, tells those who have got their locks, and goes on with writes.
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

    /// Asks for the core that keeps the flash.
    fn call_core(&mut self, task: Task, step: Step, cx: &mut impl Cx<Event, Tell>) {
        let (entries, operations) = match step {
            Step::ReadMeta { .. } | Step::Read { .. } => (0, 1),
            // The entry is changed when it is done.
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

    /// The core has done the work of a step: on with it.
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

    /// A step has been performed.
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

    /// A kernel has changed an entry of the map: a dump is due at the next multiple of the period.
    pub(super) fn map_has_changed(&mut self, cx: &mut impl Cx<Event, Tell>) {
        if !self.timer.is_armed {
            self.timer.is_armed = true;
            cx.after(self.timer.wait(cx.now()), Event::Dump(0));
        }
    }

    /// A dump is due.
    pub(super) fn dump_is_due(&mut self) {
        if self.storengine.begin_dump() {
            self.timer.is_armed = false;
            self.stirred = true;
        } else {
            self.stats.dumps_late += 1;
            self.timer.missed = Some(self.visor.counters.dumps);
        }
    }

    /// A dump that could not begin because of another is due again when that one has ended.
    fn make_up(&mut self, cx: &mut impl Cx<Event, Tell>) {
        if self.timer.missed.is_some_and(|dumps| dumps < self.visor.counters.dumps) {
            self.timer = Timer::new(self.timer.period);
            self.map_has_changed(cx);
        }
    }
}
