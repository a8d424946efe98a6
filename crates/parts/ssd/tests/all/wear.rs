//! Wear of devices at work: static wear levelling, the spread of erase counts, its cost; and bad blocks.
//!
//! Erases are counted by an observer: a block with fewer units than before has been erased.

use config::units::Share;
use engine::{Recorder, Rng};
use ftl::buffer::ahead::LookAheadPolicy;
use ftl::page_map::alloc::Allocation;
use ftl::page_map::gc::VictimPolicy;
use ftl::page_map::wear::SLACK;
use nand::dies::arbiter::Arbitration;
use nand::dies::sched::Scheduling;
use proto::{Command, IoOp};
use ssd::soak::{Combination, End, Fill, Host, Map, Memory, combinations, operations};
use ssd::spec::{
    BadBlocksSpec, Built, FlashSpec, GcModeSpec, GcScope, GcStreams, GrownSpec, MultiPlaneRule, ReclaimUnit,
    SpecError, WearSpec,
};
use ssd::{Device, Event, Out};

/// Bytes of a write: a program unit.
const WRITE: u64 = 16384;

fn combination() -> Combination {
    Combination {
        map_unit: 4096,
        page: 16384,
        reclaim: ReclaimUnit::block,
        one_shot: false,
        allocation: Allocation::striped,
        victim: VictimPolicy::greedy,
        copy_back: false,
        scheduler: Scheduling::oldest,
        arbiter: Arbitration::fifo,
        multi_plane: MultiPlaneRule::off,
        suspend: false,
        independent_reads: false,
        placements: 1,
        depth: 16,
        fill: Fill::Sequential,
        nvme: false,
        fold: true,
        least_worn: false,
        tight: false,
        memory: Memory::None,
        map: Map::Table,
        mode: GcModeSpec::preemptible,
        scope: GcScope::local,
        gap: None,
        streams: GcStreams::isolated,
        registers: false,
        joins: false,
        errors: false,
        look_ahead: LookAheadPolicy::none,
        destage: ftl::buffer::destage::DestagePolicy::watermarks,
        pages: ftl::page_map::pages::PageOrder::in_order,
        parity: None,
    }
}

/// 192 blocks, all of them written once.
fn device(combination: &Combination, wear: WearSpec) -> Device {
    let mut spec = combination.spec();
    spec.geometry.pages = 24;
    spec.geometry.blocks = 24;
    spec.ftl.over_provisioning = Share::percent(33);
    spec.ftl.wear = wear;
    let built = Built { seed: 1, name: "wear".into(), fold: true };
    let mut device = spec.build(&built).unwrap_or_else(|e| panic!("{}", e.what));
    device.ftl.assume_sequential(device.ftl.logical());
    device.format_map();
    device
}

/// Observations of a run.
struct Seen {
    /// Counts by block.
    erases: Vec<u32>,
    device: Device,
}

impl Seen {
    /// Spread of erase counts in the worst group.
    fn spread(&self) -> u32 {
        let of = |group: &[u32]| group.iter().max().zip(group.iter().min()).map_or(0, |(a, b)| a - b);
        self.erases.chunks(self.device.ftl.geo.shape.blocks as usize).map(of).max().unwrap_or(0)
    }
    fn all(&self) -> u64 {
        self.erases.iter().map(|n| u64::from(*n)).sum()
    }
}

/// Writes program units to the first tenth of the addresses, or one in sixteen anywhere. Erase counts must never lie
/// further than `allowed` apart.
fn run(device: Device, writes: u32, allowed: u32) -> Seen {
    let (blocks, places) = (device.ftl.geo.block_count as usize, device.capacity() / WRITE);
    let mut held: Vec<u32> = (0..blocks as u64).map(|b| device.ftl.array.programs(b)).collect();
    let mut seen = Seen { erases: vec![0; blocks], device };
    let mut rng = Rng::stream(7, "wear");
    let mut cx: Recorder<Event, Out> = Recorder::default();
    let (mut issued, mut answered) = (0, 0);
    while let Some(event) = {
        while issued < writes && issued - answered < 16 {
            let place = if issued % 16 == 0 { rng.below(places) } else { rng.below(places / 10) };
            seen.device.submit(write(issued, place * WRITE), &mut cx);
            issued += 1;
        }
        cx.queue.pop()
    } {
        seen.device.handle(event, &mut cx);
        answered += cx.sent.drain(..).count() as u32;
        let mut erased = false;
        for (block, before) in held.iter_mut().enumerate() {
            let now = seen.device.ftl.array.programs(block as u64);
            seen.erases[block] += u32::from(now < *before);
            erased |= now < *before;
            *before = now;
        }
        assert!(!erased || seen.spread() <= allowed, "{} apart after {answered} writes", seen.spread());
    }
    assert_eq!(answered, writes);
    let checks = seen.device.checks(cx.queue.now());
    let failed: Vec<_> = checks.into_iter().filter(|c| !c.ok).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(seen.erases, seen.device.ftl.array.all_erases());
    seen
}

fn write(tag: u32, offset: u64) -> Command {
    Command::new(tag, IoOp::Write, offset, WRITE)
}

/// A closed unit gives its data away at most once in `gap` erases of the others: at most one erase in `gap` is for wear,
/// and moves no more than a unit.
#[test]
fn erase_counts_stay_together_at_a_bounded_cost() {
    for dynamic in [true, false] {
        let plain = run(device(&combination(), WearSpec { dynamic, static_gap: None }), 24_000, u32::MAX);
        assert!(plain.spread() > 15, "{} apart", plain.spread());
        assert_eq!(plain.device.stats.wear_units, 0);
        let gap = 4;
        let wear = WearSpec { dynamic, static_gap: Some(gap) };
        let levelled = run(device(&combination(), wear), 24_000, gap + SLACK);
        let (blocks, units) = (levelled.erases.len() as u64, levelled.device.stats.wear_units);
        let most = levelled.all() / u64::from(gap) + blocks;
        assert!(levelled.all() <= plain.all() + most, "{} erases, {}", levelled.all(), plain.all());
        let per_unit = u64::from(levelled.device.ftl.geo.units_per_ru);
        assert!((1..=most * per_unit).contains(&units), "{units} units moved, {most} erases");
    }
}

/// Holds for every policy of garbage collection, and every location of the map.
#[test]
fn erase_counts_stay_together_in_devices_of_all_kinds() {
    let base = combination();
    let kinds = [
        Combination { mode: GcModeSpec::background, copy_back: true, ..base.clone() },
        Combination { allocation: Allocation::round_robin, scope: GcScope::global, ..base.clone() },
        Combination { map: Map::Pages, mode: GcModeSpec::foreground, ..base.clone() },
        Combination { victim: VictimPolicy::random, memory: Memory::WriteBack, ..base },
    ];
    for kind in &kinds {
        let device = device(kind, WearSpec { dynamic: true, static_gap: Some(2) });
        let seen = run(device, 12_000, 2 + SLACK);
        assert!(seen.device.stats.wear_units > 0, "{kind}");
        assert!(seen.erases.iter().max() > Some(&4), "{kind}");
    }
}

// Bad blocks in devices at work.

fn built(spec: &FlashSpec, seed: u64) -> Result<Device, SpecError> {
    spec.build(&Built { seed, name: "soak".into(), fold: true })
}

/// A device with bad blocks and room for some more.
fn flawed(combination: &Combination, factory: u8, endurance: u32) -> Result<Device, SpecError> {
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
        let device = flawed(combination, 5, 6).unwrap_or_else(|e| panic!("{combination}: {}", e.what));
        let factory = device.ftl.bad_counts().expect("blocks may be bad");
        assert!(factory.factory > 0 && factory.units > 0 && factory.grown == 0, "{factory:?}");
        let mut device =
            combination.filled(device, 3).unwrap_or_else(|e| panic!("{combination}: {}", e.what));
        device.attach_shadow();
        let mut host = Host::new(device, 3, combination.depth);
        let end = host.drive(operations(5_000));
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

/// Blocks out of use are not erased any more, or never were: their counts do not show how evenly a drive wears.
#[test]
fn erases_are_those_of_blocks_in_use() {
    let combination = Combination { fill: Fill::Empty, ..Combination::plain() };
    let device = flawed(&combination, 5, 12).expect("there are enough good blocks");
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
        |c: &Combination, endurance| flawed(c, 5, endurance).unwrap_or_else(|e| panic!("{c}: {}", e.what));
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
    let fault = flawed(&combination, 60, 3000).err().expect("too many are bad");
    assert_eq!(fault.key, "ftl.over_provisioning");
    assert!(fault.what.contains("bad ones"), "{}", fault.what);
    let mut spec = combination.spec();
    spec.bad_blocks =
        Some(BadBlocksSpec { factory: Share::ZERO, grown: Some(GrownSpec { endurance: 3, shape: -1.0 }) });
    assert_eq!(built(&spec, 1).err().expect("a negative shape").key, "bad_blocks.grown.shape");
}
