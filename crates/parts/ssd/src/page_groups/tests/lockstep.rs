//! One channel stands for all: the same asks are answered at the same times as if every channel were simulated.

use super::energy;
use crate::page_groups::GroupsFlashSpec;
use crate::page_groups::testing::{Rig, groups};
use crate::spec::{ErrorsSpec, RetrySpec, SpreadSpec};
use config::units::{Duration, Share};
use engine::{Rng, Time};
use ftl::page_groups::translation::GroupTranslation;
use nand::dies::sched::Scheduling;
use proto::groups::{Ask, Tell};

/// Random reads and writes; the next is asked when one has been answered.
fn run(spec: &GroupsFlashSpec) -> Rig {
    let mut rig = Rig::new(spec, 5_000);
    let mut rng = Rng::stream(16, "lockstep");
    for tag in 0..300 {
        let first = rng.below(6_000) as u32;
        let groups = groups(first, first + rng.below(12) as u32);
        rig.ask(if rng.below(4) == 0 { Ask::Write { tag, groups } } else { Ask::Read { tag, groups } });
        if tag > 8 {
            let answered = rig.cx.sent.len();
            while rig.cx.sent.len() == answered && rig.step() {}
        }
    }
    rig.run();
    rig
}

#[test]
fn one_channel_stands_for_all() {
    // Dies that may differ are all simulated; these do not.
    let none = SpreadSpec { read: Share::ZERO, program: Share::ZERO, erase: Share::ZERO };
    for translation in GroupTranslation::all_defaults() {
        let mut spec = energy::spec(translation);
        spec.scheduler = Scheduling::oldest;
        let [one, all] = [None, Some(none.clone())].map(|spread| {
            spec.cell.spread = spread;
            run(&spec)
        });
        let answers = |rig: &Rig| -> Vec<(Time, Tell)> { rig.cx.sent.clone() };
        assert_eq!(answers(&one), answers(&all));
        assert_eq!(one.flash.media(), all.flash.media());
        let now = one.now().max(all.now());
        assert_eq!(one.flash.busy(now), all.flash.busy(now));
        // Windows of power differ by what is rounded where an energy is spread over several.
        let spent = |rig: &Rig| rig.flash.energy(now).expect("it has a meter").activities;
        assert_eq!(spent(&one), spent(&all));
        assert!(one.flash.media().multi_plane > 4_000, "{:?}", one.flash.media());
    }
}

/// Errors make dies differ: all channels are simulated, and pages are read again as often as their rates say.
#[test]
fn pages_of_groups_are_read_again() {
    let errors = |fresh: f64| {
        let latency = Duration::new(Time::ZERO);
        Some(ErrorsSpec {
            fresh,
            wear: 0.0,
            retention: 0.0,
            reads: 0.0,
            age: None,
            types: None,
            spread: Share::ZERO,
            retry: RetrySpec { correctable: 0.005, gain: 0.5, limit: 9, latency },
        })
    };
    let translation = GroupTranslation::all_defaults().swap_remove(0);
    let mut spec = energy::spec(translation);
    spec.scheduler = Scheduling::oldest;
    let [without, corrected, twice] = [None, errors(0.005), errors(0.02)].map(|errors| {
        spec.cell.errors = errors;
        run(&spec)
    });
    assert_eq!(without.cx.sent, corrected.cx.sent);
    assert_eq!(without.flash.media(), corrected.flash.media());
    let media = twice.flash.media();
    assert_eq!((media.retried_reads, media.retry_steps), (media.senses, 2 * media.senses));
    assert!(media.senses > 1_000 && twice.now() > without.now());
}
