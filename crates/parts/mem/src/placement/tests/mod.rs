//! Placement alone, in front of memories of given latencies that answer in any order.

mod exchanges;
mod memories;
mod places;

use super::policy::{hot as hot_policy, interleave};
use super::*;
use config::units::{Bandwidth, Duration};
use config::{Layers, Presets};
use engine::EventQueue;
use proto::memory::{Absent, CPU_LINE, LINE};
use std::collections::BTreeMap;

engine::events! {
    enum Ev {
        Placement(Event),
        Arrive(u32),
        Answer(u32),
    }
}

/// A command at a memory.
#[derive(Clone, Debug)]
struct Asked {
    at: Time,
    end: Time,
    target: u8,
    command: MemCommand,
    /// Data read, as of the arrival of the command.
    data: Option<Vec<u64>>,
}

/// The caches in front, the memories behind, and what these hold.
///
/// Like caches, those in front have one command at a time for a line, if one of them writes. A memory reads when a command comes and writes
/// when it answers: what comes between finds old data, or is lost.
struct Outside {
    queue: EventQueue<Ev>,
    commands: Vec<MemCommand>,
    /// Commands that wait for others to the same lines.
    waiting: Vec<u32>,
    /// Commands in the placement.
    under_way: Vec<u32>,
    /// Arrival of each command at the placement, in order.
    came: Vec<(u32, Time)>,
    done: Vec<(Time, MemCommand)>,
    asked: Vec<Asked>,
    /// Latency of each command at its memory: these in turn, plus those of each memory.
    latencies: Vec<Time>,
    own: Vec<Time>,
    /// Commands that may be, and are, answered without data.
    signals: u32,
    /// Lines of the frames of memories; one that was never asked for holds the data of the page that is first looked for there.
    frames: BTreeMap<(u8, u64), Vec<u64>>,
    /// Pages of exchanges on their way.
    pages: BTreeMap<(u32, usize), Option<Vec<u64>>>,
    /// Latest contents of each line of the pages in front, and the data that each read must find.
    newest: BTreeMap<(u64, u32), u64>,
    expected: BTreeMap<u32, Vec<u64>>,
}

engine::context! {
    Outside: Cx<Event, Out>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Placement(event),
    out: |me, out| {
        let now = me.queue.now();
        match out {
            Out::Done(command) => me.done.push((now, command)),
            Out::Target { target, command } => me.ask(target, command),
        }
    },
}

/// Contents of the lines of a page that has never been written.
fn fresh(page: u64) -> Vec<u64> {
    vec![page << 32; 64]
}

impl Outside {
    fn ask(&mut self, target: u8, command: MemCommand) {
        let (now, number) = (self.queue.now(), self.asked.len());
        assert_eq!((command.since, command.page % PAGE, command.from), (now, 0, Port::default()));
        if command.pc != 0 {
            // It is that of a command in front, which tells its number so.
            let page = self.commands[command.pc as usize - 1].page;
            self.frames.entry((target, command.page)).or_insert_with(|| fresh(page));
        }
        let data = self.frames.get(&(target, command.page)).filter(|_| !command.write).cloned();
        let end = now + self.latencies[number % self.latencies.len()] + self.own[usize::from(target)];
        self.asked.push(Asked { at: now, end, target, command, data });
        self.queue.after(end - now, Ev::Answer(number as u32));
    }

    /// Answer of a memory, and the effect of the command there.
    fn answer(&mut self, number: usize) -> (u8, MemCommand) {
        let Asked { target, mut command, data, end, .. } = self.asked[number].clone();
        command.since = end;
        let place = (target, command.page);
        match Tag::of(command.tag) {
            Tag::Request(_) if command.write => {
                let frame = self.frames.get_mut(&place).expect("it was asked for");
                each(command.lines).for_each(|line| frame[line as usize] = u64::from(command.pc));
            }
            Tag::Request(_) if command.absent == Absent::Signal && self.signals >> (number % 32) & 1 == 1 => {
                command.absent = Absent::Signalled;
            }
            Tag::Request(_) => {
                let data = data.expect("it was asked for");
                let found: Vec<u64> = each(command.lines).map(|line| data[line as usize]).collect();
                assert_eq!(found, self.expected[&(command.pc - 1)], "old data: {command:?}");
            }
            Tag::Read(name, side) => assert_eq!(self.pages.insert((name, side), data), None),
            Tag::Write(name, side) => {
                match self.pages.remove(&(name, side)).expect("it was read") {
                    Some(data) => self.frames.insert(place, data),
                    None => self.frames.remove(&place),
                };
            }
        }
        (target, command)
    }

    /// Commands that nothing in the placement is in the way of.
    fn ready(&mut self) -> Vec<u32> {
        let mut ready = Vec::new();
        for number in std::mem::take(&mut self.waiting) {
            let own = self.commands[number as usize];
            let is_in_way = |other: &u32| {
                let other = &self.commands[*other as usize];
                other.page == own.page && other.lines & own.lines != 0 && (other.write || own.write)
            };
            if self.under_way.iter().chain(&self.waiting).any(is_in_way) {
                self.waiting.push(number);
                continue;
            }
            self.under_way.push(number);
            let held = each(own.lines).map(|line| (own.page, line));
            if own.write {
                self.newest.extend(held.map(|line| (line, u64::from(own.pc))));
            } else {
                let of = |line| self.newest.get(&line).copied().unwrap_or(own.page << 32);
                self.expected.insert(number, held.map(of).collect());
            }
            ready.push(number);
        }
        ready
    }
}

/// The lines of a mask.
fn each(lines: u64) -> impl Iterator<Item = u32> {
    (0..64).filter(move |line| lines >> line & 1 == 1)
}

struct Bench {
    placement: Placement,
    outside: Outside,
}

impl Bench {
    /// Creates a rig with `pages` pages, the last of which hold page tables.
    fn new(spec: &PlacementSpec, pages: u64, tables: u64) -> Bench {
        Bench::of_lines(spec, pages, tables, CPU_LINE)
    }

    fn of_lines(spec: &PlacementSpec, pages: u64, tables: u64, line: u64) -> Bench {
        let mut placement = Placement::new(spec, line).expect("can be built");
        placement.set_extent((pages - tables) * PAGE, pages * PAGE).expect("there is room");
        let outside = Outside {
            queue: EventQueue::new(),
            commands: Vec::new(),
            waiting: Vec::new(),
            under_way: Vec::new(),
            came: Vec::new(),
            done: Vec::new(),
            asked: Vec::new(),
            latencies: vec![Time::from_ns(100)],
            own: vec![Time::ZERO; spec.sizes.len()],
            signals: 0,
            frames: BTreeMap::new(),
            pages: BTreeMap::new(),
            newest: BTreeMap::new(),
            expected: BTreeMap::new(),
        };
        Bench { placement, outside }
    }

    /// Sends a command at `at`; it is identified by its number in the order of these calls.
    fn at(&mut self, at: Time, command: MemCommand) {
        let number = self.outside.commands.len() as u32;
        self.outside.commands.push(MemCommand { tag: number, pc: number + 1, ..command });
        self.outside.queue.after(at.since(self.outside.queue.now()), Ev::Arrive(number));
    }

    /// Runs until no event is left; returns the arrival and the completion of each command.
    fn run(&mut self) -> Vec<(Time, Time)> {
        let Bench { placement, outside } = self;
        while let Some(event) = outside.queue.pop() {
            let done = outside.done.len();
            match event {
                Ev::Placement(event) => placement.handle(event, outside),
                Ev::Arrive(number) => outside.waiting.push(number),
                Ev::Answer(number) => {
                    let (target, command) = outside.answer(number as usize);
                    placement.answered(target, command, outside);
                }
            }
            for (_, command) in &outside.done[done..] {
                outside.under_way.retain(|number| *number != command.tag);
            }
            for number in outside.ready() {
                let now = outside.queue.now();
                outside.came.push((number, now));
                placement.command(MemCommand { since: now, ..outside.commands[number as usize] }, outside);
            }
            let broken = placement.accounts().into_iter().find(|account| !account.holds());
            assert_eq!(broken, None, "at any time");
        }
        assert_eq!((placement.outstanding(), outside.waiting.len()), (0, 0), "something is left");
        assert_eq!(outside.done.len(), outside.commands.len(), "commands are lost or doubled");
        let mut done = outside.done.clone();
        done.sort_by_key(|(_, command)| command.tag);
        for ((at, answer), command) in done.iter().zip(&outside.commands) {
            let expected = MemCommand { absent: answer.absent, since: *at, ..*command };
            assert_eq!(*answer, expected, "a command comes back as it was");
        }
        let came: BTreeMap<u32, Time> = outside.came.iter().copied().collect();
        done.iter().map(|(at, command)| (came[&command.tag], *at)).collect()
    }

    /// Checks that memories hold the data written last, wherever it is now.
    fn check_data(&self) {
        for ((page, line), version) in &self.outside.newest {
            let place = self.placement.place_of(*page).expect("it was used");
            assert_eq!(self.outside.frames[&place][*line as usize], *version, "line {line} of {page}");
        }
    }

    /// Commands of exchanges.
    fn moved(&self) -> impl Iterator<Item = &Asked> {
        self.outside.asked.iter().filter(|asked| asked.command.pc == 0)
    }

    /// The memory of a page.
    fn target(&self, page: u64) -> Option<u8> {
        self.placement.place_of(page * PAGE).map(|(target, _)| target)
    }
}

fn spec(pages: &[u64], policy: PlacementPolicy) -> PlacementSpec {
    let sizes = pages.iter().map(|pages| Bytes::new(pages * PAGE)).collect();
    PlacementSpec { sizes, latency: ns(20), policy }
}

/// Spec file that inherits nothing.
fn read_spec<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    struct NoPresets;
    impl Presets for NoPresets {
        fn find(&self, _: &str) -> Option<(String, String)> {
            None
        }
        fn names(&self) -> Vec<String> {
            Vec::new()
        }
    }
    let mut layers = Layers::from_text("spec", text, &NoPresets).expect("TOML");
    layers.parse::<T>().map_err(|diagnostic| diagnostic.one_line())
}

fn ns(ns: u64) -> Duration {
    Duration::new(Time::from_ns(ns))
}

/// Marks every 10 us; hot within 2 us of a mark; 4 pages in 10 us may rise.
fn eager() -> hot_policy::Params {
    hot_policy::Params {
        threshold: ns(2_000),
        scan: ns(10_000),
        rate: Bandwidth::new(4 * PAGE * 100_000),
        window: ns(10_000),
        exchanges: 2,
    }
}

/// A command for the first line of a page.
fn read(page: u64) -> MemCommand {
    MemCommand {
        tag: 0,
        from: Port(5),
        page: page * PAGE,
        lines: 1,
        write: false,
        demand: true,
        app: 1,
        port: 3,
        pc: 0,
        absent: Absent::Wait,
        since: Time::ZERO,
    }
}

fn write(page: u64) -> MemCommand {
    MemCommand { write: true, ..read(page) }
}

// Times, by hand.

#[test]
fn a_look_up_is_all_that_a_placement_adds() {
    for (latency, policy) in [(20, PlacementPolicy::ranges), (0, PlacementPolicy::first_touch)] {
        let mut bench = Bench::new(&PlacementSpec { latency: ns(latency), ..spec(&[1, 1], policy) }, 2, 0);
        bench.outside.own[1] = Time::from_ns(900);
        let us = Time::from_us;
        bench.at(us(1), read(0));
        bench.at(us(1), write(1));
        bench.at(us(1), MemCommand { demand: false, lines: 6, ..write(0) });
        let ends: Vec<Time> = bench.run().into_iter().map(|(_, end)| end - us(1)).collect();
        assert_eq!(ends, [100, 1_000, 100].map(|at| Time::from_ns(at + latency)));
        // What memories were asked for is what came, but for its name and its place.
        let asked: Vec<(u8, MemCommand)> =
            bench.outside.asked.iter().map(|asked| (asked.target, asked.command)).collect();
        for ((target, command), (to, original)) in
            asked.iter().zip([0, 1, 0].into_iter().zip(&bench.outside.commands))
        {
            let since = us(1) + Time::from_ns(latency);
            let expected =
                MemCommand { tag: command.tag, from: Port::default(), page: 0, since, ..*original };
            assert_eq!((*target, MemCommand { from: Port::default(), ..*command }), (to, expected));
        }
        let tally = &bench.placement.tally;
        let own = u128::from(latency) * 1_000;
        assert_eq!(
            (tally.reads()[Stage::Controller as usize], tally.writes()[Stage::Controller as usize]),
            (own, own)
        );
        assert_eq!(tally.reads().iter().chain(tally.writes()).sum::<u128>(), 2 * own);
        let of = |reads, writes, lines_read, lines_written| TargetStats {
            reads,
            writes,
            lines_read,
            lines_written,
            ..TargetStats::default()
        };
        assert_eq!(bench.placement.stats.targets, [of(1, 1, 1, 2), of(0, 1, 0, 1)]);
        bench.placement.reset_stats(us(9));
        assert_eq!(bench.placement.stats.targets, [TargetStats::default(); 2]);
        assert_eq!(bench.placement.tally, Tally::default());
    }
}

#[test]
fn an_answer_without_data_goes_back_as_one() {
    let mut bench = Bench::new(&spec(&[1, 1], PlacementPolicy::ranges), 2, 0);
    bench.outside.signals = 0b10;
    let signal = |page| MemCommand { absent: Absent::Signal, ..read(page) };
    [0, 1].into_iter().for_each(|page| bench.at(Time::ZERO, signal(page)));
    bench.run();
    let absent: Vec<Absent> = bench.outside.done.iter().map(|(_, command)| command.absent).collect();
    assert_eq!(absent, [Absent::Signal, Absent::Signalled]);
}

#[test]
#[should_panic(expected = "there are 2 pages, none of address 8192")]
fn a_page_beyond_the_extent_is_refused() {
    let mut bench = Bench::new(&spec(&[4, 4], PlacementPolicy::ranges), 2, 0);
    bench.at(Time::ZERO, read(2));
    bench.run();
}

#[test]
#[should_panic(expected = "more than 1 commands at the same time")]
fn more_commands_than_the_bound_are_refused() {
    let mut bench = Bench::new(&spec(&[4, 4], PlacementPolicy::ranges), 2, 0);
    bench.placement.bound(1);
    [0, 1].into_iter().for_each(|page| bench.at(Time::ZERO, read(page)));
    bench.run();
}
