//! What repeated reads take, of a device that is asked.

use config::units::{Duration, Share};
use engine::{Recorder, Rng, Time};
use nand::dies;
use nand::dies::op::{Class, Op, OpKind};
use nand::dies::timing::Timing;
use nand::geometry::Address;
use proto::{Command, IoOp, Slot};
use ssd::Device;
use ssd::Event;
use ssd::Out;
use ssd::soak::{Combination, Fill};
use ssd::spec::{Built, ErrorsSpec, FlashSpec, MultiPlaneRule, RetrySpec, timing};
use std::convert::Infallible;

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

fn combination() -> Combination {
    Combination { fill: Fill::Sequential, ..Combination::plain() }
}

struct Bench {
    device: Device,
    timing: Timing,
    cx: Recorder<Event, Out>,
}

impl Bench {
    fn new(combination: &Combination, errors: Option<ErrorsSpec>) -> Bench {
        let mut spec: FlashSpec = combination.spec();
        spec.cell.errors = errors;
        let built = Built { seed: 3, name: "retry".into(), fold: combination.fold };
        let device = combination.filled(spec.build(&built).expect("a sound spec"), 3).expect("it fits");
        let timing = timing(&spec.cell, &spec.channel, &device.ftl.geo, &built).expect("times by type");
        Bench { device, timing, cx: Recorder::default() }
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

    /// How long a read of a unit takes by itself.
    fn read(&mut self, unit: u64) -> Time {
        let before = self.cx.queue.now();
        self.run([Command::new(0, IoOp::Read, unit * UNIT, UNIT)], 1);
        self.cx.queue.now() - before
    }
}

/// `count` reads of single units anywhere.
fn reads(bench: &Bench, count: u32) -> Vec<Command> {
    let mut rng = Rng::stream(5, "retry");
    let units = bench.device.capacity() / UNIT;
    (0..count).map(|tag| Command::new(tag, IoOp::Read, rng.below(units) * UNIT, UNIT)).collect()
}

#[test]
fn a_step_takes_a_command_a_sensing_and_a_transfer() {
    let [mut without, mut with] = [None, Some(errors(0))].map(|errors| Bench::new(&combination(), errors));
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
    let both = Combination { multi_plane: MultiPlaneRule::same_page, ..combination() };
    let apart = Combination { independent_reads: true, ..combination() };
    for kind in [combination(), both, apart] {
        for fold in [true, false] {
            let mut bench = Bench::new(&Combination { fold, ..kind.clone() }, Some(errors(60)));
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
    let mut bench = Bench::new(&combination(), Some(spec));
    bench.run(reads(&bench, 500), 4);
    let counters = &bench.device.backend.counters;
    assert!(counters.uncorrectable_reads > 100);
    assert_eq!(counters.uncorrectable_reads, counters.retried_reads);
    assert_eq!(counters.retry_steps, 2 * counters.retried_reads);
}

/// Collection reads as anybody does.
#[test]
fn collection_retries_its_reads() {
    let always = ErrorsSpec { fresh: 0.006, types: None, ..errors(0) };
    let mut bench = Bench::new(&combination(), Some(always));
    let writes: Vec<Command> =
        reads(&bench, 6_000).into_iter().map(|read| Command { op: IoOp::Write, ..read }).collect();
    bench.run(writes, 16);
    let counters = &bench.device.backend.counters;
    assert!(counters.done[Class::GcRead as usize] > 1_000);
    assert_eq!(counters.retried_reads, counters.done[Class::GcRead as usize]);
    assert_eq!((counters.retry_steps, counters.senses), (counters.retried_reads, counters.retried_reads));
}

/// What a register holds has been corrected, and who joins a read waits for it.
#[test]
fn a_page_in_a_register_is_not_read_again() {
    let always = || Some(ErrorsSpec { fresh: 0.006, types: None, ..errors(0) });
    let first_page = |tag: u32| Command::new(tag, IoOp::Read, u64::from(tag) * UNIT, UNIT);
    let mut bench = Bench::new(&Combination { registers: true, ..combination() }, always());
    bench.run((0..4).map(first_page), 1);
    let counters = &bench.device.backend.counters;
    assert_eq!((counters.register_hits, counters.retried_reads, counters.retry_steps), (3, 1, 1));
    let mut bench = Bench::new(&Combination { joins: true, ..combination() }, always());
    bench.run((0..4).map(first_page), 4);
    let counters = &bench.device.backend.counters;
    assert_eq!((counters.joined_reads, counters.retried_reads, counters.retry_steps), (3, 1, 1));
}

/// Of two pages that are sensed together, one is completed in its register: the other's data leave, whichever is first, and are
/// judged where they arrive.
#[test]
fn data_leave_behind_a_page_that_stays() {
    let both = Combination { multi_plane: MultiPlaneRule::same_page, ..combination() };
    for staying in 0..2 {
        let Bench { mut device, timing, .. } = Bench::new(&both, Some(errors(0)));
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
    let mut bench = Bench::new(&combination(), Some(disturbed));
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
    use nand::energy::FlashEnergySpec;
    use net::energy::LinkEnergySpec;
    let nothing = || StatePower { idle: Power::new(0), busy: Power::new(0) };
    let mut bench = Bench::new(&combination(), Some(errors(60)));
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
