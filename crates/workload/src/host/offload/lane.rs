//! The threads of a program, which of them may go on, and what their time is counted for.

use super::observe::Done;
use super::{Executed, Offload, Phase};
use kernel::Time;
use proto::file::Next;
use proto::offload::Action;
use std::collections::VecDeque;

/// What a thread is at.
#[derive(Clone, Copy)]
pub(super) struct Doing {
    pub(super) phase: Phase,
    /// Since when.
    pub(super) since: Time,
    /// Time of a core for it, so far.
    pub(super) core: Time,
}

/// A thread.
#[derive(Default)]
pub(super) struct Lane {
    /// What it does before it looks for an action.
    pub(super) moves: VecDeque<(Phase, Next)>,
    /// What it is at; nothing before it has begun, and while it waits.
    pub(super) phase: Option<Doing>,
    /// The first of its actions that is not done, by its place in the plan; as many as there are if all are done.
    pub(super) at: usize,
    /// Whether it is at that one.
    pub(super) acts: bool,
    /// Since when it waits for the other thread.
    pub(super) waits: Option<Time>,
    /// Whether nobody has woken it since.
    pub(super) sleeps: bool,
}

/// How far an instance is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its files are not open yet.
    New,
    /// They are being opened.
    Begins,
    /// Its actions are being done.
    Acts,
    /// What it leaves is made durable, and its files are closed.
    Ends,
}

/// What a thread does next.
pub(super) enum Step {
    Do(Phase, Next),
    /// It wakes the other thread.
    Wake(u32),
    /// It waits until the other thread has done more.
    Wait,
    End,
}

impl Offload {
    /// What a thread does next.
    pub(super) fn step(&mut self, lane: usize, now: Time) -> Step {
        loop {
            if self.stage == Stage::Acts && self.lanes[lane].moves.is_empty() {
                self.acted(lane);
            }
            if let Some(other) = self.sleeper() {
                self.lanes[other].sleeps = false;
                return Step::Wake(other as u32);
            }
            if let Some((phase, next)) = self.lanes[lane].moves.pop_front() {
                return Step::Do(phase, next);
            }
            match self.stage {
                Stage::Acts if self.may_act(lane) => self.act(lane),
                _ if lane > 0 => return if self.is_over() { Step::End } else { Step::Wait },
                Stage::New => {
                    let Some(application) = self.applications.get(self.at.0) else { return Step::End };
                    if application.instances == self.at.1 {
                        self.at = (self.at.0 + 1, 0);
                    } else {
                        self.begin(now);
                    }
                }
                Stage::Begins => {
                    for lane in 0..self.lanes.len() {
                        self.lanes[lane].at = self.own(lane, 0);
                    }
                    self.stage = Stage::Acts;
                }
                Stage::Acts if !self.is_through() => return Step::Wait,
                Stage::Acts => self.end(),
                Stage::Ends => self.ended(now),
            }
        }
    }

    /// Whether all instances are over.
    fn is_over(&self) -> bool {
        self.at.0 == self.applications.len()
    }

    /// Whether all actions of the instance are done.
    fn is_through(&self) -> bool {
        let actions = self.applications[self.at.0].plan.actions.len();
        self.lanes.iter().all(|lane| lane.at == actions)
    }

    /// A thread that sleeps although it has something to do.
    fn sleeper(&self) -> Option<usize> {
        (0..self.lanes.len()).find(|lane| self.lanes[*lane].sleeps && self.is_due(*lane))
    }

    /// Whether a thread that waits has something to do.
    fn is_due(&self, lane: usize) -> bool {
        match self.stage {
            Stage::Acts => self.may_act(lane) || (lane == 0 && self.is_through()),
            _ => lane > 0 && self.is_over(),
        }
    }

    /// The place of a thread's first action from one on. Of two threads, the first has steps executed and the second moves data.
    fn own(&self, lane: usize, from: usize) -> usize {
        let actions = &self.applications[self.at.0].plan.actions;
        let is_own =
            |action: &Action| self.lanes.len() == 1 || matches!(action, Action::Work(_)) == (lane == 0);
        actions[from..].iter().position(is_own).map_or(actions.len(), |behind| from + behind)
    }

    /// A thread has done the action that it was at, if it was at one.
    fn acted(&mut self, lane: usize) {
        if std::mem::take(&mut self.lanes[lane].acts) {
            self.lanes[lane].at = self.own(lane, self.lanes[lane].at + 1);
        }
    }

    /// Whether a thread can begin its next action: a step has all that it needs, and what is moved is nothing that a step under way works on.
    fn may_act(&self, lane: usize) -> bool {
        let Lane { at, acts, .. } = self.lanes[lane];
        let plan = &self.applications[self.at.0].plan;
        let Some(action) = plan.actions.get(at).filter(|_| !acts) else { return false };
        let (works, moves) = (self.lanes[0].at, self.lanes[self.lanes.len() - 1].at);
        if let Action::Work(_) = action {
            return moves >= at;
        }
        let is_work = |action: &&Action| matches!(action, Action::Work(_));
        let before = plan.actions[works.min(at)..at].iter().filter(is_work).count();
        // What follows the last step is what it leaves.
        let is_ahead = plan.ahead && plan.actions[at..].iter().any(|action| is_work(&action));
        before <= usize::from(is_ahead)
    }

    /// Counts what a thread was at, or waited for, until now.
    pub(super) fn spent(&mut self, thread: u32, now: Time) {
        let lane = &mut self.lanes[thread as usize];
        let (doing, waits) = (lane.phase.take(), lane.waits.take());
        let Some(executed) = self.executed.last_mut() else { return };
        if let Some(since) = waits.filter(|_| thread == 0) {
            executed.waited += now - since;
        }
        let Some(Doing { phase, since, core }) = doing else { return };
        executed.spend(thread, phase, (now - since, Time::ZERO));
        let Executed { application, instance, .. } = *executed;
        if let Some(observer) = &mut self.observer {
            let program = &self.applications[application as usize].plan.name;
            observer.done(&Done {
                phase,
                program,
                application,
                instance,
                thread,
                from: since,
                to: now,
                core,
            });
        }
    }
}
