//! Figures 2 and 3 of MQMS: small writes under coarse and fine mapping.

use crate::allocation::bench::*;
use config::units::{Bandwidth, Bytes, Duration};
use engine::Time;
use nand::dies::op::Class;
use proto::IoOp;
use ssd::spec::{FlashSpec, MapGranularity, MapMemorySpec, Mapping};

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
    // What was written, and what was around it: the shadow compares.
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
