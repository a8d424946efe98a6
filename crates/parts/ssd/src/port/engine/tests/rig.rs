//! Engine with its queue, and a device that takes a fixed time, or as the test decides; and a check of every answer.

use super::super::{trail::Moved, *};
use config::units::{Bandwidth, Bytes, Duration};
use engine::EventQueue;
use proptest::prelude::*;
use proto::memory::{Absent, CPU_LINE, LINE, Lines};
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
/// A page in the row crosses in 640 ns; its column latency does not delay the next reader.
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
    /// Completed commands, for tests that follow the data.
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

    /// Runs one event and returns its message; `None` without an event.
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

// Every request is answered once, and every read with what was written before it: versions are moved along where the
// engine says that it moves data.

type Versions = [u32; Lines::MOST];

const UNWRITTEN: Versions = [0; Lines::MOST];

/// Sizes of lines.
const SIZES: [u64; 4] = [CPU_LINE, LINE, 256, 512];

fn lines_of(mask: u64) -> impl Iterator<Item = usize> {
    (0..Lines::MOST).filter(move |n| mask >> n & 1 == 1)
}

/// DRAM rows, flash pages and pages on their way, each line with the tag, plus one, of the write that stored it.
struct World {
    lines: Lines,
    rows: BTreeMap<u32, Versions>,
    flash: BTreeMap<u64, Versions>,
    on_the_way: BTreeMap<u64, Versions>,
    /// Versions brought by each read.
    loaded: BTreeMap<u32, Versions>,
}

impl Step {
    /// Lines of the read, at least one.
    fn lines_of(&self, lines: Lines) -> u64 {
        match self.lines & lines.all() {
            0 => 1 << (self.lines.trailing_zeros() % lines.count()),
            some => some,
        }
    }
}

impl World {
    fn new(lines: Lines) -> World {
        let (rows, flash, on_the_way, loaded) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        World { lines, rows, flash, on_the_way, loaded }
    }

    fn row(&mut self, row: u32) -> &mut Versions {
        self.rows.entry(row).or_insert(UNWRITTEN)
    }

    fn take(&mut self, moved: &Moved) {
        match *moved {
            Moved::Stored { tag, row, lines: mask } => {
                lines_of(mask).for_each(|n| self.row(row)[n] = tag + 1)
            }
            Moved::Loaded { tag, row, lines: mask, newer } => {
                let mut brought = *self.row(row);
                if let Some((valid, other)) = newer {
                    let other = *self.row(other);
                    lines_of(valid).for_each(|n| brought[n] = other[n]);
                }
                let kept = self.loaded.entry(tag).or_insert(UNWRITTEN);
                lines_of(mask).for_each(|n| kept[n] = brought[n]);
            }
            Moved::Filled { page, row, lines: mask } => {
                let flash = self.flash.get(&page).copied().unwrap_or(UNWRITTEN);
                let row = self.row(row);
                lines_of(mask).for_each(|n| row[n] = flash[n]);
            }
            Moved::Out { page, row, lines: mask, rest } => {
                let mut out = *self.row(row);
                if mask != self.lines.all() {
                    let rest = *self.row(rest.expect("the missing lines come from somewhere"));
                    lines_of(!mask).for_each(|n| out[n] = rest[n]);
                }
                assert!(self.on_the_way.insert(page, out).is_none(), "two writes of page {page} at once");
            }
        }
    }

    fn programmed(&mut self, page: u64) {
        let out = self.on_the_way.remove(&page).expect("a page on its way");
        self.flash.insert(page, out);
    }
}

#[derive(Clone, Debug)]
struct Step {
    delay: u64,
    page: u64,
    /// Lines of 64 B, of which there may be fewer.
    lines: u64,
    write: bool,
}

fn step() -> impl Strategy<Value = Step> {
    // Few pages in few sets, so that everything meets; delays around those of FTL, device and bus.
    let delay = prop_oneof![Just(0), 0..200_000u64, 0..20_000_000u64];
    let lines =
        prop_oneof![(0..64).prop_map(|n| 1u64 << n), any::<u64>().prop_map(|m| m | 1), Just(u64::MAX)];
    (delay, 0..40u64, lines, prop::bool::weighted(0.6)).prop_map(|(delay, page, lines, write)| Step {
        delay,
        page,
        lines,
        write,
    })
}

/// Runs the steps and compares every answer with the last write before its read.
fn check(steps: &[Step], device: Vec<u64>, evictions: u32, prefetch: bool, lines: Lines) {
    let mut small = spec();
    small.read_buffer.capacity = config::units::Bytes::from_kib(32);
    small.evictions = evictions;
    small.prefetch = prefetch.then_some(PrefetchSpec { entries: 3, after: 2, pages: 4 });
    let mut rig = Rig::of_lines(&small, lines.bytes());
    rig.engine.set_capacity(40 * PAGE);
    let mut turn = 0;
    rig.device_time = Box::new(move |_| {
        turn += 1;
        device[turn % device.len()]
    });
    let mut delay = 0;
    for step in steps {
        delay += step.delay;
        rig.arrive(delay, page(step.page), step.lines_of(lines), step.write);
    }
    let mut world = World::new(lines);
    let mut last: BTreeMap<u64, Versions> = BTreeMap::new();
    let mut expected: BTreeMap<u32, Versions> = BTreeMap::new();
    loop {
        let done = rig.done.len();
        let Some(arrived) = rig.step() else { break };
        // A write at the device is there when it completes, before anything is made of that.
        for command in rig.done.split_off(done) {
            if command.op == IoOp::Write {
                world.programmed(command.offset / PAGE);
            }
        }
        for moved in std::mem::take(&mut rig.engine.trail) {
            world.take(&moved);
        }
        if let Some(command) = arrived {
            let versions = last.entry(command.page).or_insert(UNWRITTEN);
            if command.write {
                lines_of(command.lines).for_each(|n| versions[n] = command.tag + 1);
            } else {
                expected.insert(command.tag, *versions);
            }
        }
        assert!(rig.engine.checks().iter().all(|check| check.ok), "{:?}", rig.engine.checks());
    }
    let mut tags: Vec<u32> = rig.answers.iter().map(|(_, tag)| *tag).collect();
    tags.sort_unstable();
    let all: Vec<u32> = (0..steps.len() as u32).collect();
    assert_eq!(tags, all, "every request is answered once");
    for (tag, before) in expected {
        let (step, got) = (&steps[tag as usize], world.loaded[&tag]);
        for n in lines_of(step.lines_of(lines)) {
            // Not older than the last write before it; a later one, while it waited, is as good.
            assert!(got[n] >= before[n], "read {tag}, line {n}: {} before {}", got[n], before[n]);
            let stored = got[n] == 0 || {
                let write = &steps[got[n] as usize - 1];
                write.write && write.page == step.page && write.lines_of(lines) >> n & 1 == 1
            };
            assert!(stored, "read {tag}, line {n}: {} is another line's", got[n]);
        }
    }
    assert_eq!(rig.engine.outstanding(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn reads_bring_what_was_written(
        steps in prop::collection::vec(step(), 1..120),
        device in prop::collection::vec(100_000..60_000_000u64, 1..12),
        evictions in 1..4u32,
        prefetch in any::<bool>(),
        line in prop::sample::select(SIZES.to_vec()),
    ) {
        check(&steps, device, evictions, prefetch, Lines::of(line).expect("a size of lines"));
    }

    /// Equal bytes come and go at equal times, for any number of lines.
    #[test]
    fn lines_of_all_sizes_move_the_same_bytes(
        steps in prop::collection::vec((0..200_000u64, 0..40u64, 1..256u64, any::<bool>()), 1..60),
    ) {
        let run = |line: u64| {
            let mut rig = Rig::of_lines(&spec(), line);
            let (mut delay, each) = (0, 512 / line);
            for (wait, number, pieces, write) in &steps {
                delay += wait;
                let lines = (0..PAGE / line).filter(|n| pieces >> (n / each) & 1 == 1).fold(0, |lines, n| lines | 1 << n);
                rig.arrive(delay, page(*number), lines, *write);
            }
            (rig.drain(), rig.engine.stats, rig.engine.dram_traffic())
        };
        for line in SIZES {
            prop_assert_eq!(run(line), run(512));
        }
    }
}
