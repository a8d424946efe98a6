//! Engine in front of the device that HybridGPU has.

use super::super::*;
use crate::device::Device;
use crate::device::{Event as DeviceEvent, Out as DeviceOut};
use crate::spec::{Built, FlashSpec};
use engine::EventQueue;
use nand::dies::op::Class;
use proto::memory::{Absent, LINE};
use serde::Deserialize;

#[derive(Deserialize)]
struct Platform {
    engine: EngineSpec,
    flash: FlashSpec,
}

fn platform() -> Platform {
    toml::from_str(include_str!("hybridgpu.toml")).expect("a valid platform")
}

engine::events! {
    enum Ev {
        Engine(Event),
        Device(DeviceEvent),
    }
}

/// Queue as seen by a component that sends messages `O`.
struct Port<'a, O> {
    queue: &'a mut EventQueue<Ev>,
    sent: &'a mut Vec<O>,
}

engine::context! {
    Port<'_, Out>: Cx<Event, Out>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Engine(event),
    out: |me, out| me.sent.push(out),
}

engine::context! {
    Port<'_, DeviceOut>: Cx<DeviceEvent, DeviceOut>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Device(event),
    out: |me, out| me.sent.push(out),
}

struct Bench {
    engine: Engine,
    device: Device,
    queue: EventQueue<Ev>,
    from_engine: Vec<Out>,
    from_device: Vec<DeviceOut>,
    answers: u64,
}

impl Bench {
    fn new(platform: &Platform) -> Bench {
        let built = Built { seed: 1, name: "ssd".into(), fold: true };
        let device = platform.flash.build(&built).expect("a valid device");
        let mut engine = Engine::new(&platform.engine, LINE).expect("a valid engine");
        engine.set_capacity(device.capacity());
        Bench {
            engine,
            device,
            queue: EventQueue::new(),
            from_engine: Vec::new(),
            from_device: Vec::new(),
            answers: 0,
        }
    }

    fn send(&mut self, page: u64, lines: u64, write: bool) {
        let since = self.queue.now();
        let page = page * PAGE;
        let command = MemCommand {
            from: proto::Port::default(),
            tag: 0,
            page,
            lines,
            write,
            demand: true,
            app: 0,
            port: 0,
            pc: 1,
            absent: Absent::Wait,
            since,
        };
        self.engine.command(command, &mut Port { queue: &mut self.queue, sent: &mut self.from_engine });
        self.settle();
    }

    fn settle(&mut self) {
        while !self.from_engine.is_empty() || !self.from_device.is_empty() {
            for out in std::mem::take(&mut self.from_engine) {
                match out {
                    Out::Done(_) => self.answers += 1,
                    Out::Submit(command) => {
                        self.device.submit(
                            command,
                            &mut Port { queue: &mut self.queue, sent: &mut self.from_device },
                        );
                    }
                }
            }
            for out in std::mem::take(&mut self.from_device) {
                let DeviceOut::Complete(completion) = out;
                self.engine
                    .completed(completion, &mut Port { queue: &mut self.queue, sent: &mut self.from_engine });
            }
        }
    }

    fn step(&mut self) -> bool {
        match self.queue.pop() {
            None => return false,
            Some(Ev::Engine(event)) => {
                self.engine.handle(event, &mut Port { queue: &mut self.queue, sent: &mut self.from_engine });
            }
            Some(Ev::Device(event)) => {
                self.device.handle(event, &mut Port { queue: &mut self.queue, sent: &mut self.from_device });
            }
        }
        self.settle();
        true
    }

    fn drain(&mut self) {
        while self.step() {}
        let all = self.engine.checks().into_iter().chain(self.device.checks(self.queue.now()));
        for check in all {
            assert!(check.ok, "{check:?}");
        }
        assert_eq!((self.engine.outstanding(), self.device.in_flight()), (0, 0));
    }

    /// `depth` requests at a time; returns the bytes a second that they move.
    fn rate(&mut self, depth: u64, count: u64, next: impl Fn(u64) -> (u64, u64, bool)) -> f64 {
        let (start, first) = (self.queue.now(), self.answers);
        let (mut sent, mut bytes) = (0, 0);
        while self.answers - first < count {
            while sent < count && sent - (self.answers - first) < depth {
                let (page, lines, write) = next(sent);
                bytes += u64::from(lines.count_ones()) * LINE;
                self.send(page, lines, write);
                sent += 1;
            }
            assert!(self.step(), "an answer is to come");
        }
        bytes as f64 / self.queue.now().since(start).as_s_f64()
    }
}

#[test]
fn a_miss_takes_what_engine_and_device_say() {
    let mut bench = Bench::new(&platform());
    // Table I of ZnG: 16 x 8 x 8 planes of 1024 blocks of 384 pages, of which 22.27 % are spare.
    let raw = 1024 * 1024 * 384u64;
    assert_eq!(bench.device.capacity(), (raw - raw * 57 / 256) * PAGE);
    bench.send(77, 1, false);
    while bench.answers == 0 {
        assert!(bench.step());
    }
    // Toggle: 20 ns select, 7 cycles of 25 ns, 100 ns to busy; 20 + 30 ns to data; 4 KiB at 800 MB/s.
    let device = 20_000 + 7 * 25_000 + 100_000 + 3_000_000 + 50_000 + 5_120_000;
    let engine = 5_000 + 5_000_000 + 27_500 + 640_000 + 20_000 + 13_750;
    assert_eq!(bench.queue.now().ps(), engine + device);
    bench.drain();
}

#[test]
fn misses_are_limited_by_the_ftl_and_the_bus_is_the_next_limit() {
    // 8 translations of 5 us: 6.55 GB/s of pages; they cross the bus of 6.4 GB/s, and a line each once more.
    let mut bench = Bench::new(&platform());
    let pages = 2_000;
    let lines = bench.rate(256, pages, |n| (n * 33, 1, false));
    let limit = 6.4e9 / (PAGE + LINE) as f64;
    let rate = lines / LINE as f64;
    assert!((rate / limit - 1.0).abs() < 0.03, "{rate} pages a second");
    bench.drain();
}

#[test]
fn pages_written_again_and_again_come_through() {
    let mut bench = Bench::new(&platform());
    // A 4 MiB working set through 1 MiB, a line at a time.
    let rate = bench.rate(512, 6_000, |n| (n * 389 % 1024, 1 << (n % 32), n % 3 != 0));
    assert!(rate > 0.0);
    bench.drain();
    let stats = bench.engine.stats;
    assert!(stats.evictions > 256 && stats.merged_from_flash > 0, "{stats:?}");
    assert_eq!(stats.flash_writes, stats.evictions);
    assert_eq!(stats.ftl_requests, stats.flash_reads + stats.flash_writes);
    assert_eq!(bench.device.backend.counters.done[Class::HostProgram as usize], stats.flash_writes);
}
