//! Specs for tests, and a machine around the part.

use super::spec::{DirectController, DirectSpec, Transfer};
use super::{Direct, Event, Out, Place, network};
use config::units::{Bytes, Duration, Share};
use engine::{Recorder, Time};
use ftl::log::spec::DirectMapping;
use nand::dies::sched::Scheduling;
use nand::planes::spec::{DirectArray, DirectGeometry, FlashNetwork};
use nand::registers::spec::{DirectRegisters, RegisterNetwork};
use net::mesh::MeshSpec;
use proto::memory::{Absent, LINE, MemCommand, PAGE};

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

/// The part, and what it has sent.
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

    /// A command of application `app` that somebody waits for; its tag.
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

    /// One event; whether there was one.
    pub(crate) fn step(&mut self) -> bool {
        let Some(event) = self.cx.queue.pop() else { return false };
        self.direct.handle(event, &mut self.cx);
        true
    }

    /// Runs until nothing happens any more; checks what always holds.
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

    /// When a command was done.
    pub(crate) fn done(&self, tag: u32) -> Option<Time> {
        let mut all = self.cx.sent.iter().filter(|(_, out)| matches!(out, Out::Done(c) if c.tag == tag));
        let first = all.next().map(|(time, _)| *time);
        assert!(all.next().is_none(), "answered twice");
        first
    }

    /// How long one command takes in a quiet part.
    pub(crate) fn latency(&mut self, write: bool, page: u64, lines: u64) -> Time {
        self.rest();
        let began = self.now();
        let tag = self.send(write, page, lines, 0);
        self.rest();
        self.done(tag).expect("answered") - began
    }
}
