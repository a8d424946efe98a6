//! Programs and erases that reads interrupt.

use super::Event;
use super::op::{NO_OP, OpKind};
use super::{Backend, DieState, WAITED_READS};
use engine::{Cx, Mutant, Time, planted};
use std::convert::Infallible;

/// Program and erase suspend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Suspend {
    /// Whether a waited-for read interrupts a program.
    pub program: bool,
    /// Whether it interrupts an erase.
    pub erase: bool,
    /// From the decision until the die takes commands.
    pub latency: Time,
    /// Extra array time when the operation goes on.
    pub resume: Time,
    /// An operation with less than this left is not interrupted.
    pub least: Time,
    /// How often one operation may be interrupted.
    pub limit: u8,
}

impl Backend {
    /// Interrupts the operation of a die at work, if a read that somebody waits for may.
    pub(super) fn consider_suspend(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        let now = cx.now();
        let d = &self.dies[die as usize];
        let op = &self.ops[d.active];
        let allowed = match op.kind {
            OpKind::Program => self.suspend.program,
            OpKind::Erase => self.suspend.erase,
            OpKind::Read | OpKind::CopyBack => false,
        };
        let left = d.array_to.since(now);
        let waited = self.queues.waiting(die) & WAITED_READS != 0;
        if !allowed
            || !waited
            || now < d.array_from
            || left < self.suspend.least
            || op.suspends >= self.suspend.limit && !planted(Mutant::EndlessSuspends)
        {
            return;
        }
        let d = &mut self.dies[die as usize];
        if let Some(ticket) = d.ticket.take() {
            cx.cancel(ticket);
        }
        let op = std::mem::replace(&mut d.active, NO_OP);
        self.ops[op].suspends += 1;
        let left = if planted(Mutant::RestartedProgram) { d.array_to - d.array_from } else { left };
        d.suspended = Some((op, left));
        d.state = DieState::Suspending;
        self.array_time.worked += now - d.array_from;
        // From here on, when it was told.
        d.array_from = now;
        self.counters.suspends += 1;
        let latency = if planted(Mutant::FreeSuspend) { Time::ZERO } else { self.suspend.latency };
        cx.after(latency, Event::Suspended(die));
    }

    /// A die that was told to suspend takes commands now.
    pub(super) fn suspended(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        let d = &mut self.dies[die as usize];
        d.state = DieState::Idle;
        self.array_time.suspending += cx.now() - d.array_from;
        let held_since = d.held_since;
        if let Some((op, _)) = d.suspended {
            self.suspends_most = self.suspends_most.max(self.ops[op].suspends.into());
            self.was_held(die, self.ops[op].class, held_since, cx.now());
        }
        self.next_for(die, cx);
    }

    /// An interrupted operation goes on.
    pub(super) fn resume(&mut self, die: u32, op: u32, left: Time, cx: &mut impl Cx<Event, Infallible>) {
        let resume = if planted(Mutant::FreeResume) { Time::ZERO } else { self.suspend.resume };
        let rest = resume + left;
        self.reuse.clear(self.die_of(die), self.ops[op].kind);
        let d = &mut self.dies[die as usize];
        d.state = DieState::Working;
        d.active = op;
        d.held_since = cx.now();
        d.array_from = cx.now();
        d.array_to = cx.now() + rest;
        d.ticket = Some(cx.after(rest, Event::ArrayDone(die)));
    }
}
