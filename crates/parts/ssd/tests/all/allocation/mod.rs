//! Static, restricted and full dynamic allocation: how many planes work at once; and when data leaves a buffer for which dies.

mod bench;
mod eviction;

use bench::{Bench, PAGE, PROGRAM, buffer, spec, writes, *};
use config::units::{Bandwidth, Bytes, Duration, Share};
use engine::{Rng, Time};
use ftl::buffer::destage::DestagePolicy;
use nand::dies::op::Class;
use proto::IoOp;
use ssd::spec::{
    FlashSpec, FullReads, HostLinkSpec, MapGranularity, MapMemorySpec, Mapping, MultiPlaneRule, PlainSpec,
    ReclaimUnit,
};

// Reads of a buffer that is all dirty. A program takes a thousand times as long as all the rest, so that times are counted in programs.

/// Lines of the buffer.
const LINES: u64 = 8;

/// A drive of one plane, whose buffer gives nothing away before it is full.
fn drive(full_reads: Option<FullReads>) -> FlashSpec {
    let mut spec = spec([1, 1, 1, 1], "CWDP");
    let mut buffer = buffer(LINES);
    (buffer.high, buffer.low, buffer.reads) = (Share::percent(100), Share::percent(50), true);
    buffer.destage = Some(DestagePolicy::when_full);
    buffer.full_reads = full_reads;
    spec.buffer = Some(buffer);
    spec
}

/// The buffer holds `dirty` pages; then these pages are read at once. Programs that the reads took, in time and in number.
fn reads(full_reads: Option<FullReads>, dirty: u64, pages: &[u64]) -> (u64, u64) {
    let mut bench = Bench::filled(&drive(full_reads));
    bench.run(writes(0..dirty), 1);
    assert_eq!(bench.programs(), 0, "nothing leaves before it is full");
    let ios = pages.iter().map(|page| (IoOp::Read, page * PAGE, PAGE));
    let took = bench.run(ios, pages.len() as u64);
    ((took.ps() + PROGRAM.ps() / 2) / PROGRAM.ps(), bench.programs())
}

#[test]
fn a_read_passes_a_full_buffer_or_waits_for_the_program_of_a_line() {
    assert_eq!(reads(None, LINES, &[100]), (0, 0));
    assert_eq!(reads(Some(FullReads::pass), LINES, &[100]), (0, 0));
    assert_eq!(reads(Some(FullReads::wait), LINES, &[100]), (1, 1));
}

/// The second read does not find the line that the first one waits for: on one plane two programs follow each other.
#[test]
fn each_read_waits_for_a_line_of_its_own() {
    assert_eq!(reads(Some(FullReads::wait), LINES, &[100, 101]), (2, 2));
}

#[test]
fn a_read_that_has_its_line_or_finds_one_free_waits_for_nothing() {
    assert_eq!(reads(Some(FullReads::wait), LINES, &[3]), (0, 0));
    assert_eq!(reads(Some(FullReads::wait), LINES - 1, &[100]), (0, 0));
}

#[test]
fn a_buffer_that_keeps_no_reads_has_no_line_for_them() {
    let mut spec = drive(Some(FullReads::wait));
    spec.buffer.iter_mut().for_each(|buffer| buffer.reads = false);
    let built = ssd::spec::Built { seed: 1, name: "bench".into(), fold: true };
    let fault = spec.build(&built).err().expect("a read that takes no line cannot wait for one");
    assert!(fault.what.contains("wait for a line"), "{}", fault.what);
}

// Write throughput as the number of outstanding writes grows.

/// Share of a program's time allowed for links, channels and gathering.
const COST: f64 = 1e-3;

/// Returns whether the throughput is as expected, apart from the time of links, channels and gathering.
fn is_exact(got: f64, expected: f64) -> bool {
    (expected * (1.0 - COST)..=expected).contains(&got)
}

/// Page writes at work with `n` outstanding, at addresses `stride` pages apart.
fn measured(planes: Planes, order: &str, free: &str, n: u64, stride: u64) -> f64 {
    measured_on(&striped(spec(planes, free), order), n, 12 * n.min(count(planes)), stride)
}

/// Measurement on a device, over the first `counted` writes of a host that goes on.
fn measured_on(spec: &FlashSpec, n: u64, counted: u64, stride: u64) -> f64 {
    let mut bench = Bench::new(spec);
    let pages = bench.device.capacity() / PAGE;
    bench.run(writes((0..counted + n).map(|i| i * stride % pages)), n);
    at_work(counted, bench.ends[counted as usize - 1])
}

#[test]
fn full_allocation_grows_as_the_lesser_of_writes_and_planes() {
    let geometries: [Planes; 7] =
        [[1, 1, 1, 1], [4, 1, 1, 1], [1, 1, 1, 2], [2, 2, 1, 2], [1, 1, 1, 4], [2, 1, 2, 4], [3, 2, 1, 2]];
    let mut faults = String::new();
    for planes in geometries {
        let p = count(planes);
        for order in ["CWDP", "PDWC", "WCDP"] {
            for n in (1..=p + 3).chain([2 * p, 3 * p + 1]) {
                // All addresses belong to one plane under static allocation.
                let got = measured(planes, order, "CWDP", n, p);
                let expected = n.min(p) as f64;
                if !is_exact(got, expected) {
                    faults += &format!("{planes:?} {order} n={n}: {got:.4} not {expected}\n");
                }
            }
        }
    }
    assert_eq!(faults, "");
}

/// All addresses on one plane: what is chosen at the write is all there is to spread over.
#[test]
fn colliding_writes_use_what_is_free() {
    let planes: Planes = [2, 3, 2, 2];
    let p = count(planes);
    let mut faults = String::new();
    for set in 0..16u32 {
        let is_free = |at: usize| set >> at & 1 == 1;
        let free: String = (0..4).filter(|at| is_free(*at)).map(|at| ["C", "W", "D", "P"][at]).collect();
        let choices: u64 = (0..4).filter(|at| is_free(*at)).map(|at| u64::from(planes[at])).product();
        for (order, n) in [("CWDP", 1), ("CWDP", 7), ("PDWC", 12), ("DCPW", 24), ("CWDP", 30)] {
            let device = striped(spec(planes, &free), order);
            let got = measured_on(&device, n, 12 * n.min(choices), p);
            let expected = n.min(choices) as f64;
            if !is_exact(got, expected) {
                faults += &format!("`{free}` {order} n={n}: {got:.4} not {expected}\n");
            }
        }
    }
    assert_eq!(faults, "");
}

/// Consecutive addresses are on all planes in turn: dynamic allocation has nothing to gain.
#[test]
fn static_allocation_of_consecutive_writes_uses_all_planes() {
    // Dies of one plane: under static allocation, planes of a die are not waited for.
    for free in ["", "P", "WD", "CWDP"] {
        let got = measured([4, 2, 1, 1], "CWDP", free, 8, 1);
        assert!(is_exact(got, 8.0), "`{free}`: {got}");
    }
}

/// The planes of a set take turns: as many dies as there are writes, and whole rows of planes.
#[test]
fn plane_sets_spread_over_dies() {
    let planes: Planes = [2, 1, 2, 4];
    let mut spec = spec(planes, "CWDP");
    spec.ftl.reclaim_unit = ReclaimUnit::plane_set;
    for (n, expected) in [(1, 1.0), (3, 3.0), (4, 4.0), (16, 16.0), (19, 16.0), (32, 16.0)] {
        let got = measured_on(&spec, n, 12 * expected as u64, 16);
        assert!(is_exact(got, expected), "n={n}: {got}");
    }
}

/// One superblock over the device is written in stripe order: the dies follow without a choice.
#[test]
fn a_superblock_spreads_over_all_planes() {
    let mut spec = spec([4, 2, 1, 1], "CWDP");
    spec.ftl.reclaim_unit = ReclaimUnit::superblock;
    for n in [1u64, 5, 8, 11] {
        let expected = n.min(8) as f64;
        let got = measured_on(&spec, n, 12 * n.min(8), 8);
        assert!(is_exact(got, expected), "n={n}: {got}");
    }
}

/// Dies of a package that take turns are one: a quarter of the planes of four dies work at once.
#[test]
fn dies_that_take_turns_share_no_command() {
    let mut spec = spec([2, 1, 2, 2], "CWDP");
    spec.die.interleave = false;
    for (n, expected) in [(1, 1.0), (2, 2.0), (4, 4.0), (8, 4.0)] {
        let got = measured_on(&spec, n, 12 * expected as u64, 8);
        assert!(is_exact(got, expected), "n={n}: {got}");
    }
}

/// Without multi-plane commands a die works on one plane.
#[test]
fn without_multi_plane_commands_dies_count() {
    let mut spec = spec([2, 1, 2, 4], "CWDP");
    spec.die.multi_plane = MultiPlaneRule::off;
    for (n, expected) in [(3, 3.0), (4, 4.0), (9, 4.0)] {
        let got = measured_on(&spec, n, 12 * expected as u64, 8);
        assert!(is_exact(got, expected), "n={n}: {got}");
    }
}

// Figures 2 and 3 of MQMS: small writes under coarse and fine mapping.

const QUARTER: u64 = PAGE / 4;

/// Two small writes each to two pages: w, x, y, z.
const SMALL: [u64; 4] = [3 * PAGE, 3 * PAGE + 2 * QUARTER, 90 * PAGE + QUARTER, 90 * PAGE + 3 * QUARTER];

/// A device that was written once in order.
fn written(unit: u64, buffered: bool) -> Bench {
    let mut spec = spec([2, 1, 1, 2], "CWDP");
    spec.ftl.map_unit = Bytes::new(unit);
    spec.buffer = buffered.then(|| buffer(64));
    let mut bench = Bench::filled(&spec);
    bench.device.reset_stats(bench.cx.queue.now());
    bench
}

/// Old data read for the writes, and pages programmed.
fn cost(bench: &mut Bench, bytes: u64) -> (u64, u64) {
    let writes = SMALL.map(|at| (IoOp::Write, at, bytes));
    bench.run(writes, 4);
    bench.run([(IoOp::Flush, 0, 0)], 1);
    let before = bench.device.stats.merge_reads;
    let programs = bench.programs();
    // Written data and the data around it: the shadow compares both.
    let units = SMALL.map(|at| (IoOp::Read, at / PAGE * PAGE, PAGE));
    bench.run(units, 4);
    (before, programs)
}

/// Coarse mapping reads two pages and programs two; fine mapping reads none and programs one.
#[test]
fn four_small_writes_cost_what_the_figures_say() {
    for (unit, expected) in [(512, (0, 1)), (2048, (0, 1)), (4096, (0, 1)), (PAGE, (2, 2))] {
        assert_eq!(cost(&mut written(unit, true), QUARTER), expected, "map unit {unit}");
    }
}

/// Smaller than the unit: each of the units is read, and they are programmed as one page.
#[test]
fn writes_smaller_than_the_unit_are_merged() {
    for (unit, expected) in [(512, (0, 1)), (2048, (4, 1)), (4096, (4, 1)), (PAGE, (2, 2))] {
        assert_eq!(cost(&mut written(unit, true), 512), expected, "map unit {unit}");
    }
}

/// Without a buffer nothing brings unrelated writes together: each programs a page of its own.
#[test]
fn without_a_buffer_each_write_pads_its_page() {
    for unit in [512, 2048, 4096] {
        assert_eq!(cost(&mut written(unit, false), QUARTER), (0, 4), "map unit {unit}");
    }
    // The two of a page are merged one after the other, so that both stay.
    let mut bench = written(PAGE, false);
    let (reads, programs) = cost(&mut bench, QUARTER);
    let again = bench.device.ftl.counters.merges_dropped;
    assert_eq!((reads, programs), (4 + again, 4 + again));
    assert_eq!(again, 2);
}

/// A page whose quarters lie in different pages takes a flash read for each page.
#[test]
fn scattered_units_are_read_one_page_at_a_time() {
    for unit in [512, 2048, 4096] {
        for (parts, pages) in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 4)] {
            let mut bench = written(unit, false);
            for part in 0..parts {
                bench.run([(IoOp::Write, 7 * PAGE + part * QUARTER, QUARTER)], 1);
            }
            let before = bench.device.backend.counters.done[Class::HostRead as usize];
            bench.run([(IoOp::Read, 7 * PAGE, PAGE)], 1);
            let reads = bench.device.backend.counters.done[Class::HostRead as usize] - before;
            assert_eq!(reads, pages, "map unit {unit}, {parts} quarters moved");
        }
    }
}

/// Small writes at random, three times the device, at every granularity, with and without a buffer: collection moves units,
/// and the shadow compares what is read.
#[test]
fn every_granularity_keeps_its_data() {
    for unit in [512, 2048, 4096, PAGE] {
        for buffered in [false, true] {
            let mut bench = written(unit, buffered);
            let quarters = bench.device.capacity() / QUARTER;
            let mut rng = engine::Rng::stream(unit, "quarters");
            let ios = (0..3 * quarters).map(|n| {
                let at = rng.below(quarters - 4) * QUARTER;
                if n % 4 == 3 { (IoOp::Read, at, PAGE) } else { (IoOp::Write, at, QUARTER) }
            });
            bench.run(ios, 16);
            assert!(bench.device.ftl.counters.moves > 0, "map unit {unit}: nothing was collected");
            assert!(bench.device.shadow().is_some_and(|s| s.units_checked > quarters / 4));
        }
    }
}

/// A look-up takes its latency and the time in which its entries follow, one command after another.
#[test]
fn look_ups_take_the_time_of_their_entries() {
    // 1 MB/s: a microsecond a byte.
    let memory = |latency| MapMemorySpec {
        entry: Bytes::new(4),
        latency: Duration::new(latency),
        bandwidth: Bandwidth::new(1_000_000),
    };
    let ios = [(IoOp::Read, 0, PAGE)];
    for unit in [512, 2048, 4096, PAGE] {
        let took = |memory: Option<MapMemorySpec>| {
            let mut spec = spec([2, 1, 1, 2], "CWDP");
            spec.ftl.map_unit = Bytes::new(unit);
            spec.ftl.map_memory = memory;
            Bench::filled(&spec).run(ios, 1)
        };
        let (free, paid) = (took(None), took(Some(memory(Time::from_us(3)))));
        assert_eq!(paid - free, Time::from_us(3 + 4 * (PAGE / unit)), "map unit {unit}");
    }
    // Two at once, each to a die of its own: the second waits for the first.
    let mut spec = spec([2, 1, 1, 2], "CWDP");
    let both = [(IoOp::Read, 0, PAGE), (IoOp::Read, PAGE, PAGE)];
    let free = Bench::filled(&spec).run(both, 2);
    spec.ftl.map_memory = Some(memory(Time::from_us(1)));
    let paid = Bench::filled(&spec).run(both, 2);
    // But for the picoseconds in which one answer follows the other.
    let extra = (paid - free).ps();
    assert!(extra.abs_diff(Time::from_us(2 * (1 + 4)).ps()) < 1000, "{extra} ps");
}

/// Entries as many as the host sees units; the part that is held, if the map lies on flash.
#[test]
fn the_map_takes_the_memory_of_its_entries() {
    let memory = MapMemorySpec {
        entry: Bytes::new(4),
        latency: Duration::new(Time::ZERO),
        bandwidth: Bandwidth::new(1_000_000_000),
    };
    for unit in [512, 2048, 4096, PAGE] {
        let mut spec = spec([2, 1, 1, 2], "CWDP");
        spec.ftl.map_unit = Bytes::new(unit);
        spec.ftl.map_memory = Some(memory.clone());
        // Half of 4 planes of 32 blocks of 16 pages.
        let units = 4 * 32 * 16 / 2 * PAGE / unit;
        let bytes = |spec: &FlashSpec| Bench::new(spec).device.map_memory().map(|m| m.bytes);
        assert_eq!(bytes(&spec), Some(4 * units), "map unit {unit}");
        spec.ftl.mapping = Mapping::Demand {
            capacity: Bytes::from_kib(8),
            granularity: MapGranularity::entry,
            cached_entry: Bytes::new(8),
            stored_entry: Bytes::new(8),
            read: Bytes::new(512),
        };
        assert_eq!(bytes(&spec), Some(8192), "map unit {unit}");
    }
    // 2,048 pages in all and the sign for none take more than one byte.
    let mut spec = spec([2, 1, 1, 2], "CWDP");
    spec.ftl.map_memory = Some(MapMemorySpec { entry: Bytes::new(1), ..memory });
    let built = ssd::spec::Built { seed: 1, name: "bench".into(), fold: true };
    let fault = spec.build(&built).err().expect("one byte is not enough");
    assert_eq!(fault.key, "ftl.map_memory.entry");
    assert!(fault.what.contains("2 B to 64 B"), "{}", fault.what);
}

// Random writes with garbage collection.

/// 16 planes of usual speed: programs of 500 us behind a link of 7 GB/s.
fn fast_drive(free: &str) -> FlashSpec {
    fast_drive_of([2, 2, 2, 2], free)
}

fn fast_drive_of(planes: Planes, free: &str) -> FlashSpec {
    let mut spec = spec(planes, free);
    spec.cell.program = vec![Duration::new(Time::from_us(500))];
    let plain = PlainSpec { bandwidth: Bandwidth::new(7_000_000_000), latency: spec.cell.read[0] };
    spec.host.link = HostLinkSpec::Plain(plain);
    spec
}

/// Writes a second and their mean time in microseconds, of a fast_drive that is full and written three times.
fn measured_at(spec: &FlashSpec, pages: fn(&mut Rng, u64) -> u64, depth: u64) -> (f64, f64) {
    let mut bench = Bench::filled(spec);
    let mut rng = Rng::stream(1, "pages");
    let units = bench.device.capacity() / PAGE;
    let ios = 3 * units;
    let took = bench.run(writes((0..ios).map(|_| pages(&mut rng, units))), depth);
    let seconds = took.ps() as f64 / 1e12;
    let iops = ios as f64 / seconds;
    let mean = bench.device.stats.writes.means_ns().map(|(_, mean)| mean / 1000.0).sum();
    (iops, mean)
}

/// Planes a command of host programs while as many pages are written as the fast_drive has, `laps` times.
fn planes_together(bench: &mut Bench, depth: u64, laps: u64) -> f64 {
    let mut rng = Rng::stream(1, "pages");
    let units = bench.device.capacity() / PAGE;
    bench.run(writes((0..laps * units).map(|_| uniform(&mut rng, units))), depth);
    let (programs, commands) = bench.commands();
    programs as f64 / commands as f64
}

/// Nine writes of ten go to a tenth of the pages.
fn skewed(rng: &mut Rng, units: u64) -> u64 {
    if rng.below(10) == 0 { rng.below(units) } else { rng.below(units / 10) }
}

fn uniform(rng: &mut Rng, units: u64) -> u64 {
    rng.below(units)
}

/// Tavakkol et al., 2016, and MQMS, section 2.1: more freedom gives more writes a second, each with less latency.
#[test]
fn freedom_pays() {
    for pages in [uniform, skewed] {
        // As many writes as planes: every digit that is free counts. Far more: what little freedom leaves is small.
        for (depth, chain) in [
            (16, &["", "P", "DP", "WDP", "CWDP"][..]),
            (64, &["", "P", "CWDP"]),
            (64, &["", "DP", "CWDP"]),
            (64, &["", "WDP", "CWDP"]),
        ] {
            let found: Vec<_> =
                chain.iter().map(|free| measured_at(&fast_drive(free), pages, depth)).collect();
            let iops: Vec<f64> = found.iter().map(|f| f.0).collect();
            let means: Vec<f64> = found.iter().map(|f| f.1).collect();
            assert!(iops.is_sorted_by(|a, b| a < b), "{chain:?} at {depth}: {iops:?}");
            assert!(means.is_sorted_by(|a, b| a > b), "{chain:?} at {depth}: {means:?}");
        }
    }
}

/// Four times as many writes as planes: nearly every command has all planes of its die, though writes have nothing to do
/// with each other.
#[test]
fn unrelated_writes_share_commands() {
    for planes in [[2, 2, 2, 2], [2, 1, 2, 4]] {
        // Written once, at random: nothing is collected.
        let spec = fast_drive_of(planes, "CWDP");
        let mut bench = Bench::new(&spec);
        let share = planes_together(&mut bench, 64, 1) / f64::from(planes[3]);
        assert!(share > 0.98, "{planes:?}: {share}");
        // Three times, behind a buffer: collection takes its share of the dies.
        let spec = FlashSpec { buffer: Some(buffer(96)), ..spec };
        let mut bench = Bench::filled(&spec);
        let share = planes_together(&mut bench, 64, 3) / f64::from(planes[3]);
        assert!(share > 0.97, "{planes:?}, with a buffer: {share}");
    }
}

/// Three writes at a time leave the fourth plane of a die behind; as soon as there are more, it catches up.
#[test]
fn planes_do_not_drift_apart() {
    let mut bench = Bench::new(&fast_drive_of([1, 1, 1, 4], "CWDP"));
    for few in [1, 3, 2] {
        let pages = |n: u64| (0..n).map(move |i| i * 7 % 100);
        bench.run(writes(pages(few * 11)), few);
        // Blocks of 16 pages: no more than half a block is made up for by planes alone.
        let before = bench.commands();
        bench.run(writes(pages(100)), 16);
        let after = bench.commands();
        assert_eq!(after.0 - before.0, 100);
        assert!(after.1 - before.1 <= 25 + 12, "{few}, then {} commands", after.1 - before.1);
        let before = bench.commands();
        bench.run(writes(pages(100)), 16);
        let after = bench.commands();
        assert!(after.1 - before.1 <= 25 + 3, "{few}: {} commands at last", after.1 - before.1);
    }
}
