//! Memories alone: latencies, bandwidths, order.

mod presets;
mod timing;

use super::{Dram, DramSpec, Event, Map, Out};
use crate::dram::{DramEnergySpec, sched::DramScheduler};
use config::units::{Bytes, Energy, Power};
use engine::{Cx, EventQueue, Rng, Time};
use proptest::prelude::*;
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

    /// Sends a command at `at`; it is identified by its number in the order of these calls.
    fn at(&mut self, at: Time, command: MemCommand) {
        let number = self.outside.commands.len() as u32;
        self.outside.commands.push(MemCommand { tag: number, since: at, ..command });
        self.outside.queue.after(at, Ev::Arrive(number));
    }

    /// Runs until no event is left; returns the completion time of each command.
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

    /// Runs commands in order, `outstanding` of them at a time; returns the bytes per second.
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

/// Address of row `row` of bank `bank`, in a plain memory.
fn row_of(spec: &DramSpec, bank: u64, row: u64) -> u64 {
    (row * u64::from(spec.banks.count) + bank) * spec.banks.row.get()
}

/// Time of `lines` lines on the data bus, from the data sheet's values.
fn on_the_bus(spec: &DramSpec, lines: u64) -> Time {
    let bytes_a_second = spec.bus.rate.per_s() * u64::from(spec.bus.width / 8);
    Time::from_ps((LINE * 1_000_000_000_000).div_ceil(bytes_a_second) * lines)
}

// Energy of commands and of time, by hand.

const COSTS: DramEnergySpec = DramEnergySpec {
    activate: Energy::new(1_001),
    read: Energy::new(53),
    write: Energy::new(71),
    refresh: Energy::new(9_007),
    standby: Power::new(300),
    active: Power::new(500),
};

fn metered(spec: DramSpec) -> DramSpec {
    DramSpec { energy: Some(COSTS), ..spec }
}

/// Two lines of one row, then a different row of its bank: two activations; a line of 128 B is two bursts of DDR4. Rows
/// are open from the first activation, at once, to the end.
#[test]
fn commands_cost_activations_and_bursts() {
    let spec = metered(plain(presets::ddr4()));
    let mut bench = Bench::new(&spec);
    bench.at(Time::ZERO, read(row_of(&spec, 0, 0)));
    bench.at(Time::ZERO, write(row_of(&spec, 0, 0) + 128));
    bench.at(Time::from_us(1), write(row_of(&spec, 0, 1)));
    bench.run();
    assert_eq!(bench.dram.stats.activations, 2);
    let now = Time::from_us(3);
    let energy = bench.dram.energy(now).expect("it has a meter");
    assert!(energy.conserves());
    let told = ["activate", "read", "write", "refresh", "standby"].map(|name| energy.of(name));
    assert_eq!(told, [2 * 1_001, 2 * 53, 4 * 71, 0, 0]);
    assert_eq!(energy.of("active standby"), 500 * u128::from(now.ps()));
}

/// A refresh each 7.8 us on each of the controllers, at times that are spread; the one of them that has had a command stands with an
/// open row until its refresh is due. What was before a window is not in it.
#[test]
fn refreshes_are_counted_though_nobody_waits_for_them() {
    let spec = metered(DramSpec { controllers: 2, ..presets::ddr4() });
    let refresh = spec.refresh.clone().expect("DDR4 is refreshed");
    let interval = refresh.interval.time();
    let mut bench = Bench::new(&spec);
    bench.at(Time::from_us(1), read(0));
    bench.run();
    // The first controller's refreshes are at multiples of the interval, the second one's half of one earlier.
    let now = interval.times(10) + Time::from_us(1);
    let energy = bench.dram.energy(now).expect("it has a meter");
    assert!(energy.conserves());
    let counts = [now.ps() / interval.ps(), (now.ps() + interval.ps() / 2) / interval.ps()];
    assert_eq!(counts, [10, 10]);
    assert_eq!(energy.of("refresh"), 20 * 9_007);
    let owner = u64::from(bench.dram.controller_of(0));
    let due = interval - Time::from_ps(interval.ps() / 2 * owner);
    let open = due - Time::from_us(1);
    assert_eq!(energy.of("active standby"), 500 * u128::from(open.ps()));
    assert_eq!(energy.of("standby"), 300 * u128::from(2 * now.ps() - open.ps()));

    bench.dram.reset_stats(now);
    let later = bench.dram.energy(now + interval).expect("it has a meter");
    assert_eq!((later.of("refresh"), later.of("activate")), (2 * 9_007, 0));
    assert_eq!(later.of("standby"), 300 * 2 * u128::from(interval.ps()));
}

/// Metering does not change the times of commands; without a meter, no energy is reported.
#[test]
fn a_meter_changes_no_time() {
    let ends = |spec: &DramSpec| {
        let mut bench = Bench::new(spec);
        for n in 0..200 {
            bench.at(Time::from_ns(37 * n), if n % 3 == 0 { write(n * 4_160) } else { read(n * 8_256) });
        }
        let ends = bench.run();
        assert_eq!(bench.dram.energy(Time::from_us(9)).is_some(), spec.energy.is_some());
        ends
    };
    assert_eq!(ends(&presets::ddr4()), ends(&metered(presets::ddr4())));
}

// Bandwidths by formula.

/// The share of time that refresh leaves.
fn unrefreshed(spec: &DramSpec) -> f64 {
    spec.refresh.as_ref().map_or(1.0, |refresh| {
        1.0 - refresh.duration.time().as_ns_f64() / refresh.interval.time().as_ns_f64()
    })
}

fn stream(spec: &DramSpec, write: bool) -> f64 {
    let commands: Vec<_> = (0..12_000 * u64::from(spec.controllers)).map(|n| line(n * LINE, write)).collect();
    Bench::new(spec).closed_loop(commands, 128 * u32::from(spec.controllers))
}

#[test]
fn peaks_are_those_of_the_data_sheets() {
    let peak = |spec: &DramSpec| Dram::new(spec, LINE).expect("can be built").peak_bandwidth();
    assert_eq!(peak(&presets::gddr5()), 192_384_000_000);
    assert_eq!(peak(&presets::ddr4()), 19_200_000_000);
    assert_eq!(peak(&presets::lpddr4()), 25_600_000_000);
    assert_eq!(peak(&presets::ddr3_buffer()), 6_400_000_000);
    assert_eq!(peak(&presets::optane()), 39_000_000_000);
}

#[test]
fn a_stream_reaches_the_bus() {
    for (name, spec) in presets::all() {
        if name == "optane" {
            continue;
        }
        let bus = Dram::new(&spec, LINE).expect("can be built").peak_bandwidth() as f64 * unrefreshed(&spec);
        let share = stream(&spec, false) / bus;
        assert!((0.98..1.001).contains(&share), "{name}: reads reach {share} of the bus");
        let share = stream(&spec, true) / bus;
        assert!((0.98..1.001).contains(&share), "{name}: writes reach {share} of the bus");
    }
}

/// Optane: 39 GB/s of sequential reads over six modules; 13.9 GB/s of writes (Izraelevitz et al.: 39.4 and 13.9).
#[test]
fn optane_streams_as_measured() {
    let spec = presets::optane();
    let reads = stream(&spec, false) / 1e9;
    assert!((39.0 * 0.95..39.0 * 1.001).contains(&reads), "reads: {reads} GB/s");
    let writes = stream(&spec, true) / 1e9;
    assert!((13.9 * 0.95..13.9 * 1.05).contains(&writes), "writes: {writes} GB/s");
    // 128 B of every row: a bank gives 0.134 GB/s, 25 of them in six modules 20.
    let rows: Vec<_> = (0..40_000).map(|n| read(n * 256)).collect();
    let single = Bench::new(&spec).closed_loop(rows, 1500) / 1e9;
    let bank = 128.0 / (190.0 + 128.0 / 6.5 / 2.0 + 763.0);
    let formula = bank * 25.0 * 6.0;
    assert!((formula * 0.95..formula * 1.01).contains(&single), "half rows: {single} GB/s, not {formula}");
}

/// Random rows: every bank gives a line a row cycle.
#[test]
fn random_reads_are_limited_by_the_banks() {
    for (name, spec) in presets::all() {
        let mut spec = plain(spec);
        spec.banks.count = 4;
        let t = &spec.timing;
        let (rcd, rtp, ras, rp) = (t.rcd.time(), t.rtp.time(), t.ras.time(), t.rp.time());
        let bursts = LINE / (u64::from(spec.bus.width / 8) * u64::from(spec.bus.burst));
        let columns = Time::from_ps(on_the_bus(&spec, 1).ps() / bursts * (bursts - 1));
        let cycle = ras.max(rcd + columns + rtp) + rp;
        let banks = 4.0 * LINE as f64 / cycle.as_s_f64();
        let bus = LINE as f64 / on_the_bus(&spec, 1).as_s_f64();
        let formula = banks.min(bus);
        let mut random = Rng::stream(1, name);
        let mut row = 0;
        let commands: Vec<_> = (0..20_000)
            .map(|_| {
                // Never the same row twice in a while.
                row = (row + 1 + random.below(1000)) % (1 << 20);
                read(row_of(&spec, random.below(4), row))
            })
            .collect();
        let measured = Bench::new(&spec).closed_loop(commands, 64);
        let share = measured / formula;
        assert!((0.95..1.01).contains(&share), "{name}: {share} of {formula} B/s");
    }
}

/// Two lines in every activation: they come one after the other, and the second finds the row open.
#[test]
fn half_of_the_lines_of_row_pairs_are_hits() {
    let spec = plain(presets::gddr5());
    let mut bench = Bench::new(&spec);
    let commands: Vec<_> = (0..2_000u64)
        .flat_map(|n| [0, LINE].map(|column| read(row_of(&spec, n % 16, n / 16) + column)))
        .collect();
    bench.closed_loop(commands, 64);
    assert_eq!((bench.dram.stats.row_hits, bench.dram.stats.activations), (2_000, 2_000));
}

// Properties of random traffic.

fn any_memory() -> impl Strategy<Value = DramSpec> {
    let preset = prop::sample::select(presets::all().map(|(_, spec)| spec).to_vec());
    let policy = prop::sample::select(DramScheduler::all_defaults());
    (preset, policy, 1u16..8, prop::sample::select(vec![128u64, 256, 384, 1024, 4096, 8192]), 1u32..20)
        .prop_map(|(spec, scheduler, controllers, interleave, count)| {
            let mut spec = DramSpec { scheduler, controllers, interleave: Bytes::new(interleave), ..spec };
            spec.banks.count = count;
            spec.banks.hash &= count.is_power_of_two();
            spec
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every command is done once, its bytes pass the bus of its controllers, and nothing else is on the bus meanwhile.
    #[test]
    fn every_command_is_done_once_and_no_data_overlap(
        spec in any_memory(),
        traffic in proptest::collection::vec((0u64..400, 0u64..40, 1u64..1 << 32, any::<bool>(), any::<bool>()), 1..200),
    ) {
        let mut bench = Bench::new(&spec);
        let mut now = Time::ZERO;
        for (gap, page, mask, sparse, write) in &traffic {
            now += Time::from_ns(if *gap < 200 { 0 } else { *gap });
            let mask = if *sparse { mask & mask.wrapping_neg() } else { *mask };
            bench.at(now, lines(page * PAGE, mask, *write));
        }
        let ends = bench.run();
        prop_assert!(ends.iter().all(|end| *end < Time::MAX));
        let stats = &bench.dram.stats;
        prop_assert_eq!((stats.reads + stats.writes) as usize, traffic.len());
        let bytes: u64 = bench.outside.commands.iter().map(|c| c.bytes(LINE)).sum();
        prop_assert_eq!(stats.read_bytes + stats.written_bytes, bytes);
        prop_assert_eq!(stats.bus_busy, on_the_bus(&spec, bytes / LINE));
        let pieces = bench.dram.transfers.len() as u64;
        prop_assert_eq!(stats.row_hits + stats.row_closed + stats.row_conflicts, pieces);
        prop_assert!(stats.activations >= stats.row_closed + stats.row_conflicts);

        let tally: u128 = [bench.dram.tally.reads(), bench.dram.tally.writes()].iter().flat_map(|t| t.iter()).sum();
        let waited = |(end, command): (&Time, &MemCommand)| u128::from((*end - command.since).ps());
        prop_assert_eq!(tally, ends.iter().zip(&bench.outside.commands).map(waited).sum::<u128>());

        for controller in 0..spec.controllers {
            let of = |(number, transfer): &(u16, _)| (*number == controller).then_some(*transfer);
            let bus: Vec<_> = bench.dram.transfers.iter().filter_map(of).collect();
            for pair in bus.windows(2) {
                let gap = if pair[1].write && !pair[0].write { spec.timing.turnaround.time() } else { Time::ZERO };
                prop_assert!(pair[1].begin >= pair[0].end + gap, "{:?}", pair);
            }
        }
    }

    /// In order means in order: data pass in the order in which the commands came.
    #[test]
    fn first_come_is_first_served(
        traffic in proptest::collection::vec((0u64..100, 0u64..60, any::<bool>()), 1..150),
    ) {
        let spec = DramSpec { scheduler: DramScheduler::fcfs, ..presets::gddr5() };
        let mut bench = Bench::new(&spec);
        let mut now = Time::ZERO;
        for (gap, at, write) in &traffic {
            now += Time::from_ns(*gap);
            bench.at(now, line(at * 8 * LINE, *write));
        }
        bench.run();
        for controller in 0..spec.controllers {
            let order: Vec<u32> = bench.outside.done.iter().map(|(_, command)| command)
                .filter(|command| {
                    let first = command.page + u64::from(command.lines.trailing_zeros()) * LINE;
                    bench.dram.controller_of(first) == controller
                })
                .map(|command| command.tag)
                .collect();
            prop_assert!(order.is_sorted(), "{:?}", order);
        }
    }

    /// Against a memory filled line by line: each controller gets its chunks in turn and fills row after row, each row
    /// in the next bank, which a hash may exchange for another that no other row of that number has.
    #[test]
    fn the_address_map_fills_row_by_row(spec in any_memory()) {
        let map = Map::new(&spec);
        let mut filled = vec![0u64; spec.controllers.into()];
        let mut seen = std::collections::BTreeMap::new();
        for n in 0..6_000u64 {
            let address = n * LINE;
            let controller = (address / spec.interleave.get()) as usize % filled.len();
            let place = map.place(address);
            prop_assert_eq!(usize::from(place.controller), controller);
            prop_assert_eq!(map.controller_of(address), place.controller);
            let rows = filled[controller] / spec.banks.row.get();
            filled[controller] += LINE;
            prop_assert_eq!(place.row, rows / u64::from(spec.banks.count));
            if !spec.banks.hash {
                prop_assert_eq!(u64::from(place.bank), rows % u64::from(spec.banks.count));
            }
            let key = (place.controller, place.bank, place.row);
            prop_assert_eq!(*seen.entry(key).or_insert(rows), rows, "two rows in one place");
        }
    }

    /// A command and its lines one by one lie in the same rows: as many accesses as there are different places.
    #[test]
    fn a_command_is_one_access_a_row(spec in any_memory(), page in 0u64..50, mask in 1u64..1 << 32) {
        let map = Map::new(&spec);
        let mut places: Vec<_> = (0..PAGE / LINE).filter(|n| mask >> n & 1 == 1)
            .map(|n| map.place(page * PAGE + n * LINE))
            .map(|place| (place.controller, place.bank, place.row))
            .collect();
        places.sort_unstable();
        places.dedup();
        let mut bench = Bench::new(&spec);
        bench.at(Time::ZERO, lines(page * PAGE, mask, false));
        bench.run();
        prop_assert_eq!(bench.dram.transfers.len(), places.len());
    }
}
