//! Merging a full log block with its data blocks: garbage collection by a helper thread of the cores (ZnG, section IV-A).
//!
//! The helper moves a page inside its plane, an array operation at a time; what waits for the plane goes first. The
//! application whose write filled the log block waits for the end of it; others go on.

use super::blocks::{Merge, NONE, Step};
use super::planes::{Kind, Queue, Work};
use super::{Direct, Event, Out};
use kernel::{Cx, Time};
use proto::memory::{MemCommand, Stage};

/// A merge, waiting or under way.
#[derive(Clone, Debug)]
pub(super) struct Job {
    log: u32,
    app: u8,
    merge: Option<Merge>,
    step: u32,
    began: Time,
    /// Programs that wait for it.
    aside: Queue,
}

/// An application.
#[derive(Clone, Copy, Debug)]
pub(super) struct App {
    /// Merges under way that block it.
    merges: u32,
    /// Its commands that wait for them to end.
    first: u32,
    last: u32,
}

impl Default for App {
    fn default() -> App {
        App { merges: 0, first: NONE, last: NONE }
    }
}

impl Direct {
    /// Merges under way.
    pub fn merging(&self) -> u64 {
        self.apps.iter().map(|app| u64::from(app.merges)).sum()
    }

    /// Whether a command has to wait for merges to end. Write-backs go on: the application's data leave the shared cache
    /// before the merge. Only one to a page for which a command waits already stays behind it.
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

    /// A command waits until no merge blocks its application.
    pub(super) fn block(&mut self, id: u32) {
        self.stats.blocked += 1;
        let app = &mut self.apps[usize::from(self.active[id].command.app)];
        match std::mem::replace(&mut app.last, id) {
            NONE => app.first = id,
            last => self.active[last].after = id,
        }
    }

    /// A program waits for its log block to be merged.
    pub(super) fn set_aside(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let op = self.planes.ops[name];
        let Kind::Program { register } = op.kind else { unreachable!("reads need no log block") };
        let log = self.blocks.log_of(op.place).expect("a log block without room exists");
        let record = *self.registers.get(register);
        self.queue_merge(log, record.app, cx);
        let job = self.blocks.logs[log].merge;
        self.merges[job].aside.push(&mut self.planes.ops, name);
        // It will be long: another page may leave its register instead.
        self.registers.sets[record.set as usize].leaving -= 1;
        self.short.push(record.set);
    }

    /// A log block is full: it is merged when the plane has no other merge. `app` filled it.
    pub(super) fn queue_merge(&mut self, log: u32, app: u8, cx: &mut impl Cx<Event, Out>) {
        if self.blocks.logs[log].merge != NONE {
            return;
        }
        let job = Job { log, app, merge: None, step: 0, began: Time::ZERO, aside: Queue::default() };
        let job = self.merges.insert(job);
        let record = &mut self.blocks.logs[log];
        record.merge = job;
        let plane = record.plane;
        let state = self.planes.get(plane);
        if state.merge == NONE {
            self.begin_merge(plane, job, cx);
        } else {
            state.merges.push_back(job);
        }
    }

    fn begin_merge(&mut self, plane: u32, name: u32, cx: &mut impl Cx<Event, Out>) {
        self.planes.get(plane).merge = name;
        let job = &mut self.merges[name];
        job.began = cx.now();
        self.stats.gc_begun.get_or_insert(job.began);
        job.merge = Some(self.blocks.begin(job.log));
        let app = &mut self.apps[usize::from(job.app)];
        app.merges += 1;
        if app.merges == 1 {
            cx.emit(Out::Reclaim { app: job.app, begins: true });
        }
    }

    /// The merge under way in a plane.
    pub(super) fn merge_of(&self, plane: u32) -> Option<&Merge> {
        let name = self.planes.merge_of(plane)?;
        self.merges[name].merge.as_ref()
    }

    /// The step of a plane's merge that comes next.
    fn step(&self, name: u32) -> Option<Step> {
        let job = &self.merges[name];
        self.blocks.step(job.merge.as_ref().expect("a merge that has begun"), job.step)
    }

    /// Nothing else waits for a plane: its merge goes on.
    pub(super) fn start_step(&mut self, plane: u32, cx: &mut impl Cx<Event, Out>) {
        let state = self.planes.get(plane);
        state.work = Work::Step;
        let name = state.merge;
        let service = match self.step(name).expect("a merge ends with its last step") {
            Step::Copy { .. } => self.times.sense + self.times.program,
            Step::Erase(_) => self.times.erase,
        };
        self.work(plane, Time::ZERO, service, cx);
    }

    /// A step of a plane's merge is done.
    pub(super) fn step_done(&mut self, plane: u32, cx: &mut impl Cx<Event, Out>) {
        let name = self.planes.get(plane).merge;
        match self.step(name).expect("a step has been started") {
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
        let job = &mut self.merges[name];
        self.blocks.done(job.merge.as_mut().expect("a merge that has begun"), job.step);
        job.step += 1;
        if self.step(name).is_none() {
            self.end_merge(plane, name, cx);
        }
    }

    fn end_merge(&mut self, plane: u32, name: u32, cx: &mut impl Cx<Event, Out>) {
        let job = &self.merges[name];
        let (aside, app) = (job.aside, job.app);
        self.stats.gc_runs += 1;
        self.stats.gc_time += cx.now() - job.began;
        self.stats.gc_ended = Some(cx.now());
        self.merges.remove(name);
        for op in aside.iter(&self.planes.ops) {
            let Kind::Program { register } = self.planes.ops[op].kind else { continue };
            let set = self.registers.get(register).set;
            self.registers.sets[set as usize].leaving += 1;
        }
        self.planes.resume(plane, aside);
        let state = self.planes.get(plane);
        state.merge = NONE;
        if let Some(next) = state.merges.pop_front() {
            self.begin_merge(plane, next, cx);
        }
        self.unblock(app, cx);
    }

    /// A merge that blocked an application has ended; after the last one its commands go on.
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
