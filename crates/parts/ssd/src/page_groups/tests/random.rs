//! Random requests, in any order, with the core's work done at any time: every read returns the data written last,
//! every request is answered, and the same requests have the same answers.

use super::time;
use crate::page_groups::{
    GroupsFlashSpec,
    testing::{Rig, groups, small},
};
use config::units::TransferRate;
use engine::{Rng, Time};
use ftl::page_groups::GroupCounters;
use ftl::page_groups::spec::DumpExtent;
use ftl::page_groups::translation::GroupTranslation;
use ftl::page_groups::victim::GroupVictim;
use nand::dies::{arbiter::Arbitration, sched::Scheduling};
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
        assert!(self.rig.flash.is_idle(), "a request waits for ever");
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
    // The interesting cases have occurred.
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

// Reads as one event each: the same asks are answered at the same times, and cost the same, as if every page had its events.

/// Asks at random moments: reads mostly, some of them while others are under way, writes, and locks.
fn run(spec: &GroupsFlashSpec, seed: u64, (fold, one_by_one): (bool, bool)) -> Rig {
    let mut rig = Rig::unwatched(spec, 5_000, fold);
    if one_by_one {
        rig.flash.one_by_one();
    }
    // The power series has windows of 0.1 s then, which few reads leave.
    while rig.now() < Time::from_s(60) {
        let first = (rig.now().ps() % 4_000) as u32;
        rig.cx.queue.after(Time::from_s(1), crate::page_groups::Event::Dump(0));
        rig.ask(Ask::Read { tag: 0, groups: groups(first, first) });
        rig.run();
    }
    let mut rng = Rng::stream(seed, "batches");
    for tag in 1..150 {
        let (first, most) = (rng.below(6_000) as u32, [2, 40, 400][rng.below(3) as usize]);
        let groups = groups(first, first + rng.below(most) as u32);
        rig.ask(match rng.below(10) {
            0 => Ask::Write {
                tag,
                groups: proto::groups::Groups { last: groups.last.min(first + 9), ..groups },
            },
            1 => Ask::Lock { tag, groups, write: false },
            _ => Ask::Read { tag, groups },
        });
        match rng.below(4) {
            // Until nothing is left, or for some time, which ends between two events.
            0 | 1 => while rig.step() {},
            2 => {
                let until = rig.now() + Time::from_ps(rng.below(30_000_000_000));
                rig.cx.queue.after(until - rig.now(), crate::page_groups::Event::Dump(0));
                while rig.now() < until && rig.step() {}
            }
            _ => {}
        }
    }
    rig.run();
    rig
}

fn agree(spec: &GroupsFlashSpec, seed: u64) -> (u64, u64) {
    let [folded, each] = [(true, false), (seed.is_multiple_of(2), true)].map(|how| run(spec, seed, how));
    let answers = |rig: &Rig| -> Vec<(Time, Tell)> { rig.cx.sent.clone() };
    assert_eq!(answers(&folded), answers(&each), "{seed}");
    assert_eq!(folded.flash.media(), each.flash.media(), "{seed}");
    assert_eq!(folded.flash.counters(), each.flash.counters(), "{seed}");
    let now = folded.now().max(each.now());
    assert_eq!(folded.flash.busy(now), each.flash.busy(now), "{seed}");
    let energy = |rig: &Rig| rig.flash.energy(now);
    assert_eq!(energy(&folded), energy(&each), "{seed}");
    let times = |rig: &Rig| (rig.flash.stats.group_read.clone(), rig.flash.stats.read.clone());
    assert_eq!(times(&folded), times(&each), "{seed}");
    let waits = |rig: &Rig| {
        let queued = &rig.flash.backend.queued;
        let most = queued.inside_max();
        (queued.arrivals(), queued.departures(), most, queued.mean_sojourn_ps(), queued.mean_inside(now))
    };
    assert_eq!(waits(&folded), waits(&each), "{seed}");
    assert_eq!(folded.flash.backend.array_time(), each.flash.backend.array_time(), "{seed}");
    (folded.steps, each.steps)
}

/// If the time of two pages on a channel is not twice that of one, to the picosecond, each plane has its own operation.
#[test]
fn planes_that_round_apart_are_not_one_operation() {
    let mut spec = time::metered(GroupTranslation::literal);
    spec.scheduler = Scheduling::oldest;
    let operations = |spec: &GroupsFlashSpec| Rig::unwatched(spec, 0, true).flash.media.operations();
    assert_eq!(operations(&spec), 1);
    // 8 KiB take 11,702,857.14 ps, rounded up; 16 KiB 23,405,714.3.
    spec.channel.rate = TransferRate::new(700_000_000);
    assert_eq!(operations(&spec), 2);
    let (folded, each) = agree(&spec, 77);
    assert!(folded < each, "{folded} and {each} events");
}

#[test]
fn a_read_as_one_event_is_what_its_pages_are() {
    let mut seed = 0;
    for translation in GroupTranslation::all_defaults() {
        for arbiter in Arbitration::all_defaults() {
            for scheduler in Scheduling::all_defaults() {
                let mut spec = time::metered(translation.clone());
                (spec.channel.arbiter, spec.scheduler) = (arbiter.clone(), scheduler);
                seed += 1;
                let (folded, each) = agree(&spec, seed);
                let in_order = spec.scheduler == Scheduling::in_order;
                // It is of use, unless dies wait for one another.
                assert_eq!(
                    5 * folded < 4 * each,
                    !in_order,
                    "{folded} and {each} events, {:?}",
                    spec.scheduler
                );
            }
        }
    }
}
