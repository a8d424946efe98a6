//! Threads of a program: which of them may continue, and how their time is spent.

use super::{Done, Offload};
use engine::Time;
use proto::file::Next;
use proto::offload::{Action, Order};
use std::collections::VecDeque;

/// Current activity of a thread.
#[derive(Clone, Copy)]
pub(super) struct Doing {
    pub(super) phase: Phase,
    /// Start time.
    pub(super) since: Time,
    /// Core time so far.
    pub(super) core: Time,
}

/// A thread.
#[derive(Default)]
pub(super) struct Lane {
    /// Steps before it looks for an action.
    pub(super) moves: VecDeque<(Phase, Next)>,
    /// Current activity; none before it has begun, and while it waits.
    pub(super) phase: Option<Doing>,
    /// First of its actions that is not done, by index in the plan; the number of actions if all are done.
    pub(super) at: usize,
    /// True if it is executing that action.
    pub(super) acts: bool,
    /// Time since which it waits for the other thread.
    pub(super) waits: Option<Time>,
    /// True if it has not been woken since.
    pub(super) sleeps: bool,
}

/// Place of a thread: its slot, and its index among the threads of the slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) slot: usize,
    pub(super) lane: usize,
}

/// Slot of an instance in progress, reused for the next one.
pub(super) struct Slot {
    /// Application and instance.
    pub(super) at: (usize, u32),
    pub(super) stage: Stage,
    /// Threads: one for everything, or one that has steps executed and one that moves data.
    pub(super) lanes: Vec<Lane>,
    /// Record of its instance, by index among those of the window.
    pub(super) executed: Option<usize>,
    /// True if no instance is left for it.
    is_over: bool,
}

impl Slot {
    pub(super) fn new(lanes: usize) -> Slot {
        let lanes = (0..lanes).map(|_| Lane::default()).collect();
        Slot { at: (0, 0), stage: Stage::New, lanes, executed: None, is_over: false }
    }
}

/// Progress of an instance.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Files are not open yet.
    New,
    /// Files are being opened.
    Begins,
    /// Actions are being executed.
    Acts,
    /// Results are made durable, and files are closed.
    Ends,
}

/// Next step of a thread.
pub(super) enum Step {
    Do(Phase, Next),
    /// Wakes a different thread of its slot.
    Wake(usize),
    /// Waits until the other thread has done more.
    Wait,
    End,
}

impl Offload {
    /// Returns the next step of a thread.
    pub(super) fn step(&mut self, at: Place, now: Time) -> Step {
        let Place { slot, lane } = at;
        loop {
            if self.slots[slot].stage == Stage::Acts && self.slots[slot].lanes[lane].moves.is_empty() {
                self.acted(at);
            }
            if let Some(other) = self.sleeper(slot) {
                self.slots[slot].lanes[other].sleeps = false;
                return Step::Wake(other);
            }
            if let Some((phase, next)) = self.slots[slot].lanes[lane].moves.pop_front() {
                return Step::Do(phase, next);
            }
            match self.slots[slot].stage {
                Stage::Acts if self.may_act(at) => self.act(at),
                _ if lane > 0 => return if self.slots[slot].is_over { Step::End } else { Step::Wait },
                Stage::New if self.slots[slot].is_over => return Step::End,
                Stage::New => {
                    let left = |at: usize| self.applications.get(at).map(|next| next.instances);
                    match left(self.next.0) {
                        None => self.slots[slot].is_over = true,
                        Some(instances) if instances == self.next.1 => self.next = (self.next.0 + 1, 0),
                        Some(_) => self.begin(slot, now),
                    }
                }
                Stage::Begins => {
                    for lane in 0..self.lanes {
                        self.slots[slot].lanes[lane].at = self.own(Place { slot, lane }, 0);
                    }
                    self.slots[slot].stage = Stage::Acts;
                }
                Stage::Acts if !self.is_through(slot) => return Step::Wait,
                Stage::Acts => self.end(slot),
                Stage::Ends => self.ended(slot, now),
            }
        }
    }

    /// Returns the actions of a slot's instance.
    fn actions(&self, slot: usize) -> &[Action] {
        &self.applications[self.slots[slot].at.0].plan.actions
    }

    /// Returns true if all actions of the instance are done.
    fn is_through(&self, slot: usize) -> bool {
        let actions = self.actions(slot).len();
        self.slots[slot].lanes.iter().all(|lane| lane.at == actions)
    }

    /// Returns a thread that sleeps although it has something to do.
    fn sleeper(&self, slot: usize) -> Option<usize> {
        let sleeps = |lane: &usize| self.slots[slot].lanes[*lane].sleeps;
        (0..self.lanes).filter(sleeps).find(|lane| self.is_due(Place { slot, lane: *lane }))
    }

    /// Returns true if a waiting thread has something to do.
    fn is_due(&self, at: Place) -> bool {
        match self.slots[at.slot].stage {
            Stage::Acts => self.may_act(at) || (at.lane == 0 && self.is_through(at.slot)),
            _ => at.lane > 0 && self.slots[at.slot].is_over,
        }
    }

    /// Returns the index of a thread's first action from `from` on. Of two threads, the first has steps executed and
    /// the second moves data.
    fn own(&self, at: Place, from: usize) -> usize {
        let actions = self.actions(at.slot);
        let is_own = |action: &Action| self.lanes == 1 || matches!(action, Action::Work(_)) == (at.lane == 0);
        actions[from..].iter().position(is_own).map_or(actions.len(), |behind| from + behind)
    }

    /// Marks the current action of a thread, if any, as done.
    fn acted(&mut self, at: Place) {
        let lane = &mut self.slots[at.slot].lanes[at.lane];
        if std::mem::take(&mut lane.acts) {
            let behind = lane.at + 1;
            self.slots[at.slot].lanes[at.lane].at = self.own(at, behind);
        }
    }

    /// Returns true if a thread can begin its next action: a step has everything it needs, and moved data is not in
    /// use by a step in progress.
    fn may_act(&self, Place { slot, lane }: Place) -> bool {
        let lanes = &self.slots[slot].lanes;
        let Lane { at, acts, .. } = lanes[lane];
        let plan = &self.applications[self.slots[slot].at.0].plan;
        let Some(action) = plan.actions.get(at).filter(|_| !acts) else { return false };
        let (works, moves) = (lanes[0].at, lanes[lanes.len() - 1].at);
        if let Action::Work(_) = action {
            return moves >= at;
        }
        let is_work = |action: &&Action| matches!(action, Action::Work(_));
        let before = plan.actions[works.min(at)..at].iter().filter(is_work).count();
        // The results are what follows the last step.
        let is_ahead = plan.ahead && plan.actions[at..].iter().any(|action| is_work(&action));
        before <= usize::from(is_ahead)
    }

    /// Counts the time that a thread has spent on its activity, or waited, until now.
    pub(super) fn spent(&mut self, thread: u32, now: Time) {
        let Place { slot, lane: number } = self.place(thread);
        let lane = &mut self.slots[slot].lanes[number];
        let (doing, waits) = (lane.phase.take(), lane.waits.take());
        let Some(executed) = self.slots[slot].executed.map(|at| &mut self.executed[at]) else { return };
        if let Some(since) = waits.filter(|_| number == 0) {
            executed.waited += now - since;
        }
        let Some(Doing { phase, since, core }) = doing else { return };
        executed.spend(number, phase, (now - since, Time::ZERO));
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

// Time of an instance, by phase.

/// Phase of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Opens, closes and removes files.
    Files,
    /// Reads files.
    Read,
    /// Reorders data.
    Marshal,
    /// Copies between the program's memory and the driver's.
    Copy,
    /// Sends to the coprocessor.
    Send,
    /// Waits for the coprocessor to execute.
    Work,
    /// Receives from the coprocessor.
    Receive,
    /// Writes files.
    Write,
    /// Makes the written data durable.
    Sync,
}

impl Phase {
    /// All phases.
    pub const ALL: [Phase; 9] = [
        Phase::Files,
        Phase::Read,
        Phase::Marshal,
        Phase::Copy,
        Phase::Send,
        Phase::Work,
        Phase::Receive,
        Phase::Write,
        Phase::Sync,
    ];

    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Files => "files",
            Phase::Read => "read",
            Phase::Marshal => "marshal",
            Phase::Copy => "copy",
            Phase::Send => "send",
            Phase::Work => "work",
            Phase::Receive => "receive",
            Phase::Write => "write",
            Phase::Sync => "sync",
        }
    }
}

/// Time spent on a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// Elapsed time.
    pub time: Time,
    /// Core time included in it; the rest is waiting.
    pub core: Time,
}

/// Time of an instance by resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shares {
    /// Waits for drives, and for other users of them.
    pub storage: Time,
    /// Uses a core, or waits for one while it computes.
    pub cpu: Time,
    /// Waits for the coprocessor, or for data on the way there or back.
    pub accelerator: Time,
}

/// An instance that was executed, or is being executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Executed {
    /// Index of its application in the run.
    pub application: u32,
    /// Index of the instance in the application.
    pub instance: u32,
    /// Start time.
    pub begun: Time,
    /// End time.
    pub ended: Option<Time>,
    /// Bytes sent to the coprocessor.
    pub sent_bytes: u64,
    /// Bytes received from the coprocessor.
    pub received_bytes: u64,
    /// Time for which its first thread waited for the second.
    pub waited: Time,
    /// Time of the second thread's phases.
    moved: Time,
    spent: [Spent; Phase::ALL.len()],
}

impl Executed {
    pub(super) fn new((application, instance): (u32, u32), begun: Time) -> Executed {
        let spent = [Spent::default(); Phase::ALL.len()];
        Executed {
            application,
            instance,
            begun,
            ended: None,
            sent_bytes: 0,
            received_bytes: 0,
            waited: Time::ZERO,
            moved: Time::ZERO,
            spent,
        }
    }

    pub(super) fn ordered(&mut self, order: &Order) {
        match order {
            Order::Send { bytes } => self.sent_bytes += bytes,
            Order::Receive { bytes } => self.received_bytes += bytes,
            Order::Work { .. } => {}
        }
    }

    /// Returns the time of a phase.
    pub fn spent(&self, phase: Phase) -> Spent {
        self.spent[phase as usize]
    }

    /// Adds time of a thread in a phase, including core time.
    pub(super) fn spend(&mut self, lane: usize, phase: Phase, (time, core): (Time, Time)) {
        let at = &mut self.spent[phase as usize];
        at.time += time;
        at.core += core;
        if lane > 0 {
            self.moved += time;
        }
    }

    /// Returns the time by resource: in total, that of all phases, of both threads if there are two.
    pub fn shares(&self) -> Shares {
        let mut shares = Shares::default();
        for phase in Phase::ALL {
            let Spent { time, core } = self.spent(phase);
            let waits = match phase {
                Phase::Files | Phase::Read | Phase::Write | Phase::Sync => &mut shares.storage,
                Phase::Marshal | Phase::Copy => &mut shares.cpu,
                Phase::Send | Phase::Work | Phase::Receive => &mut shares.accelerator,
            };
            *waits += time.since(core);
            shares.cpu += core;
        }
        shares
    }

    /// Returns true if the phases of its first thread add up to its duration, those of the second do not exceed it,
    /// and no phase has more core time than elapsed time; true for an instance in progress.
    pub fn is_accounted(&self) -> bool {
        let Some(ended) = self.ended else { return true };
        let (sum, lasts) =
            (self.spent.iter().fold(self.waited, |sum, spent| sum + spent.time), ended - self.begun);
        sum == lasts + self.moved
            && self.moved <= lasts
            && self.spent.iter().all(|spent| spent.core <= spent.time)
    }
}
