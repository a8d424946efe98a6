//! Any asks, in any order, with the core's work done at any time: every read brings what was written last, everybody is
//! answered, and the same asks have the same answers.

use crate::page_groups::testing::{Rig, groups, small};
use engine::{Rng, Time};
use ftl::page_groups::GroupCounters;
use ftl::page_groups::spec::DumpExtent;
use ftl::page_groups::translation::GroupTranslation;
use ftl::page_groups::victim::GroupVictim;
use nand::dies::sched::Scheduling;
use proto::groups::{Ask, Tell};

fn rig(seed: u64) -> Rig {
    let n = seed as usize;
    let mut spec = small(GroupTranslation::all_defaults()[n / 4 % 2].clone());
    spec.groups.reclaim.victim = GroupVictim::all_defaults()[n / 8 % 2].clone();
    spec.groups.dump.extent = [DumpExtent::changed, DumpExtent::whole][n / 2 % 2];
    let schedulers = Scheduling::all_defaults();
    spec.scheduler = schedulers[n % schedulers.len()].clone();
    let capacity = Rig::new(&spec, 0).flash.capacity();
    Rig::new(&spec, capacity * (n as u32 % 3) / 2)
}

/// An accelerator that asks at random. Sections are locked and given back; reads and writes do not keep to them.
struct Asker {
    rig: Rig,
    rng: Rng,
    next: u32,
    locks: Vec<u32>,
    asked: u64,
}

impl Asker {
    fn new(seed: u64) -> Asker {
        let rig = rig(seed);
        Asker { rig, rng: Rng::stream(seed, "groups in time"), next: 0, locks: Vec::new(), asked: 0 }
    }

    fn range(&mut self, most: u64) -> proto::groups::Groups {
        let top = u64::from(self.rig.flash.capacity());
        let first = self.rng.below(top);
        groups(first as u32, (first + self.rng.below(most)).min(top - 1) as u32)
    }

    fn tag(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn turn(&mut self) {
        match self.rng.below(100) {
            0..4 => {
                let (tag, range, write) = (self.tag(), self.range(60), self.rng.below(3) == 0);
                self.locks.push(tag);
                self.rig.lock(tag, range, write);
            }
            4..8 if !self.locks.is_empty() => {
                let which = self.rng.below(self.locks.len() as u64) as usize;
                let tag = self.locks.swap_remove(which);
                self.rig.ask(Ask::Unlock { tag });
            }
            8..14 if self.rig.flash.outstanding() < 30 => {
                let (tag, groups) = (self.tag(), self.range(8));
                self.asked += 1;
                self.rig.ask(Ask::Write { tag, groups });
            }
            14..22 if self.rig.flash.outstanding() < 30 => {
                let (tag, groups) = (self.tag(), self.range(12));
                self.asked += 1;
                self.rig.ask(Ask::Read { tag, groups });
            }
            22..40 if !self.rig.works.is_empty() => {
                let which = self.rng.below(self.rig.works.len() as u64) as usize;
                self.rig.work(which);
            }
            _ => {
                self.rig.step();
            }
        }
    }

    /// Sections are given back, work is done, until nothing is left to happen.
    fn drain(&mut self) {
        for tag in std::mem::take(&mut self.locks) {
            self.rig.ask(Ask::Unlock { tag });
        }
        self.rig.works_at_once = true;
        while !self.rig.works.is_empty() {
            self.rig.work(0);
        }
        self.rig.run();
        let done = |(_, tell): &&(Time, Tell)| matches!(tell, Tell::Done { failed: 0, .. });
        assert!(self.rig.flash.is_idle(), "somebody waits for ever");
        assert_eq!(self.rig.cx.sent.iter().filter(done).count() as u64, self.asked);
    }

    fn run(&mut self, turns: u32) {
        self.rig.works_at_once = false;
        // Full flash, so that reclaim has to work for every write.
        let last = self.rig.flash.capacity() - 1;
        self.asked += 1;
        let tag = self.tag();
        self.rig.ask(Ask::Write { tag, groups: groups(0, last) });
        for turn in 0..turns {
            self.turn();
            if turn % 512 == 0 {
                self.rig.check();
            }
        }
        self.drain();
        // Once more, all of it.
        self.asked += 1;
        let tag = self.tag();
        self.rig.ask(Ask::Read { tag, groups: groups(0, last) });
        self.drain();
    }
}

#[test]
fn every_read_brings_what_was_written_last_and_everybody_is_answered() {
    let mut all = GroupCounters::default();
    for seed in 0..16 {
        let mut asker = Asker::new(seed);
        asker.run(10_000);
        let counters = asker.rig.flash.counters();
        all.moves += counters.moves;
        all.erases += counters.erases;
        all.dumps += counters.dumps;
        all.overwritten += counters.overwritten;
        all.overtaken += counters.overtaken;
    }
    // The cases that matter have happened.
    assert!(all.moves > 1_000 && all.erases > 300 && all.dumps > 20, "{all:?}");
    assert!(all.overwritten > 10 && all.overtaken > 0, "{all:?}");
}

#[test]
fn the_same_asks_have_the_same_answers() {
    let run = || {
        let mut asker = Asker::new(5);
        asker.run(10_000);
        asker.rig.cx.sent
    };
    assert_eq!(run(), run());
}
