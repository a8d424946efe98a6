//! An engine, its queue, and a device that takes a fixed time, or whatever the test says.

use super::super::*;
use config::units::{Bandwidth, Bytes, Duration};
use engine::EventQueue;
use proto::memory::{Absent, LINE};
use std::collections::BTreeMap;

/// Picoseconds of each step. DDR3-1600 11-11-11 on 32 bits: 6.4 GB/s, tRP = tRCD = tCL = 13.75 ns.
pub(super) const DISPATCH: u64 = 5_000;
pub(super) const FTL: u64 = 5_000_000;
pub(super) const READ: u64 = 8_000_000;
pub(super) const PROGRAM: u64 = 105_000_000;
pub(super) const OPEN: u64 = 27_500;
pub(super) const COLUMN: u64 = 13_750;
/// A line crosses in 20 ns and is complete a column latency later.
pub(super) const CROSS_LINE: u64 = 20_000 + COLUMN;
/// A page in the row crosses in 640 ns; who reads it next is not held up by its column latency.
pub(super) const CROSS_PAGE: u64 = 640_000;

pub(super) fn at(ps: u64) -> Time {
    Time::from_ps(ps)
}

/// All lines of a page, of a [`Rig::new`].
pub(super) const ALL: u64 = u64::MAX >> (u64::BITS - (PAGE / LINE) as u32);

/// Address of a page.
pub(super) fn page(n: u64) -> u64 {
    n * PAGE
}

/// 64 pages of 4 ways for reads, 8 pages of 2 ways for writes, so that pages 4 apart share a set.
pub(super) fn spec() -> EngineSpec {
    let ns = |ps| Duration::new(at(ps));
    EngineSpec {
        dispatch_time: ns(DISPATCH),
        ftl_time: ns(FTL),
        ftl_in_service: 8,
        evictions: 16,
        read_buffer: PageBufferSpec { capacity: Bytes::from_kib(256), ways: 4 },
        write_buffer: PageBufferSpec { capacity: Bytes::from_kib(32), ways: 2 },
        dram: BufferDramSpec {
            bandwidth: Bandwidth::new(6_400_000_000),
            latency: ns(COLUMN),
            activate: ns(OPEN),
            banks: 8,
        },
        prefetch: None,
    }
}

/// A DRAM that is never in the way.
pub(super) fn fast() -> BufferDramSpec {
    let zero = Duration::new(Time::ZERO);
    BufferDramSpec { bandwidth: Bandwidth::new(1 << 50), latency: zero, activate: zero, banks: 64 }
}

engine::events! {
    enum Ev {
        Part(Event),
        Device(u32),
        Arrive(u32),
    }
}

/// The queue as the engine sees it.
struct Port<'a> {
    queue: &'a mut EventQueue<Ev>,
    sent: &'a mut Vec<Out>,
}

engine::context! {
    Port<'_>: Cx<Event, Out>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Part(event),
    out: |me, out| {
        me.sent.push(out);
    },
}

pub(super) struct Rig {
    pub(super) engine: Engine,
    queue: EventQueue<Ev>,
    sent: Vec<Out>,
    /// Answers: picosecond and tag.
    pub(super) answers: Vec<(u64, u32)>,
    /// Commands at the device, by the engine's name.
    at_device: BTreeMap<u32, Command>,
    /// Device time of a command.
    pub(super) device_time: Box<dyn FnMut(&Command) -> u64>,
    /// Commands that are done, for those who follow the data.
    pub(super) done: Vec<Command>,
    /// Requests that arrive later.
    later: Vec<MemCommand>,
    next_tag: u32,
}

impl Rig {
    /// With a GPU's lines.
    pub(super) fn new(spec: &EngineSpec) -> Rig {
        Rig::of_lines(spec, LINE)
    }

    pub(super) fn of_lines(spec: &EngineSpec, line: u64) -> Rig {
        Rig {
            engine: Engine::new(spec, line).expect("a valid engine"),
            queue: EventQueue::new(),
            sent: Vec::new(),
            answers: Vec::new(),
            at_device: BTreeMap::new(),
            device_time: Box::new(|command| if command.op == IoOp::Read { READ } else { PROGRAM }),
            done: Vec::new(),
            later: Vec::new(),
            next_tag: 0,
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.queue.now().ps()
    }

    /// A request; its tag counts up.
    fn request(&mut self, page: u64, lines: u64, write: bool, pc: u32) -> MemCommand {
        let tag = self.next_tag;
        self.next_tag += 1;
        let since = self.queue.now();
        MemCommand {
            from: proto::Port::default(),
            tag,
            page,
            lines,
            write,
            demand: true,
            app: 0,
            port: 0,
            pc,
            absent: Absent::Wait,
            since,
        }
    }

    pub(super) fn read(&mut self, page: u64, lines: u64, pc: u32) {
        let command = self.request(page, lines, false, pc);
        self.send(command);
    }

    pub(super) fn write(&mut self, page: u64, lines: u64) {
        let command = self.request(page, lines, true, 1);
        self.send(command);
    }

    /// A request that arrives after a delay.
    pub(super) fn arrive(&mut self, delay: u64, page: u64, lines: u64, write: bool) {
        let mut command = self.request(page, lines, write, 1 + page as u32 % 5);
        command.since = at(self.now() + delay);
        self.later.push(command);
        self.queue.after(at(delay), Ev::Arrive(self.later.len() as u32 - 1));
    }

    fn send(&mut self, command: MemCommand) {
        let mut port = Port { queue: &mut self.queue, sent: &mut self.sent };
        self.engine.command(command, &mut port);
        self.settle();
    }

    fn settle(&mut self) {
        for out in std::mem::take(&mut self.sent) {
            match out {
                Out::Done(command) => {
                    assert_eq!(command.since, self.queue.now(), "the last milestone is the answer");
                    self.answers.push((self.now(), command.tag));
                }
                Out::Submit(command) => {
                    let time = (self.device_time)(&command);
                    assert!(self.at_device.insert(command.tag, command).is_none(), "a name is used once");
                    self.queue.after(at(time), Ev::Device(command.tag));
                }
            }
        }
    }

    /// Runs one event; `None` when there is none. What arrives is returned.
    pub(super) fn step(&mut self) -> Option<Option<MemCommand>> {
        let event = self.queue.pop()?;
        let mut arrived = None;
        let mut port = Port { queue: &mut self.queue, sent: &mut self.sent };
        match event {
            Ev::Part(event) => self.engine.handle(event, &mut port),
            Ev::Device(tag) => {
                let command = self.at_device.remove(&tag).expect("a command at the device");
                self.done.push(command);
                let completion = Completion {
                    tag,
                    to: proto::Port::default(),
                    status: Status::Success,
                    errors: 0,
                    buffer: proto::BufferState::Unknown,
                };
                self.engine.completed(completion, &mut port);
            }
            Ev::Arrive(n) => {
                arrived = Some(self.later[n as usize]);
                self.engine.command(self.later[n as usize], &mut port);
            }
        }
        self.settle();
        Some(arrived)
    }

    /// Runs until nothing is left; the answers since the last call.
    pub(super) fn drain(&mut self) -> Vec<(u64, u32)> {
        while self.step().is_some() {}
        for check in self.engine.checks() {
            assert!(check.ok, "{check:?}");
        }
        std::mem::take(&mut self.answers)
    }

    /// Runs until the next answer.
    pub(super) fn until_answer(&mut self) -> (u64, u32) {
        while self.answers.is_empty() {
            self.step().expect("an answer is to come");
        }
        self.answers.remove(0)
    }

    pub(super) fn step_until(&mut self, holds: impl Fn(&Engine) -> bool) {
        while !holds(&self.engine) {
            self.step().expect("it comes to hold");
        }
    }

    /// `depth` reads at a time, `count` in all.
    pub(super) fn closed_loop(&mut self, depth: u64, count: u64, next: impl Fn(u64) -> (u64, u64)) {
        let mut sent = 0;
        let mut answered = 0;
        while answered < count {
            while sent < count && sent - answered < depth {
                let (page, lines) = next(sent);
                self.read(page, lines, 0);
                sent += 1;
            }
            self.step().expect("an answer is to come");
            answered += self.answers.len() as u64;
            self.answers.clear();
        }
    }
}
