//! Worked examples of registers that gather writes: one package of one die of two planes, a register each.

use crate::device::{Device, Event, Out};
use crate::soak::Combination;
use crate::spec::{Built, FlashSpec};
use config::units::Share;
use engine::{Recorder, Time};
use nand::registers::spec::{NifSpec, RegisterNetwork};
use proto::{Command, IoOp};

const PAGE: u64 = 4096;

fn spec(network: RegisterNetwork) -> FlashSpec {
    let combination = Combination { page: PAGE, tight: false, ..Combination::plain() };
    let mut spec = combination.with_registers(false).spec();
    (spec.geometry.channels, spec.geometry.ways, spec.geometry.dies, spec.geometry.planes) = (1, 1, 1, 2);
    let registers = spec.registers.as_mut().expect("it has registers");
    (registers.count, registers.network, registers.reserve) = (2, network, Share::ZERO);
    spec
}

struct Bench {
    device: Device,
    cx: Recorder<Event, Out>,
    spec: FlashSpec,
}

impl Bench {
    fn new(network: RegisterNetwork) -> Bench {
        let spec = spec(network);
        let context = Built { seed: 1, name: "drive".into(), fold: true };
        let mut device = spec.build(&context).expect("it can be built");
        device.attach_shadow();
        Bench { device, cx: Recorder::default(), spec }
    }

    fn submit(&mut self, op: IoOp, page: u64, bytes: u64) {
        self.device.submit(Command::new(0, op, page * PAGE, bytes), &mut self.cx);
    }

    /// Until so many answers have come; when the last one came.
    fn until(&mut self, answers: usize) -> Time {
        while self.cx.sent.len() < answers {
            let event = self.cx.queue.pop().expect("something is under way");
            self.device.handle(event, &mut self.cx);
        }
        self.cx.sent.clear();
        self.cx.queue.now()
    }

    /// One command alone; how long it took.
    fn one(&mut self, op: IoOp, page: u64, bytes: u64) -> Time {
        let begin = self.cx.queue.now();
        self.submit(op, page, bytes);
        self.until(1) - begin
    }

    /// As [`Bench::one`]; then nothing is under way.
    fn flush(&mut self) -> Time {
        self.one(IoOp::Flush, 0, 0)
    }

    /// tR, tPROG of a block's first page, and bytes over the channel.
    fn times(&self) -> (Time, Time, Time) {
        let data = net::Rate::new(self.spec.channel.bytes_per_s()).time(PAGE);
        (self.spec.cell.read[0].time(), self.spec.cell.program[0].time(), data)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let failed: Vec<_> =
                self.device.checks(self.cx.queue.now()).into_iter().filter(|c| !c.ok).collect();
            assert_eq!(failed, []);
        }
    }
}

fn nif() -> RegisterNetwork {
    RegisterNetwork::nif(NifSpec::default())
}

#[test]
fn a_read_from_a_register_saves_the_sensing() {
    let mut bench = Bench::new(nif());
    bench.one(IoOp::Write, 0, PAGE);
    let held = bench.one(IoOp::Read, 0, PAGE);
    bench.flush();
    let sensed = bench.one(IoOp::Read, 0, PAGE);
    let (sensing, _, _) = bench.times();
    let channel = &bench.spec.channel;
    assert_eq!(sensed - held, channel.read_command() + sensing - channel.column_command());
    let counters = bench.device.register_counters().expect("it has registers");
    assert_eq!((counters.stores, counters.merged, counters.reads), (1, 0, 1));
}

#[test]
fn a_die_takes_data_while_it_programs() {
    let mut bench = Bench::new(nif());
    let idle = bench.one(IoOp::Write, 0, PAGE);
    // The page is being programmed when the next write comes, and long after its data has.
    bench.submit(IoOp::Flush, 0, 0);
    let until = bench.cx.queue.now() + Time::from_us(50);
    while bench.cx.queue.now() < until {
        let event = bench.cx.queue.pop().expect("the program ends");
        bench.device.handle(event, &mut bench.cx);
        if bench.device.backend.ops.len() == 1 && bench.cx.sent.is_empty() {
            break;
        }
    }
    let begin = bench.cx.queue.now();
    bench.submit(IoOp::Write, 1, PAGE);
    assert_eq!(bench.until(1) - begin, idle);
    bench.until(1);
}

#[test]
fn a_page_in_part_is_completed_where_it_is() {
    let mut bench = Bench::new(nif());
    bench.one(IoOp::Write, 0, PAGE);
    let whole = bench.flush();
    // The other plane: the first page of its block as well.
    bench.one(IoOp::Write, 1, PAGE);
    assert_eq!(bench.flush(), whole);
    let (sensing, program, _) = bench.times();
    bench.one(IoOp::Write, 0, 512);
    let part = bench.flush();
    // The second page of a word line takes longer to be programmed.
    let second = bench.spec.cell.program[1].time();
    assert_eq!(part - whole, bench.spec.channel.read_command() + sensing + second - program);
}

/// Two pages of one plane: the second is in the register of the other plane, and is programmed behind the first.
#[test]
fn a_page_reaches_its_plane_by_the_network() {
    let both = |network| {
        let mut bench = Bench::new(network);
        bench.one(IoOp::Write, 0, PAGE);
        bench.one(IoOp::Write, 2, PAGE);
        let counters = bench.device.register_counters().expect("it has registers");
        assert_eq!(counters.stores, 2);
        let took = bench.flush();
        let moves = bench.device.register_counters().expect("it has registers").moves;
        (took, moves, bench.times().2, bench.spec.channel.data_in())
    };
    let (fcnet, moves, data, data_in) = both(RegisterNetwork::fcnet);
    assert_eq!(moves, 1);
    // 4 KiB by 8 bytes 800 million times a second.
    let shift = Time::from_ns(640);
    assert_eq!(both(nif()).0 - fcnet, shift);
    // Out to the controller while the first is programmed, and in again with the program.
    assert_eq!(both(RegisterNetwork::swnet).0 - fcnet, data_in + data);
}

/// Alone in its plane, the second page has no register until the first has been programmed.
#[test]
fn a_private_register_takes_one_page_of_its_plane() {
    let mut bench = Bench::new(RegisterNetwork::private);
    let first = bench.one(IoOp::Write, 0, PAGE);
    let other = bench.one(IoOp::Write, 1, PAGE);
    assert_eq!(first, other);
    let second = bench.one(IoOp::Write, 2, PAGE);
    let (_, program, _) = bench.times();
    assert_eq!(second, first + bench.spec.channel.program_command() + program);
    assert_eq!(bench.device.register_counters().expect("it has registers").moves, 0);
}

#[test]
fn what_is_written_again_is_programmed_once() {
    let mut bench = Bench::new(nif());
    (0..5).for_each(|_| _ = bench.one(IoOp::Write, 0, 512));
    let counters = bench.device.register_counters().expect("it has registers");
    assert_eq!((counters.stores, counters.merged), (5, 4));
    bench.flush();
    assert_eq!(bench.device.window_counters().1.host_commits, 1);
}

#[test]
fn what_registers_cannot_do_is_refused() {
    use crate::spec::ReclaimUnit;
    use ftl::page_map::alloc::Allocation;
    let fault = |change: &dyn Fn(&mut FlashSpec)| {
        let mut spec = spec(nif());
        change(&mut spec);
        let context = Built { seed: 1, name: "drive".into(), fold: true };
        spec.build(&context).err().map(|fault| fault.key)
    };
    assert_eq!(fault(&|_| ()), None);
    let told: Vec<_> = [
        fault(&|s| s.registers.as_mut().expect("registers").count = 1),
        fault(&|s| s.ftl.map_unit = config::units::Bytes::new(2048)),
        fault(&|s| s.ftl.reclaim_unit = ReclaimUnit::plane_set),
        fault(&|s| s.ftl.allocation = Allocation::round_robin),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert_eq!(told, ["registers.count", "ftl.map_unit", "ftl.reclaim_unit", "ftl.allocation"]);
}
