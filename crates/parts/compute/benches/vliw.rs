//! What an accelerator and a coprocessor cost, in nanoseconds of CPU time, each beside something plain that is measured in turn.
//!
//! * A section of an accelerator whose flash answers after fixed times, and a step of a coprocessor: beside as many events of an event queue that have no effect.
//! * What a nest counts in a piece: beside an addition for each row that the piece has. Counts do not grow with rows.
//! * An access that is followed through sampled caches: beside the walk through the same accesses.
//!
//! `cargo bench -p nandscape-compute --bench vliw`; words behind `--` choose rows by their names.

use compute::vliw::accelerator::{Accelerator, Event, Out};
use compute::vliw::coprocessor::{self, BulkLinkSpec, Coprocessor, CoprocessorSpec, ParallelSpec};
use compute::vliw::memory::Caches;
use compute::vliw::sched::AcceleratorScheduling;
use compute::vliw::{
    AcceleratorMemory, AcceleratorSpec, AcceleratorSums, AcceleratorWork, CacheSpec, CoreSpec, ExpansionSpec,
    FirmwareSpec, LatencySpec, UnitsSpec,
};
use config::units::{Bandwidth, Bytes, Duration, Frequency};
use cpu_time::ThreadTime;
use engine::{EventQueue, Time};
use nest::{Kernel, Piece};
use proto::groups::{Ask, Tell};
use proto::offload::{Action, Order};
use std::hint::black_box;

const ROUNDS: usize = 5;

fn cache(kib: u64, ways: u32, line: u64, miss: u32) -> CacheSpec {
    CacheSpec { size: Bytes::from_kib(kib), ways, line: Bytes::new(line), miss }
}

/// A C66x core at 1 GHz.
fn core() -> CoreSpec {
    CoreSpec {
        clock: Frequency::new(1_000_000_000),
        units: UnitsSpec { multiply: 2, general: 4, memory: 2 },
        latency: LatencySpec {
            load: 5,
            store: 1,
            add: 3,
            multiply: 4,
            compare: 1,
            divide: 27,
            square_root: 27,
        },
        divide: ExpansionSpec { multiply: 5, general: 7 },
        square_root: ExpansionSpec { multiply: 7, general: 5 },
        l1: cache(32, 2, 64, 8),
        l2: cache(512, 4, 128, 85),
        prefetch: None,
        write_back: 65,
    }
}

fn memory(mib: u64) -> AcceleratorMemory {
    AcceleratorMemory { size: Bytes::from_kib(mib << 10), bandwidth: Bandwidth::new(6_400_000_000) }
}

/// A shipped program with all its sizes so large.
fn shipped(name: &str, side: i64) -> Kernel {
    let (_, text) = nest::programs().iter().find(|(known, _)| *known == name).expect("a program");
    let whole = Kernel::read(text, name, &[]).expect("a program");
    let sizes: Vec<_> = whole.sizes().iter().map(|(size, _)| (size.clone(), side)).collect();
    Kernel::read(text, name, &sizes).expect("sizes")
}

/// Time of a round: nanoseconds per unit of work, and events if any.
struct Round {
    ns: f64,
    units: u64,
    events: u64,
}

fn timed(work: impl FnOnce() -> (u64, u64)) -> Round {
    let start = ThreadTime::now();
    let (units, events) = work();
    Round { ns: start.elapsed().as_nanos() as f64, units, events }
}

/// As many events, each scheduled by the one before, with as many pending as there are cores.
fn queue_alone(events: u64) -> Round {
    let mut queue = EventQueue::<u32>::new();
    for n in 0..8 {
        queue.after(Time::from_ns(100 + u64::from(n)), n);
    }
    timed(|| {
        for _ in 0..events {
            let Some(who) = queue.pop() else { break };
            queue.after(Time::from_ns(1_000 + u64::from(who)), black_box(who));
        }
        (1, events)
    })
}

engine::events! {
    enum World {
        /// Event of the accelerator.
        Part(Event),
        /// Flash answers.
        Tells(u32),
    }
}

/// Time, and flash that answers after fixed times.
#[derive(Default)]
struct Outside {
    queue: EventQueue<World>,
    answers: Vec<Tell>,
}

impl Outside {
    fn take(&mut self, out: Out) {
        let (delay, tell) = match out {
            Out::Ask(Ask::Lock { tag, .. }) => (Time::ZERO, Tell::Locked { tag }),
            Out::Ask(Ask::Read { tag, .. }) => (Time::from_us(100), Tell::Done { tag, failed: 0 }),
            Out::Ask(Ask::Write { tag, .. }) => (Time::from_ms(2), Tell::Done { tag, failed: 0 }),
            _ => return,
        };
        self.answers.push(tell);
        self.queue.after(delay, World::Tells(self.answers.len() as u32 - 1));
    }
}

engine::context! {
    Outside: Cx<Event, Out>,
    queue: |at| at.queue,
    event: |_at, event| World::Part(event),
    out: |at, out| at.take(out),
}

/// Four instances of a product on six workers, whose memory holds a part of it; by section.
fn sections() -> Round {
    let spec = AcceleratorSpec {
        workers: 6,
        core: core(),
        memory: memory(8),
        work: AcceleratorWork::nest,
        sums: AcceleratorSums::memory,
        scheduler: AcceleratorScheduling::intra_out_of_order,
        ahead: 1,
        costs: FirmwareSpec {
            message: 100,
            schedule: 500,
            entry: 100,
            boot: Duration::new(Time::from_us(10)),
        },
        sample: 1 << 14,
        energy: None,
    };
    let mut part = Accelerator::new(&spec, 1 << 16).expect("an accelerator");
    let program = part.add(shipped("mvt", 4_096)).expect("it fits");
    let mut outside = Outside::default();
    for _ in 0..4 {
        let number = part.instance(program, 0).expect("it fits");
        part.offload(number, Time::ZERO, &mut outside);
    }
    timed(|| {
        let mut events = 0;
        while let Some(event) = outside.queue.pop() {
            events += 1;
            match event {
                World::Part(event) => part.handle(event, &mut outside),
                World::Tells(at) => part.told(outside.answers[at as usize], &mut outside),
            }
        }
        (part.stats.sections, events)
    })
}

engine::events! {
    enum Alone {
        /// Event of the coprocessor.
        Part(coprocessor::Event),
        /// Event of the other side.
        Other(u32),
    }
}

/// Time, and how many orders are done.
#[derive(Default)]
struct Host {
    queue: EventQueue<Alone>,
    done: u64,
}

engine::context! {
    Host: Cx<coprocessor::Event, coprocessor::Out>,
    queue: |at| at.queue,
    event: |_at, event| Alone::Part(event),
    out: |at, _out| at.done += 1,
}

/// A product's steps on eight cores, again and again; by step.
fn steps() -> Round {
    const TIMES: u32 = 2_000;
    let spec = CoprocessorSpec {
        cores: 8,
        core: core(),
        memory: memory(8),
        work: AcceleratorWork::nest,
        sums: AcceleratorSums::memory,
        sample: 1 << 14,
        parallel: ParallelSpec { one: 10_400, further: 2_443 },
        buffers: 1,
        launch: Duration::new(Time::from_us(20)),
        link: BulkLinkSpec {
            send: Bandwidth::new(814_000_000),
            receive: Bandwidth::new(875_000_000),
            latency: Duration::new(Time::from_ns(250)),
        },
        energy: None,
    };
    let mut part = Coprocessor::new(&spec).expect("a coprocessor");
    let program = part.add(shipped("mvt", 512)).expect("it fits");
    let is_step = |action: &&Action| matches!(action, Action::Work(_));
    let steps = part.plan(program).actions.iter().filter(is_step).count() as u32;
    let mut host = Host::default();
    timed(|| {
        let mut events = 0;
        for step in (0..TIMES).flat_map(|_| 0..steps) {
            part.order(step, Order::Work { program, step }, &mut host);
            while let Some(Alone::Part(event)) = host.queue.pop() {
                events += 1;
                part.handle(event, &mut host);
            }
        }
        (host.done, events)
    })
}

/// A product that is blocked twice, and the part of it that a worker has.
fn product() -> (Kernel, Piece) {
    let (_, text) = nest::programs().iter().find(|(known, _)| *known == "gemm").expect("a program");
    let kernel = Kernel::read(text, "gemm", &[]).expect("a program");
    let screen = kernel.screens(0, 6).next().expect("screens");
    (kernel, screen)
}

fn counts() -> Round {
    const TIMES: u64 = 100_000;
    let (kernel, screen) = product();
    timed(|| {
        for _ in 0..TIMES {
            black_box(kernel.counts(black_box(&screen)));
        }
        (TIMES, 0)
    })
}

/// An addition for each row that this worker has.
fn additions() -> Round {
    const TIMES: u64 = 10_000;
    const ROWS: u64 = 4_096 / 6;
    timed(|| {
        for _ in 0..TIMES {
            black_box((0..ROWS).fold(0_u64, |sum, row| black_box(sum + row)));
        }
        (TIMES, 0)
    })
}

/// Number of rows of the multiplied matrices.
const SIDE: i64 = 96;

fn followed() -> Round {
    let kernel = shipped("gemm", SIDE);
    let spec = core();
    let mut caches = Caches::new(&spec.l1, &spec.l2).expect("caches");
    timed(|| {
        let mut accesses = 0;
        kernel.accesses(&Piece::whole(0), &mut |access| {
            accesses += 1;
            black_box(caches.access((access.array as u64) << 24 | access.byte, access.write));
        });
        (accesses, 0)
    })
}

fn walked() -> Round {
    let kernel = shipped("gemm", SIDE);
    timed(|| {
        let mut accesses = 0;
        kernel.accesses(&Piece::whole(0), &mut |access| {
            accesses += 1;
            black_box((access.array as u64) << 24 | access.byte);
        });
        (accesses, 0)
    })
}

/// Measurement and its reference: by default, an event queue with as many events.
struct Row {
    name: &'static str,
    work: fn() -> Round,
    beside: Option<fn() -> Round>,
}

const ROWS: [Row; 4] = [
    Row { name: "a section of an accelerator", work: sections, beside: None },
    Row { name: "a step of a coprocessor", work: steps, beside: None },
    Row { name: "what a nest counts in a piece", work: counts, beside: Some(additions) },
    Row { name: "an access through caches", work: followed, beside: Some(walked) },
];

fn main() {
    println!("{:<32} {:>10} {:>10} {:>10} {:>8}", "", "ns", "events", "beside", "ratio");
    let only: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    for row in ROWS.iter().filter(|row| only.iter().all(|word| row.name.contains(word))) {
        let (mut best, mut least, mut events) = (f64::INFINITY, f64::INFINITY, 0.0);
        // In turn: what else the machine does meets both.
        for _ in 0..ROUNDS {
            let found = (row.work)();
            let units = found.units as f64;
            best = best.min(found.ns / units);
            events = found.events as f64 / units;
            least = least.min(match row.beside {
                Some(plain) => {
                    let plain = plain();
                    plain.ns / plain.units as f64
                }
                None => queue_alone(found.events).ns / units,
            });
        }
        println!("{:<32} {best:>10.1} {events:>10.1} {least:>10.1} {:>8.1}", row.name, best / least);
    }
}
