//! Merging a full log block with its data blocks: garbage collection by a helper thread of the cores (ZnG, section IV-A).
//!
//! An entry of the block table names a log block and its data blocks in all planes of a set: these are merged together
//! when the log block of one plane is full. The helper moves a page inside its plane, one array operation at a time;
//! other operations of the plane go first. Before each step, the helper executes instructions on a multiprocessor
//! ([`Out::Help`]). The application whose write filled the log block waits for the end of the merge; others go on.

use super::array::Kind;
use super::stats::Spending;
use super::{Direct, Event, Out};
use engine::{Cx, Time};
use ftl::log::{Merge, Progress, Step};
use nand::numbers::NONE;
use nand::planes::{Queue, Work};
use proto::Port;
use proto::memory::{Help, MemCommand, Stage};
use std::collections::VecDeque;

/// Merge, waiting or under way.
#[derive(Clone, Debug)]
pub(super) struct Job {
    log: u32,
    app: u8,
    merge: Option<Merge>,
    /// Steps completed, by plane of the set.
    steps: Box<[u32]>,
    /// Progress of the helper thread on the next step, by plane of the set.
    helped: Box<[Helped]>,
    /// Number of the helper thread.
    thread: u32,
    began: Time,
    /// Programs that wait for the merge, by plane of the set.
    aside: Box<[Queue]>,
}

/// Progress of the helper thread on a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Helped {
    No,
    Asked,
    Yes,
}

/// Merges of a set of planes: the one under way, and those behind it.
#[derive(Clone, Debug)]
pub(super) struct Reclaim {
    merge: u32,
    behind: VecDeque<u32>,
}

impl Default for Reclaim {
    fn default() -> Reclaim {
        Reclaim { merge: NONE, behind: VecDeque::new() }
    }
}

/// State of an application.
#[derive(Clone, Copy, Debug)]
pub(super) struct App {
    /// Merges under way that block the application.
    merges: u32,
    /// First of the commands that wait for these merges.
    first: u32,
    last: u32,
}

impl Default for App {
    fn default() -> App {
        App { merges: 0, first: NONE, last: NONE }
    }
}

impl Direct {
    /// Number of merges under way.
    pub fn merging(&self) -> u64 {
        self.apps.iter().map(|app| u64::from(app.merges)).sum()
    }

    /// Returns true if a command has to wait for merges. Write-backs go on: the application's data leave the shared
    /// cache before the merge. Only a write-back to a page for which a command already waits stays behind that command.
    pub(super) fn is_blocked(&self, command: &MemCommand) -> bool {
        let app = &self.apps[usize::from(command.app)];
        if app.merges == 0 {
            return false;
        }
        let some = |id: u32| (id != NONE).then_some(id);
        let mut waiting = std::iter::successors(some(app.first), |id| some(self.active[*id].after));
        let is_write_back = command.write && !command.demand;
        !is_write_back || waiting.any(|id| self.active[id].command.page == command.page)
    }

    /// Makes a command wait until no merge blocks its application.
    pub(super) fn block(&mut self, id: u32) {
        self.stats.blocked += 1;
        let app = &mut self.apps[usize::from(self.active[id].command.app)];
        match std::mem::replace(&mut app.last, id) {
            NONE => app.first = id,
            last => self.active[last].after = id,
        }
    }

    /// Sets a program aside until its log block has been merged.
    pub(super) fn set_aside(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let op = *self.planes.op(name);
        let Kind::Program { register } = op.kind else { unreachable!("reads need no log block") };
        let log = self.blocks.log_of(op.place).expect("a log block without room exists");
        let record = *self.registers.get(register);
        // This takes long: a different page may leave its register instead.
        self.registers.sets[record.set as usize].leaving -= 1;
        self.short.push(record.set);
        let job = self.job_of(log, record.app);
        let (_, member) = self.blocks.set_of(op.place.plane);
        self.planes.set_aside(&mut self.merges[job].aside[member], name);
        self.begin_merge(self.blocks.logs[log].set, cx);
    }

    /// Queues the merge of a full log block; it begins when its set of planes has no other merge. `app` filled it.
    pub(super) fn queue_merge(&mut self, log: u32, app: u8, cx: &mut impl Cx<Event, Out>) {
        self.job_of(log, app);
        self.begin_merge(self.blocks.logs[log].set, cx);
    }

    /// Merge that a log block waits for.
    fn job_of(&mut self, log: u32, app: u8) -> u32 {
        let record = &mut self.blocks.logs[log];
        if record.merge == NONE {
            let planes = self.layout.group() as usize;
            let (steps, aside) = (vec![0; planes].into(), vec![Queue::default(); planes].into());
            let (helped, began) = (vec![Helped::No; planes].into(), Time::ZERO);
            let job = Job { log, app, merge: None, steps, helped, thread: 0, began, aside };
            record.merge = self.merges.insert(job);
            self.reclaims[record.set as usize].behind.push_back(record.merge);
        }
        record.merge
    }

    /// Begins the next merge of a set of planes, unless one is under way or a program into its log block is.
    fn begin_merge(&mut self, set: u32, cx: &mut impl Cx<Event, Out>) {
        let reclaim = &mut self.reclaims[set as usize];
        let Some(name) = reclaim.behind.front().copied().filter(|_| reclaim.merge == NONE) else {
            return;
        };
        let job = &mut self.merges[name];
        if self.blocks.is_programming(job.log) {
            return;
        }
        reclaim.behind.pop_front();
        reclaim.merge = name;
        job.began = cx.now();
        job.thread = self.threads;
        self.threads = self.threads.wrapping_add(1);
        self.stats.gc_begun.get_or_insert(job.began);
        job.merge = Some(self.blocks.begin(job.log));
        let app = &mut self.apps[usize::from(job.app)];
        app.merges += 1;
        if app.merges == 1 {
            cx.emit(Out::Reclaim { app: job.app, begins: true });
        }
        self.advance_set(set, cx);
    }

    fn advance_set(&mut self, set: u32, cx: &mut impl Cx<Event, Out>) {
        for plane in self.blocks.planes_of(set) {
            self.advance(plane, cx);
        }
    }

    /// Merge under way in a set of planes.
    pub(super) fn merge_of(&self, set: u32) -> Option<&Merge> {
        let name = self.reclaims[set as usize].merge;
        if name == NONE { None } else { self.merges[name].merge.as_ref() }
    }

    /// Next step of the merge in a plane, once the helper thread has executed its instructions.
    #[inline]
    pub(super) fn helped_step(&mut self, plane: u32, cx: &mut impl Cx<Event, Out>) -> Option<Step> {
        let step = self.step(plane)?;
        let instructions = match step {
            Step::Copy { .. } => self.helper.page,
            Step::Erase(_) => self.helper.block,
        };
        if instructions == 0 {
            return Some(step);
        }
        let (thread, helped) = self.helper_in(plane);
        if *helped == Helped::No {
            *helped = Helped::Asked;
            cx.emit(Out::Help(Help { tag: plane, from: Port::default(), thread, instructions }));
            return None;
        }
        (*helped == Helped::Yes).then_some(step)
    }

    /// Helper thread of the merge in a plane, and its progress on the next step there.
    fn helper_in(&mut self, plane: u32) -> (u32, &mut Helped) {
        let (set, member) = self.blocks.set_of(plane);
        let job = &mut self.merges[self.reclaims[set as usize].merge];
        (job.thread, &mut job.helped[member])
    }

    /// Handles the end of the helper thread's instructions for the next step in a plane.
    pub fn helped(&mut self, plane: u32, cx: &mut impl Cx<Event, Out>) {
        *self.helper_in(plane).1 = Helped::Yes;
        self.advance(plane, cx);
        self.settle(cx);
    }

    /// Next step of the merge in a plane.
    #[inline]
    fn step(&self, plane: u32) -> Option<Step> {
        let (set, member) = self.blocks.set_of(plane);
        let merge = self.merge_of(set)?;
        let job = &self.merges[self.reclaims[set as usize].merge];
        self.blocks.step(merge, plane, job.steps[member])
    }

    /// Starts a merge step in a plane with nothing else to do.
    pub(super) fn start_step(&mut self, plane: u32, step: Option<Step>, cx: &mut impl Cx<Event, Out>) {
        self.planes.get(plane).work = Work::Step;
        *self.helper_in(plane).1 = Helped::No;
        let (does, service) = match step.expect("a plane with nothing to do is left alone") {
            Step::Copy { .. } => (Spending(1, 1, 0), self.times.sense + self.times.program),
            Step::Erase(_) => (Spending(0, 0, 1), self.times.erase),
        };
        self.work(plane, does, Time::ZERO, service, cx);
    }

    /// Completes a merge step in a plane.
    pub(super) fn step_done(&mut self, plane: u32, cx: &mut impl Cx<Event, Out>) {
        match self.step(plane).expect("a step has been started") {
            Step::Copy { from, to } => {
                self.stats.gc_reads += 1;
                self.stats.gc_programs += 1;
                self.ledger.copied += 1;
                if let Some(shadow) = &mut self.shadow {
                    shadow.copied(plane, from, to);
                }
            }
            Step::Erase(block) => {
                self.stats.erases += 1;
                self.ledger.erased += 1;
                if let Some(shadow) = &mut self.shadow {
                    shadow.erased(plane, block);
                }
            }
        }
        let (set, member) = self.blocks.set_of(plane);
        let name = self.reclaims[set as usize].merge;
        let job = &mut self.merges[name];
        let merge = job.merge.as_mut().expect("a merge that has begun");
        let progress = self.blocks.done(merge, plane, job.steps[member]);
        job.steps[member] += 1;
        match progress {
            Progress::Going => {}
            Progress::Moved => self.advance_set(set, cx),
            Progress::Over => self.end_merge(set, name, cx),
        }
    }

    fn end_merge(&mut self, set: u32, name: u32, cx: &mut impl Cx<Event, Out>) {
        let job = &mut self.merges[name];
        let (app, asides) = (job.app, std::mem::take(&mut job.aside));
        self.stats.gc_runs += 1;
        self.stats.gc_time += cx.now() - job.began;
        self.stats.gc_ended = Some(cx.now());
        self.merges.remove(name);
        for (plane, aside) in self.blocks.planes_of(set).zip(&asides) {
            for op in self.planes.aside(*aside) {
                let Kind::Program { register } = op.kind else { continue };
                let set = self.registers.get(register).set;
                self.registers.sets[set as usize].leaving += 1;
            }
            self.planes.resume(plane, *aside);
        }
        self.reclaims[set as usize].merge = NONE;
        self.begin_merge(set, cx);
        self.unblock(app, cx);
        self.advance_set(set, cx);
    }

    /// Ends a merge that blocked an application; after the last one, its commands go on.
    fn unblock(&mut self, name: u8, cx: &mut impl Cx<Event, Out>) {
        let app = &mut self.apps[usize::from(name)];
        app.merges -= 1;
        if app.merges > 0 {
            return;
        }
        let mut id = app.first;
        (app.first, app.last) = (NONE, NONE);
        cx.emit(Out::Reclaim { app: name, begins: false });
        while id != NONE {
            let active = &mut self.active[id];
            self.tally.command(Stage::Reclaim, &mut active.command, cx.now());
            let after = std::mem::replace(&mut active.after, NONE);
            self.admit(id, cx);
            id = after;
        }
    }
}
