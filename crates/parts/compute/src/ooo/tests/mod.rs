//! Cores alone, in front of a memory of fixed latencies.

mod exchange;
mod hand;

use super::sched::ThreadScheduling;
use super::*;
use config::{
    StatePower,
    units::{Duration, Frequency, Power},
};
use engine::{EventQueue, Recorder, Time};
use mem::cache::replace::ReplacementPolicy;
use proto::cpu::{Op, OpKind};
use std::collections::{BTreeMap, BTreeSet};

/// A core of 1 GHz, so that a cycle is a nanosecond: 4 wide, window 128, store buffer 32.
fn spec() -> CpuSpec {
    let l1 = L1Spec { sets: 256, ways: 4, replacement: ReplacementPolicy::lru, latency: 2, registers: 32 };
    CpuSpec {
        cores: 1,
        clock: Frequency::new(1_000_000_000),
        width: 4,
        window: 128,
        store_buffer: 32,
        ports: 2,
        flush: 10,
        quantum: Duration::new(Time::from_ns(100)),
        l1i: l1.clone(),
        l1d: l1,
        tlb: TlbSpec { entries: 48, ways: 48, misses: 8 },
        tables: TableSharing::shared,
        threads: ThreadsSpec {
            count: 4,
            switch: Duration::new(Time::from_ns(100)),
            pending: 4,
            miss: MissAction::switch,
            scheduler: ThreadScheduling::priority,
        },
        load: LoadSpec { jobs: 1, arrivals: Arrivals::closed },
        energy: None,
    }
}

fn op(kind: OpKind, count: u16, needs: [u16; 2], address: u64) -> Op {
    let width = if matches!(kind, OpKind::Load | OpKind::Store | OpKind::Atomic) { 8 } else { 0 };
    Op { kind, width, count, needs, pc: 0, address }
}

/// Every job executes the same operations, in pieces of so many.
struct Script {
    ops: Vec<Op>,
    piece: usize,
    at: BTreeMap<u32, usize>,
}

impl Script {
    fn new(ops: Vec<Op>) -> Script {
        Script { ops, piece: 64, at: BTreeMap::new() }
    }
}

impl Service for Script {
    fn footprint(&self) -> u64 {
        1 << 30
    }
    fn text(&self) -> u32 {
        64
    }
    fn start(&mut self, slot: u32, _job: u64) {
        self.at.insert(slot, 0);
    }
    fn step(&mut self, slot: u32, tape: &mut Vec<Op>) -> bool {
        let at = self.at.get_mut(&slot).expect("a running job");
        let end = (*at + self.piece).min(self.ops.len());
        tape.extend_from_slice(&self.ops[*at..end]);
        *at = end;
        end < self.ops.len()
    }
    fn save(&self, _out: &mut Vec<u8>) {}
    fn load(&mut self, _input: &mut &[u8]) -> Option<()> {
        Some(())
    }
}

engine::events! {
    enum Happening {
        Cores(Event),
        Answer(u32),
    }
}

/// The clock of cores and memory, and outputs of the cores.
#[derive(Default)]
struct Around {
    queue: EventQueue<Happening>,
    said: Vec<Out>,
}

engine::context! {
    Around: Cx<Event, Out>,
    queue: |me| me.queue,
    event: |_me, event| Happening::Cores(event),
    out: |me, out| {
        me.said.push(out);
    },
}

/// A memory that answers every line after 100 ns and every translation after 10 ns; pages in flash come after 50 us.
#[derive(Default)]
struct Memory {
    flash: BTreeSet<u64>,
    answers: Vec<Answer>,
}

#[derive(Clone, Copy)]
enum Answer {
    Line(Access),
    Page(Translation),
    Comes(u64),
}

impl Memory {
    fn in_flash(pages: impl IntoIterator<Item = u64>) -> Memory {
        Memory { flash: pages.into_iter().collect(), answers: Vec::new() }
    }

    fn answer(&mut self, after: Time, answer: Answer, around: &mut Around) {
        around.queue.after(after, Happening::Answer(self.answers.len() as u32));
        self.answers.push(answer);
    }

    fn take(&mut self, out: Out, around: &mut Around) {
        match out {
            Out::Access(mut access) => {
                let page = access.address / 4096;
                let mut after = Time::from_ns(100);
                if self.flash.contains(&page) {
                    let there = Time::from_us(50);
                    if access.absent != Absent::Probe {
                        self.answer(there, Answer::Comes(page), around);
                    }
                    match access.absent {
                        Absent::Signal | Absent::Probe => access.absent = Absent::Signalled,
                        _ => after = there,
                    }
                }
                // No other core has any line.
                access.kind = AccessKind::Own;
                self.answer(after, Answer::Line(access), around);
            }
            Out::Translate(mut translation) => {
                translation.frame = translation.page;
                self.answer(Time::from_ns(10), Answer::Page(translation), around);
            }
            Out::Probed(_) | Out::Dropped { .. } => {}
        }
    }
}

/// Runs to the end.
fn run(spec: &CpuSpec, service: &mut Script, memory: &mut Memory) -> (Cores, Time) {
    let mut cores = Cores::new(spec, 4096, 1).expect("sound");
    let mut around = Around::default();
    cores.begin(service, &mut around);
    loop {
        for out in std::mem::take(&mut around.said) {
            memory.take(out, &mut around);
        }
        match around.queue.pop() {
            None => break,
            Some(Happening::Cores(event)) => cores.handle(event, service, &mut around),
            Some(Happening::Answer(name)) => match memory.answers[name as usize] {
                Answer::Line(access) => cores.answer(access, service, &mut around),
                Answer::Page(translation) => cores.translated(translation, service, &mut around),
                Answer::Comes(page) => {
                    if memory.flash.remove(&page) {
                        cores.flash_response(Time::from_us(50), service, &mut around);
                        cores.arrived(page, service, &mut around);
                    }
                }
            },
        }
    }
    assert!(cores.is_done(), "work is left");
    let end = cores.over_at().expect("every job has ended");
    (cores, end)
}

fn cycles(ops: Vec<Op>) -> u64 {
    let (cores, end) = run(&spec(), &mut Script::new(ops), &mut Memory::default());
    assert_eq!(cores.stats().jobs, 1);
    end.ns()
}

/// The first line of text: a translation and a line.
const START: u64 = 10 + 2 + 100;

#[test]
fn independent_instructions_retire_as_many_a_cycle_as_the_width() {
    let many = |n: usize| cycles(vec![op(OpKind::Compute, 1, [0, 0], 0); n]);
    assert_eq!(many(8000) - many(4000), 1000);
    // In groups it is the same.
    let groups = |n: usize| cycles(vec![op(OpKind::Compute, 100, [0, 0], 0); n]);
    assert_eq!(groups(80) - groups(40), 1000);
    assert!(many(4) >= START && many(4) <= START + 4);
}

#[test]
fn a_chain_takes_a_cycle_an_instruction() {
    let ops = |n: usize| vec![op(OpKind::Compute, 1, [1, 0], 0); n];
    assert_eq!(cycles(ops(3000)) - cycles(ops(1000)), 2000);
    let chains = |n: usize| vec![op(OpKind::Chain, 250, [1, 0], 0); n];
    assert_eq!(cycles(chains(12)) - cycles(chains(4)), 2000);
}

#[test]
fn a_pointer_chase_pays_every_latency_and_independent_loads_overlap() {
    let line = |n: usize| n as u64 * 64;
    let chase =
        |n: usize| (0..n).map(|i| op(OpKind::Load, 1, [u16::from(i > 0), 0], line(i))).collect::<Vec<_>>();
    // A look-up that misses, then the line.
    assert_eq!(cycles(chase(50)) - cycles(chase(20)), 30 * 102);
    let free = |n: usize| (0..n).map(|i| op(OpKind::Load, 1, [0, 0], line(i))).collect::<Vec<_>>();
    // Two a cycle leave: the last of 32 is 15 cycles behind the first. There are 32 registers: the 33rd goes when the first comes back.
    let (few, more) = (cycles(free(32)), cycles(free(33)));
    assert!((START + 10 + 102 + 15..START + 10 + 102 + 20).contains(&few), "{few}");
    assert!((102 - 16..=102 - 12).contains(&(more - few)), "{few} {more}");
}

#[test]
fn the_window_bounds_what_overlaps() {
    let misses = |between: u16| {
        let ops = (0..40)
            .flat_map(|i| [op(OpKind::Load, 1, [0, 0], i * 64), op(OpKind::Compute, between, [0, 0], 0)]);
        cycles(ops.collect())
    };
    // 31 instructions between: four loads in a window of 128. 127: one, so that every line is waited for alone.
    let (four, one) = (misses(31), misses(127));
    let each = |total: u64| (total - START) as f64 / 40.0;
    assert!((102.0..135.0).contains(&each(one)), "{}", each(one));
    assert!((24.0..36.0).contains(&each(four)), "{}", each(four));
}

#[test]
fn stores_are_buffered_and_loads_take_their_values() {
    let ops = |n: u64| (0..n).map(|i| op(OpKind::Store, 1, [0, 0], i * 64)).collect::<Vec<_>>();
    // All fit into the buffer and the registers: the job ends when the lines are there.
    assert!(cycles(ops(20)) < START + 10 + 102 + 40);
    let mut both = ops(1);
    both.push(op(OpKind::Load, 1, [0, 0], 0));
    let (cores, _) = run(&spec(), &mut Script::new(both), &mut Memory::default());
    assert_eq!((cores.stats().requests, cores.stats().data_accesses), (2, 2));
}

#[test]
fn an_atomic_waits_for_what_is_older_and_holds_up_younger_loads() {
    let ops = vec![
        op(OpKind::Load, 1, [0, 0], 0),
        op(OpKind::Atomic, 1, [0, 0], 64),
        op(OpKind::Load, 1, [0, 0], 128),
    ];
    let total = cycles(ops);
    // Three lines one after another; their page is translated once.
    assert!((START + 10 + 3 * 102..START + 10 + 3 * 102 + 10).contains(&total), "{total}");
}

/// A job whose page is in flash is halted, another runs, and it goes on when the page has come.
#[test]
fn a_page_in_flash_switches_threads() {
    let mut spec = spec();
    spec.load.jobs = 2;
    (spec.threads.count, spec.threads.pending) = (2, 2);
    spec.threads.scheduler = ThreadScheduling::notified;
    let ops = vec![op(OpKind::Load, 1, [0, 0], 8192), op(OpKind::Chain, 1000, [1, 0], 0)];
    let mut memory = Memory::in_flash([2]);
    let (cores, end) = run(&spec, &mut Script::new(ops), &mut memory);
    let stats = cores.stats();
    // The second job finds its page missing as well. No other thread exists: the core waits for the first.
    assert_eq!((stats.jobs, stats.halts, stats.signals, stats.store_halts, stats.crowded), (2, 2, 2, 0, 1));
    // The page, one job of 1000 cycles after the other.
    assert!(end > Time::from_ns(50_000 + 2000) && end < Time::from_ns(50_000 + 3500), "{end}");
    let spent = stats.spent;
    // Every slot from the beginning to the end of the last job is spent for something.
    let total: u64 = spent.iter().sum();
    assert!((end.ns() * 4 - 3..=end.ns() * 4).contains(&total), "{total}");
    assert_eq!(spent[Spent::Flush as usize], 2 * 10 * 4);
    // To the second job, back to the first, and to the second again.
    assert_eq!(spent[Spent::Switch as usize], 3 * 100 * 4);
    assert!(spent[Spent::Resume as usize] > 49_000 * 4);
}

/// Under Flash-Sync, the core waits.
#[test]
fn a_core_that_waits_for_flash_pays_it_as_latency() {
    let mut spec = spec();
    spec.threads.miss = MissAction::wait;
    let ops = vec![op(OpKind::Load, 1, [0, 0], 8192), op(OpKind::Chain, 1000, [1, 0], 0)];
    let mut memory = Memory::in_flash([2]);
    let (cores, end) = run(&spec, &mut Script::new(ops), &mut memory);
    assert_eq!((cores.stats().halts, cores.stats().signals), (0, 0));
    let expected = START + 10 + 2 + 50_000 + 1000;
    assert!((expected..expected + 8).contains(&end.ns()), "{end}");
}

/// Four pages, two by loads with a second line of the first, and two by stores, which go to memory when they have retired: both
/// loads wait together and then both stores, or every page waits for the one before.
#[test]
fn a_core_may_wait_for_one_page_at_a_time() {
    let ops = || {
        let load = |address| op(OpKind::Load, 1, [0, 0], address);
        let store = |address| op(OpKind::Store, 1, [0, 0], address);
        vec![load(2 * 4096), load(3 * 4096), load(2 * 4096 + 640), store(4 * 4096), store(5 * 4096)]
    };
    for (miss, pages) in [(MissAction::wait, 2), (MissAction::serial, 4)] {
        let mut spec = spec();
        spec.threads.miss = miss;
        let (cores, end) = run(&spec, &mut Script::new(ops()), &mut Memory::in_flash([2, 3, 4, 5]));
        assert_eq!((cores.stats().halts, cores.stats().jobs), (0, 1));
        // Each page that is not awaited yet has told so within the time of a line, and is asked for again after its turn.
        let least = pages * 50_000;
        assert!((least..least + 1500).contains(&end.ns()), "{miss:?}: {end}");
    }
    // Without flash they are the same.
    let alone = |miss| {
        let mut spec = spec();
        spec.threads.miss = miss;
        run(&spec, &mut Script::new(ops()), &mut Memory::default()).1
    };
    assert_eq!(alone(MissAction::serial), alone(MissAction::wait));
}

/// A store has retired when its page turns out to be in flash: its thread goes back to it, with what has retired behind it.
#[test]
fn a_retired_store_whose_page_is_in_flash_is_undone() {
    let mut spec = spec();
    (spec.threads.count, spec.threads.pending) = (1, 1);
    let mut ops = vec![op(OpKind::Store, 1, [0, 0], 8192)];
    ops.extend(vec![op(OpKind::Compute, 1, [0, 0], 0); 300]);
    let mut memory = Memory::in_flash([2]);
    let (cores, end) = run(&spec, &mut Script::new(ops), &mut memory);
    let stats = cores.stats();
    assert_eq!((stats.jobs, stats.halts, stats.store_halts), (1, 1, 1));
    // The job has run to its end long before the signal: all of it is executed again.
    assert_eq!((stats.repeated, stats.instructions), (301, 602));
    assert!(end > Time::from_us(50));
}

/// With the forward-progress bit the thread's access is completed even if the page has gone again meanwhile.
#[test]
fn a_resumed_thread_completes_its_access() {
    let mut spec = spec();
    spec.threads.count = 1;
    spec.threads.pending = 1;
    let ops = vec![op(OpKind::Load, 1, [0, 0], 8192)];
    let mut memory = Memory::in_flash([2]);
    // One thread, and one halted job is as many as there may be: the core goes back to it at once, and waits.
    let (cores, end) = run(&spec, &mut Script::new(ops), &mut memory);
    let stats = cores.stats();
    assert_eq!((stats.halts, stats.crowded, stats.jobs), (1, 1, 1));
    assert!(stats.spent[Spent::Resume as usize] > 49_000 * 4);
    assert!(end > Time::from_us(50) && end < Time::from_us(51));
}

#[test]
fn poisson_arrivals_find_a_sleeping_core() {
    let mut spec = spec();
    spec.load = LoadSpec {
        jobs: 2000,
        arrivals: Arrivals::poisson(Poisson { interval: Duration::new(Time::from_us(10)) }),
    };
    let ops = vec![op(OpKind::Chain, 5000, [0, 0], 0)];
    let (cores, end) = run(&spec, &mut Script::new(ops), &mut Memory::default());
    let stats = cores.stats();
    // M/D/1 at half load: the mean wait is half a service time. 2,000 jobs: within a few percent.
    let service = stats.service.whole().mean().expect("jobs") / 1e6;
    let latency = stats.latency.whole().mean().expect("jobs") / 1e6;
    assert!((5.0..5.01).contains(&service), "{service}");
    assert!((7.0..8.0).contains(&latency), "{latency}");
    let busy = 1.0 - stats.spent[Spent::Idle as usize] as f64 / (4.0 * end.ns() as f64);
    assert!((0.47..0.53).contains(&busy), "{busy}");
}

#[test]
fn many_jobs_are_the_same_whatever_the_quantum_within_it() {
    let total = |quantum: u64| {
        let mut spec = spec();
        spec.load.jobs = 50;
        spec.quantum = Duration::new(Time::from_ns(quantum));
        let ops = (0..200u64)
            .map(|i| op(OpKind::Load, 1, [u16::from(i % 3 == 0), 0], i * 4096 % (1 << 22)))
            .collect();
        run(&spec, &mut Script::new(ops), &mut Memory::default()).1.ns()
    };
    let (fine, coarse) = (total(10), total(1000));
    assert!(fine.abs_diff(coarse) < fine / 100, "{fine} {coarse}");
}

#[test]
fn a_probe_takes_a_line_and_says_whether_it_was_changed() {
    let mut cores = Cores::new(&spec(), 4096, 1).expect("sound");
    let mut cx: Recorder<Event, Out> = Recorder::default();
    cores.cores[0].l1d.fill(5, l1::Held::Modified);
    let probe = |invalidate| Probe { tag: 1, core: 0, tile: 3, address: 320, invalidate };
    for (invalidate, found, dirty) in
        [(false, true, true), (false, true, false), (true, true, false), (true, false, false)]
    {
        cores.probe(probe(invalidate), &mut cx);
        let expected = Probed { probe: probe(invalidate), found, dirty };
        assert_eq!(cx.sent.pop().expect("an answer").1, Out::Probed(expected));
    }
}

#[test]
fn what_cannot_be_built_is_said() {
    let fault = |change: fn(&mut CpuSpec)| {
        let mut spec = spec();
        change(&mut spec);
        Cores::new(&spec, 4096, 1).err().expect("unsound").key
    };
    assert_eq!(fault(|s| s.cores = 65), "cores");
    assert_eq!(fault(|s| s.threads.count = 0), "threads.count");
    assert_eq!(fault(|s| s.threads.pending = 0), "threads.pending");
    assert_eq!(fault(|s| s.threads.pending = 5), "threads.pending");
    assert_eq!(fault(|s| s.threads.count = 5000), "threads.count");
    assert_eq!(fault(|s| s.l1d.registers = 65), "l1d.registers");
    assert_eq!(fault(|s| s.tlb.ways = 5), "tlb.ways");
    let every = |ps| Arrivals::poisson(Poisson { interval: Duration::new(Time::from_ps(ps)) });
    for ps in [0, 1, 999] {
        let mut spec = spec();
        spec.load.arrivals = every(ps);
        let error = Cores::new(&spec, 4096, 1).err().expect("unsound");
        assert_eq!(error.key, "load.arrivals.poisson.interval");
    }
}

// Energy, against the slots that cores count.

/// Two cores of 3 W at work and 1 W else, 7 W beside them, at half load: a core is at work in all slots but those that are idle.
#[test]
fn cores_cost_more_while_they_have_something_to_run() {
    let watts = |watts: u64| Power::new(watts * 1_000_000);
    let mut spec = spec();
    spec.cores = 2;
    spec.energy =
        Some(CpuEnergySpec { core: StatePower { idle: watts(1), busy: watts(3) }, chip_on: watts(7) });
    spec.load = LoadSpec {
        jobs: 300,
        arrivals: Arrivals::poisson(Poisson { interval: Duration::new(Time::from_us(10)) }),
    };
    let ops = || Script::new(vec![op(OpKind::Chain, 5000, [0, 0], 0)]);
    let (cores, end) = run(&spec, &mut ops(), &mut Memory::default());
    let energy = cores.energy(end).expect("it has a meter");
    assert!(energy.conserves());
    // A watt for a nanosecond is a nanojoule; a cycle has four slots.
    let idle = cores.stats().spent[Spent::Idle as usize] as f64 / 4.0;
    let nanojoules = |name| energy.of(name) as f64 / 1e9;
    assert_eq!(
        (nanojoules("cores on"), nanojoules("chip on")),
        (2.0 * end.ns() as f64, 7.0 * end.ns() as f64)
    );
    let expected = 2.0 * (2.0 * end.ns() as f64 - idle);
    assert!(idle > 0.0 && (nanojoules("core at work") - expected).abs() < 1.0, "{energy:?}");
    let without = run(&CpuSpec { energy: None, ..spec }, &mut ops(), &mut Memory::default());
    assert_eq!((without.1, without.0.energy(end)), (end, None));
}
