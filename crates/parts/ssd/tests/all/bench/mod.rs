//! Small devices driven directly by tests.

use engine::{Recorder, Time};
use ftl::buffer::ahead::LookAheadPolicy;
use ftl::page_map::alloc::Allocation;
use ftl::page_map::gc::VictimPolicy;
use nand::dies::arbiter::Arbitration;
use nand::dies::op::Class;
use nand::dies::sched::Scheduling;
use proto::{Command, IoOp};
use ssd::Device;
use ssd::Event;
use ssd::Out;
use ssd::soak::{Combination, Fill, Map, Memory};
use ssd::spec::{Built, FlashSpec, GcModeSpec, GcScope, GcStreams, MultiPlaneRule, ReclaimUnit};

/// Size of a page in bytes; a page is a program unit of four map units.
pub(crate) const PAGE: u64 = 16384;
pub(crate) const UNITS: u64 = 4;
pub(crate) const DIES: u64 = 4;

/// Two channels of two dies of two planes, without commands on several planes.
pub(crate) fn combination() -> Combination {
    Combination {
        map_unit: PAGE / UNITS,
        page: PAGE,
        reclaim: ReclaimUnit::block,
        one_shot: false,
        allocation: Allocation::striped,
        victim: VictimPolicy::greedy,
        copy_back: false,
        scheduler: Scheduling::oldest,
        arbiter: Arbitration::fifo,
        multi_plane: MultiPlaneRule::off,
        suspend: false,
        independent_reads: false,
        placements: 1,
        depth: 64,
        fill: Fill::Empty,
        nvme: false,
        fold: true,
        least_worn: false,
        tight: false,
        memory: Memory::None,
        map: Map::Table,
        mode: GcModeSpec::preemptible,
        scope: GcScope::local,
        gap: None,
        streams: GcStreams::isolated,
        registers: false,
        joins: false,
        errors: false,
        look_ahead: LookAheadPolicy::none,
        destage: ftl::buffer::destage::DestagePolicy::watermarks,
        pages: ftl::page_map::pages::PageOrder::in_order,
        parity: None,
    }
}

pub(crate) fn build(spec: &FlashSpec) -> Device {
    let built = Built { seed: 1, name: "bench".into(), fold: true };
    spec.build(&built).unwrap_or_else(|e| panic!("{}", e.what))
}

/// A device with its shadow, and a host.
pub(crate) struct Bench {
    pub(crate) device: Device,
    pub(crate) cx: Recorder<Event, Out>,
    tag: u32,
}

impl Bench {
    pub(crate) fn of(spec: &FlashSpec) -> Bench {
        let mut device = build(spec);
        device.attach_shadow();
        Bench { device, cx: Recorder::default(), tag: 0 }
    }

    /// A command on a page.
    pub(crate) fn submit(&mut self, op: IoOp, page: u64) {
        self.device.submit(Command::new(self.tag, op, page * PAGE, PAGE), &mut self.cx);
        self.tag += 1;
    }

    /// Same command on consecutive pages, 64 at a time; returns the time of the last answer.
    pub(crate) fn run(&mut self, op: IoOp, pages: std::ops::Range<u64>) -> Time {
        let (from, mut next, mut left) = (self.cx.queue.now(), pages.start, pages.end - pages.start);
        let mut under_way = 0;
        while left > 0 {
            while next < pages.end && under_way < 64 {
                self.submit(op, next);
                (next, under_way) = (next + 1, under_way + 1);
            }
            let event = self.cx.queue.pop().expect("commands are under way");
            self.device.handle(event, &mut self.cx);
            let answered = self.cx.sent.drain(..).count() as u64;
            (under_way, left) = (under_way - answered, left - answered);
        }
        self.cx.queue.now() - from
    }

    /// Lets the device work until nothing is left to do.
    pub(crate) fn rest(&mut self) {
        while let Some(event) = self.cx.queue.pop() {
            self.device.handle(event, &mut self.cx);
        }
        assert!(self.device.is_idle());
        let checks = self.device.checks(self.cx.queue.now());
        let failed: Vec<_> = checks.into_iter().filter(|c| !c.ok).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        assert_eq!(self.device.shadow().expect("it has one").violations, 0);
    }

    pub(crate) fn programs(&self) -> [u64; 2] {
        let units = &self.device.backend.counters.units;
        [Class::HostProgram, Class::GcProgram].map(|class| units[class as usize] / UNITS)
    }
}

/// Within a hundredth.
pub(crate) fn close(time: Time, formula: Time) -> bool {
    time.ps().abs_diff(formula.ps()) * 100 <= formula.ps()
}
