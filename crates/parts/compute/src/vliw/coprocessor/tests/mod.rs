//! Plans against counts by hand and by walking through accesses; orders in time.

mod plans;

use super::*;
use super::{Act, Done, Observer};
use crate::vliw::program::{Cost, Part};
use crate::vliw::spec::{AcceleratorSums, AcceleratorWork};
use crate::vliw::testing::{core, memory, power, shipped, with_sizes};
use config::units::{Bandwidth, Bytes, Duration, Energy, Power};
use engine::EventQueue;
use proto::offload::Action;
use std::{cell::RefCell, rc::Rc};

fn spec(cores: u16) -> CoprocessorSpec {
    CoprocessorSpec {
        cores,
        core: core(),
        memory: memory(),
        work: AcceleratorWork::nest,
        sums: AcceleratorSums::memory,
        sample: 1 << 14,
        parallel: ParallelSpec { one: 10_400, further: 2_443 },
        buffers: 1,
        launch: Duration::new(Time::from_us(20)),
        link: BulkLinkSpec {
            send: Bandwidth::new(800_000_000),
            receive: Bandwidth::new(1_000_000_000),
            latency: Duration::new(Time::from_ns(250)),
        },
        energy: Some(CoprocessorEnergySpec {
            worker: power(),
            memory_transfer: Energy::new(59),
            memory_on: Power::new(250),
            link_transfer: Energy::new(115),
            link_on: Power::new(178),
            chip_on: Power::new(1_732),
        }),
    }
}

/// Costs of a program's parts, as for a worker of an accelerator.
fn known(kernel: &Kernel, spec: &CoprocessorSpec) -> Program {
    let by = Costing { core: &spec.core, work: spec.work, sums: spec.sums, sample: spec.sample };
    Program::new(kernel.clone(), &by, spec.cores.into()).expect("a program")
}

fn cost(program: &Program, part: &Part, spec: &CoprocessorSpec) -> Cost {
    program.cost(part, true, &spec.core, &mut Vec::new())
}

engine::events! {
    enum World {
        /// Event of the coprocessor.
        Part(Event),
        /// Other event.
        Other(u32),
    }
}

/// Time, and when orders were done.
#[derive(Default)]
struct Outside {
    queue: EventQueue<World>,
    done: Vec<(u32, Time)>,
}

engine::context! {
    Outside: Cx<Event, Out>,
    queue: |at| at.queue,
    event: |_at, event| World::Part(event),
    out: |at, out| {
        let Out::Done(tag) = out;
        at.done.push((tag, at.queue.now()))
    },
}

/// Runs until nothing is left.
fn finish(part: &mut Coprocessor, outside: &mut Outside) {
    while let Some(World::Part(event)) = outside.queue.pop() {
        part.handle(event, outside);
    }
    assert_eq!(part.open(), 0);
}

/// Has orders done, each when the one before is; when each was.
fn one_after_another(part: &mut Coprocessor, orders: impl IntoIterator<Item = Order>) -> Vec<Time> {
    let mut outside = Outside::default();
    for (tag, order) in (0..).zip(orders) {
        part.order(tag, order, &mut outside);
        finish(part, &mut outside);
    }
    outside.done.iter().map(|(_, time)| *time).collect()
}

/// All that a plan says.
fn orders(plan: &Plan) -> Vec<Order> {
    let order = |action: &Action| match *action {
        Action::Load(stretch) => Order::Send { bytes: stretch.bytes },
        Action::Work(step) => Order::Work { program: plan.program, step },
        Action::Store(stretch) => Order::Receive { bytes: stretch.bytes },
    };
    plan.actions.iter().map(order).collect()
}

/// Runs an instance of each kernel, one after another.
fn run(spec: &CoprocessorSpec, kernels: &[Kernel]) -> (Coprocessor, Vec<Time>) {
    let mut part = Coprocessor::new(spec).expect("a coprocessor");
    let numbers: Vec<u32> = kernels.iter().map(|kernel| part.add(kernel.clone()).expect("it fits")).collect();
    let orders: Vec<Order> = numbers.iter().flat_map(|number| orders(part.plan(*number))).collect();
    let done = one_after_another(&mut part, orders);
    (part, done)
}

fn all(times: &[Time]) -> Time {
    times.iter().fold(Time::ZERO, |sum, time| sum + *time)
}

/// 4,000 B at 800 MB/s are 5 us, back at 1 GB/s 4 us, with 250 ns each way; a direction does one order after another, and directions do not wait for each other. Memory is faster,
/// unless it has only 400 MB/s: then all three share it.
#[test]
fn a_link_carries_one_order_after_another_each_way() {
    let times = |spec: &CoprocessorSpec| {
        let mut part = Coprocessor::new(spec).expect("a coprocessor");
        let mut outside = Outside::default();
        let (send, receive) = (Order::Send { bytes: 4_000 }, Order::Receive { bytes: 4_000 });
        (0..).zip([send, receive, send]).for_each(|(tag, order)| part.order(tag, order, &mut outside));
        finish(&mut part, &mut outside);
        (outside.done, part)
    };
    let ns = Time::from_ns;
    let (done, part) = times(&spec(8));
    assert_eq!(done, [(1, ns(4_500)), (0, ns(5_500)), (2, ns(10_500))]);
    assert_eq!(part.stats.sent, Orders { count: 2, bytes: 8_000, time: ns(16_000) });
    assert_eq!(part.stats.received, Orders { count: 1, bytes: 4_000, time: ns(4_500) });
    assert_eq!(part.link_busy(ns(20_000)), [ns(10_000), ns(4_000)]);
    assert_eq!((part.stats.memory_bytes, part.memory_busy()), (12_000, ns(1_875)));
    let mut slow = spec(8);
    slow.memory.bandwidth = Bandwidth::new(400_000_000);
    assert_eq!(times(&slow).0, [(0, ns(10_500)), (1, ns(20_500)), (2, ns(30_500))]);
}

/// On one core, without costs besides, a program computes as long as a worker has for its sections.
#[test]
fn one_core_computes_what_a_worker_would() {
    let mut spec = spec(1);
    spec.parallel = ParallelSpec { one: 0, further: 2_443 };
    spec.core.write_back = 0;
    spec.launch = Duration::new(Time::ZERO);
    spec.memory.bandwidth = Bandwidth::new(1_000_000_000_000);
    for (name, side) in [("atax", 512), ("gemm", 128), ("fdtd", 96), ("corr", 96)] {
        let kernel = shipped(name, side);
        let program = known(&kernel, &spec);
        let mut cycles = 0;
        for microblock in 0..program.microblocks() {
            let mut sections = Vec::new();
            let [screen] = program.screens(microblock, 1)[..] else { panic!("one screen") };
            program.sections(screen, 8 << 20, &mut sections).expect("few");
            for (at, section) in sections.iter().enumerate() {
                let Cost { issue, stall, .. } = program.cost(section, at == 0, &spec.core, &mut Vec::new());
                cycles += issue + stall;
            }
        }
        let (part, _) = run(&spec, &[kernel]);
        assert_eq!(part.stats.busy, [Time::from_ns(cycles)], "{name}");
        assert_eq!(
            (part.stats.computed.clone(), part.stats.executing),
            (part.stats.busy.clone(), all(&part.stats.busy))
        );
    }
}

/// ATAX has a microblock whose rows are dealt out, and a serial one. A step: the launch, the parallel loop at 10,400 + 7 x 2,443 cycles, the longest share with its caches' way back, and the interrupt.
#[test]
fn a_step_is_as_long_as_its_longest_share() {
    let spec = spec(8);
    let kernel = shipped("atax", 512);
    let program = known(&kernel, &spec);
    let (part, done) = run(&spec, &[kernel]);
    let works: Vec<usize> =
        (0..done.len()).filter(|at| matches!(part.plan(0).actions[*at], Action::Work(_))).collect();
    assert_eq!((works.len(), program.is_split(0), program.is_split(1)), (2, true, false));
    let lasts = |at: usize| done[at] - done[at - 1];
    let groups = |part: &Part| {
        let mut found = std::collections::BTreeSet::new();
        program.touches(part, |array, groups, _, _| found.extend(groups.map(|group| (array, group))));
        found.len() as u64
    };
    let takes = |part: &Part| {
        let cost = cost(&program, part, &spec);
        // 512 lines of 128 B a group, at most 4,096.
        Time::from_ns(cost.issue + cost.stall + (512 * groups(part)).min(4_096) * 65)
    };
    let shares = program.dealt(&program.screens(0, 1)[0], 8);
    assert_eq!(shares.len(), 8);
    let longest = shares.iter().map(&takes).max().expect("shares");
    assert_eq!(lasts(works[0]), Time::from_us(20) + Time::from_ns(27_501) + longest + Time::from_ns(250));
    let serial = takes(&program.screens(1, 1)[0]);
    assert_eq!(lasts(works[1]), Time::from_us(20) + serial + Time::from_ns(250));
    let share = |part: &Part| {
        let cost = cost(&program, part, &spec);
        Time::from_ns(cost.issue + cost.stall)
    };
    let mut busy: Vec<Time> = shares.iter().map(share).collect();
    busy[0] += share(&program.screens(1, 1)[0]);
    assert_eq!(part.stats.busy, busy);
    assert_eq!((part.stats.worked.count, part.stats.short), (2, 0));
    assert_eq!(part.stats.executing, lasts(works[0]) + lasts(works[1]) - Time::from_ns(2 * 20_250));
}

/// Memory with a byte in 10 ns is far too slow for any core of four: it is never idle, and the last is through when all bytes are.
#[test]
fn cores_share_the_memory() {
    let kernel = shipped("2dcon", 256);
    let mut spec = spec(4);
    spec.core.write_back = 0;
    let program = known(&kernel, &spec);
    let shares = program.dealt(&program.screens(0, 1)[0], 4);
    let costs: Vec<Cost> = shares.iter().map(|share| cost(&program, share, &spec)).collect();
    let bytes: u64 = costs.iter().map(|cost| cost.bytes).sum();
    assert!(costs.iter().all(|cost| 10 * cost.bytes > cost.issue + cost.stall));
    spec.memory.bandwidth = Bandwidth::new(100_000_000);
    let (part, _) = run(&spec, &[kernel]);
    let step = part.stats.executing - Time::from_ns(10_400 + 3 * 2_443);
    assert!((step.ps() as i64 - 10_000 * bytes as i64).abs() < 100, "{step} for {bytes} B");
    assert_eq!(part.stats.busy.iter().max(), Some(&step));
    let issues: Time = costs.iter().fold(Time::ZERO, |sum, cost| sum + Time::from_ns(cost.issue));
    assert_eq!(all(&part.stats.stalled), all(&part.stats.busy) - issues);
}

/// Steps that several programs order at once are executed one after another; each is launched when the one before is over.
#[test]
fn steps_wait_for_each_other() {
    let mut part = Coprocessor::new(&spec(2)).expect("a coprocessor");
    let number = part.add(shipped("mvt", 128)).expect("it fits");
    let alone = one_after_another(&mut part, [Order::Work { program: number, step: 0 }]);
    let mut outside = Outside::default();
    for tag in 0..3 {
        part.order(tag, Order::Work { program: number, step: 0 }, &mut outside);
    }
    assert_eq!(part.open(), 3);
    finish(&mut part, &mut outside);
    let each = alone[0] - Time::from_ns(250);
    let when = |tag: u32| (tag, each.times(u64::from(tag) + 1) + Time::from_ns(250));
    assert_eq!(outside.done, [when(0), when(1), when(2)]);
}

/// Each core is in one state all the time; memory costs what it has carried.
#[test]
fn energy_is_power_times_what_cores_have_done() {
    let spec = spec(3);
    let (part, done) = run(&spec, &[shipped("atax", 512), shipped("gemm", 128)]);
    let now = *done.last().expect("orders");
    let energy = part.energy(now).expect("it has a meter");
    assert!(energy.conserves());
    let busy = all(&part.stats.busy).ps();
    let of = |power: u64, ps: u64| u128::from(power) * u128::from(ps);
    let steps = 3 * part.stats.executing.ps();
    assert_eq!(energy.of("worker computes"), of(641, busy));
    assert_eq!(energy.of("worker waits"), of(209, steps - busy));
    assert_eq!(energy.of("worker idle"), of(88, 3 * now.ps() - steps));
    let on = ["memory on", "link on", "chip on"].map(|name| energy.of(name)).iter().sum::<u128>();
    assert_eq!(on, of(250 + 178 + 1_732, now.ps()));
    assert_eq!(energy.of("link transfer"), of(115, part.stats.sent.bytes + part.stats.received.bytes));
    assert_eq!(energy.of("memory transfer"), of(59, part.stats.memory_bytes));
    assert_eq!(part.stats.computed, part.stats.busy);
}

#[test]
fn what_cannot_be_built_is_refused() {
    let key = |change: fn(&mut CoprocessorSpec)| {
        let mut spec = spec(2);
        change(&mut spec);
        Coprocessor::new(&spec).err().map(|fault| fault.key)
    };
    assert_eq!(key(|spec| spec.memory.size = Bytes::from_kib(63)).as_deref(), Some("memory.size"));
    assert_eq!(key(|spec| spec.core.l2.line = Bytes::new(100)).as_deref(), Some("core.l2.line"));
    assert_eq!(key(|_| {}), None);
    // A row of 100,000 elements alone is more than two parts of 64 KiB.
    let mut small = spec(2);
    small.memory.size = Bytes::from_kib(64);
    let fault =
        Coprocessor::new(&small).expect("a coprocessor").add(shipped("mvt", 256)).expect_err("no room");
    assert!(fault.what.contains("memory has room for 1"), "{fault:?}");
}

// Reports to an observer, compared with the part's own counts.

/// Times by act, and the end of what was last on each track: cores, steps, and the link's directions.
#[derive(Default)]
struct Sums {
    shares: Vec<Time>,
    stalled: Vec<Time>,
    steps: Time,
    count: u64,
    link: [Time; 2],
    bytes: [u64; 2],
    last: Vec<Time>,
}

struct Watch(Rc<RefCell<Sums>>);

impl Observer for Watch {
    fn done(&mut self, done: &Done<'_>) {
        let (mut sums, took) = (self.0.borrow_mut(), done.to - done.from);
        let cores = sums.shares.len();
        let track = match done.act {
            Act::Share { core, stalled, program } => {
                assert!(["atax", "gemm"].contains(&program));
                sums.shares[usize::from(core)] += took;
                sums.stalled[usize::from(core)] += stalled;
                usize::from(core)
            }
            Act::Step { program, step } => {
                assert!(["atax", "gemm"].contains(&program) && u64::from(step) <= sums.count);
                sums.steps += took;
                sums.count += 1;
                cores
            }
            Act::Sends { bytes } => {
                sums.link[0] += took;
                sums.bytes[0] += bytes;
                cores + 1
            }
            Act::Receives { bytes } => {
                sums.link[1] += took;
                sums.bytes[1] += bytes;
                cores + 2
            }
        };
        assert!(sums.last[track] <= done.from, "twice at once on track {track}");
        sums.last[track] = done.to;
    }
}

#[test]
fn all_that_is_done_is_shown_once() {
    let spec = spec(3);
    let mut part = Coprocessor::new(&spec).expect("a coprocessor");
    let numbers =
        [("atax", 512), ("gemm", 128)].map(|(name, side)| part.add(shipped(name, side)).expect("it fits"));
    let sums = Rc::new(RefCell::new(Sums {
        shares: vec![Time::ZERO; 3],
        stalled: vec![Time::ZERO; 3],
        last: vec![Time::ZERO; 6],
        ..Sums::default()
    }));
    part.observer = Some(Box::new(Watch(Rc::clone(&sums))));
    let orders: Vec<Order> = numbers.iter().flat_map(|number| orders(part.plan(*number))).collect();
    let done = one_after_another(&mut part, orders);
    let (sums, stats) = (sums.borrow(), &part.stats);
    assert_eq!((&sums.shares, &sums.stalled), (&stats.computed, &stats.stalled));
    assert_eq!((sums.steps, sums.count), (stats.executing, stats.worked.count));
    assert_eq!(sums.link, part.link_busy(*done.last().expect("orders")));
    assert_eq!(sums.bytes, [stats.sent.bytes, stats.received.bytes]);
    assert!(sums.count > 2 && sums.bytes.iter().all(|bytes| *bytes > 0));
}
