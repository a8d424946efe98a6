//! Static wear levelling in a device at work: how far erase counts lie apart, and what that costs. Erases are counted by
//! looking on: a block that holds less than before has been erased.

use config::units::Share;
use engine::{Recorder, Rng};
use ftl::buffer::ahead::LookAheadPolicy;
use ftl::page_map::alloc::Allocation;
use ftl::page_map::gc::VictimPolicy;
use ftl::page_map::wear::SLACK;
use nand::dies::arbiter::Arbitration;
use nand::dies::sched::Scheduling;
use proto::{Command, IoOp};
use ssd::Device;
use ssd::Event;
use ssd::Out;
use ssd::soak::{Combination, Fill, Map, Memory};
use ssd::spec::{Built, GcModeSpec, GcScope, GcStreams, MultiPlaneRule, ReclaimUnit, WearSpec};

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

/// What was seen of a run.
struct Seen {
    /// By block.
    erases: Vec<u32>,
    device: Device,
}

impl Seen {
    /// How far the blocks of the worst group lie apart.
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

/// Whoever reclaims when and where, and wherever the map lies.
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
