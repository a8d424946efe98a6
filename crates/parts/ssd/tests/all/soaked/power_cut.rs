//! Power cuts at any moment, in devices of all kinds.

use engine::{Rng, Time};
use ftl::page_map::gc::VictimPolicy;
use ftl::recovery::{Cut, Durable, Newer, Recovery};
use nand::array::{Stamp, Stamps};
use proto::{IoOp, Lpn, Slot};
use ssd::device::Device;
use ssd::shadow::{Shadow, Survivors};
use ssd::soak::{Combination, End, Fill, Host, Map, Memory, combinations, operations};
use ssd::spec::{GcModeSpec, ReclaimUnit};
use std::collections::BTreeMap;

/// Cuts the power of a device at work.
fn cut(host: Host) -> (Durable, Option<Box<Shadow>>) {
    let now = host.now();
    host.device.cut_power(now).expect("it keeps stamps")
}

/// Empty device after recovery, and the shadow's verdict on it.
fn recovered(
    combination: &Combination,
    (durable, shadow): (Durable, Option<Box<Shadow>>),
    newer: Newer,
) -> (Device, Recovery, Survivors) {
    let mut device = combination.build_empty(7).expect("it can be built");
    let (report, survivors) = device.recover_by(durable, shadow, newer).expect("it fits");
    (device, report, survivors.expect("the shadow has watched"))
}

fn newest(a: Stamp, b: Stamp) -> bool {
    a > b
}

#[test]
fn what_was_durable_survives_any_cut() {
    let mut rng = Rng::stream(11, "test");
    let (mut torn, mut undone, mut short, mut erases, mut kept) = (0, 0, 0, 0, 0);
    for combination in combinations(6).iter().filter(|c| c.map == Map::Table) {
        let mut device = combination.build(6).expect("it can be built");
        device.attach_shadow();
        device.record_stamps().expect("it is idle");
        for life in 0..8 {
            device.watch_durability();
            let mut host = Host::new(device, 6 + life, combination.depth);
            assert_eq!(host.run_events(3_000 + rng.below(operations(7_000))), End::Done, "{combination}");
            let left = cut(host);
            let what = left.0.cut;
            let (found, report, survivors) = recovered(combination, left, newest);
            device = found;
            assert_eq!(survivors.lost, None, "{combination}, life {life}\n{what:?}");
            // Flash is as the map had it, except for deallocations that were not promised to the host.
            let changed = survivors.changed.len() as u64;
            assert!(changed <= what.trims_undone, "{combination}: {changed}\n{what:?}");
            torn += what.torn_programs;
            undone += what.trims_undone;
            kept += what.lines_kept;
            (short, erases) = (short + report.closed_short, erases + report.erases);
            assert!(report.time > Time::ZERO && report.pages_scanned > 0, "{report:?}");
            let failed: Vec<_> = device.checks(Time::ZERO).into_iter().filter(|c| !c.ok).collect();
            assert_eq!(failed, [], "{combination}, life {life}");
        }
        // And it lives on.
        let mut host = Host::new(device, 9, combination.depth);
        let end = host.drive(3_000);
        assert_eq!((end, &host.failed[..]), (End::Done, &[][..]), "{combination}");
    }
    // The test is worth nothing if nothing is caught half-way.
    assert!(
        torn > 50 && undone > 20 && short > 100 && erases > 20 && kept > 20,
        "{torn} {undone} {short} {erases} {kept}"
    );
}

#[test]
fn stamps_change_nothing() {
    for combination in &combinations(8) {
        let run = |recoverable: bool| {
            let mut device = combination.build(8).expect("it can be built");
            if recoverable {
                device.record_stamps().expect("it is idle");
            }
            let mut host = Host::new(device, 8, combination.depth);
            assert_eq!(host.drive(1_000), End::Done, "{combination}");
            host.digest()
        };
        assert_eq!(run(true), run(false), "{combination}");
    }
}

/// The dies work side by side: each senses its pages, half of them 30 us and half 50 us, and moves 16 bytes a unit.
#[test]
fn a_scan_takes_as_long_as_a_die_reads_its_pages() {
    let fits = |c: &Combination| !c.one_shot && c.fill == Fill::Sequential && c.map == Map::Table;
    let combination = combinations(6).into_iter().find(fits).expect("pairs are covered");
    let mut device = combination.build(6).expect("it can be built");
    device.record_stamps().expect("it is idle");
    let units_per_page = u64::from(device.ftl.geo.units_per_page());
    let pages_per_unit = u64::from(device.ftl.geo.pages_per_unit());
    let pages = device.ftl.logical().div_ceil(units_per_page) * pages_per_unit;
    let (durable, _) = device.cut_power(Time::ZERO).expect("it keeps stamps");
    assert_eq!(durable.cut, Cut::default());
    let mut device = combination.build_empty(6).expect("it can be built");
    let report = device.recover(durable, None).expect("it fits");
    assert!(report.pages_scanned.abs_diff(pages) <= 8, "{} of {pages}", report.pages_scanned);
    assert_eq!(report.outdated, 0);
    assert_eq!(report.units, device.ftl.logical());
    let sensing = pages / 4 * 40;
    // Command, addresses and data take between 100 ns and 5 us; striping leaves dies within a word line of each other.
    let (least, most) =
        (sensing * 1_000 + pages / 4 * 100, (sensing + 200) * 1_000 + (pages / 4 + 4) * 5_000);
    let time = report.time.ps() / 1_000;
    assert!((least..most).contains(&time), "{least} {time} {most}");
}

/// Nothing but erases has deallocations written to the journal, and there are many.
#[test]
fn an_erase_does_not_bring_older_copies_back() {
    let combination = busy(Memory::None).0;
    let mut device = combination.build(6).expect("it can be built");
    device.attach_shadow();
    device.record_stamps().expect("it is idle");
    let mut undone = 0;
    for life in 0..60 {
        device.watch_durability();
        let mut host = Host::new(device, life, 4);
        let wanted = |op| matches!(op, IoOp::Write | IoOp::Trim);
        assert_eq!(host.run_events_of(1_000 + 7 * life, wanted), End::Done);
        let left = cut(host);
        undone += left.0.cut.trims_undone;
        let (found, _, survivors) = recovered(&combination, left, newest);
        assert_eq!(survivors.lost, None, "life {life}");
        device = found;
    }
    assert!(undone > 20, "{undone}");
}

/// A device whose every unit is overwritten again and again, cut at work.
fn busy(memory: Memory) -> (Combination, (Durable, Option<Box<Shadow>>)) {
    let combination =
        Combination { tight: true, fill: Fill::Steady, memory, depth: 64, ..Combination::plain() };
    let mut device = combination.build(6).expect("it can be built");
    device.record_stamps().expect("it is idle");
    device.attach_shadow();
    device.watch_durability();
    let mut host = Host::new(device, 6, combination.depth);
    assert_eq!(host.run_events(30_000), End::Done);
    (combination, cut(host))
}

/// Returns true if the shadow finds an error in a recovery.
fn is_found(memory: Memory, newer: Newer, tamper: impl FnOnce(&mut Durable, &Combination)) -> bool {
    let (combination, mut left) = busy(memory);
    tamper(&mut left.0, &combination);
    recovered(&combination, left, newer).2.lost.is_some()
}

#[test]
fn a_wrong_recovery_is_found() {
    assert!(!is_found(Memory::None, newest, |_, _| ()));
    assert!(is_found(Memory::None, |_, _| true, |_, _| ()), "the copy that was found last");
    assert!(is_found(Memory::None, |_, _| false, |_, _| ()), "the copy that was found first");
    assert!(is_found(Memory::None, |a, b| a < b, |_, _| ()), "the oldest copy");
    let forgotten =
        is_found(Memory::None, newest, |durable, _| durable.journal = ftl::recovery::Journal::default());
    assert!(forgotten, "deallocations and zeroes come back");
    let dropped = is_found(Memory::None, newest, |durable, combination| {
        let geo = combination.spec().geometry().expect("it can be built");
        let stamps = durable.array.stamps.as_ref().expect("it keeps stamps");
        let mut newest = BTreeMap::new();
        for slot in (0..geo.slots).map(Slot).filter(|slot| stamps.get(*slot) != Stamp::VOID) {
            if let Some(lpn) = durable.array.lpn(slot, &durable.base, &geo) {
                let best = newest.entry(lpn).or_insert(slot);
                *best = if stamps.get(slot) > stamps.get(*best) { slot } else { *best };
            }
        }
        let dropped = newest.into_iter().filter(|(lpn, _)| lpn.0.is_multiple_of(16));
        let stamps = durable.array.stamps.as_mut().expect("it keeps stamps");
        dropped.for_each(|(_, slot)| stamps.set(slot, Stamp::VOID));
    });
    assert!(dropped, "the newest copies are dropped");
}

#[test]
fn a_protected_buffer_survives() {
    assert!(!is_found(Memory::Protected, newest, |_, _| ()));
    assert!(is_found(Memory::Protected, newest, |durable, _| durable.lines.clear()));
}

#[test]
fn torn_units_are_not_read() {
    let (combination, (mut durable, shadow)) = busy(Memory::None);
    assert!(durable.cut.torn_programs > 0, "{:?}", durable.cut);
    // Every programmed slot that is neither void nor out of date is what a program has finished writing: giving the torn
    // ones a stamp must be seen.
    let geo = combination.spec().geometry().expect("it can be built");
    let mut torn = Vec::new();
    for block in 0..geo.block_count {
        let programs = durable.array.programs(block);
        let first = geo.first_slot(block).0 + u64::from(programs.saturating_sub(1) * geo.units_per_program);
        let blank = |n: &u64| durable.array.lpn(Slot(*n), &durable.base, &geo).is_none();
        if programs > 0 && (first..first + u64::from(geo.units_per_program)).all(|n| blank(&n)) {
            torn.push(Slot(first));
        }
    }
    assert!(torn.len() as u64 >= durable.cut.torn_programs);
    for slot in torn {
        durable.array.load_register(slot, Some(Lpn(0)));
        let stamps: &mut Stamps = durable.array.stamps.as_mut().expect("it keeps stamps");
        let stamp = stamps.issue();
        stamps.set(slot, stamp);
    }
    assert!(recovered(&combination, (durable, shadow), newest).2.lost.is_some());
}

/// Runs a host on a device whose power is cut at work again and again.
fn lives(combination: &Combination, seed: u64) -> End {
    let mut device = combination.build(seed).expect("it can be built");
    device.attach_shadow();
    device.record_stamps().expect("it is idle");
    let mut rng = Rng::stream(seed, "test");
    for life in 0..6 {
        device.watch_durability();
        let mut host = Host::new(device, 100 * seed + life, 16);
        let end = host.run_events(500 + rng.below(4_000));
        if end != End::Done {
            return end;
        }
        let (found, _, survivors) = recovered(combination, cut(host), newest);
        assert_eq!(survivors.lost, None, "{combination}, seed {seed}, life {life}");
        device = found;
    }
    Host::new(device, seed, 16).drive(500)
}

/// Victims that are not chosen for what they gain, of as few program units as there can be: often one of them is full, and
/// what has been moved of it fills the last free unit when the power goes.
#[test]
fn collection_goes_on_after_any_cut() {
    for (page, reclaim) in
        [(4096, ReclaimUnit::block), (4096, ReclaimUnit::plane_set), (16_384, ReclaimUnit::block)]
    {
        for victim in [VictimPolicy::fifo, VictimPolicy::random] {
            let combination = Combination {
                map_unit: 65_536,
                page,
                reclaim,
                victim,
                mode: GcModeSpec::background,
                ..Combination::plain()
            };
            for seed in 0..6 {
                assert_eq!(lives(&combination, seed), End::Done, "{combination}, seed {seed}");
            }
        }
    }
}
