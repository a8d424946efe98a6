//! An initiator, its queue, and a device that takes a fixed time.

use super::*;
use config::units::{Bytes, Duration};
use engine::EventQueue;
use proptest::prelude::*;
use proto::memory::{Absent, CPU_LINE, LINE};
use std::collections::{BTreeMap, BTreeSet};

/// Sizes of lines.
const SIZES: [u64; 4] = [CPU_LINE, LINE, 256, 512];

const DISPATCH: u64 = 2;
const GATHER: u64 = 10;
const READ: u64 = 1_000;
const WRITE: u64 = 5_000;

engine::events! {
    enum Ev {
        Part(Event),
        Device(u32),
    }
}

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

struct Rig {
    part: Initiator,
    queue: EventQueue<Ev>,
    at_device: BTreeMap<u32, Command>,
    most_at_device: usize,
    /// Answers: nanosecond and tag.
    answers: Vec<(u64, u32)>,
    done: Vec<Command>,
    next_tag: u32,
}

fn spec(pages: u64, ways: u32, queues: u16, depth: u32) -> InitiatorSpec {
    InitiatorSpec {
        entrance: EntranceChoice::inner,
        dispatch_time: Duration::new(Time::from_ns(DISPATCH)),
        queues,
        depth,
        gather: GatherSpec {
            capacity: Bytes::from_kib(4 * pages),
            ways,
            latency: Duration::new(Time::from_ns(GATHER)),
        },
    }
}

impl Rig {
    /// With a GPU's lines.
    fn new(spec: &InitiatorSpec) -> Rig {
        Rig::of_lines(spec, LINE)
    }

    fn of_lines(spec: &InitiatorSpec, line: u64) -> Rig {
        Rig {
            part: Initiator::new(spec, 2, line).expect("a valid initiator"),
            queue: EventQueue::new(),
            at_device: BTreeMap::new(),
            most_at_device: 0,
            answers: Vec::new(),
            done: Vec::new(),
            next_tag: 0,
        }
    }

    fn request(&mut self, page: u64, lines: u64, write: bool) {
        let tag = self.next_tag;
        self.next_tag += 1;
        let command = MemCommand {
            from: proto::Port::default(),
            tag,
            page: page * PAGE,
            lines,
            write,
            demand: true,
            app: (page % 2) as u8,
            port: 0,
            pc: 1,
            absent: Absent::Wait,
            since: self.queue.now(),
        };
        let mut sent = Vec::new();
        self.part.command(command, &mut Port { queue: &mut self.queue, sent: &mut sent });
        self.sort(sent);
    }

    fn sort(&mut self, sent: Vec<Out>) {
        for out in sent {
            match out {
                Out::Done(command) => self.answers.push((self.queue.now().ps() / 1000, command.tag)),
                Out::Submit(command) => {
                    let time = if command.op == IoOp::Read { READ } else { WRITE };
                    self.queue.after(Time::from_ns(time), Ev::Device(command.tag));
                    assert_eq!(self.at_device.insert(command.tag, command), None, "a tag that is in use");
                    self.most_at_device = self.most_at_device.max(self.at_device.len());
                }
            }
        }
    }

    fn run(&mut self) {
        while let Some(event) = self.queue.pop() {
            let mut sent = Vec::new();
            let mut port = Port { queue: &mut self.queue, sent: &mut sent };
            match event {
                Ev::Part(event) => self.part.handle(event, &mut port),
                Ev::Device(tag) => {
                    let command = self.at_device.remove(&tag).expect("it is at the device");
                    self.done.push(command);
                    self.part.completed(
                        Completion {
                            tag,
                            to: proto::Port::default(),
                            status: Status::Success,
                            errors: 0,
                            buffer: proto::BufferState::Unknown,
                        },
                        &mut port,
                    );
                }
            }
            self.sort(sent);
            let broken: Vec<_> = self.part.checks().into_iter().filter(|check| !check.ok).collect();
            assert!(broken.is_empty(), "{broken:?}");
        }
    }
}

/// Offset and bytes.
fn extents(done: &[Command], op: IoOp) -> Vec<(u64, u64)> {
    done.iter().filter(|command| command.op == op).map(|c| (c.offset, c.bytes)).collect()
}

#[test]
fn a_read_is_one_command_over_its_sectors() {
    let mut rig = Rig::new(&spec(4, 2, 2, 8));
    rig.request(3, 0b11_0000, false);
    rig.request(3, 1 << 31 | 1, false);
    rig.run();
    assert_eq!(extents(&rig.done, IoOp::Read), [(3 * PAGE + 512, 512), (3 * PAGE, PAGE)]);
    assert_eq!(rig.answers, [(DISPATCH + READ, 0), (2 * DISPATCH + READ, 1)]);
    let queues: Vec<u16> = rig.done.iter().map(|command| command.queue).collect();
    assert_eq!(queues, [INNER, INNER + 1], "queues of its own, in turn");
    let flow = &rig.part.flows[1];
    assert_eq!((flow.read.requests, flow.read.bytes, flow.write.requests), (2, PAGE + 512, 0));
    assert_eq!(flow.read.latency.max(), Some(READ * 1000));
}

#[test]
fn written_lines_wait_for_the_rest_of_their_sector() {
    let mut rig = Rig::new(&spec(2, 2, 1, 8));
    // All lines of sector 0, one of sector 5; page 2 takes the other way, and the oldest page leaves ahead.
    for line in [0, 1, 2, 3, 20] {
        rig.request(0, 1 << line, true);
    }
    rig.run();
    assert_eq!(rig.done, []);
    assert_eq!(rig.answers[0], (DISPATCH + GATHER, 0));
    rig.request(0, 0b1001, false);
    rig.run();
    assert_eq!((rig.done.len(), rig.part.stats.gathered_reads), (0, 1));
    rig.request(2, 1, true);
    rig.run();
    assert_eq!(extents(&rig.done, IoOp::Read), [(5 * 512, 512)], "what was written in part is read");
    assert_eq!(extents(&rig.done, IoOp::Write), [(0, 512), (5 * 512, 512)]);
    assert_eq!((rig.part.stats.evictions, rig.part.stats.fills), (1, 1));
    assert_eq!(rig.part.outstanding(), 0);
}

#[test]
fn a_write_to_a_page_that_leaves_waits_for_it() {
    let mut rig = Rig::new(&spec(2, 2, 1, 8));
    rig.request(0, 0b1111, true);
    rig.request(2, 0b1111, true);
    rig.request(0, 0b1111, true);
    rig.run();
    // Page 0 leaves when page 2 has taken the second place, 4 ns after the start; its write takes 5 us.
    assert_eq!(rig.answers[2], (2 * DISPATCH + WRITE + GATHER, 2));
    assert_eq!(rig.part.stats.waits_for_room, 1);
}

#[test]
fn commands_wait_for_an_entry_and_the_wait_counts() {
    let mut rig = Rig::new(&spec(2, 2, 1, 1));
    rig.request(1, 1, false);
    rig.request(1, 2, false);
    rig.run();
    assert_eq!(rig.answers, [(DISPATCH + READ, 0), (DISPATCH + 2 * READ, 1)]);
    let read = &rig.part.flows[1].read;
    assert_eq!(read.latency.max(), Some((2 * READ - DISPATCH) * 1000));
    assert_eq!(read.parts().device.max(), Some(READ * 1000));
    assert_eq!(rig.part.stats.waits_for_entry, 1);
    // The first waits 2 ns for the dispatcher, the second 4 ns, and then until the first is back.
    let waited = rig.part.tally.reads()[Stage::Controller as usize];
    assert_eq!(waited, u128::from(DISPATCH + DISPATCH + READ) * 1000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every request is answered; written data is at the device or still gathered, and only sectors with a written line
    /// are written.
    #[test]
    fn nothing_is_lost(
        requests in proptest::collection::vec((0_u64..6, 1_u64.., any::<bool>()), 1..80),
        line in proptest::sample::select(SIZES.to_vec()),
        ways in 1_u32..3,
        queues in 1_u16..3,
        depth in 1_u32..4,
    ) {
        let mut rig = Rig::of_lines(&spec(u64::from(ways) * 2, ways, queues, depth), line);
        let all = Lines::of(line).expect("a size of lines").all();
        let mut written: BTreeSet<u64> = BTreeSet::new();
        for (page, mask, write) in &requests {
            let lines = (mask & all).max(1);
            rig.request(*page, lines, *write);
            if *write {
                written.extend((0..PAGE / line).filter(|l| lines >> l & 1 == 1).map(|l| page * PAGE + l * line));
            }
        }
        rig.run();
        prop_assert_eq!(rig.answers.len(), requests.len());
        prop_assert_eq!(rig.part.outstanding(), 0);
        prop_assert!(rig.most_at_device <= usize::from(queues) * depth as usize);
        let at_device: BTreeSet<u64> = extents(&rig.done, IoOp::Write)
            .into_iter()
            .flat_map(|(offset, bytes)| (offset..offset + bytes).step_by(line as usize))
            .collect();
        for at in &written {
            let gathered = rig.part.gather.lines(at / PAGE) >> (at % PAGE / line) & 1 == 1;
            prop_assert!(gathered || at_device.contains(at), "the line at {at:#x} is nowhere");
        }
        for at in at_device {
            let sector = at / 512 * 512;
            prop_assert!(written.range(sector..sector + 512).next().is_some(), "no write to {at:#x}");
        }
    }

    /// Equal bytes come and go at equal times, for any number of lines: half sectors are written by lines of 64,
    /// 128 and 256 B.
    #[test]
    fn lines_of_all_sizes_move_the_same_bytes(
        requests in proptest::collection::vec((0_u64..6, 1_u64..1 << 16, any::<bool>()), 1..60),
    ) {
        let run = |line: u64| {
            let mut rig = Rig::of_lines(&spec(4, 2, 2, 2), line);
            for (page, halves, write) in &requests {
                let held = (0..PAGE / line).filter(|n| halves >> (n * line / 256) & 1 == 1);
                rig.request(*page, held.fold(0, |lines, n| lines | 1 << n), *write);
            }
            rig.run();
            (rig.answers, rig.done, rig.part.stats)
        };
        for line in [CPU_LINE, LINE] {
            prop_assert_eq!(run(line), run(256));
        }
    }
}

/// Lines of 64 B fill a sector by eights.
#[test]
fn a_sector_of_short_lines_is_whole_when_all_are_written() {
    let mut rig = Rig::of_lines(&spec(2, 2, 1, 8), CPU_LINE);
    rig.request(0, 0xFF | 1 << 63, true);
    rig.request(2, 1, true);
    rig.run();
    assert_eq!(extents(&rig.done, IoOp::Read), [(7 * 512, 512)], "the last sector was written in part");
    assert_eq!(extents(&rig.done, IoOp::Write), [(0, 512), (7 * 512, 512)]);
}

#[test]
fn a_line_is_of_a_size_that_memories_have() {
    for line in [0, 32, 96, 1024] {
        let fault = Initiator::new(&spec(2, 2, 1, 8), 2, line).err().expect("cannot be built");
        assert_eq!(fault.key, "line");
    }
}
