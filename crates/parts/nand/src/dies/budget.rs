//! How much programs and erases may take together: what a drive's power allows.
//!
//! A die takes its share from the command on until the operation has ended, also while that is suspended. One that may not begin yet
//! serves reads meanwhile, and is looked at again when another die has given its share back: who has waited longest comes first.

use super::Backend;
use super::op::{Class, OpKind};
use std::collections::VecDeque;

/// What dies take while they change their cells, microwatts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PowerBudget {
    /// All of them together, at most.
    pub limit: u64,
    /// One that programs.
    pub program: u64,
    /// One that erases.
    pub erase: u64,
}

/// Bit sets of the classes that program, and that erase.
const PROGRAMS: u16 =
    1 << Class::HostProgram as u16 | 1 << Class::MapProgram as u16 | 1 << Class::GcProgram as u16;
const ERASES: u16 = 1 << Class::Erase as u16;

/// A budget, and what is left of it.
#[derive(Debug)]
pub(super) struct Budget {
    rule: PowerBudget,
    /// Neither taken nor promised.
    left: u64,
    /// Dies that have work for which too little is left, who has waited longest in front.
    waiting: VecDeque<u32>,
    dies: Vec<Claim>,
}

/// What a die is owed.
#[derive(Clone, Copy, Debug, Default)]
struct Claim {
    /// It is among those that wait.
    waits: bool,
    /// What has been put aside for its next program or erase.
    promised: u64,
}

impl Budget {
    pub(super) fn new(rule: PowerBudget, dies: u32) -> Budget {
        let dies = vec![Claim::default(); dies as usize];
        Budget { rule, left: rule.limit, waiting: VecDeque::new(), dies }
    }

    /// Classes for which a die has enough.
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
    /// Whether power is limited.
    pub fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// Of classes of which a die has work, those for which enough power is left.
    #[inline]
    pub(super) fn powered(&self, die: u32, classes: u16) -> u16 {
        self.budget.as_ref().map_or(classes, |budget| classes & budget.allows(die))
    }

    /// Whether a die has work that waits for power: it will be looked at again.
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

    /// A die begins a command.
    #[inline]
    pub(super) fn takes_power(&mut self, die: u32, op: u32) {
        if let Some(budget) = &mut self.budget {
            let power = budget.of(self.ops[op].kind);
            if power > 0 {
                budget.take(die, power);
            }
        }
    }

    /// A die has ended a command.
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

    /// What is left is put aside for those that wait, so that nobody comes before them. One that is at work takes it afterwards.
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
            debug_assert_eq!(
                budget.dies[die as usize].promised, 0,
                "who waits has not been promised anything"
            );
            budget.dies[die as usize] = Claim { waits: false, promised: power };
            let d = &mut self.dies[die as usize];
            if !d.touched {
                d.touched = true;
                self.touched.push(die);
            }
        }
    }
}
