//! Bad blocks in devices at work.

use config::units::Share;
use ssd::device::Device;
use ssd::soak::{Combination, End, Fill, Host, Map, Memory, combinations};
use ssd::spec::{BadBlocksSpec, Built, FlashSpec, GrownSpec, ReclaimUnit, SpecError};

fn built(spec: &FlashSpec, seed: u64) -> Result<Device, SpecError> {
    spec.build(&Built { seed, name: "soak".into(), fold: true })
}

/// A device with bad blocks and room for some more.
fn device(combination: &Combination, factory: u8, endurance: u32) -> Result<Device, SpecError> {
    let mut spec = combination.spec();
    let grown = Some(GrownSpec { endurance, shape: 3.0 });
    spec.bad_blocks = Some(BadBlocksSpec { factory: Share::percent(factory), grown });
    spec.geometry.blocks = 32;
    built(&spec, 3)
}

#[test]
fn devices_wear_out_in_good_order() {
    let (mut retired, mut refused) = (0, 0);
    for combination in &combinations(9) {
        let device = device(combination, 5, 12).unwrap_or_else(|e| panic!("{combination}: {}", e.what));
        let factory = device.ftl.bad_counts().expect("blocks may be bad");
        assert!(factory.factory > 0 && factory.units > 0 && factory.grown == 0, "{factory:?}");
        let mut device =
            combination.filled(device, 3).unwrap_or_else(|e| panic!("{combination}: {}", e.what));
        device.attach_shadow();
        let mut host = Host::new(device, 3, combination.depth);
        let end = host.drive(9_000);
        assert_eq!(host.failed, [], "{combination}");
        let counts = host.device.ftl.bad_counts().expect("blocks may be bad");
        let worn_out = host.device.ftl.is_worn_out();
        assert!(end == End::Done || (end == End::Refused && worn_out), "{combination}: {end:?} {counts:?}");
        assert!(counts.grown >= counts.units - factory.units, "{counts:?}");
        if let Some(worn) = host.device.ftl.worn_out() {
            // Of all groups, it has the fewest units left that are not retired.
            let ftl = &host.device.ftl;
            let left = |group: u32| ftl.usable(group) - ftl.groups[group as usize].retired;
            let fewest = (0..ftl.geo.groups).map(left).min();
            assert_eq!(Some(left(worn.group)), fewest, "{combination}: {worn:?}");
            assert!(worn.host_units <= ftl.counters.host_commits, "{combination}: {worn:?}");
        }
        retired += counts.units - factory.units;
        refused += u64::from(end == End::Refused);
    }
    assert!(retired > 100 && refused > 3, "{retired} retired, {refused} worn out");
}

/// Blocks that are out of use are not erased any more, or never were: they say nothing of how evenly a drive wears.
#[test]
fn erases_are_those_of_blocks_in_use() {
    let combination = Combination { fill: Fill::Empty, ..Combination::plain() };
    let device = device(&combination, 5, 12).expect("there are enough good blocks");
    let mut host = Host::new(device, 3, 16);
    host.drive(20_000);
    let ftl = &host.device.ftl;
    let bad = ftl.bad_counts().expect("blocks may be bad");
    let lanes = u64::from(ftl.geo.lanes);
    let retired = ftl.retired_units();
    let lost = bad.units - retired.len() as u64;
    assert!(!retired.is_empty() && lost > 0, "{bad:?}");
    // With those that have been retired, and those that never worked, they are all.
    let blocks =
        |ru: &u64| (0..ftl.geo.lanes).map(|lane| ftl.geo.block_of_ru(*ru, lane)).collect::<Vec<u64>>();
    let worn: Vec<u32> = retired.iter().flat_map(blocks).map(|block| ftl.array.erases(block)).collect();
    let mut found: Vec<u32> = ftl.erases_in_use().chain(worn.iter().copied()).collect();
    found.extend((0..lost * lanes).map(|_| 0));
    found.sort_unstable();
    let mut all = ftl.array.all_erases().to_vec();
    all.sort_unstable();
    assert_eq!(found, all);
}

#[test]
fn bad_units_stay_bad() {
    let fits =
        |c: &Combination| c.map == Map::Table && c.map_unit == 4096 && c.reclaim != ReclaimUnit::superblock;
    let empty =
        |c: &Combination, endurance| device(c, 5, endurance).unwrap_or_else(|e| panic!("{c}: {}", e.what));
    let worn = |c: &Combination, endurance| {
        let mut device = c.filled(empty(c, endurance), 3).unwrap_or_else(|e| panic!("{}", e.what));
        device.record_stamps().expect("it is idle");
        device.attach_shadow();
        device.watch_durability();
        Host::new(device, 3, c.depth)
    };
    // One that loses blocks and goes on.
    let loses = |host: &Host| host.device.ftl.bad_counts().is_some_and(|counts| counts.grown > 0);
    let lasts = |(c, endurance): &(Combination, u32)| {
        let (mut first, mut second) = (worn(c, *endurance), worn(c, *endurance));
        first.drive(9_000) == End::Done
            && loses(&first)
            && second.run_events(60_000) == End::Done
            && loses(&second)
    };
    let busy = |c| Combination { fill: Fill::Steady, memory: Memory::None, depth: 16, ..c };
    let mut candidates = (9..12).flat_map(combinations).filter(fits).map(busy);
    let found = candidates.find_map(|c| (5..16).map(|n| (c.clone(), n)).find(lasts));
    let (combination, endurance) = found.expect("some last as long");
    let (device, worn) = (|| empty(&combination, endurance), || worn(&combination, endurance));
    let mut host = worn();
    assert_eq!(host.drive(9_000), End::Done);
    let counts = host.device.ftl.bad_counts().expect("blocks may be bad");
    assert!(counts.grown > 0, "{counts:?}");
    let mut bytes = Vec::new();
    host.device.save(&mut bytes).expect("it is idle");
    let mut copy = device();
    copy.load(&mut bytes.as_slice()).expect("it fits");
    assert_eq!(copy.ftl.bad_counts(), Some(counts));
    let mut copy = host.before(copy);
    assert_eq!((copy.drive(10_000), copy.digest()), (host.drive(10_000), host.digest()));

    let mut host = worn();
    assert_eq!(host.run_events(60_000), End::Done);
    let counts = host.device.ftl.bad_counts().expect("blocks may be bad");
    assert!(counts.grown > 0, "{counts:?}");
    let now = host.now();
    let (durable, shadow) = host.device.cut_power(now).expect("it keeps stamps");
    let mut again = device();
    again.recover(durable, shadow).expect("it fits");
    assert_eq!(again.ftl.bad_counts(), Some(counts));
    let mut host = Host::new(again, 4, 16);
    assert!(matches!(host.drive(1_000), End::Done | End::Refused));
    assert_eq!(host.failed, []);
}

#[test]
fn without_the_key_nothing_is_bad() {
    let combination = combinations(9).swap_remove(0);
    let device = combination.build(9).expect("it can be built");
    assert_eq!(device.ftl.bad_counts(), None);
    assert_eq!(device.ftl.fewest_usable(), device.ftl.geo.shape.blocks);
}

#[test]
fn bad_blocks_take_from_the_spare_space() {
    let combination = Combination { fill: Fill::Empty, ..Combination::plain() };
    assert!(combination.map == Map::Table && combination.memory == Memory::None);
    let fault = device(&combination, 60, 3000).err().expect("too many are bad");
    assert_eq!(fault.key, "ftl.over_provisioning");
    assert!(fault.what.contains("bad ones"), "{}", fault.what);
    let mut spec = combination.spec();
    spec.bad_blocks =
        Some(BadBlocksSpec { factory: Share::ZERO, grown: Some(GrownSpec { endurance: 3, shape: -1.0 }) });
    assert_eq!(built(&spec, 1).err().expect("a negative shape").key, "bad_blocks.grown.shape");
}
