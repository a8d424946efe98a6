//! One channel stands for all: the same asks are answered at the same times as if every channel were simulated.

use super::energy;
use crate::control::groups::translation::GroupTranslation;
use crate::groups::GroupsFlashSpec;
use crate::groups::testing::{Rig, groups};
use crate::media::dies::sched::Scheduling;
use crate::spec::SpreadSpec;
use config::units::Share;
use kernel::{Rng, Time};
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
