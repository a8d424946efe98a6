//! Pauses of programs and erases: reads interrupt them, and a power budget delays them.

use super::op::{Class, NO_OP, OpKind};
use super::{Backend, DieState, Event, WAITED_READS};
use engine::{Cx, Mutant, Time, planted};
use std::{collections::VecDeque, convert::Infallible};

/// Program and erase suspend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Suspend {
    /// True if a read with a waiter interrupts a program.
    pub program: bool,
    /// True if a read with a waiter interrupts an erase.
    pub erase: bool,
    /// Time from the decision until the die takes commands.
    pub latency: Time,
    /// Extra array time when the operation resumes.
    pub resume: Time,
    /// Minimum remaining time of an operation that is interrupted.
    pub least: Time,
    /// Maximum number of interruptions of one operation.
    pub limit: u8,
}

impl Backend {
    /// Interrupts the operation of a busy die, if a waiting read is allowed to.
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
        // From here on, the time of the suspend request.
        d.array_from = now;
        self.counters.suspends += 1;
        let latency = if planted(Mutant::FreeSuspend) { Time::ZERO } else { self.suspend.latency };
        cx.after(latency, Event::Suspended(die));
    }

    /// Handles a die that can take commands after a suspend request.
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

    /// Resumes an interrupted operation.
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

// Conservation of array time: the time that arrays have worked equals the times of the operations, plus the cost of
// suspends.

/// Array times of both sides, counted where an operation begins and where the clock shows that it has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArrayTime {
    /// Array time of the commands given to dies.
    pub(super) due: Time,
    /// Time from the start of an array's work until it ended or was told to suspend.
    pub(super) worked: Time,
    /// Time from a suspend request until the die took commands.
    pub(super) suspending: Time,
}

engine::snapshot!(ArrayTime { due, worked, suspending });

impl Backend {
    /// Returns the maximum number of suspends of an operation, and the limit.
    pub fn suspends(&self) -> (u64, u64) {
        (self.suspends_most, self.suspend.limit.into())
    }

    /// Returns the time that arrays have worked and waited for suspends, with the rest of operations in flight; and its
    /// required value: the array times of all commands, with the cost of each suspend.
    pub fn array_time(&self) -> (Time, Time) {
        let (mut worked, mut interrupted, mut on_their_way) = (self.array_time.worked, 0, 0);
        for die in &self.dies {
            if die.state == DieState::Working {
                worked += die.array_to - die.array_from;
            }
            if let Some((_, left)) = die.suspended {
                worked += left;
                interrupted += 1;
            }
            on_their_way += u64::from(die.state == DieState::Suspending);
        }
        let suspends = self.counters.suspends;
        let resumes = self.suspend.resume.times(suspends - interrupted);
        let latencies = self.suspend.latency.times(suspends - on_their_way);
        (worked + self.array_time.suspending, self.array_time.due + resumes + latencies)
    }
}

// Power limit of programs and erases together: what a drive's power allows.
//
// A die takes its share from the command until the operation has ended, including suspended time. A die that may not
// begin yet serves reads meanwhile, and is checked again when another die has returned its share; the longest waiter
// comes first.

/// Power of dies while they change their cells, in microwatts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PowerBudget {
    /// Maximum power of all dies together.
    pub limit: u64,
    /// Power of a die that programs.
    pub program: u64,
    /// Power of a die that erases.
    pub erase: u64,
}

/// Bit sets of the classes that program, and that erase.
const PROGRAMS: u16 =
    1 << Class::HostProgram as u16 | 1 << Class::MapProgram as u16 | 1 << Class::GcProgram as u16;
const ERASES: u16 = 1 << Class::Erase as u16;

/// Power budget, and its remainder.
#[derive(Debug)]
pub(super) struct Budget {
    rule: PowerBudget,
    /// Power that is neither taken nor promised.
    left: u64,
    /// Dies with work for which too little power is left, the longest waiter first.
    waiting: VecDeque<u32>,
    dies: Vec<Claim>,
}

/// Claim of a die.
#[derive(Clone, Copy, Debug, Default)]
struct Claim {
    /// True if the die is among the waiters.
    waits: bool,
    /// Power reserved for the die's next program or erase.
    promised: u64,
}

impl Budget {
    pub(super) fn new(rule: PowerBudget, dies: u32) -> Budget {
        let dies = vec![Claim::default(); dies as usize];
        Budget { rule, left: rule.limit, waiting: VecDeque::new(), dies }
    }

    /// Returns the classes for which a die has enough power.
    fn allows(&self, die: u32) -> u16 {
        let enough = self.left + self.dies[die as usize].promised;
        let barred = |power: u64, classes: u16| if enough < power { classes } else { 0 };
        !(barred(self.rule.program, PROGRAMS) | barred(self.rule.erase, ERASES))
    }

    fn of(&self, kind: OpKind) -> u64 {
        match kind {
            OpKind::Read => 0,
            OpKind::Program | OpKind::CopyBack => self.rule.program,
            OpKind::Erase => self.rule.erase,
        }
    }

    fn take(&mut self, die: u32, power: u64) {
        let claim = std::mem::take(&mut self.dies[die as usize]);
        self.left = self.left + claim.promised - power;
        if claim.waits {
            self.waiting.retain(|waiting| *waiting != die);
        }
    }
}

impl Backend {
    /// Returns whether power is limited.
    pub fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// Returns those of a die's classes for which enough power is left.
    #[inline]
    pub(super) fn powered(&self, die: u32, classes: u16) -> u16 {
        self.budget.as_ref().map_or(classes, |budget| classes & budget.allows(die))
    }

    /// Registers a die whose work waits for power, and returns whether it does; it will be checked again.
    pub(super) fn waits_for_power(&mut self, die: u32) -> bool {
        let Some(budget) = &mut self.budget else { return false };
        if self.queues.waiting(die) == 0 {
            return false;
        }
        if !std::mem::replace(&mut budget.dies[die as usize].waits, true) {
            budget.waiting.push_back(die);
            self.counters.power_waits += 1;
        }
        true
    }

    /// Takes the power of a die that begins a command.
    #[inline]
    pub(super) fn takes_power(&mut self, die: u32, op: u32) {
        if let Some(budget) = &mut self.budget {
            let power = budget.of(self.ops[op].kind);
            if power > 0 {
                budget.take(die, power);
            }
        }
    }

    /// Returns the power of a die that has ended a command.
    #[inline]
    pub(super) fn gives_power_back(&mut self, kind: OpKind) {
        if let Some(budget) = &mut self.budget {
            let power = budget.of(kind);
            if power > 0 {
                budget.left += power;
                self.promise_power();
            }
        }
    }

    /// Reserves the remaining power for the waiters: other dies must not overtake them. A busy die takes it
    /// afterwards.
    #[cold]
    fn promise_power(&mut self) {
        let Some(budget) = &mut self.budget else { return };
        while let Some(&die) = budget.waiting.front() {
            let programs = self.queues.waiting(die) & PROGRAMS != 0;
            let power = if programs { budget.rule.program } else { budget.rule.erase };
            if budget.left < power {
                return;
            }
            budget.waiting.pop_front();
            budget.left -= power;
            debug_assert_eq!(budget.dies[die as usize].promised, 0, "a waiting die already holds a promise");
            budget.dies[die as usize] = Claim { waits: false, promised: power };
            let d = &mut self.dies[die as usize];
            if !d.touched {
                d.touched = true;
                self.touched.push(die);
            }
        }
    }
}
