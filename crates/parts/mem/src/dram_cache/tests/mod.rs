//! A DRAM cache alone, with a flash device of given latencies behind it.

mod latency;
mod misses;
mod random;

use super::admit::PageAdmission;
use super::*;
use crate::cache::replace::ReplacementPolicy;
use crate::dram::sched::DramScheduler;
use crate::dram::{DramBanksSpec, DramBusSpec, DramSpec, DramTimingSpec};
use config::units::{Bytes, Duration, Frequency, TransferRate};
use engine::EventQueue;
use proptest::prelude::*;
use proto::memory::{Absent, CPU_LINE, LINE, PAGE};
use proto::{IoOp, Status};
use random::{any_cache, any_traffic, command};
use std::collections::BTreeMap;

engine::events! {
    enum Ev {
        Cache(Event),
        Arrive(u32),
        Flash(u32),
        Backed(u32),
    }
}

struct Bench {
    cache: DramCache,
    outside: Outside,
}

struct Outside {
    queue: EventQueue<Ev>,
    commands: Vec<MemCommand>,
    /// Completed commands, in order.
    done: Vec<(Time, MemCommand)>,
    arrived: Vec<(Time, u64, Time)>,
    /// Commands sent to the device, in order, and their durations there: these in turn.
    submitted: Vec<(Time, Command)>,
    latencies: Vec<Time>,
    /// Commands and durations of a memory behind the cache.
    asked: Vec<(Time, MemCommand)>,
}

engine::context! {
    Outside: Cx<Event, Out>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Cache(event),
    out: |me, out| {
        let now = me.queue.now();
        match out {
            Out::Done(command) => me.done.push((now, command)),
            Out::Arrived { page, response } => me.arrived.push((now, page, response)),
            Out::Submit(command) => {
                assert!(
                    command.tag < 1 << 31 && command.bytes == PAGE && command.offset.is_multiple_of(PAGE)
                );
                let number = me.submitted.len();
                let latency = me.latencies[number % me.latencies.len()];
                me.submitted.push((now, command));
                me.queue.after(latency, Ev::Flash(number as u32));
            }
            Out::Backing(command) => {
                let number = me.asked.len();
                let latency = me.latencies[number % me.latencies.len()];
                me.asked.push((now, command));
                me.queue.after(latency, Ev::Backed(number as u32));
            }
        }
    },
}

impl Bench {
    /// With a server's lines.
    fn new(spec: &DramCacheSpec) -> Bench {
        Bench::of_lines(spec, CPU_LINE)
    }

    fn of_lines(spec: &DramCacheSpec, line: u64) -> Bench {
        let outside = Outside {
            queue: EventQueue::new(),
            commands: Vec::new(),
            done: Vec::new(),
            arrived: Vec::new(),
            submitted: Vec::new(),
            latencies: vec![Time::from_us(50)],
            asked: Vec::new(),
        };
        Bench { cache: DramCache::new(spec, line).expect("can be built"), outside }
    }

    /// Sends a command at `at`; it is identified by its number in the order of these calls.
    fn at(&mut self, at: Time, command: MemCommand) {
        let number = self.outside.commands.len() as u32;
        self.outside.commands.push(MemCommand { tag: number, since: at, ..command });
        self.outside.queue.after(at.since(self.outside.queue.now()), Ev::Arrive(number));
    }

    /// Runs until no event is left; returns each command as it came back, and when.
    fn run(&mut self) -> Vec<(Time, MemCommand)> {
        let Bench { cache, outside } = self;
        while let Some(event) = outside.queue.pop() {
            match event {
                Ev::Cache(event) => cache.handle(event, outside),
                Ev::Arrive(number) => cache.command(outside.commands[number as usize], outside),
                Ev::Backed(number) => {
                    let command = outside.asked[number as usize].1;
                    cache.backed(MemCommand { since: outside.queue.now(), ..command }, outside);
                }
                Ev::Flash(number) => {
                    let tag = outside.submitted[number as usize].1.tag;
                    cache.completed(
                        Completion {
                            tag,
                            to: proto::Port::default(),
                            status: Status::Success,
                            errors: 0,
                            buffer: proto::BufferState::Unknown,
                        },
                        outside,
                    );
                }
            }
        }
        assert_eq!(cache.outstanding(), 0, "something is left");
        assert_eq!(outside.done.len(), outside.commands.len(), "commands are lost or doubled");
        let mut done = outside.done.clone();
        done.sort_by_key(|(_, command)| command.tag);
        for ((at, answer), command) in done.iter().zip(&outside.commands) {
            let expected = MemCommand { absent: answer.absent, since: *at, ..*command };
            assert_eq!(*answer, expected, "a command comes back as it was");
        }
        done
    }

    /// Completion time of each command.
    fn ends(&mut self) -> Vec<Time> {
        self.run().into_iter().map(|(at, _)| at).collect()
    }
}

fn ns(ns: u64) -> Duration {
    Duration::new(Time::from_ns(ns))
}

fn ps(ps: u64) -> Duration {
    Duration::new(Time::from_ps(ps))
}

/// AstriFlash's Table I: RAS of 55 cycles of 2 GHz, half of them to close the old row; CAS of 3 cycles for every 8 B.
fn table_1() -> DramCacheSpec {
    let row = Bytes::new(4 * PAGE + 64);
    DramCacheSpec {
        sets: 128 << 10,
        ways: 4,
        replacement: ReplacementPolicy::lru,
        admission: PageAdmission::always,
        frontside: FrontsideSpec { clock: Frequency::new(2_000_000_000), command: 1, queue: 16 },
        backside: BacksideSpec { clock: Frequency::new(2_000_000_000), command: 3, burst: 1 },
        misses: MissSpec { sets: 256, ways: 8 },
        evict_buffer: 64,
        partition: Partition::flat,
        backing: Backing::fixed(Fixed::default()),
        dram: DramSpec {
            controllers: 4,
            interleave: row,
            latency: ns(0),
            bus: DramBusSpec { width: 64, rate: TransferRate::new(666_666_667), burst: 8 },
            banks: DramBanksSpec { count: 16, row, hash: false },
            timing: DramTimingSpec {
                rcd: ps(13_750),
                cl: ns(0),
                cwl: ns(0),
                rp: ps(13_750),
                ras: ns(0),
                ccd: ns(12),
                rrd: ns(0),
                faw: ns(0),
                wr: ns(0),
                wtr: ns(0),
                rtp: ns(0),
                turnaround: ns(0),
            },
            refresh: None,
            scheduler: DramScheduler::fr_fcfs(crate::dram::sched::fr_fcfs::Params::default()),
            energy: None,
        },
    }
}

/// Same cache with one controller, few sets, and a flash device behind.
fn small(sets: u32, ways: u32) -> DramCacheSpec {
    let mut spec = DramCacheSpec { sets, ways, backing: Backing::device, ..table_1() };
    let row = Bytes::new(u64::from(ways) * PAGE + 64);
    (spec.dram.controllers, spec.dram.interleave, spec.dram.banks.row) = (1, row, row);
    spec.misses.sets = 16;
    spec
}

/// A command for the first line of a page.
fn line(page: u64, write: bool, absent: Absent) -> MemCommand {
    MemCommand {
        from: proto::Port::default(),
        tag: 0,
        page: page * PAGE,
        lines: 1,
        write,
        demand: true,
        app: 0,
        port: 3,
        pc: 7,
        absent,
        since: Time::ZERO,
    }
}

fn read(page: u64) -> MemCommand {
    line(page, false, Absent::Wait)
}

fn signal(page: u64) -> MemCommand {
    line(page, false, Absent::Signal)
}

fn write(page: u64) -> MemCommand {
    line(page, true, Absent::Wait)
}

// Order of evictions, compared with lists.

const PAGES: u64 = 24;

/// Least recently used: a list for each set, the next to go in front.
struct Naive {
    sets: Vec<Vec<u64>>,
    ways: usize,
}

impl Naive {
    fn access(&mut self, page: u64) {
        let number = (page % self.sets.len() as u64) as usize;
        let set = &mut self.sets[number];
        if let Some(at) = set.iter().position(|other| *other == page) {
            set.remove(at);
        } else if set.len() == self.ways {
            set.remove(0);
        }
        set.push(page);
    }

    fn pages(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.sets.iter().flatten().copied().collect();
        pages.sort_unstable();
        pages
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// With one access after another the cache holds what lists say, whether the first of them took time or not.
    #[test]
    fn the_least_recently_used_page_goes(
        sets in 1u32..4,
        ways in 1u32..5,
        warm in 0usize..40,
        accesses in proptest::collection::vec((0..PAGES, any::<bool>()), 1..60),
    ) {
        let mut bench = Bench::new(&small(sets, ways));
        bench.outside.latencies = vec![Time::from_us(5)];
        let mut naive = Naive { sets: vec![Vec::new(); sets as usize], ways: ways as usize };
        for (number, (page, write)) in (0..).zip(&accesses) {
            if number < warm {
                bench.cache.warm(page * PAGE, *write);
            } else {
                let at = bench.outside.queue.now() + Time::from_us(1);
                bench.at(at, line(*page, *write, Absent::Wait));
                bench.run();
            }
            naive.access(*page);
            let here: Vec<u64> = (0..PAGES).filter(|page| bench.cache.is_cached(page * PAGE)).collect();
            prop_assert_eq!(here, naive.pages());
        }
    }
}

// Naive model of the location of data, with a version for every page.

/// Replays all data moves: no access reads an old version, and none is lost. A page is in the cache, in the evict
/// buffer, or in flight; only data that flash has not taken yet may have come back from the buffer meanwhile.
fn replay(bench: &Bench) {
    let (mut cache, mut buffer, mut coming) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let (mut flash, mut newest) = (BTreeMap::<u64, u32>::new(), BTreeMap::<u64, u32>::new());
    let of = |versions: &BTreeMap<u64, u32>, page: u64| versions.get(&page).copied().unwrap_or(0);
    for (number, step) in (1..).zip(&bench.cache.moves) {
        match *step {
            Move::Warm(page, write, gone) => {
                // Without time: what goes is in flash at once.
                if let Some(gone) = gone {
                    flash.insert(gone, cache.remove(&gone).expect("what goes is here"));
                }
                let version = cache.entry(page).or_insert_with(|| of(&flash, page));
                if write {
                    *version = number;
                    newest.insert(page, number);
                }
            }
            Move::Serve(command) => {
                let version = cache.get_mut(&command.page).expect("it is here");
                assert_eq!(*version, of(&newest, command.page), "an old version: {command:?}");
                if command.write {
                    *version = number;
                    newest.insert(command.page, number);
                }
            }
            Move::Evict(page) => {
                let version = cache.remove(&page).expect("an evicted page is in the cache");
                assert_eq!(buffer.insert(page, version), None, "two versions leave");
            }
            Move::Ask(page) => {
                assert!(!cache.contains_key(&page) && !buffer.contains_key(&page));
                assert_eq!(coming.insert(page, of(&flash, page)), None);
            }
            Move::Reclaim(page) => {
                assert!(!cache.contains_key(&page));
                assert_eq!(coming.insert(page, buffer[&page]), None);
            }
            Move::Gone(page, written) => {
                let version = buffer.remove(&page).expect("it was there");
                if written {
                    flash.insert(page, version);
                } else {
                    assert_eq!(version, of(&flash, page), "a change is lost");
                }
            }
            Move::Pass(command) => {
                assert!(!command.write && !cache.contains_key(&command.page));
                assert_eq!(coming[&command.page], of(&newest, command.page), "an old version: {command:?}");
            }
            Move::Bypass(page) => {
                assert!(coming.remove(&page).is_some() && !cache.contains_key(&page));
            }
            Move::Install(page) => {
                let version = coming.remove(&page).expect("it was on its way");
                assert_eq!(cache.insert(page, version), None, "it is here twice");
            }
        }
    }
    assert!(buffer.is_empty() && coming.is_empty());
    for (page, version) in newest {
        assert_eq!(cache.get(&page).copied().unwrap_or_else(|| of(&flash, page)), version);
    }
    for page in cache.keys() {
        assert!(bench.cache.is_cached(*page));
    }
}

// A memory behind the cache, which answers in any order.

fn over_memory(sets: u32, ways: u32) -> DramCacheSpec {
    DramCacheSpec { backing: Backing::memory, ..small(sets, ways) }
}

#[test]
fn a_miss_reads_all_lines_of_its_page_and_a_changed_page_goes_back_whole() {
    for line in [CPU_LINE, LINE] {
        let mut bench = Bench::of_lines(&over_memory(1, 1), line);
        let us = Time::from_us;
        // Two applications: 4 reads a page, 9 writes it; then 4 wants another one.
        bench.at(us(0), MemCommand { app: 4, pc: 11, ..read(0) });
        bench.at(us(100), MemCommand { app: 9, pc: 12, ..write(0) });
        bench.at(us(200), MemCommand { app: 4, pc: 13, ..signal(1) });
        bench.run();
        let at = |n: usize| bench.outside.asked[n].0;
        let all = u64::MAX >> (64 - PAGE / line);
        let first = MemCommand { lines: all, app: 4, port: 0, pc: 11, since: at(0), ..read(0) };
        let second = MemCommand { pc: 13, since: at(1), tag: bench.outside.asked[1].1.tag, ..first };
        let tag = bench.outside.asked[2].1.tag;
        let back = MemCommand { write: true, demand: false, app: 9, pc: 0, since: at(2), tag, ..first };
        let asked: Vec<MemCommand> = bench.outside.asked.iter().map(|(_, command)| *command).collect();
        assert_eq!(asked, [first, MemCommand { page: PAGE, ..second }, back]);
        assert!(bench.outside.submitted.is_empty());
        assert!(bench.cache.is_cached(PAGE) && !bench.cache.is_cached(0));
        replay(&bench);
    }
}

/// A page missed by a write-back of the caches in front is not demanded; a read of it, before it is requested, demands
/// it.
#[test]
fn a_page_is_demanded_if_somebody_waits_for_it() {
    let demanded = |accesses: &[MemCommand]| {
        let mut spec = over_memory(16, 4);
        spec.backside.command = 1_000;
        let mut bench = Bench::new(&spec);
        accesses.iter().for_each(|access| bench.at(Time::ZERO, *access));
        bench.run();
        bench.outside.asked.iter().map(|(_, command)| command.demand).collect::<Vec<_>>()
    };
    let write_back = MemCommand { demand: false, ..write(3) };
    assert_eq!(demanded(&[write_back]), [false]);
    assert_eq!(demanded(&[write_back, signal(3)]), [true]);
    assert_eq!(demanded(&[write(3)]), [true]);
}

#[test]
fn answers_may_come_in_any_order() {
    let mut bench = Bench::new(&over_memory(16, 4));
    bench.outside.latencies = [90, 60, 30].map(Time::from_us).into();
    (0..3).for_each(|page| bench.at(Time::ZERO, read(page)));
    let ends = bench.ends();
    assert!(ends[2] < ends[1] && ends[1] < ends[0], "{ends:?}");
    let came: Vec<u64> = bench.outside.arrived.iter().map(|(_, page, _)| page / PAGE).collect();
    assert_eq!(came, [2, 1, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A memory as slow as a drive changes only the form of the commands.
    #[test]
    fn a_memory_is_asked_when_a_drive_would_be(
        spec in any_cache(),
        traffic in any_traffic(),
        latencies in proptest::collection::vec(1u64..200, 1..20),
        line in prop::sample::select(vec![CPU_LINE, LINE, 256, 512]),
    ) {
        let run = |backing: Backing| {
            let mut bench = Bench::of_lines(&DramCacheSpec { backing, ..spec.clone() }, line);
            bench.outside.latencies = latencies.iter().copied().map(Time::from_us).collect();
            let mut now = Time::ZERO;
            for draw in &traffic {
                now += Time::from_ns(draw.0);
                bench.at(now, command(draw, line));
            }
            let done = bench.run();
            replay(&bench);
            (bench, done)
        };
        let ((device, ends), (memory, others)) = (run(Backing::device), run(Backing::memory));
        prop_assert_eq!(ends, others);
        prop_assert_eq!(device.cache.stats, memory.cache.stats);
        prop_assert_eq!(&device.cache.tally, &memory.cache.tally);
        prop_assert_eq!(device.outside.arrived, memory.outside.arrived);
        prop_assert_eq!(device.outside.submitted.len(), memory.outside.asked.len());
        for ((at, block), (then, asked)) in device.outside.submitted.iter().zip(&memory.outside.asked) {
            prop_assert_eq!((at, block.tag, block.offset), (then, asked.tag, asked.page));
            prop_assert_eq!((block.op == IoOp::Write, block.bytes), (asked.write, asked.bytes(line)));
        }
    }
}
