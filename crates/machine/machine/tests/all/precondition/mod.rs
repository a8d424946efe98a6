//! Preconditioning against what it claims: states are exact, true, repeatable and sound; impossible ones are refused.

mod bench;
mod refused;
mod steady;
mod step;

use bench::{Pace, check, digest, prepared, small, system, write_in_time};
use machine::precondition::{self, Precondition};
use proptest::prelude::*;

const STATES: [&str; 8] = [
    "none",
    "sequential:share=70%",
    "uniform:share=70%",
    "uniform:share=80%,invalid=5%",
    "zipf:share=90%,theta=1.1,writes=1.5",
    "steady:share=90%,tolerance=5%",
    "steady:share=90%,tolerance=5%,distribution=zipf",
    "analytic:share=90%",
];

/// Devices on which units of map, program and reclaim differ in every way.
const SHAPES: [&[&str]; 5] = [
    &[],
    &["flash.ftl.reclaim_unit=plane_set"],
    // Word lines of three pages, a unit of a quarter of a page: program units of twelve.
    &[
        "flash.cell.bits=3",
        "flash.cell.programming=one_shot",
        "flash.geometry.page_size=16KiB",
        "flash.geometry.pages=192",
        "flash.geometry.blocks=24",
        "flash.ftl.over_provisioning=40%",
    ],
    &["flash.ftl.allocation=round_robin", "flash.ftl.wear.dynamic=true"],
    &[
        "flash.ftl.reclaim_unit=superblock",
        "flash.ftl.allocation=least_queued",
        "flash.ftl.gc.victim=d_choices",
        "flash.geometry.blocks=64",
        "flash.geometry.pages=32",
        "flash.ftl.over_provisioning=20%",
    ],
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn the_translation_layer_is_sound_after_any_state_and_runs_on(
        state in prop::sample::select(&STATES[..]),
        shape in prop::sample::select(&SHAPES[..]),
        seed: u64,
    ) {
        let (device, report) = prepared(&small(shape), state, seed);
        let mapped = (report.mapped_share * device.ftl.logical() as f64).round() as u64;
        check(&device.ftl, mapped);
        let erases = device.ftl.counters.erases;
        prop_assert_eq!(device.ftl.counters, ftl::page_map::FtlCounters { erases, ..Default::default() });
        let units = device.ftl.logical() / 2;
        let (machine, _) = write_in_time(device, units, (3000, 3000), Pace::Closed(16), seed);
        check(&machine.device().ftl, machine.device().ftl.mapped());
    }
}

#[test]
fn shares_are_exact() {
    for (shape, tolerance) in [(SHAPES[0], 0), (SHAPES[3], 0), (SHAPES[2], 12)] {
        let system = small(shape);
        for (state, share, invalid) in [
            ("sequential:share=33.3%", 0.333, 0.0),
            ("uniform:share=33.3%", 0.333, 0.0),
            ("uniform:share=80%,invalid=9%", 0.8, 0.09),
            ("uniform:share=20%,invalid=65.5%", 0.2, 0.655),
        ] {
            let (device, report) = prepared(&system, state, 5);
            let logical = device.ftl.logical();
            let mapped = (share * logical as f64).round() as u64;
            assert_eq!(device.ftl.mapped(), mapped, "{state}");
            assert_eq!(report.mapped_share, mapped as f64 / logical as f64);
            // The lowest units, and no others.
            check(&device.ftl, mapped);
            assert!(device.ftl.lookup(proto::Lpn(mapped - 1)).is_some());
            assert!(device.ftl.lookup(proto::Lpn(mapped)).is_none());
            let programmed = (mapped as f64 / (1.0 - invalid)).round() as u64;
            let extra = device.ftl.programmed_units() - programmed;
            // Groups pad what does not fill a program unit: once after the fill, of which overwriting makes use. And of
            // two planes that share commands, one is padded by a program unit if the other is one ahead.
            let groups = u64::from(device.ftl.geo.groups);
            let in_step = u64::from(device.ftl.geo.units_per_program) * groups / 2;
            let padding = if invalid == 0.0 { tolerance * groups } else { tolerance } + in_step;
            assert!(extra <= padding, "{state}: {extra} units beyond {programmed}");
            let share = 1.0 - mapped as f64 / (programmed + extra) as f64;
            assert!((report.invalid_share - share).abs() < 1e-12, "{state}: {}", report.invalid_share);
        }
    }
}

#[test]
fn the_largest_invalid_share_that_is_not_refused_is_reached_without_reclaiming() {
    // 251 blocks of 64 units and one unit in each of 8 planes.
    let system = small(&[]);
    let space = 8.0 * (251.0 * 64.0 + 1.0);
    let mapped = (0.5 * (8.0 * 256.0 * 64.0 * 0.85f64).round()).round();
    let invalid = ((1.0 - mapped / space) * 1e6).floor() / 1e4;
    let (device, report) = prepared(&system, &format!("uniform:share=50%,invalid={invalid}%"), 1);
    assert!((report.invalid_share - invalid / 100.0).abs() < 1e-5, "{report:?}");
    assert_eq!(device.ftl.array.all_erases().iter().sum::<u32>(), 0);
    assert_eq!(report.free_reclaim_units.min, 4);
}

#[test]
fn the_report_says_what_was_done() {
    let system = small(&[]);
    let (device, report) = prepared(&system, "none", 1);
    assert_eq!((report.kind, report.mapped_share, report.invalid_share), ("none", 0.0, 0.0));
    assert_eq!((report.drive_writes, report.write_amplification, report.steady), (0.0, None, None));
    assert_eq!((report.free_reclaim_units.min, report.free_reclaim_units.mean), (256, 256.0));
    assert!(device.ftl.is_fresh());
    let (_, report) = prepared(&system, "sequential", 1);
    // 13 926.4 units a plane in blocks of 64: 217 full and one open.
    assert_eq!((report.drive_writes, report.free_reclaim_units.min), (1.0, 38));
    assert_eq!(report.write_amplification, None);
    let (_, report) = prepared(&system, "zipf:writes=2.5", 1);
    assert!((report.drive_writes - 3.5).abs() < 1e-4, "{report:?}");
    assert!(report.write_amplification.is_some_and(|wa| wa > 1.5), "{report:?}");
    let json = serde_json::to_value(&report).expect("a report has a JSON form");
    assert_eq!(json["kind"], "zipf");
    assert_eq!(json["steady"], serde_json::Value::Null);
    assert_eq!(json["free_reclaim_units"]["min"], 5);
}

#[test]
fn equal_seeds_give_equal_states_and_others_do_not() {
    let system = small(&[]);
    for state in
        ["uniform:invalid=3%", "zipf:share=80%", "steady:share=80%,tolerance=5%", "analytic:share=80%"]
    {
        let of = |seed| digest(&prepared(&system, state, seed).0.ftl);
        assert_eq!(of(1), of(1), "{state}");
        assert_ne!(of(1), of(2), "{state}");
    }
    let of = |seed| digest(&prepared(&system, "sequential", seed).0.ftl);
    assert_eq!(of(1), of(2));
}

#[test]
fn a_terabyte_written_in_order_costs_its_reclaim_units() {
    // 16 x 8 x 2 x 4 planes of 256 blocks of 256 pages of 16 KiB.
    let system = system(&[
        "flash.geometry.channels=16",
        "flash.geometry.ways=8",
        "flash.geometry.dies=2",
        "flash.geometry.planes=4",
        "flash.geometry.blocks=256",
        "flash.geometry.pages=256",
        "flash.geometry.page_size=16KiB",
        "flash.ftl.gc.start=8",
        "flash.ftl.gc.stop=9",
    ]);
    let (device, report) = prepared(&system, "sequential", 1);
    let ftl = &device.ftl;
    assert_eq!((ftl.geo.raw_bytes(), report.mapped_share), (1 << 40, 1.0));
    let bytes = ftl.bytes();
    assert!(bytes < 128 * ftl.geo.ru_count + 16 * 1024 * 1024, "{bytes} B for {} units", ftl.geo.ru_count);
    let last = ftl.lookup(proto::Lpn(ftl.logical() - 1)).expect("all is written");
    assert_eq!(ftl.lpn_at(last), Some(proto::Lpn(ftl.logical() - 1)));
}

/// A trace in MQSim's format: times, device, sector, sectors, 0 for a write; extents in map units of 4 KiB.
fn trace(writes: impl IntoIterator<Item = (u64, u64)>) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let line = |(n, (first, units)): (usize, (u64, u64))| format!("{n} 0 {} {} 0\n", first * 8, units * 8);
    let text: String = writes.into_iter().enumerate().map(line).collect();
    std::fs::write(file.path(), text).expect("it can be written to");
    file
}

#[test]
fn a_trace_leaves_what_its_writes_would() {
    let system = small(&[]);
    // Two extents of which the second overlaps the first, then the first unit again and again.
    let file = trace([(0, 1000), (900, 200)].into_iter().chain((0..50).map(|_| (0, 1))));
    let state = |more: &str| format!("trace:file={},format=mqsim,remap=error,{more}", file.path().display());
    let (device, report) = prepared(&system, &state("share=0%"), 1);
    check(&device.ftl, 1100);
    // The first plane is 50 pages ahead of the other one that shares its commands: 14 more and both begin a block of 64.
    assert_eq!(device.ftl.programmed_units(), 1250 + 14);
    assert!((report.invalid_share - 164.0 / 1264.0).abs() < 1e-12);
    assert_eq!((report.kind, report.write_amplification), ("trace", Some(1.0)));
    // Twice; the last program unit of a pass is not filled up.
    let (device, report) = prepared(&system, &state("share=0%,passes=2"), 1);
    check(&device.ftl, 1100);
    // 100 pages ahead, or 36.
    assert_eq!(device.ftl.programmed_units(), 2500 + 28);
    assert!((report.drive_writes - 2500.0 / 111_411.0).abs() < 1e-9);
    // On top of the first half.
    let (device, _) = prepared(&system, &state("share=50%"), 1);
    let half = 111_411 / 2;
    assert!(device.ftl.mapped().abs_diff(half) <= 1, "{}", device.ftl.mapped());
    // One unit beyond whole stripes of 8, or two, on the first planes of as many dies: one plane is 51 ahead, the other 1.
    assert_eq!(half % 8, 1);
    let ahead = [51, u64::from(device.ftl.mapped() % 8 == 2)];
    let padding = 64 - ahead[0] + ahead[1];
    assert_eq!(device.ftl.programmed_units(), device.ftl.mapped() + 1250 + padding);
}

#[test]
fn the_device_takes_the_state_that_its_spec_names() {
    let system = small(&["flash.precondition.analytic.share=50%"]);
    assert_eq!(
        Some(&system.spec.flash[0].spec.precondition),
        precondition::parse("analytic:share=50%").ok().as_ref()
    );
    assert_eq!(precondition::parse("none"), Ok(Precondition::none));
}
