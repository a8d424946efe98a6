//! Paging before a stub of an SSD: the path of a fault by formula, batches and room by hand, conservation by property.

use super::*;
use config::units::{Bandwidth, Bytes, Duration};
use engine::EventQueue;
use proptest::prelude::*;
use proto::memory::Absent;
use proto::{Command, IoOp};
use std::collections::{BTreeMap, BTreeSet};

/// Picoseconds.
const US: u64 = 1_000_000;
const INTERRUPT: u64 = 5 * US;
const BATCH: u64 = 10 * US;
const FAULT: u64 = US;
const SUBMIT: u64 = 3 * US;
const COMPLETE: u64 = 2 * US;
const RESUME: u64 = 4 * US;
const LATENCY: u64 = US / 4;
const GRANULE: u64 = 65_536;
/// Two copies at 8 GB/s.
const COPY: u64 = 2 * GRANULE * 125;

/// PCIe 2.0 x16: 5 GT/s and 8b/10b make 8 GB/s, of which packets of 128 B with 24 B around them leave 128 of 152.
fn pcie(bytes: u64) -> u64 {
    let rate: u128 = 8_000_000_000 * 128 / 152;
    (u128::from(bytes) * 1_000_000_000_000).div_ceil(rate) as u64
}

fn spec() -> PagingSpec {
    let time = |ps| Duration::new(Time::from_ps(ps));
    PagingSpec {
        granule: Bytes::new(GRANULE),
        memory: Bytes::new(1 << 30),
        write_back: false,
        driver: DriverSpec {
            interrupt: time(INTERRUPT),
            handlers: 1,
            batch: 2,
            batch_time: time(BATCH),
            fault_time: time(FAULT),
            resume: time(RESUME),
        },
        submit: time(SUBMIT),
        complete: time(COMPLETE),
        copies: 2,
        copy_bandwidth: Bandwidth::new(8_000_000_000),
        link: GpuLinkSpec {
            generation: 2,
            lanes: 16,
            max_payload: Bytes::new(128),
            latency: time(LATENCY),
            energy: None,
        },
    }
}

engine::events! {
    enum Ev {
        Part(Event),
        Ssd(u32),
        Arrive(u32),
    }
}

struct Port<'a>(&'a mut EventQueue<Ev>, &'a mut Vec<Out>);

engine::context! {
    Port<'_>: Cx<Event, Out>,
    queue: |me| me.0,
    event: |_me, event| Ev::Part(event),
    out: |me, out| {
        me.1.push(out);
    },
}

struct Rig {
    paging: Paging,
    queue: EventQueue<Ev>,
    sent: Vec<Out>,
    /// Everything sent, with its picosecond.
    log: Vec<(u64, Out)>,
    ssd: Box<dyn FnMut() -> u64>,
    at_ssd: BTreeMap<u32, Command>,
    later: Vec<Translation>,
}

impl Rig {
    fn new(spec: &PagingSpec, ssd: u64) -> Rig {
        let mut paging = Paging::new(spec).expect("a valid spec");
        paging.add_app(0, 64 * GRANULE);
        Rig {
            paging,
            queue: EventQueue::new(),
            sent: Vec::new(),
            log: Vec::new(),
            ssd: Box::new(move || ssd),
            at_ssd: BTreeMap::new(),
            later: Vec::new(),
        }
    }

    fn now(&self) -> u64 {
        self.queue.now().ps()
    }

    fn fault(&mut self, page: u64) {
        let since = self.queue.now();
        let t = Translation { port: 3, app: 0, page, frame: page + 7, absent: Absent::Wait, since };
        self.paging.fault(t, &mut Port(&mut self.queue, &mut self.sent));
        self.settle();
    }

    fn arrive(&mut self, delay: u64, page: u64) {
        let since = Time::from_ps(delay);
        self.later.push(Translation {
            port: 0,
            app: 0,
            page,
            frame: self.later.len() as u64,
            absent: Absent::Wait,
            since,
        });
        self.queue.after(since, Ev::Arrive(self.later.len() as u32 - 1));
    }

    fn settle(&mut self) {
        for out in std::mem::take(&mut self.sent) {
            self.log.push((self.queue.now().ps(), out));
            if let Out::Submit(command) = out {
                let same = |other: &Command| other.offset == command.offset;
                assert!(!self.at_ssd.values().any(same), "one command for a granule at a time");
                assert!(self.at_ssd.insert(command.tag, command).is_none(), "a name is used once");
                self.queue.after(Time::from_ps((self.ssd)()), Ev::Ssd(command.tag));
            }
        }
        self.paging.check().expect("the accounts hold");
    }

    fn step(&mut self) -> bool {
        let Some(event) = self.queue.pop() else { return false };
        let mut port = Port(&mut self.queue, &mut self.sent);
        match event {
            Ev::Part(event) => self.paging.handle(event, &mut port),
            Ev::Ssd(tag) => {
                self.at_ssd.remove(&tag);
                let done = Completion {
                    tag,
                    to: proto::Port::default(),
                    status: Status::Success,
                    errors: 0,
                    buffer: proto::BufferState::Unknown,
                };
                self.paging.completed(done, &mut port);
            }
            Ev::Arrive(n) => self.paging.fault(self.later[n as usize], &mut port),
        }
        self.settle();
        true
    }

    fn drain(&mut self) {
        while self.step() {}
        assert_eq!(self.paging.outstanding(), 0);
    }

    fn resolved(&self) -> Vec<(u64, u64)> {
        let pages = self.log.iter().filter_map(|(at, out)| match out {
            Out::Resolved(t) => Some((*at, t.page)),
            _ => None,
        });
        pages.collect()
    }

    fn submitted(&self) -> Vec<(u64, IoOp, u64)> {
        let commands = self.log.iter().filter_map(|(at, out)| match out {
            Out::Submit(c) => Some((*at, c.op, c.offset / GRANULE)),
            _ => None,
        });
        commands.collect()
    }
}

/// From a thread that runs to a command at the SSD, and from the SSD's answer to the translation's.
const HANDLE: u64 = FAULT + SUBMIT;
fn bring() -> u64 {
    COMPLETE + COPY + pcie(GRANULE) + LATENCY + RESUME
}

#[test]
fn a_fault_is_the_sum_of_its_steps() {
    let mut rig = Rig::new(&spec(), 20 * US);
    rig.fault(17);
    rig.drain();
    let expected = INTERRUPT + BATCH + HANDLE + 20 * US + bring();
    assert_eq!(rig.resolved(), [(expected, 17)]);
    assert_eq!(rig.submitted(), [(INTERRUPT + BATCH + HANDLE, IoOp::Read, 1)]);
    assert_eq!(rig.paging.tally.reads()[Stage::Fault as usize], u128::from(expected));
    let frame = rig.log.iter().find_map(|(_, out)| match out {
        Out::Resolved(t) => Some((t.frame, t.port)),
        _ => None,
    });
    assert_eq!(frame, Some((24, 3)));
    // Threads: the batch, the fault and its copies. Link: the granule.
    let busy = rig.paging.busy(rig.queue.now());
    assert_eq!(busy.threads.ps(), BATCH + HANDLE + COMPLETE + COPY);
    assert_eq!((busy.to_gpu.ps(), busy.to_host.ps()), (pcie(GRANULE), 0));
}

#[test]
fn translations_of_a_granule_share_its_fault() {
    let mut rig = Rig::new(&spec(), 20 * US);
    rig.fault(0);
    rig.fault(15);
    rig.drain();
    let at = INTERRUPT + BATCH + HANDLE + 20 * US + bring();
    assert_eq!(rig.resolved(), [(at, 0), (at, 15)]);
    rig.fault(7);
    assert_eq!(rig.resolved()[2], (at, 7));
    let PagingStats { faults, merged, present, reads, .. } = rig.paging.stats;
    assert_eq!((faults, merged, present, reads), (1, 1, 1, 1));
}

#[test]
fn one_thread_takes_batches_one_after_another() {
    let mut rig = Rig::new(&spec(), 1000 * US);
    (0..3).for_each(|n| rig.fault(16 * n));
    rig.drain();
    let first = INTERRUPT + BATCH + HANDLE;
    let second = first + HANDLE;
    let third = second + BATCH + HANDLE;
    let reads = [(first, IoOp::Read, 0), (second, IoOp::Read, 1), (third, IoOp::Read, 2)];
    assert_eq!(rig.submitted(), reads);
    assert_eq!((rig.paging.stats.interrupts, rig.paging.stats.batches), (1, 2));
    // The copies of one thread queue; the transfers behind them do not.
    let done = |n: u64| first + 1000 * US + (n + 1) * (COMPLETE + COPY) + bring() - COMPLETE - COPY;
    assert_eq!(rig.resolved(), [(done(0), 0), (done(1), 16), (done(2), 32)]);
}

#[test]
fn a_second_thread_takes_the_second_batch() {
    let mut two = spec();
    two.driver.handlers = 2;
    let mut rig = Rig::new(&two, 1000 * US);
    (0..3).for_each(|n| rig.fault(16 * n));
    rig.drain();
    let first = INTERRUPT + BATCH + HANDLE;
    let reads = [(first, IoOp::Read, 0), (first, IoOp::Read, 2), (first + HANDLE, IoOp::Read, 1)];
    assert_eq!(rig.submitted(), reads);
    assert_eq!((rig.paging.stats.interrupts, rig.paging.stats.batches), (2, 2));
}

#[test]
fn the_last_granule_is_short_and_applications_follow_each_other() {
    let mut rig = Rig::new(&spec(), US);
    assert_eq!(rig.paging.add_app(5, GRANULE + 5000), 64 * GRANULE);
    assert_eq!(rig.paging.add_app(6, 1), 66 * GRANULE);
    assert_eq!(rig.paging.ssd_bytes(), 67 * GRANULE);
    let since = Time::ZERO;
    let t = Translation { port: 0, app: 5, page: 17, frame: 0, absent: Absent::Wait, since };
    rig.paging.fault(t, &mut Port(&mut rig.queue, &mut rig.sent));
    rig.drain();
    let commands: Vec<(u64, u64)> = rig
        .log
        .iter()
        .filter_map(|(_, out)| match out {
            Out::Submit(c) => Some((c.offset, c.bytes)),
            _ => None,
        })
        .collect();
    // 5000 B are two pages.
    assert_eq!(commands, [(65 * GRANULE, 8192)]);
}

#[test]
fn the_oldest_makes_room_and_must_be_brought_again() {
    let mut small = spec();
    small.memory = Bytes::new(2 * GRANULE);
    let mut rig = Rig::new(&small, 20 * US);
    for n in 0..3 {
        rig.fault(16 * n);
        rig.drain();
    }
    let evicted: Vec<u64> = rig
        .log
        .iter()
        .filter_map(|(_, out)| match out {
            Out::Evict { app: 0, page } => Some(*page),
            _ => None,
        })
        .collect();
    assert_eq!(evicted, (0..16).collect::<Vec<u64>>());
    rig.fault(3);
    rig.drain();
    assert_eq!((rig.paging.stats.reads, rig.paging.stats.writes), (4, 0));
    // Its copy did not go to the SSD, so a fault takes as long as any.
    let before = rig.resolved()[2].0;
    assert_eq!(rig.resolved()[3].0, before + INTERRUPT + BATCH + HANDLE + 20 * US + bring());
}

#[test]
fn what_makes_room_is_written_back_first() {
    let mut small = spec();
    small.memory = Bytes::new(GRANULE);
    small.write_back = true;
    let mut rig = Rig::new(&small, 20 * US);
    rig.fault(0);
    rig.drain();
    let start = rig.now();
    rig.fault(16);
    let ready = start + INTERRUPT + BATCH + HANDLE + 20 * US + COMPLETE + COPY;
    while rig.now() < ready {
        rig.step();
    }
    // It comes back while it is on its way to the SSD.
    rig.fault(5);
    rig.drain();
    // The old granule leaves the GPU before the new one enters.
    assert_eq!(rig.resolved()[1], (ready + 2 * pcie(GRANULE) + LATENCY + RESUME, 16));
    let written = ready + pcie(GRANULE) + LATENCY + COPY + SUBMIT;
    let again = written + 20 * US + INTERRUPT + BATCH + HANDLE;
    let commands = rig.submitted();
    assert_eq!(commands[2..4], [(written, IoOp::Write, 0), (again, IoOp::Read, 0)]);
    assert_eq!(rig.paging.stats.faults, 3);
}

#[test]
fn a_new_window_forgets() {
    let mut rig = Rig::new(&spec(), US);
    rig.fault(0);
    rig.drain();
    rig.paging.reset_stats(rig.queue.now());
    assert_eq!(rig.paging.stats.faults, 0);
    assert_eq!(rig.paging.busy(rig.queue.now()), PagingBusy::default());
    rig.paging.check().expect("the accounts hold");
}

#[test]
fn bad_values_are_named() {
    let fault = |change: fn(&mut PagingSpec)| {
        let mut bad = spec();
        change(&mut bad);
        Paging::new(&bad).err().map(|fault| fault.key).unwrap_or_default()
    };
    assert_eq!(fault(|s| s.granule = Bytes::new(5000)), "granule");
    assert_eq!(fault(|s| s.memory = Bytes::new(4096)), "memory");
    assert_eq!(fault(|s| s.driver.handlers = 0), "driver.handlers");
    assert_eq!(fault(|s| s.driver.batch = 0), "driver.batch");
    assert_eq!(fault(|s| s.copy_bandwidth = Bandwidth::new(0)), "copy_bandwidth");
    assert_eq!(fault(|s| s.link.lanes = 3), "link.lanes");
    assert_eq!(fault(|s| s.link.generation = 9), "link.generation");
    assert_eq!(fault(|s| s.link.max_payload = Bytes::new(0)), "link.max_payload");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn every_fault_is_answered_once_and_memory_is_never_overfull(
        steps in prop::collection::vec((0..60 * US, 0..128u64), 1..100),
        ssd in prop::collection::vec(US..200 * US, 1..8),
        shape in (1..6u64, 1..4u32, 1..5u32, any::<bool>()),
    ) {
        let (room, handlers, batch, write_back) = shape;
        let mut small = spec();
        small.memory = Bytes::new(room * GRANULE);
        small.write_back = write_back;
        (small.driver.handlers, small.driver.batch) = (handlers, batch);
        let mut rig = Rig::new(&small, 0);
        let mut turn = 0;
        rig.ssd = Box::new(move || {
            turn += 1;
            ssd[turn % ssd.len()]
        });
        let mut at = 0;
        for (delay, page) in &steps {
            at += delay;
            rig.arrive(at, *page);
        }
        rig.drain();
        let mut answered: Vec<u64> = Vec::new();
        let mut there: BTreeSet<u64> = BTreeSet::new();
        let (mut stale, mut arrived) = (0, 0);
        for (_, out) in &rig.log {
            match out {
                Out::Resolved(t) => {
                    answered.push(t.frame);
                    there.insert(t.page / 16);
                    arrived += 1;
                }
                Out::Evict { page, .. } => stale += u64::from(there.remove(&(page / 16))),
                Out::Submit(_) => {}
            }
            prop_assert!(there.len() as u64 <= room);
        }
        answered.sort_unstable();
        prop_assert_eq!(answered, (0..steps.len() as u64).collect::<Vec<u64>>());
        let stats = rig.paging.stats;
        prop_assert_eq!(stats.evictions, stale);
        prop_assert_eq!(stats.mapped, stale + there.len() as u64);
        prop_assert_eq!(stats.reads, stats.mapped);
        prop_assert_eq!(stats.writes, if write_back { stale } else { 0 });
        // Faults that joined a granule on its way out are both: merged, and a new fault for the driver.
        prop_assert!(stats.faults + stats.merged + stats.present >= arrived);
        prop_assert_eq!(stats.faults, stats.reads);
        prop_assert_eq!(stats.moved_bytes, stats.mapped * GRANULE);
    }
}
