//! SLC cache in a device at work: rates, write amplification and sizes by formula, and devices of all kinds.

use crate::bench::{Bench, DIES, UNITS, build, close, combination};
use config::StatePower;
use config::units::{Duration, Energy, Power, Share};
use engine::{Rng, Time};
use ftl::page_map::pages::PageOrder;
use net::energy::LinkEnergySpec;
use proto::IoOp;
use ssd::{
    device::Device,
    soak::{Combination, End, Fill, Host, Map, Memory, combinations, operations},
    spec::{
        Built, ErrorsSpec, FlashEnergySpec, FlashSpec, GcScope, RetrySpec, SlcEnergySpec, SlcFull, SlcSpec,
    },
};

/// Each plane is one.
const GROUPS: u64 = 8;
/// Pages of a block with two bits a cell, and with one.
const PAGES: u64 = 48;
const CACHED: u64 = PAGES / 2;
/// Times that make the time of links and channels negligible.
const PROGRAM: Time = Time::from_ms(100);
const PROGRAM_SLC: Time = Time::from_ms(10);
const READ: Time = Time::from_ms(4);
const READ_SLC: Time = Time::from_ms(1);
const IDLE: Time = Time::from_ms(50);
/// Energies, aJ.
const READ_AJ: u64 = 1_500_000_000_003;
const READ_SLC_AJ: u64 = 700_000_000_001;
const PROGRAM_AJ: u64 = 90_000_000_000_007;
const PROGRAM_SLC_AJ: u64 = 11_000_000_000_009;

fn cache(fixed: u32, dynamic: u8, full: SlcFull) -> SlcSpec {
    SlcSpec {
        read: Duration::new(READ_SLC),
        program: Duration::new(PROGRAM_SLC),
        fixed,
        dynamic: Share::percent(dynamic),
        full,
        idle: Some(Duration::new(IDLE)),
        keep: 0,
        foreground: None,
        energy: None,
    }
}

/// 18 blocks a plane; garbage collection begins at two free ones and ends at four.
fn spec(slc: SlcSpec) -> FlashSpec {
    let mut spec = combination().spec();
    spec.geometry.blocks = 18;
    spec.cell.program = vec![Duration::new(PROGRAM); 2];
    spec.cell.read = vec![Duration::new(READ); 2];
    spec.cell.erase = Duration::new(Time::from_us(1));
    spec.ftl.slc_cache = Some(slc);
    spec
}

/// A device with that cache.
fn bench(slc: SlcSpec) -> Bench {
    Bench::of(&spec(slc))
}

#[test]
fn a_burst_runs_at_the_rate_of_one_bit_a_cell_until_the_cache_is_full_and_again_after_a_rest() {
    let mut bench = bench(cache(2, 0, SlcFull::direct));
    let room = 2 * GROUPS * CACHED;
    let fast = bench.run(IoOp::Write, 0..room);
    assert!(close(fast, PROGRAM_SLC.times(room / DIES)), "{fast:?}");
    // Full: the rate of ordinary cells.
    let slow = bench.run(IoOp::Write, room..room + 96);
    assert!(close(slow, PROGRAM.times(96 / DIES)), "{slow:?}");
    let (seen, units) = bench.device.slc().expect("there is a cache");
    assert_eq!((seen.hits, seen.misses, seen.folds, units), (room * UNITS, 96 * UNITS, 0, 2 * GROUPS));
    bench.rest();
    let (seen, units) = bench.device.slc().expect("there is a cache");
    assert_eq!((seen.folds, seen.folded, units), (2 * GROUPS, room * UNITS, 0));
    let again = bench.run(IoOp::Write, room + 96..2 * room + 96);
    assert!(close(again, PROGRAM_SLC.times(room / DIES)), "{again:?}");
    bench.rest();
    // What went through the cache was programmed twice, the rest once.
    assert_eq!(bench.programs(), [2 * room + 96, 2 * room]);
    bench.run(IoOp::Read, 0..2 * room + 96);
    bench.rest();
}

/// A die programs what comes and what is folded, reads what is folded, and never rests.
#[test]
fn a_full_cache_that_is_waited_for_takes_writes_at_the_rate_of_folding() {
    let mut bench = bench(cache(2, 0, SlcFull::wait));
    bench.run(IoOp::Write, 0..768);
    let time = bench.run(IoOp::Write, 768..1920);
    let page = PROGRAM_SLC + READ_SLC + PROGRAM;
    let formula = page.times((1920 - 768) / DIES);
    assert!(time.ps().abs_diff(formula.ps()) * 20 <= formula.ps(), "{time:?}, not {formula:?}");
    let (seen, _) = bench.device.slc().expect("there is a cache");
    assert_eq!((seen.hits, seen.misses), (1920 * UNITS, 0));
    assert!(seen.stalls > 0);
    bench.rest();
    assert_eq!(bench.programs(), [1920, 1920]);
}

#[test]
fn nothing_is_folded_of_a_cache_that_was_deallocated() {
    let mut bench = bench(cache(2, 0, SlcFull::direct));
    bench.run(IoOp::Write, 0..GROUPS * CACHED);
    bench.run(IoOp::Trim, 0..GROUPS * CACHED);
    bench.rest();
    let (seen, units) = bench.device.slc().expect("there is a cache");
    assert_eq!((seen.folds, seen.folded, units), (GROUPS, 0, 0));
    assert_eq!(bench.programs(), [GROUPS * CACHED, 0]);
    assert_eq!(bench.device.ftl.counters.erases, GROUPS);
}

/// The cache takes a share of the free units beyond the goal of garbage collection: the fuller the drive, the fewer.
#[test]
fn the_part_that_is_added_shrinks_as_the_drive_fills() {
    for (share, fixed) in [(50, 0), (100, 1), (25, 3)] {
        for full in 0..=8u64 {
            let mut bench = bench(cache(fixed, share, SlcFull::direct));
            bench.device = build(&spec(cache(fixed, share, SlcFull::direct)));
            bench.device.ftl.assume_sequential(full * GROUPS * PAGES * UNITS);
            bench.device.attach_shadow();
            let free = 18 - full - u64::from(fixed);
            // Half a unit is rounded up.
            let room = u64::from(fixed) + (u64::from(share) * free.saturating_sub(4) + 50) / 100;
            for group in 0..GROUPS as u32 {
                assert_eq!(u64::from(bench.device.ftl.slc_left(group)), room, "{share} {fixed} {full}");
            }
            // Written over until it is full: it has taken that many and no more.
            bench.run(IoOp::Write, 0..(room + 1) * GROUPS * CACHED);
            let (seen, units) = bench.device.slc().expect("there is a cache");
            assert_eq!(seen.hits, room * GROUPS * CACHED * UNITS, "{share} {fixed} {full}");
            assert_eq!(units, room * GROUPS);
            bench.rest();
            assert_eq!(bench.device.slc().expect("there is a cache").1, 0);
        }
    }
}

/// A page is sensed in the time of its cells, and what is kept stays in the cache.
#[test]
fn reads_take_the_time_of_the_cells_that_they_sense() {
    let kept = SlcSpec { keep: 1, ..cache(2, 0, SlcFull::direct) };
    let mut bench = bench(kept);
    bench.run(IoOp::Write, 0..2 * GROUPS * CACHED);
    bench.rest();
    let (seen, units) = bench.device.slc().expect("there is a cache");
    assert_eq!((seen.folds, units), (GROUPS, GROUPS));
    for page in [0, 7, GROUPS * CACHED - 1] {
        let time = bench.run(IoOp::Read, page..page + 1);
        assert!(time > READ && time < READ + Time::from_us(100), "{time:?}");
        let time = bench.run(IoOp::Read, GROUPS * CACHED + page..GROUPS * CACHED + page + 1);
        assert!(time > READ_SLC && time < READ_SLC + Time::from_us(100), "{time:?}");
    }
}

/// Folding in the foreground keeps a unit open for what comes, and the host's writes go past a cache that is full.
#[test]
fn folding_in_the_foreground_begins_where_it_is_told() {
    for (foreground, folds) in [(None, 0), (Some(1), GROUPS), (Some(0), 0)] {
        let slc = SlcSpec { idle: None, foreground, ..cache(3, 0, SlcFull::direct) };
        let mut bench = bench(slc);
        // A second unit is opened: one more is left. That is looked at with the next write, when the first one is closed.
        bench.run(IoOp::Write, 0..GROUPS * (CACHED + 1));
        bench.rest();
        assert_eq!(bench.device.slc().expect("there is a cache").0.folds, 0);
        bench.run(IoOp::Write, GROUPS * (CACHED + 1)..GROUPS * (CACHED + 2));
        bench.rest();
        assert_eq!(bench.device.slc().expect("there is a cache").0.folds, folds, "{foreground:?}");
    }
}

/// Pages that went through the cache were programmed and read at its energies, and programmed at those of ordinary
/// cells.
#[test]
fn pages_of_one_bit_a_cell_have_energies_of_their_own() {
    let mut spec = spec(SlcSpec { energy: slc_energy(), ..cache(2, 0, SlcFull::direct) });
    spec.energy = Some(energy());
    let mut bench = Bench::of(&spec);
    let room = 2 * GROUPS * CACHED;
    bench.run(IoOp::Write, 0..room + 96);
    let spent = |bench: &Bench| {
        let energy = bench.device.energy(bench.cx.queue.now()).expect("the spec says what things cost");
        ["read", "program"].map(|activity| energy.of(activity))
    };
    let of = |count: u64, energy: u64| u128::from(count) * u128::from(energy);
    assert_eq!(spent(&bench), [0, of(room, PROGRAM_SLC_AJ) + of(96, PROGRAM_AJ)]);
    bench.rest();
    let folded = [of(room, READ_SLC_AJ), of(room, PROGRAM_SLC_AJ) + of(room + 96, PROGRAM_AJ)];
    assert_eq!(spent(&bench), folded);
    bench.run(IoOp::Read, 0..1);
    assert_eq!(spent(&bench), [folded[0] + of(1, READ_AJ), folded[1]]);
}

fn slc_energy() -> Option<SlcEnergySpec> {
    Some(SlcEnergySpec { read: Energy::new(READ_SLC_AJ), program: Energy::new(PROGRAM_SLC_AJ) })
}

fn energy() -> FlashEnergySpec {
    let power = StatePower { idle: Power::new(1), busy: Power::new(2) };
    FlashEnergySpec {
        read: vec![Energy::new(READ_AJ)],
        program: vec![Energy::new(PROGRAM_AJ)],
        erase: Energy::new(1),
        transfer: Energy::new(1),
        die: power,
        controller: power,
        link: LinkEnergySpec { transfer: Energy::new(0), on: Power::new(1) },
    }
}

fn refused(change: impl FnOnce(&mut FlashSpec)) -> String {
    let mut spec = spec(cache(2, 0, SlcFull::direct));
    change(&mut spec);
    let built = Built { seed: 1, name: "slc".into(), fold: true };
    let Err(fault) = spec.build(&built) else { return String::new() };
    assert!(!fault.what.is_empty());
    fault.key
}

#[test]
fn what_a_cache_cannot_be_combined_with_is_refused_by_name() {
    assert_eq!(refused(|_| {}), "");
    assert_eq!(refused(|s| s.ftl.placements = 2), "ftl.placements");
    assert_eq!(refused(|s| s.ftl.gc.scope = GcScope::global), "ftl.gc.scope");
    assert_eq!(refused(|s| s.ftl.wear.static_gap = Some(4)), "ftl.wear.static_gap");
    assert_eq!(refused(|s| s.cell.errors = Some(errors())), "cell.errors");
    assert_eq!(refused(|s| s.energy = Some(energy())), "ftl.slc_cache.energy");
    let slc = |change: fn(&mut SlcSpec)| {
        refused(move |s| {
            if let Some(slc) = &mut s.ftl.slc_cache {
                change(slc);
            }
        })
    };
    assert_eq!(slc(|slc| slc.program = Duration::new(Time::ZERO)), "ftl.slc_cache.program");
    assert_eq!(slc(|slc| slc.read = Duration::new(Time::ZERO)), "ftl.slc_cache.read");
    assert_eq!(slc(|slc| slc.energy = slc_energy()), "ftl.slc_cache.energy");
    assert_eq!(slc(|slc| slc.fixed = 0), "ftl.slc_cache.fixed");
    assert_eq!(slc(|slc| slc.keep = 70_000), "ftl.slc_cache.keep");
    // No space is left for the rest.
    assert_eq!(slc(|slc| slc.fixed = 8), "ftl.over_provisioning");
    let single = |s: &mut FlashSpec| {
        s.cell.bits = 1;
        s.cell.program.truncate(1);
        s.cell.read.truncate(1);
    };
    assert_eq!(refused(single), "ftl.slc_cache");
}

fn errors() -> ErrorsSpec {
    let retry =
        RetrySpec { correctable: 0.01, gain: 0.5, limit: 3, latency: Duration::new(Time::from_us(1)) };
    let spread = Share::percent(0);
    ErrorsSpec { fresh: 0.0, wear: 0.0, retention: 0.0, reads: 0.0, age: None, types: None, spread, retry }
}

// Devices of all kinds that can have an SLC cache, with a small one.

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

/// Device with a cache and room for it, and without what a cache cannot be combined with.
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
            let end = host.drive(operations(2_000));
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
        folds > 30 && folded > 300 && hits > 300 && misses > 30 && stalls > 0,
        "{folds} {folded} {hits} {misses} {stalls}"
    );
}

/// A unit kept for the cache is free only for it once it is folded: while nothing else is erased, pages of the map gain
/// no space to be written back into.
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
        for count in [1_000, 2_000].map(operations) {
            let mut bytes = Vec::new();
            host.device.save(&mut bytes).expect("it is idle");
            let mut copy = device(combination, spec);
            copy.load(&mut bytes.as_slice()).expect("it fits");
            held += copy.slc().map_or(0, |(_, units)| units);
            let mut copy = host.before(copy);
            if combination.map == Map::Table {
                copy.device.attach_shadow();
            }
            let ends = (host.drive(count), copy.drive(count));
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
