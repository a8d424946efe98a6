//! Random writes with garbage collection: static, restricted and full dynamic allocation.

use crate::allocation::bench::*;
use config::units::{Bandwidth, Duration};
use engine::{Rng, Time};
use ssd::spec::{FlashSpec, HostLinkSpec, PlainSpec};

/// 16 planes of usual speed: programs of 500 us behind a link of 7 GB/s.
fn drive(free: &str) -> FlashSpec {
    drive_of([2, 2, 2, 2], free)
}

fn drive_of(planes: Planes, free: &str) -> FlashSpec {
    let mut spec = spec(planes, free);
    spec.cell.program = vec![Duration::new(Time::from_us(500))];
    let plain = PlainSpec { bandwidth: Bandwidth::new(7_000_000_000), latency: spec.cell.read[0] };
    spec.host.link = HostLinkSpec::Plain(plain);
    spec
}

/// Writes a second and their mean time in microseconds, of a drive that is full and written three times.
fn measured(spec: &FlashSpec, pages: fn(&mut Rng, u64) -> u64, depth: u64) -> (f64, f64) {
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

/// Planes a command of host programs while as many pages are written as the drive has, `laps` times.
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

/// Tavakkol et al., 2016, and MQMS, section 2.1: the more is free, the more writes a second and the sooner each is done.
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
            let found: Vec<_> = chain.iter().map(|free| measured(&drive(free), pages, depth)).collect();
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
        let spec = drive_of(planes, "CWDP");
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
    let mut bench = Bench::new(&drive_of([1, 1, 1, 4], "CWDP"));
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
