//! Devices of all kinds that can have a cache of one bit a cell, with a small one.

use config::units::{Duration, Share};
use engine::{Rng, Time};
use ftl::page_map::pages::PageOrder;
use ssd::device::Device;
use ssd::soak::{Combination, End, Fill, Host, Map, Memory, combinations};
use ssd::spec::{Built, FlashSpec, GcScope, SlcFull, SlcSpec};

/// A cache that is full all the time: kept, added, both; written past, waited for; folded at rest, in the foreground, both.
fn caches() -> Vec<SlcSpec> {
    let us = |n| Duration::new(Time::from_us(n));
    let base = SlcSpec {
        read: us(20),
        program: us(90),
        fixed: 2,
        dynamic: Share::percent(0),
        full: SlcFull::direct,
        idle: Some(us(500)),
        keep: 0,
        foreground: None,
        energy: None,
    };
    vec![
        SlcSpec { full: SlcFull::wait, idle: None, ..base.clone() },
        SlcSpec { foreground: Some(1), keep: 1, ..base.clone() },
        SlcSpec { fixed: 0, dynamic: Share::percent(100), ..base.clone() },
        SlcSpec { fixed: 1, dynamic: Share::percent(50), full: SlcFull::wait, keep: 1, ..base },
    ]
}

/// The same device with a cache and room for it, and without what a cache cannot be combined with.
fn with(combination: &Combination, slc: &SlcSpec) -> (Combination, FlashSpec) {
    let combination = Combination {
        placements: 1,
        scope: GcScope::local,
        gap: None,
        errors: false,
        // Where it can be laid out.
        parity: (!combination.copy_back && combination.map_unit <= combination.page && combination.suspend)
            .then_some(3),
        ..combination.clone()
    };
    let mut spec = combination.spec();
    spec.geometry.blocks += slc.fixed;
    spec.ftl.slc_cache = Some(slc.clone());
    (combination, spec)
}

fn empty(combination: &Combination, spec: &FlashSpec) -> Device {
    let built = Built { seed: 5, name: "soak".into(), fold: combination.fold };
    spec.build(&built).unwrap_or_else(|e| panic!("{combination}: {}", e.what))
}

fn device(combination: &Combination, spec: &FlashSpec) -> Device {
    combination.filled(empty(combination, spec), 5).unwrap_or_else(|e| panic!("{combination}: {}", e.what))
}

/// Combinations without registers, each with one of the caches in turn.
fn all(seed: u64) -> Vec<(Combination, FlashSpec)> {
    let caches = caches();
    let mut all = combinations(seed);
    all.retain(|c| !matches!(c.memory, Memory::Registers | Memory::ProtectedRegisters));
    // What a cache is not for with pages that are chosen.
    all.retain(|c| c.pages == PageOrder::in_order);
    all.iter().enumerate().map(|(n, c)| with(c, &caches[n % caches.len()])).collect()
}

#[test]
fn caches_of_all_kinds_keep_their_data() {
    let (mut folds, mut folded, mut hits, mut misses, mut stalls) = (0, 0, 0, 0, 0);
    for seed in [1, 2] {
        for (combination, spec) in &all(seed) {
            let mut device = device(combination, spec);
            device.attach_shadow();
            let mut host = Host::new(device, seed, combination.depth);
            let end = host.drive(6_000);
            let slc = &spec.ftl.slc_cache;
            assert_eq!((end, &host.failed[..]), (End::Done, &[][..]), "{combination} {slc:?}");
            let (seen, _) = host.device.slc().expect("there is a cache");
            // A drive that is full leaves nothing to what is only added.
            let has_room = slc.as_ref().is_some_and(|slc| slc.fixed > 0) || combination.fill == Fill::Empty;
            assert!(!has_room || seen.hits > 0, "{combination} {slc:?} {seen:?}");
            folds += seen.folds;
            folded += seen.folded;
            hits += seen.hits;
            misses += seen.misses;
            stalls += seen.stalls;
        }
    }
    assert!(
        folds > 100 && folded > 1_000 && hits > 1_000 && misses > 100 && stalls > 0,
        "{folds} {folded} {hits} {misses} {stalls}"
    );
}

/// A unit that is kept for the cache is free for it alone once it is folded: while nothing else is erased, pages of the map gain no space to be written back into.
#[test]
fn folds_of_what_is_kept_gain_no_space() {
    let slc = SlcSpec { foreground: Some(1), ..caches().swap_remove(0) };
    let mut folds = 0;
    for combination in combinations(7) {
        let combination = Combination { fill: Fill::Empty, memory: Memory::None, ..combination };
        let (combination, spec) = with(&combination, &slc);
        if combination.map == Map::Table || combination.pages != PageOrder::in_order {
            continue;
        }
        let mut host = Host::new(empty(&combination, &spec), 7, combination.depth);
        for _ in 0..40 {
            assert_eq!(host.drive(100), End::Done, "{combination}");
            if host.device.stats.gc_runs > 0 {
                break;
            }
            assert!(host.device.gained().expect("a map on flash") <= 0, "{combination}");
            folds += host.device.slc().map_or(0, |(seen, _)| seen.folds);
        }
    }
    assert!(folds > 20, "{folds}");
}

/// The shadow and folded stages change nothing.
#[test]
fn observing_caches_changes_nothing() {
    for (combination, spec) in &all(3) {
        let run = |shadow: bool, fold: bool| {
            let combination = Combination { fold, ..combination.clone() };
            let mut device = device(&combination, spec);
            if shadow {
                device.attach_shadow();
            }
            let mut host = Host::new(device, 3, combination.depth);
            (host.drive(1_500), host.digest())
        };
        let first = run(false, true);
        assert_eq!((run(true, true), run(false, false)), (first, first), "{combination}");
    }
}

/// Saved while its cache holds units that are not folded yet.
#[test]
fn a_copy_of_a_cache_goes_on_as_the_original_does() {
    let mut held = 0;
    for (combination, spec) in &all(4) {
        let mut host = Host::new(device(combination, spec), 4, combination.depth);
        for operations in [2_000, 4_000] {
            let mut bytes = Vec::new();
            host.device.save(&mut bytes).expect("it is idle");
            let mut copy = device(combination, spec);
            copy.load(&mut bytes.as_slice()).expect("it fits");
            held += copy.slc().map_or(0, |(_, units)| units);
            let mut copy = host.before(copy);
            if combination.map == Map::Table {
                copy.device.attach_shadow();
            }
            let ends = (host.drive(operations), copy.drive(operations));
            assert_eq!(ends, (End::Done, End::Done), "{combination}");
            assert_eq!(
                (copy.digest(), copy.device.slc()),
                (host.digest(), host.device.slc()),
                "{combination}"
            );
            host = copy;
        }
    }
    assert!(held > 50, "{held}");
}

#[test]
fn what_a_cache_held_survives_any_cut() {
    let (mut rng, mut held) = (Rng::stream(12, "test"), 0);
    for (combination, spec) in all(6).iter().filter(|(c, _)| c.map == Map::Table) {
        let mut found = device(combination, spec);
        found.attach_shadow();
        found.record_stamps().expect("it is idle");
        for life in 0..6 {
            found.watch_durability();
            let mut host = Host::new(found, 6 + life, combination.depth);
            assert_eq!(host.run_events(3_000 + rng.below(9_000)), End::Done, "{combination}");
            let now = host.now();
            let (durable, shadow) = host.device.cut_power(now).expect("it keeps stamps");
            found = empty(combination, spec);
            let (_, survivors) = found.recover_by(durable, shadow, |a, b| a > b).expect("it fits");
            assert_eq!(survivors.expect("the shadow has watched").lost, None, "{combination}, life {life}");
            held += found.slc().map_or(0, |(_, units)| units);
            let failed: Vec<_> = found.checks(Time::ZERO).into_iter().filter(|c| !c.ok).collect();
            assert_eq!(failed, [], "{combination}, life {life}");
        }
        let mut host = Host::new(found, 9, combination.depth);
        assert_eq!((host.drive(2_000), &host.failed[..]), (End::Done, &[][..]), "{combination}");
    }
    assert!(held > 100, "{held}");
}
