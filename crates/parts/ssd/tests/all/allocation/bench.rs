//! Device with negligible times of links and channels, and a host that keeps a given number of commands outstanding.

use config::units::{Bandwidth, Bytes, Duration, Share, TransferRate};
use engine::{Recorder, Time};
use ftl::buffer::admit::AdmissionPolicy;
use ftl::buffer::evict::EvictionPolicy;
use ftl::page_map::alloc::restricted::{self, FreeDigits};
use ftl::page_map::alloc::{Allocation, scan};
use nand::dies::observe::{Observer, Tenure};
use nand::dies::op::Class;
use proto::{Command, IoOp};
use ssd::Device;
use ssd::Event;
use ssd::Out;
use ssd::soak::{Combination, Fill, Map, Memory};
use ssd::spec::{
    BufferSpec, Built, CellSpec, ControllerSpec, FlashSpec, GcModeSpec, GcScope, GcStreams, GeometrySpec,
    HostLinkSpec, HostSpec, Moves, MultiPlaneRule, PageLayout, PlainSpec, Programming, ReclaimUnit,
    StripeOrder,
};
use std::cell::Cell;
use std::rc::Rc;

/// Time of a program: everything else a write needs takes less than a ten-thousandth of it.
pub(crate) const PROGRAM: Time = Time::from_ms(1000);
/// Bytes a page.
pub(crate) const PAGE: u64 = 16384;
/// Blocks a plane and pages a block.
pub(crate) const BLOCKS: u32 = 32;
pub(crate) const PAGES: u32 = 16;

/// Channels, ways, dies, planes.
pub(crate) type Planes = [u32; 4];

pub(crate) fn count([channels, ways, dies, planes]: Planes) -> u64 {
    u64::from(channels * ways * dies * planes)
}

/// A policy: none of the letters of C, W, D, P free, some, or all.
pub(crate) fn policy(free: &str) -> Allocation {
    let gather = Duration::new(Time::from_us(1));
    match free {
        "" => Allocation::striped,
        "CWDP" => Allocation::full(scan::Params { gather, look: 16 }),
        _ => {
            let free = FreeDigits::parse(free).expect("one to three letters");
            Allocation::restricted(restricted::Params { free, gather, look: 16 })
        }
    }
}

/// A device with pages of 16 KiB that are map units too.
pub(crate) fn spec(planes: Planes, free: &str) -> FlashSpec {
    let combination = Combination {
        map_unit: PAGE,
        page: PAGE,
        reclaim: ReclaimUnit::block,
        one_shot: false,
        allocation: policy(free),
        victim: ftl::page_map::gc::VictimPolicy::greedy,
        copy_back: false,
        scheduler: nand::dies::sched::Scheduling::oldest,
        arbiter: nand::dies::arbiter::Arbitration::fifo,
        multi_plane: MultiPlaneRule::same_page,
        independent_reads: false,
        suspend: false,
        placements: 1,
        depth: 1,
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
        look_ahead: ftl::buffer::ahead::LookAheadPolicy::none,
        destage: ftl::buffer::destage::DestagePolicy::watermarks,
        pages: ftl::page_map::pages::PageOrder::in_order,
        parity: None,
    };
    let us = |n| Duration::new(Time::from_us(n));
    let [channels, ways, dies, planes] = planes;
    let mut spec = combination.spec();
    spec.geometry = GeometrySpec {
        channels,
        ways,
        dies,
        planes,
        blocks: BLOCKS,
        pages: PAGES,
        page_size: Bytes::new(PAGE),
    };
    spec.cell = CellSpec {
        errors: None,
        bits: 1,
        layout: PageLayout::by_word_line,
        programming: Programming::page,
        read: vec![us(25)],
        program: vec![Duration::new(PROGRAM)],
        erase: us(2000),
        program_drift: Share::percent(0),
        erase_drift: Share::percent(0),
        spread: None,
    };
    spec.channel.rate = TransferRate::new(1_600_000_000);
    spec.host = HostSpec {
        link: HostLinkSpec::Plain(PlainSpec { bandwidth: Bandwidth::new(1 << 50), latency: us(0) }),
        controller: ControllerSpec {
            cores: 1,
            command: us(0),
            unit: us(0),
            spread: None,
            write: None,
            moved: None,
        },
        sleep: None,
        nvme: None,
        ahci: None,
    };
    spec
}

/// Same policy with a different order.
pub(crate) fn striped(mut spec: FlashSpec, order: &str) -> FlashSpec {
    spec.ftl.stripe = StripeOrder::parse(order).expect("an order");
    spec
}

/// A buffer of written data in pages, half of which may be on its way to flash.
pub(crate) fn buffer(pages: u64) -> BufferSpec {
    BufferSpec {
        capacity: Bytes::new(pages * PAGE),
        reads: false,
        writes: true,
        full_reads: None,
        high: Share::percent(50),
        low: Share::percent(25),
        destage: None,
        in_flight: Bytes::new(pages / 2 * PAGE),
        throttle: None,
        keep_rewrites: None,
        moves: Moves::units,
        protected: false,
        eviction: EvictionPolicy::all_defaults().swap_remove(0),
        admission: AdmissionPolicy::all_defaults().swap_remove(0),
        look_ahead: None,
        bandwidth: Bandwidth::new(100_000_000_000),
        latency: Duration::new(Time::ZERO),
    }
}

/// Operation, first byte, bytes.
pub(crate) type Io = (IoOp, u64, u64);

/// Host programs and the commands that they went in.
#[derive(Default)]
struct Seen {
    programs: Cell<u64>,
    commands: Cell<u64>,
}

struct Watch(Rc<Seen>);

impl Observer for Watch {
    fn ended(&mut self, tenure: &Tenure) {
        if tenure.class == Class::HostProgram {
            self.0.programs.set(self.0.programs.get() + u64::from(tenure.planes));
            self.0.commands.set(self.0.commands.get() + 1);
        }
    }
}

pub(crate) struct Bench {
    pub(crate) device: Device,
    pub(crate) cx: Recorder<Event, Out>,
    tag: u32,
    /// When commands ended.
    pub(crate) ends: Vec<Time>,
    seen: Rc<Seen>,
}

impl Bench {
    pub(crate) fn new(spec: &FlashSpec) -> Bench {
        Bench::with(spec, false)
    }

    /// Device that was written once in order.
    pub(crate) fn filled(spec: &FlashSpec) -> Bench {
        Bench::with(spec, true)
    }

    fn with(spec: &FlashSpec, is_full: bool) -> Bench {
        let built = Built { seed: 1, name: "bench".into(), fold: true };
        let mut device = spec.build(&built).unwrap_or_else(|e| panic!("{}", e.what));
        if is_full {
            device.ftl.assume_sequential(device.ftl.logical());
        }
        device.attach_shadow();
        let seen = Rc::new(Seen::default());
        device.backend.observer = Some(Box::new(Watch(Rc::clone(&seen))));
        Bench { device, cx: Recorder::default(), tag: 0, ends: Vec::new(), seen }
    }

    /// Runs commands, `depth` at once; returns the duration.
    pub(crate) fn run(&mut self, ios: impl IntoIterator<Item = Io>, depth: u64) -> Time {
        let mut ios = ios.into_iter();
        let start = self.cx.queue.now();
        let mut in_flight = 0;
        loop {
            while in_flight < depth {
                let Some((op, offset, bytes)) = ios.next() else { break };
                self.device.submit(Command::new(self.tag, op, offset, bytes), &mut self.cx);
                self.tag += 1;
                in_flight += 1;
            }
            let Some(event) = self.cx.queue.pop() else { break };
            self.device.handle(event, &mut self.cx);
            in_flight -= self.cx.sent.len() as u64;
            self.ends.extend(self.cx.sent.drain(..).map(|(at, _)| at));
        }
        assert_eq!(in_flight, 0, "commands without an answer");
        let checks = self.device.checks(self.cx.queue.now());
        let failed: Vec<_> = checks.into_iter().filter(|c| !c.ok).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        self.ends.last().map_or(Time::ZERO, |end| *end - start)
    }

    /// Host programs, and the commands that they went in.
    pub(crate) fn commands(&self) -> (u64, u64) {
        (self.seen.programs.get(), self.seen.commands.get())
    }

    /// Host programs.
    pub(crate) fn programs(&self) -> u64 {
        self.device.backend.counters.done[Class::HostProgram as usize]
    }
}

/// Page writes at these pages.
pub(crate) fn writes(pages: impl IntoIterator<Item = u64>) -> impl Iterator<Item = Io> {
    pages.into_iter().map(|page| (IoOp::Write, page * PAGE, PAGE))
}

/// Page writes in flight, on average, if every one works for the time of a program.
pub(crate) fn at_work(ios: u64, took: Time) -> f64 {
    ios as f64 * PROGRAM.ps() as f64 / took.ps() as f64
}
