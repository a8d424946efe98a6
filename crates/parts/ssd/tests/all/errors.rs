//! Pages with too many bit errors: repeated reads, and parity on other dies, with its rates and write amplification by formula.

use crate::bench::{Bench, DIES, UNITS, build, close, combination};
use config::units::{Duration, Share};
use engine::{Recorder, Rng, Time};
use ftl::page_map::functional::{FunctionalWriter, Placement};
use nand::dies;
use nand::dies::op::{Class, Op, OpKind};
use nand::dies::timing::Timing;
use nand::geometry::Address;
use proto::{Command, IoOp, Lpn, Slot};
use ssd::soak::{Combination, Fill};
use ssd::spec::{Built, ErrorsSpec, FlashSpec, MultiPlaneRule, RetrySpec, timing};
use ssd::{Device, Event, Out};
use std::convert::Infallible;

// Repeated reads.

const UNIT: u64 = 4096;
const LATENCY: Time = Time::from_us(7);

/// Of pages of two types, one rate correctable and the other not before the third further step.
fn errors(spread: u8) -> ErrorsSpec {
    ErrorsSpec {
        fresh: 0.004,
        wear: 0.0,
        retention: 0.0,
        reads: 0.0,
        age: None,
        types: Some(vec![1.0, 7.0]),
        spread: Share::percent(spread),
        retry: RetrySpec { correctable: 0.005, gain: 0.5, limit: 9, latency: Duration::new(LATENCY) },
    }
}

fn plain() -> Combination {
    Combination { fill: Fill::Sequential, ..Combination::plain() }
}

struct ReadBench {
    device: Device,
    timing: Timing,
    cx: Recorder<Event, Out>,
}

impl ReadBench {
    fn new(combination: &Combination, errors: Option<ErrorsSpec>) -> ReadBench {
        let mut spec: FlashSpec = combination.spec();
        spec.cell.errors = errors;
        let built = Built { seed: 3, name: "retry".into(), fold: combination.fold };
        let device = combination.filled(spec.build(&built).expect("a sound spec"), 3).expect("it fits");
        let timing = timing(&spec.cell, &spec.channel, &device.ftl.geo, &built).expect("times by type");
        ReadBench { device, timing, cx: Recorder::default() }
    }

    /// Runs commands, at most `depth` at once, and holds all accounts.
    fn run(&mut self, commands: impl IntoIterator<Item = Command>, depth: usize) {
        let mut commands = commands.into_iter();
        let mut inside = 0;
        loop {
            while inside < depth
                && let Some(command) = commands.next()
            {
                self.device.submit(command, &mut self.cx);
                inside += 1;
            }
            let Some(event) = self.cx.queue.pop() else { break };
            self.device.handle(event, &mut self.cx);
            inside -= self.cx.sent.drain(..).count();
        }
        let failed: Vec<_> = self.device.checks(self.cx.queue.now()).into_iter().filter(|c| !c.ok).collect();
        assert!(inside == 0 && failed.is_empty(), "{failed:#?}");
    }

    /// Duration of a single read of a unit.
    fn read(&mut self, unit: u64) -> Time {
        let before = self.cx.queue.now();
        self.run([Command::new(0, IoOp::Read, unit * UNIT, UNIT)], 1);
        self.cx.queue.now() - before
    }
}

/// `count` reads of single units anywhere.
fn reads(bench: &ReadBench, count: u32) -> Vec<Command> {
    let mut rng = Rng::stream(5, "retry");
    let units = bench.device.capacity() / UNIT;
    (0..count).map(|tag| Command::new(tag, IoOp::Read, rng.below(units) * UNIT, UNIT)).collect()
}

#[test]
fn a_step_takes_a_command_a_sensing_and_a_transfer() {
    let [mut without, mut with] = [None, Some(errors(0))].map(|errors| ReadBench::new(&plain(), errors));
    let units = with.device.capacity() / UNIT;
    let (mut slow, mut count) = (0, 0);
    for unit in (0..units).step_by(61) {
        let slot = with.device.ftl.lookup(proto::Lpn(unit)).expect("it is full");
        let page = with.device.ftl.geo.address(slot).page;
        // 7 * 0.004 / 0.005 is 5.6: three halvings.
        let steps = if page % 2 == 1 { 3 } else { 0 };
        let step = with.timing.read_command + with.timing.sense(page, 1) + LATENCY + with.timing.leave(UNIT);
        assert_eq!(with.read(unit) - without.read(unit), step.times(steps), "unit {unit}");
        slow += u64::from(steps > 0);
        count += 1;
    }
    let counters = &with.device.backend.counters;
    assert!(slow > count / 3 && slow < count);
    assert_eq!(counters.retried_reads, slow);
    assert_eq!((counters.retry_steps, counters.uncorrectable_reads), (3 * slow, 0));
    assert!(!without.device.backend.has_errors());
}

/// However many are inside: each reading of a page takes its command and its transfer of the channel, and dies work for what
/// each command's steps take.
#[test]
fn channels_carry_every_step() {
    let both = Combination { multi_plane: MultiPlaneRule::same_page, ..plain() };
    let apart = Combination { independent_reads: true, ..plain() };
    for kind in [plain(), both, apart] {
        for fold in [true, false] {
            let mut bench = ReadBench::new(&Combination { fold, ..kind.clone() }, Some(errors(60)));
            bench.run(reads(&bench, 4_000), 32);
            let counters = bench.device.backend.counters.clone();
            let readings = counters.senses + counters.retry_steps;
            assert!(counters.senses == 4_000 && counters.retry_steps > 4_000, "{counters:?}");
            let busy = bench.device.backend.channel_busy(bench.cx.queue.now());
            let busy = busy.into_iter().fold(Time::ZERO, |sum, busy| sum + busy);
            let each = bench.timing.read_command + bench.timing.leave(UNIT);
            assert_eq!(busy, each.times(readings), "{kind}");
            let shared = kind.multi_plane == MultiPlaneRule::same_page;
            assert_eq!(counters.multi_plane > 20, shared, "{counters:?}");
        }
    }
}

#[test]
fn limits_leave_pages_uncorrectable() {
    let mut spec = errors(0);
    spec.retry.limit = 2;
    let mut bench = ReadBench::new(&plain(), Some(spec));
    bench.run(reads(&bench, 500), 4);
    let counters = &bench.device.backend.counters;
    assert!(counters.uncorrectable_reads > 100);
    assert_eq!(counters.uncorrectable_reads, counters.retried_reads);
    assert_eq!(counters.retry_steps, 2 * counters.retried_reads);
}

/// Reads of garbage collection are retried like any other.
#[test]
fn collection_retries_its_reads() {
    let always = ErrorsSpec { fresh: 0.006, types: None, ..errors(0) };
    let mut bench = ReadBench::new(&plain(), Some(always));
    let writes: Vec<Command> =
        reads(&bench, 6_000).into_iter().map(|read| Command { op: IoOp::Write, ..read }).collect();
    bench.run(writes, 16);
    let counters = &bench.device.backend.counters;
    assert!(counters.done[Class::GcRead as usize] > 1_000);
    assert_eq!(counters.retried_reads, counters.done[Class::GcRead as usize]);
    assert_eq!((counters.retry_steps, counters.senses), (counters.retried_reads, counters.retried_reads));
}

/// Data in a register has been corrected, and a read that joins another waits for it.
#[test]
fn a_page_in_a_register_is_not_read_again() {
    let always = || Some(ErrorsSpec { fresh: 0.006, types: None, ..errors(0) });
    let first_page = |tag: u32| Command::new(tag, IoOp::Read, u64::from(tag) * UNIT, UNIT);
    let mut bench = ReadBench::new(&Combination { registers: true, ..plain() }, always());
    bench.run((0..4).map(first_page), 1);
    let counters = &bench.device.backend.counters;
    assert_eq!((counters.register_hits, counters.retried_reads, counters.retry_steps), (3, 1, 1));
    let mut bench = ReadBench::new(&Combination { joins: true, ..plain() }, always());
    bench.run((0..4).map(first_page), 4);
    let counters = &bench.device.backend.counters;
    assert_eq!((counters.joined_reads, counters.retried_reads, counters.retry_steps), (3, 1, 1));
}

/// Of two pages that are sensed together, one is completed in its register: the other's data leave, whichever is first, and are
/// judged where they arrive.
#[test]
fn data_leave_behind_a_page_that_stays() {
    let both = Combination { multi_plane: MultiPlaneRule::same_page, ..plain() };
    for staying in 0..2 {
        let ReadBench { mut device, timing, .. } = ReadBench::new(&both, Some(errors(0)));
        let backend = &mut device.backend;
        let mut cx: Recorder<dies::Event, Infallible> = Recorder::default();
        for plane in 0..2 {
            let at = Address { die: 0, plane, block: 0, page: 1 };
            let bytes = if plane == staying { 0 } else { UNIT as u32 };
            let op = Op::new(OpKind::Read, Class::HostRead, at, Slot(0), 1, bytes, 0);
            backend.enqueue(Time::ZERO, op);
        }
        backend.kick(&mut cx);
        while let Some(event) = cx.queue.pop() {
            backend.handle(event, &mut cx);
        }
        let rest = timing.sense(1, 1) + timing.leave(UNIT);
        let steps = (timing.read_command + rest + LATENCY).times(3);
        assert_eq!(cx.queue.now(), timing.read_command.times(2) + rest + steps, "plane {staying} stays");
        assert_eq!((backend.finished.len(), backend.counters.multi_plane), (2, 1));
        assert_eq!((backend.retries(), backend.counters.retried_reads), (Some((3, 3)), 1));
    }
}

/// Steps without end on one page wear out the others of its block, step by step.
#[test]
fn every_sensing_disturbs_its_block() {
    let disturbed = ErrorsSpec { fresh: 0.0, reads: 0.5, types: None, ..errors(0) };
    let mut bench = ReadBench::new(&plain(), Some(disturbed));
    let mut sensed = 0;
    for _ in 0..40 {
        let before = bench.device.backend.counters.retry_steps;
        bench.read(0);
        // 0.0005 a sensing; each step halves.
        let rate = 0.0005 * f64::from(sensed);
        let steps = (0..9).take_while(|n| rate / f64::from(1 << n) > 0.005).count() as u32;
        assert_eq!(bench.device.backend.counters.retry_steps - before, u64::from(steps), "after {sensed}");
        sensed += 1 + steps;
    }
    assert!(sensed > 80);
}

#[test]
fn steps_cost_energy() {
    use config::StatePower;
    use config::units::{Energy, Power};
    use nand::dies::FlashEnergySpec;
    use net::energy::LinkEnergySpec;
    let nothing = || StatePower { idle: Power::new(0), busy: Power::new(0) };
    let mut bench = ReadBench::new(&plain(), Some(errors(60)));
    bench.device.backend.set_energy(FlashEnergySpec {
        read: vec![Energy::new(1_000); 2],
        program: vec![Energy::new(1); 2],
        erase: Energy::new(1),
        transfer: Energy::new(10),
        die: nothing(),
        controller: nothing(),
        link: LinkEnergySpec { transfer: Energy::new(0), on: Power::new(0) },
    });
    bench.run(reads(&bench, 1_000), 8);
    let counters = &bench.device.backend.counters;
    let readings = u128::from(counters.senses + counters.retry_steps);
    let report = bench.device.backend.meter.as_ref().expect("it has one").report(bench.cx.queue.now());
    assert_eq!(report.of("read"), 1_000 * readings);
    assert_eq!(report.of("channel transfer"), 10 * u128::from(UNIT) * readings);
}

// Superblock parity.

/// Planes.
const GROUPS: u64 = 8;
/// Pages of a block.
const PAGES: u64 = 48;
/// Times that make the time of links and channels negligible.
const PROGRAM: Time = Time::from_ms(100);
const READ: Time = Time::from_ms(4);

/// Four dies, with sets of `data + 1`.
fn spec(data: Option<u32>) -> FlashSpec {
    let mut spec = combination().spec();
    spec.cell.program = vec![Duration::new(PROGRAM); 2];
    spec.cell.read = vec![Duration::new(READ); 2];
    spec.cell.erase = Duration::new(Time::from_us(1));
    spec.ftl.parity = data;
    // Sets of two take half of what there is.
    spec.ftl.over_provisioning = Share::percent(70);
    spec
}

#[test]
fn writes_share_their_dies_with_parity() {
    // A block of each plane, parity in one part of `data + 1`.
    for data in [1, 3] {
        let pages = GROUPS * PAGES * data / (data + 1);
        let mut bench = Bench::of(&spec(Some(data as u32)));
        let time = bench.run(IoOp::Write, 0..pages);
        // A die programs all pages of its planes' blocks, whatever they hold.
        assert!(close(time, PROGRAM.times(GROUPS * PAGES / DIES)), "{time:?}");
        bench.rest();
        assert_eq!(bench.programs(), [pages, 0]);
        let seen = bench.device.parity().expect("there is parity");
        assert_eq!((seen.programs, bench.device.units_of_parity()), (pages / data, pages / data * UNITS));
        let read = bench.run(IoOp::Read, 0..pages);
        assert!(close(read, READ.times(pages / DIES)), "{read:?}");
        bench.rest();
    }
    let mut without = Bench::of(&spec(None));
    let time = without.run(IoOp::Write, 0..GROUPS * PAGES);
    assert!(close(time, PROGRAM.times(GROUPS * PAGES / DIES)), "{time:?}");
    assert_eq!((without.device.parity(), without.device.units_of_parity()), (None, 0));
}

/// Parity acts as if blocks were smaller: GC moves as much as with smaller blocks, unit for unit.
#[test]
fn collection_works_as_with_blocks_of_the_pages_that_hold_data() {
    let moves = |data: Option<u32>, pages: u32, over: u8| {
        let mut spec = spec(data);
        spec.geometry.pages = pages;
        spec.ftl.over_provisioning = Share::percent(over);
        let mut ftl = build(&spec).ftl;
        let units = 7_000;
        assert!(ftl.logical() >= units, "{}", ftl.logical());
        let mut writer = FunctionalWriter::new(&ftl, Placement::Striped);
        let mut rng = Rng::stream(3, "test");
        let lpns: Vec<Lpn> = (0..100_000).map(|_| Lpn(rng.below(units))).collect();
        writer.write_all(&mut ftl, lpns).expect("over-provisioning suffices");
        writer.finish(&mut ftl).expect("over-provisioning suffices");
        (
            ftl.counters.moves,
            ftl.counters.erases,
            (0..units).map(|lpn| ftl.lookup(Lpn(lpn))).collect::<Vec<_>>(),
        )
    };
    // The same share of 7,372 units in all.
    for (data, over) in [(1, 40), (3, 60)] {
        let with = moves(Some(data), 48, 70);
        assert!(with.0 > 1_000, "{}", with.0);
        assert_eq!(with, moves(None, 48 * data / (data + 1), over));
    }
}

/// Two further steps for every page, which end well or do not.
fn failing(fresh: f64) -> FlashSpec {
    let mut spec = spec(Some(3));
    spec.cell.errors = Some(ErrorsSpec {
        fresh,
        wear: 0.0,
        retention: 0.0,
        reads: 0.0,
        age: None,
        types: None,
        spread: Share::percent(0),
        retry: RetrySpec { correctable: 0.004, gain: 0.5, limit: 2, latency: Duration::new(Time::ZERO) },
    });
    spec
}

#[test]
fn a_page_that_cannot_be_corrected_is_rebuilt_from_the_other_dies() {
    let read = |spec: &FlashSpec| {
        let mut bench = Bench::of(spec);
        bench.run(IoOp::Write, 0..GROUPS * PAGES / 4);
        bench.rest();
        let time = bench.run(IoOp::Read, 5..6);
        bench.rest();
        (
            time,
            bench.device.parity().expect("there is parity"),
            bench.device.backend.counters.uncorrectable_reads,
        )
    };
    // 0.01 needs two halvings.
    let (time, seen, uncorrectable) = read(&failing(0.01));
    assert!(close(time, READ.times(3)), "{time:?}");
    assert_eq!((seen.rebuilt, seen.lost, uncorrectable), (0, 0, 0));
    // 0.1 would need five. Three pages of other dies are read at once, and none of them can be corrected either.
    let (time, seen, uncorrectable) = read(&failing(0.1));
    assert!(close(time, READ.times(6)), "{time:?}");
    assert_eq!((seen.rebuilt, seen.lost, uncorrectable), (0, 1, 4));
}

#[test]
fn sets_must_fill_the_device_and_its_blocks() {
    let fault = |change: fn(&mut FlashSpec)| {
        let mut spec = spec(Some(3));
        change(&mut spec);
        let fault = spec.geometry().expect_err("it cannot be laid out");
        (fault.key.clone(), format!("{} {}", fault.what, fault.help.unwrap_or_default()))
    };
    for data in [0, 2, 4, 7, u32::MAX - 1] {
        let mut spec = spec(Some(3));
        spec.ftl.parity = Some(data);
        let fault = spec.geometry().expect_err("it cannot be laid out");
        assert_eq!(fault.key, "ftl.parity");
        assert!(fault.help.unwrap_or_default().starts_with("allowed are 1, 3, "), "{}", fault.what);
    }
    let (key, text) = fault(|spec| spec.geometry.pages = 34);
    assert!(key == "ftl.parity" && text.contains("allowed are 1,"), "{text}");
    let (key, text) = fault(|spec| spec.geometry.pages = 33);
    assert!(key == "ftl.parity" && text.contains("no number fits"), "{text}");
    assert_eq!(fault(|spec| spec.ftl.gc.copy_back = true).0, "ftl.gc.copy_back");
}
