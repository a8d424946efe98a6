//! Memories alone: latencies, bandwidths, order.

mod bandwidth;
mod energy;
mod latency;
mod order;
mod presets;
mod random;

use super::{Dram, DramSpec, Event, Out};
use engine::{Cx, EventQueue, Time};
use proto::memory::{Absent, LINE, MemCommand, PAGE};

engine::events! {
    enum Ev {
        Dram(Event),
        Arrive(u32),
    }
}

/// A memory with commands that arrive at given times, or when others are done.
struct Bench {
    dram: Dram,
    outside: Outside,
}

struct Outside {
    queue: EventQueue<Ev>,
    commands: Vec<MemCommand>,
    /// Commands that are done, in their order.
    done: Vec<(Time, MemCommand)>,
    /// Numbers of commands that begin as others end.
    following: std::ops::Range<u32>,
}

engine::context! {
    Outside: Cx<Event, Out>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Dram(event),
    out: |me, out| {
        let Out::Done(command) = out;
        me.done.push((me.queue.now(), command));
        if let Some(next) = me.following.next() {
            me.queue.after(Time::ZERO, Ev::Arrive(next));
        }
    },
}

impl Bench {
    fn new(spec: &DramSpec) -> Bench {
        Bench::of_lines(spec, LINE)
    }

    fn of_lines(spec: &DramSpec, line: u64) -> Bench {
        let outside =
            Outside { queue: EventQueue::new(), commands: Vec::new(), done: Vec::new(), following: 0..0 };
        Bench { dram: Dram::new(spec, line).expect("can be built"), outside }
    }

    /// A command arrives at `at`; it is told by its number in the order of these calls.
    fn at(&mut self, at: Time, command: MemCommand) {
        let number = self.outside.commands.len() as u32;
        self.outside.commands.push(MemCommand { tag: number, since: at, ..command });
        self.outside.queue.after(at, Ev::Arrive(number));
    }

    /// Runs until nothing is left; answers when each command was done.
    fn run(&mut self) -> Vec<Time> {
        let outside = &mut self.outside;
        while let Some(event) = outside.queue.pop() {
            match event {
                Ev::Dram(event) => self.dram.handle(event, outside),
                Ev::Arrive(number) => {
                    let mut command = outside.commands[number as usize];
                    command.since = outside.now();
                    self.dram.command(command, outside);
                }
            }
        }
        assert_eq!(self.dram.outstanding(), 0, "commands are left");
        let mut ends = vec![Time::MAX; outside.commands.len()];
        for (at, command) in &outside.done {
            let end = &mut ends[command.tag as usize];
            assert_eq!(std::mem::replace(end, *at), Time::MAX, "command {} is done twice", command.tag);
        }
        ends
    }

    /// Runs commands in order, `outstanding` of them at a time; answers the bytes a second.
    fn closed_loop(&mut self, commands: Vec<MemCommand>, outstanding: u32) -> f64 {
        let (bytes, count) = (commands.iter().map(|c| c.bytes(LINE)).sum::<u64>(), commands.len() as u32);
        for (number, command) in (0..).zip(commands) {
            self.outside.commands.push(MemCommand { tag: number, ..command });
        }
        for number in 0..outstanding.min(count) {
            self.outside.queue.after(Time::ZERO, Ev::Arrive(number));
        }
        self.outside.following = outstanding.min(count)..count;
        self.run();
        bytes as f64 / self.outside.now().as_s_f64()
    }
}

/// One line at an address.
fn line(address: u64, write: bool) -> MemCommand {
    lines(address / PAGE * PAGE, 1 << (address % PAGE / LINE), write)
}

fn lines(page: u64, lines: u64, write: bool) -> MemCommand {
    MemCommand {
        from: proto::Port::default(),
        tag: 0,
        page,
        lines,
        write,
        demand: true,
        app: 0,
        port: 0,
        pc: 0,
        absent: Absent::Wait,
        since: Time::ZERO,
    }
}

fn read(address: u64) -> MemCommand {
    line(address, false)
}

fn write(address: u64) -> MemCommand {
    line(address, true)
}

/// The memory with one controller, no refresh, and the banks in the order of addresses.
fn plain(spec: DramSpec) -> DramSpec {
    let mut spec = DramSpec { controllers: 1, refresh: None, ..spec };
    spec.banks.hash = false;
    spec
}

/// Where row `row` of bank `bank` begins, in a plain memory.
fn row_of(spec: &DramSpec, bank: u64, row: u64) -> u64 {
    (row * u64::from(spec.banks.count) + bank) * spec.banks.row.get()
}

/// The time of so many lines on the data bus, as the data sheet's numbers give it.
fn on_the_bus(spec: &DramSpec, lines: u64) -> Time {
    let bytes_a_second = spec.bus.rate.per_s() * u64::from(spec.bus.width / 8);
    Time::from_ps((LINE * 1_000_000_000_000).div_ceil(bytes_a_second) * lines)
}
