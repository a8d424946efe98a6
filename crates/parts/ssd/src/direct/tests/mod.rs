//! Flash as memory from outside: specs and a machine for tests, valid and refused specs, and work behind a DRAM cache.

mod access;
mod random;
mod reclaim;

use crate::direct::{
    Direct, Event, Out, Place, network,
    spec::{DirectController, DirectSpec, Transfer},
};
use config::units::{Bytes, Duration, Share};
use engine::{EventQueue, Recorder, Rng, Time};
use ftl::log::mapping::DirectMapping;
use mem::dram_cache::{self, DramCache, DramCacheSpec};
use nand::{
    dies::sched::Scheduling,
    planes::spec::{BusSpec, DirectArray, DirectGeometry, FlashNetwork},
    registers::{DirectRegisters, RegisterNetwork},
};
use net::mesh::MeshSpec;
use proto::memory::{Absent, LINE, MemCommand, PAGE};

// Specs for tests, and a machine around the component.

/// ZnG's Table I, the write registers private to their planes.
pub(crate) fn table_i() -> DirectSpec {
    let time = |ns| Duration::new(Time::from_ns(ns));
    DirectSpec {
        geometry: DirectGeometry {
            channels: 16,
            packages: 1,
            ports: 2,
            dies: 8,
            planes: 8,
            blocks: 1024,
            pages: 384,
        },
        mapping: DirectMapping {
            group: 128,
            data_blocks: 512,
            log_share: 4,
            search: time(10),
            log_filled: vec![Share::ZERO],
        },
        array: DirectArray {
            read: time(3_000),
            program: time(100_000),
            erase: time(1_000_000),
            scheduler: Scheduling::oldest,
            merge_reads: true,
        },
        registers: DirectRegisters {
            count: 8,
            network: RegisterNetwork::private,
            reserve: Share::percent(0),
        },
        controller: DirectController { count: 16, dispatch: time(1), latency: time(5) },
        network: FlashNetwork::mesh(MeshSpec::default()),
        command: Bytes::new(8),
        transfer: Transfer::page,
        redirect: None,
        helper: None,
        energy: None,
    }
}

/// Two packages with two planes each, of 16 blocks with 8 pages: 3 registers a plane.
pub(crate) fn small() -> DirectSpec {
    let mut spec = table_i();
    spec.geometry =
        DirectGeometry { channels: 2, packages: 1, ports: 2, dies: 1, planes: 2, blocks: 16, pages: 8 };
    spec.mapping.group = 2;
    spec.mapping.data_blocks = 8;
    spec.mapping.log_share = 2;
    spec.registers.count = 3;
    spec.controller.count = 2;
    spec.network = FlashNetwork::mesh(MeshSpec { rows: 1, columns: 2, ..MeshSpec::default() });
    spec
}

/// All lines of a page, of a [`Rig::new`].
pub(crate) const ALL: u64 = u64::MAX >> (u64::BITS - (PAGE / LINE) as u32);

/// Component under test, and its messages.
pub(crate) struct Rig {
    pub(crate) direct: Direct,
    pub(crate) cx: Recorder<Event, Out>,
    tags: u32,
}

impl Rig {
    /// With a GPU's lines.
    pub(crate) fn new(spec: &DirectSpec) -> Rig {
        Rig::of_lines(spec, LINE)
    }

    pub(crate) fn of_lines(spec: &DirectSpec, line: u64) -> Rig {
        let mut direct = Direct::new(spec, 1, line).expect("a sound spec");
        direct.attach_shadow();
        Rig { direct, cx: Recorder::default(), tags: 0 }
    }

    pub(crate) fn page(&self, plane: u32, slot: u32, index: u32) -> u64 {
        self.direct.layout.page(Place { plane, slot, index }) * PAGE
    }

    pub(crate) fn now(&self) -> Time {
        self.cx.queue.now()
    }

    /// Command of application `app` with a waiting requester; returns its tag.
    pub(crate) fn send(&mut self, write: bool, page: u64, lines: u64, app: u8) -> u32 {
        self.tags += 1;
        let (tag, since) = (self.tags, self.now());
        let command = MemCommand {
            from: proto::Port::default(),
            tag,
            page,
            lines,
            write,
            demand: true,
            app,
            port: 0,
            pc: 0,
            absent: Absent::Wait,
            since,
        };
        self.direct.command(command, &mut self.cx);
        tag
    }

    /// Runs one event. Returns false if there was none.
    pub(crate) fn step(&mut self) -> bool {
        let Some(event) = self.cx.queue.pop() else { return false };
        self.direct.handle(event, &mut self.cx);
        true
    }

    /// Runs until no event is left; checks the invariants.
    pub(crate) fn rest(&mut self) {
        while self.step() {}
        self.check();
        assert_eq!(self.direct.outstanding(), 0);
    }

    /// Runs until `time`.
    pub(crate) fn run_until(&mut self, time: Time) {
        // A late event at that time: what is due then has happened.
        self.cx.queue.late(time - self.now(), Event::Network(network::Event::Head(u32::MAX)));
        while let Some(event) = self.cx.queue.pop() {
            if event == Event::Network(network::Event::Head(u32::MAX)) {
                return;
            }
            self.direct.handle(event, &mut self.cx);
        }
    }

    pub(crate) fn check(&self) {
        for check in self.direct.checks() {
            assert!(check.ok, "{}: {}", check.name, check.detail);
        }
    }

    /// Completion time of a command.
    pub(crate) fn done(&self, tag: u32) -> Option<Time> {
        let mut all = self.cx.sent.iter().filter(|(_, out)| matches!(out, Out::Done(c) if c.tag == tag));
        let first = all.next().map(|(time, _)| *time);
        assert!(all.next().is_none(), "answered twice");
        first
    }

    /// Duration of one command in an idle component.
    pub(crate) fn latency(&mut self, write: bool, page: u64, lines: u64) -> Time {
        self.rest();
        let began = self.now();
        let tag = self.send(write, page, lines, 0);
        self.rest();
        self.done(tag).expect("answered") - began
    }
}

// Valid and refused specs.

#[test]
fn table_i_has_its_sizes() {
    let Ok(direct) = Direct::new(&table_i(), 1, LINE) else { panic!("Table I can be built") };
    assert_eq!((direct.controllers(), direct.reach()), (16, 192 << 20));
    // 1,024 planes x 512 data blocks x 384 pages x 4 KiB.
    assert_eq!(direct.capacity(), 768 << 30);
    let controllers: Vec<u16> = (0..32).map(|n| direct.controller_of(n * 4096)).collect();
    assert!(controllers.iter().enumerate().all(|(n, c)| usize::from(*c) == n % 16));
}

#[test]
fn every_policy_builds_and_reads_back() {
    let mut specs = Vec::new();
    for network in RegisterNetwork::all_defaults() {
        for scheduler in Scheduling::all_defaults().into_iter().filter(|s| *s != Scheduling::in_order) {
            for transfer in Transfer::all_defaults() {
                let mut spec = table_i();
                (spec.registers.network, spec.array.scheduler, spec.transfer) =
                    (network.clone(), scheduler.clone(), transfer);
                specs.push(spec);
            }
        }
    }
    let mut bus = table_i();
    bus.network = FlashNetwork::bus(BusSpec::default());
    bus.geometry.ports = 1;
    specs.push(bus);
    assert!(specs.iter().all(|spec| Direct::new(spec, 1, LINE).is_ok()));
}

#[test]
fn what_cannot_be_is_said_with_its_key() {
    let fault = |change: fn(&mut DirectSpec)| {
        let mut spec = small();
        change(&mut spec);
        let fault = Direct::new(&spec, 1, LINE).err().expect("unsound");
        fault.key
    };
    assert_eq!(fault(|s| s.geometry.dies = 0), "geometry.dies");
    assert_eq!(fault(|s| s.geometry.pages = 5_000), "geometry.pages");
    assert_eq!(fault(|s| s.mapping.group = 3), "mapping.group");
    assert_eq!(fault(|s| s.mapping.log_share = 3), "mapping.data_blocks");
    assert_eq!(fault(|s| s.mapping.data_blocks = 10), "mapping.data_blocks");
    assert_eq!(fault(|s| s.mapping.log_filled.clear()), "mapping.log_filled");
    assert_eq!(fault(|s| s.registers.count = 1), "registers.count");
    assert_eq!(fault(|s| s.controller.count = 3), "controller.count");
    assert_eq!(fault(|s| s.network = FlashNetwork::mesh(MeshSpec::default())), "network.mesh.rows");
    assert_eq!(fault(|s| s.network = FlashNetwork::bus(BusSpec::default())), "geometry.ports");
    let wide = |s: &mut DirectSpec| {
        s.network =
            FlashNetwork::mesh(MeshSpec { rows: 1, columns: 2, width: Bytes::new(0), ..MeshSpec::default() });
    };
    assert_eq!(fault(wide), "network.mesh.width");
    for line in [0, 32, 96, 1024, 4096] {
        let fault = Direct::new(&small(), 1, line).err().expect("unsound");
        assert_eq!((fault.key.as_str(), fault.what.contains("64, 128, 256, 512 B")), ("line", true));
    }
}

/// One share for each application, the last for all further ones; pages are whole.
#[test]
fn log_blocks_are_filled_to_their_application_s_share() {
    let mut spec = small();
    assert_eq!([0, 1, 200].map(|app| spec.log_room(app)), [8, 8, 8]);
    spec.mapping.log_filled = ["25%", "100%", "70%"].map(|share| share.parse().expect("a share")).into();
    // 70 % of 8 pages are 5.6: six are programmed.
    assert_eq!([0, 1, 2, 200].map(|app| spec.log_room(app)), [6, 0, 2, 2]);
}

/// 16 blocks hold 8 data blocks, 4 log blocks and 2 for a merge, but not 10, 5 and 2: the diagnostic says how many fit.
#[test]
fn the_help_says_how_many_data_blocks_fit() {
    let mut spec = small();
    spec.mapping.data_blocks = 10;
    let fault = spec.check().expect_err("17 blocks of 16");
    assert_eq!(fault.help.as_deref(), Some("at most 8 data blocks fit"));
    spec.mapping.data_blocks = 8;
    assert_eq!(spec.check(), Ok(()));
}

// Flash as memory behind a DRAM cache, which asks for whole pages.

engine::events! {
    enum Ev {
        Cache(dram_cache::Event),
        Flash(Event),
    }
}

/// Queue as seen by a component that sends messages `O`.
struct Port<'a, O> {
    queue: &'a mut EventQueue<Ev>,
    sent: &'a mut Vec<O>,
}

engine::context! {
    Port<'_, dram_cache::Out>: Cx<dram_cache::Event, dram_cache::Out>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Cache(event),
    out: |me, out| me.sent.push(out),
}

engine::context! {
    Port<'_, Out>: Cx<Event, Out>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Flash(event),
    out: |me, out| me.sent.push(out),
}

struct Bench {
    cache: DramCache,
    flash: Direct,
    queue: EventQueue<Ev>,
    from_cache: Vec<dram_cache::Out>,
    from_flash: Vec<Out>,
    /// Answers by tag.
    answers: Vec<u32>,
}

impl Bench {
    fn new(line: u64) -> Bench {
        let spec: DramCacheSpec = toml::from_str(include_str!("dram_cache.toml")).expect("a valid cache");
        let mut flash = Direct::new(&small(), 1, line).expect("a sound spec");
        flash.attach_shadow();
        Bench {
            cache: DramCache::new(&spec, line).expect("a sound spec"),
            flash,
            queue: EventQueue::new(),
            from_cache: Vec::new(),
            from_flash: Vec::new(),
            answers: Vec::new(),
        }
    }

    fn send(&mut self, command: MemCommand) {
        self.cache.command(command, &mut Port { queue: &mut self.queue, sent: &mut self.from_cache });
        self.settle();
    }

    fn settle(&mut self) {
        while !self.from_cache.is_empty() || !self.from_flash.is_empty() {
            for out in std::mem::take(&mut self.from_cache) {
                match out {
                    dram_cache::Out::Done(command) => self.answers.push(command.tag),
                    dram_cache::Out::Backing(command) => self
                        .flash
                        .command(command, &mut Port { queue: &mut self.queue, sent: &mut self.from_flash }),
                    dram_cache::Out::Arrived { .. } => {}
                    dram_cache::Out::Submit(command) => panic!("no drive is connected: {command:?}"),
                }
            }
            for out in std::mem::take(&mut self.from_flash) {
                match out {
                    Out::Done(command) => self
                        .cache
                        .backed(command, &mut Port { queue: &mut self.queue, sent: &mut self.from_cache }),
                    Out::Help(_) | Out::Reclaim { .. } => {}
                    Out::Park { .. } => panic!("no cache takes parked pages"),
                }
            }
        }
    }

    fn step(&mut self) -> bool {
        match self.queue.pop() {
            None => return false,
            Some(Ev::Cache(event)) => {
                self.cache.handle(event, &mut Port { queue: &mut self.queue, sent: &mut self.from_cache });
            }
            Some(Ev::Flash(event)) => {
                self.flash.handle(event, &mut Port { queue: &mut self.queue, sent: &mut self.from_flash });
            }
        }
        self.settle();
        true
    }
}

/// Pages come and go until log blocks are merged; every access is answered, and flash returns the data it was given.
#[test]
fn pages_come_and_go_by_the_memory_protocol() {
    for line in [64, 128] {
        let (mut bench, mut rng) = (Bench::new(line), Rng::stream(line, "test"));
        let accesses = 3_000;
        for tag in 0..accesses {
            let page = rng.below(96) * PAGE;
            bench.send(MemCommand {
                from: proto::Port::default(),
                tag,
                page,
                lines: 1 << rng.below(PAGE / line),
                write: rng.below(2) == 0,
                demand: true,
                app: 0,
                port: 0,
                pc: 1,
                absent: if rng.below(2) == 0 { Absent::Wait } else { Absent::Signal },
                since: bench.queue.now(),
            });
            while bench.cache.outstanding() > 12 {
                assert!(bench.step(), "deadlock");
            }
        }
        while bench.step() {}
        bench.answers.sort_unstable();
        assert_eq!(bench.answers, (0..accesses).collect::<Vec<_>>());
        assert_eq!((bench.cache.outstanding(), bench.flash.outstanding()), (0, 0));
        for check in bench.flash.checks() {
            assert!(check.ok, "{}: {}", check.name, check.detail);
        }
        let (cache, flash) = (bench.cache.stats, &bench.flash.stats);
        assert_eq!((flash.reads, flash.writes), (cache.fetches, cache.write_backs));
        assert_eq!(flash.bytes_in, cache.write_backs * PAGE, "whole pages");
        assert!(cache.reclaims > 0 && flash.register_reads > 0 && flash.gc_runs > 0, "{cache:?} {flash:?}");
        let (changed, found) = bench.cache.changed_pages();
        assert_eq!(changed, found);
        assert!(bench.queue.now() > Time::ZERO);
    }
}
