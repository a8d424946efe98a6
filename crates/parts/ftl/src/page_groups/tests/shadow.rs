//! After any sequence of writes, locks, reclaims, dumps and cuts every group reads its newest version.

use super::rig::Rig;
use crate::page_groups::spec::DumpExtent;
use crate::page_groups::testing::small;
use crate::page_groups::translation::GroupTranslation;
use crate::page_groups::victim::GroupVictim;
use crate::page_groups::{GroupCounters, Logical};
use engine::Rng;

/// Translations, victims and dumps in turn.
fn rig(seed: u64, base: u32) -> Rig {
    let translations = GroupTranslation::all_defaults();
    let victims = GroupVictim::all_defaults();
    let mut spec = small(translations[seed as usize % 2].clone());
    spec.reclaim.victim = victims[seed as usize / 2 % 2].clone();
    spec.dump.extent = [DumpExtent::changed, DumpExtent::whole][seed as usize / 4 % 2];
    Rig::new(spec, base)
}

/// Full flash, so that reclaim has to work for every write; some of it is there from the start.
fn filled(seed: u64) -> Rig {
    let capacity = rig(seed, 0).visor.capacity();
    let base = capacity * (seed as u32 % 3) / 2;
    let mut rig = rig(seed, base);
    (base..capacity).for_each(|n| rig.write(Logical(n)));
    rig
}

fn sum(all: &mut GroupCounters, counters: &GroupCounters) {
    all.moves += counters.moves;
    all.overwritten += counters.overwritten;
    all.overtaken += counters.overtaken;
    all.dumps += counters.dumps;
    all.erases += counters.erases;
}

#[test]
fn every_group_reads_its_newest_version() {
    let mut all = GroupCounters::default();
    for seed in 0..16 {
        let mut rng = Rng::stream(seed, "groups");
        let mut rig = filled(seed);
        rig.run(12_000, false, &mut rng);
        rig.drain();
        sum(&mut all, &rig.visor.counters);
    }
    // The cases that matter have happened.
    assert!(all.moves > 5_000 && all.erases > 500 && all.dumps > 20, "{all:?}");
    assert!(all.overwritten > 20 && all.overtaken > 20, "{all:?}");
}

/// "The persistence of mapping information is guaranteed" (section 4.3): after cuts at any point, of recovered flash too, all that
/// had been done is there, and everything goes on.
#[test]
fn every_group_reads_its_newest_version_after_cuts() {
    let mut all = GroupCounters::default();
    for seed in 0..16 {
        let mut rng = Rng::stream(seed, "groups");
        let mut rig = filled(seed);
        for _ in 0..12 {
            rig.run(800 + rng.below(800) as u32, seed % 2 == 0, &mut rng);
            sum(&mut all, &rig.visor.counters);
            rig.cut();
        }
        rig.drain();
        let capacity = rig.visor.capacity();
        (0..capacity).for_each(|n| rig.write(Logical(n)));
        rig.drain();
    }
    assert!(all.moves > 3_000 && all.erases > 300, "{all:?}");
}

/// Cut after every single step of reclaims, each time anew: there is always a block left to go on with.
#[test]
fn reclaims_that_are_always_cut_leave_room() {
    for seed in 0..4 {
        let mut rng = Rng::stream(seed, "groups");
        let mut rig = filled(seed);
        for steps in 0..300 {
            for _ in 0..steps % 23 {
                rig.step();
            }
            rig.cut();
            assert!(rig.visor.free_blocks() > 0, "after {steps} cuts");
        }
        let capacity = u64::from(rig.visor.capacity());
        (0..2_000).for_each(|_| rig.write(Logical(rng.below(capacity) as u32)));
        rig.drain();
    }
}

/// Without a reclaim or a dump under way the map is the same entry by entry. What is replayed has been programmed since the dump
/// began; the rest is in the dump.
#[test]
fn recovery_finds_the_map_that_was_lost() {
    for seed in 0..8 {
        let mut rng = Rng::stream(seed, "groups");
        let mut rig = filled(seed);
        rig.run(4_000, false, &mut rng);
        rig.drain();
        let before = rig.visor.counters;
        assert!(rig.storengine.begin_dump());
        rig.drain();
        (0..10).for_each(|_| rig.write(Logical(rng.below(300) as u32)));
        rig.drain();
        let after = rig.visor.counters;
        let found = rig.cut();
        let programmed = after.writes + after.moves - before.writes - before.moves;
        assert!((1..=programmed).contains(&found.replayed), "{programmed} of {found:?}");
        assert!(found.from_dumps + found.replayed >= rig.visor.capacity().into(), "{found:?}");
        let filled = rig.visor.capacity().div_ceil(rig.visor.layout().group_entries());
        assert!(found.dumps >= filled.into(), "{found:?}");
    }
}
