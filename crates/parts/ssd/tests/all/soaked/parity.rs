//! Devices of all kinds with superblock parity: two or four of their dies protect each other.

use engine::{Rng, Time};
use nand::dies::op::Class;
use ssd::device::{Device, ParityCounters};
use ssd::soak::{Combination, End, Host, Map, Memory, combinations};

/// The combinations that can have it, each with a set of two or of four dies, half of them with errors.
fn all(seed: u64) -> Vec<Combination> {
    let mut all = combinations(seed);
    all.retain(|c| !matches!(c.memory, Memory::Registers | Memory::ProtectedRegisters));
    all.retain(|c| c.pages == ftl::page_map::pages::PageOrder::in_order);
    // Blocks of three program units fill no set.
    all.retain(|c| c.map_unit <= c.page);
    let with = |(n, c): (usize, Combination)| Combination {
        parity: Some([1, 3][n % 2]),
        copy_back: false,
        errors: n / 2 % 2 == 0,
        ..c
    };
    all.into_iter().enumerate().map(with).collect()
}

/// Program units of data that have been programmed.
fn programs_of_data(device: &Device) -> u64 {
    let done = &device.backend.counters.done;
    let all = [Class::HostProgram, Class::MapProgram, Class::GcProgram].map(|class| done[class as usize]);
    all.iter().sum::<u64>() - device.stats.parity.programs
}

#[test]
fn devices_with_parity_keep_their_data() {
    let mut all_of_it = ParityCounters::default();
    for seed in [1, 2] {
        for combination in &all(seed) {
            let mut device = combination.build(seed).unwrap_or_else(|e| panic!("{combination}: {}", e.what));
            device.attach_shadow();
            let mut host = Host::new(device, seed, combination.depth);
            let end = host.drive(6_000);
            assert_eq!((end, &host.failed[..]), (End::Done, &[][..]), "{combination}");
            let seen = host.device.parity().expect("there is parity");
            let data = u64::from(combination.parity.expect("it was given"));
            // Blocks that are or were open may be in the midst of a turn: up to ten streams at the beginning and at the end.
            let open = u64::from(host.device.ftl.geo.plane_count) * 20;
            let of_data = programs_of_data(&host.device);
            assert!(
                (seen.programs * data).abs_diff(of_data) <= open * data,
                "{combination} {seen:?} {of_data}"
            );
            all_of_it.programs += seen.programs;
            all_of_it.rebuilt += seen.rebuilt;
            all_of_it.lost += seen.lost;
        }
    }
    let ParityCounters { programs, rebuilt, lost } = all_of_it;
    assert!(programs > 10_000 && rebuilt > 1_000 && lost > 100, "{all_of_it:?}");
}

/// The shadow and folded stages change nothing.
#[test]
fn observing_parity_changes_nothing() {
    for combination in &all(3) {
        let run = |shadow: bool, fold: bool| {
            let combination = Combination { fold, ..combination.clone() };
            let mut device = combination.build(3).expect("it can be built");
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

#[test]
fn a_copy_of_a_device_with_parity_goes_on_as_the_original_does() {
    for combination in &all(4) {
        let mut host = Host::new(combination.build(4).expect("it can be built"), 4, combination.depth);
        host.drive(2_000);
        let mut bytes = Vec::new();
        host.device.save(&mut bytes).expect("it is idle");
        let mut copy = combination.build(4).expect("it can be built");
        copy.load(&mut bytes.as_slice()).expect("it fits");
        let mut copy = host.before(copy);
        let ends = (host.drive(2_000), copy.drive(2_000));
        assert_eq!(ends, (End::Done, End::Done), "{combination}");
        assert_eq!(
            (copy.digest(), copy.device.parity()),
            (host.digest(), host.device.parity()),
            "{combination}"
        );
    }
}

#[test]
fn data_beside_parity_survives_any_cut() {
    let mut rng = Rng::stream(12, "test");
    for combination in all(6).iter().filter(|c| c.map == Map::Table) {
        let mut found = combination.build(6).expect("it can be built");
        found.attach_shadow();
        found.record_stamps().expect("it is idle");
        for life in 0..4 {
            found.watch_durability();
            let mut host = Host::new(found, 6 + life, combination.depth);
            assert_eq!(host.run_events(2_000 + rng.below(6_000)), End::Done, "{combination}");
            let now = host.now();
            let (durable, shadow) = host.device.cut_power(now).expect("it keeps stamps");
            found = combination.build_empty(6).expect("it can be built");
            let (_, survivors) = found.recover_by(durable, shadow, |a, b| a > b).expect("it fits");
            assert_eq!(survivors.expect("the shadow has watched").lost, None, "{combination}, life {life}");
            let failed: Vec<_> = found.checks(Time::ZERO).into_iter().filter(|c| !c.ok).collect();
            assert_eq!(failed, [], "{combination}, life {life}");
        }
    }
}
