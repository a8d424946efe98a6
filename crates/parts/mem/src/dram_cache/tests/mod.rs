//! A DRAM cache alone, with a flash device of given latencies behind it.

mod admission;
mod backing;
mod latency;
mod misses;
mod order;
mod random;
mod specs;
mod versions;

use super::admit::PageAdmission;
use super::*;
use crate::cache::replace::ReplacementPolicy;
use crate::dram::sched::DramScheduler;
use crate::dram::{DramBanksSpec, DramBusSpec, DramSpec, DramTimingSpec};
use config::units::{Bytes, Duration, Frequency, TransferRate};
use engine::EventQueue;
use proto::memory::{Absent, CPU_LINE, LINE, PAGE};
use proto::{IoOp, Status};

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
    /// Commands that are done, in their order.
    done: Vec<(Time, MemCommand)>,
    arrived: Vec<(Time, u64, Time)>,
    /// What has been sent to the device, in its order, and how long each takes there: these in turn.
    submitted: Vec<(Time, Command)>,
    latencies: Vec<Time>,
    /// The same for a memory behind the cache.
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

    /// A command arrives at `at`; it is told by its number in the order of these calls.
    fn at(&mut self, at: Time, command: MemCommand) {
        let number = self.outside.commands.len() as u32;
        self.outside.commands.push(MemCommand { tag: number, since: at, ..command });
        self.outside.queue.after(at.since(self.outside.queue.now()), Ev::Arrive(number));
    }

    /// Runs until nothing is left; answers each command as it came back, and when.
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

    /// When each command was done.
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

/// The same with one controller, few sets, and a flash device behind.
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
