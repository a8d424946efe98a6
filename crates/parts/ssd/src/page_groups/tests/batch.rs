//! Reads as one event each: the same asks are answered at the same times, and cost the same, as if every page had its events.

use super::energy;
use crate::page_groups::GroupsFlashSpec;
use crate::page_groups::testing::{Rig, groups};
use config::units::TransferRate;
use engine::{Rng, Time};
use ftl::page_groups::translation::GroupTranslation;
use nand::dies::arbiter::Arbitration;
use nand::dies::sched::Scheduling;
use proto::groups::{Ask, Tell};

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

/// Where the time of two pages on a channel is not twice that of one, to the picosecond, planes have an operation each.
#[test]
fn planes_that_round_apart_are_not_one_operation() {
    let mut spec = energy::spec(GroupTranslation::literal);
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
                let mut spec = energy::spec(translation.clone());
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
