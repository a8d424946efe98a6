//! Preconditioning against what it claims: states are exact, true, repeatable and sound; impossible ones are refused.

mod bench;

use bench::{Pace, check, digest, homogeneity, prepared, small, system, write_in_time};
use engine::Time;
use ftl::page_map::FtlCounters;
use machine::run::{Plan, run_alone};
use nand::dies::MultiPlane;
use proptest::prelude::*;
use serde_json::Value;
use spec::precondition::{self, Precondition};

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

// Planes that share commands are in step after any state: writes in order are paired as on a fresh drive.

/// Bandwidth, multi-plane commands and programs of 128 KiB writes in order on D16.
fn in_order(state: &str, set: &[&str], requests: u32) -> (f64, f64, f64) {
    let job = format!("fio:rw=write,bs=128k,iodepth=16,number_ios={requests}");
    let mut plan = set.iter().fold(Plan::new("d16", &job), |plan, set| plan.set(set));
    plan.precondition = Some(spec::precondition::parse(state).unwrap_or_else(|e| panic!("{e}")));
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{state}, {set:?}: {e}"));
    assert!(document.ok, "{state}: {:?}", document.checks);
    let document = serde_json::to_value(document).expect("a document has a JSON form");
    let figure =
        |path: &str| document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}"));
    (
        figure("/io/write/bandwidth_bytes_per_s"),
        figure("/flash/0/multi_plane"),
        figure("/flash/0/host_programs"),
    )
}

#[test]
fn no_plane_lags_behind_its_mates_after_any_state() {
    for state in STATES {
        for shape in SHAPES {
            let (device, _) = prepared(&small(shape), state, 11);
            let lags = device.ftl.lags(MultiPlane::SamePage);
            assert!(lags.iter().all(|lag| *lag == 0), "{state}, {shape:?}: {lags:?}");
        }
    }
}

/// Where no space is short, every figure is that of a fresh drive.
#[test]
fn writes_in_order_are_paired_as_on_a_fresh_drive() {
    let fresh = in_order("none", &[], 500);
    // All but what is alone at the beginning and at the end goes in pairs.
    assert!(fresh.1 > 0.99 * fresh.2 / 2.0, "{fresh:?}");
    let shares = (1..=20).map(|n| format!("sequential:share={}%", n * 5 - n % 3));
    let others = ["interleaved:share=33%", "uniform:share=60%", "uniform:share=60%,invalid=10%"];
    for state in shares.chain(others.map(str::to_owned)) {
        let (bandwidth, pairs, programs) =
            in_order(&state, &["flash.ftl.gc.start=4", "flash.ftl.gc.stop=5"], 500);
        assert_eq!((pairs, programs), (fresh.1, fresh.2), "{state}");
        assert!((bandwidth / fresh.0 - 1.0).abs() < 0.02, "{state}: {bandwidth}, fresh {}", fresh.0);
    }
}

/// Where collection goes on beside them, programs of one plane wait for space and the mate goes alone now and then; the next
/// ones find each other again.
#[test]
fn collection_does_not_put_planes_out_of_step() {
    let small = ["flash.geometry.blocks=64", "flash.ftl.gc.start=4", "flash.ftl.gc.stop=5"];
    for state in ["analytic:share=80%", "steady:share=80%,tolerance=5%", "zipf:share=80%,writes=1"] {
        let (_, pairs, programs) = in_order(state, &small, 3000);
        assert!(pairs > 0.9 * programs / 2.0, "{state}: {pairs} pairs of {programs} programs");
    }
}

// The steady state is the one that timed writes reach.

/// Below this, two histograms are taken to be of different distributions.
const ALPHA: f64 = 0.001;

fn amplification(from: FtlCounters, to: FtlCounters) -> f64 {
    1.0 + (to.moves - from.moves) as f64 / (to.host_commits - from.host_commits) as f64
}

/// Collection is fast against the host: timed histograms are seen at the same points of the collector's cycle. (Under
/// load a group is caught behind its collector more often than not, which shows on a device as small as this one.)
#[test]
fn valid_counts_are_those_of_timed_writes_and_of_the_theory() {
    for victim in ["greedy", "d_choices", "fifo", "random"] {
        let system = small(&[&format!("flash.ftl.gc.victim={victim}")]);
        let (steady, report) = prepared(&system, "steady", 3);
        assert_eq!(report.steady, Some(true), "{victim}");
        let units = steady.ftl.logical();
        let writes = ((report.drive_writes - 1.0) * units as f64).round() as u64;
        let (filled, _) = prepared(&system, "sequential", 4);
        let pace = Pace::Open(Time::from_ms(100));
        let (timed, _) = write_in_time(filled, units, (writes, writes), pace, 5);
        let found = steady.ftl.valid_histogram();
        let p = homogeneity(&found, &timed.device().ftl.valid_histogram());
        assert!(p > ALPHA, "{victim}: timed writes, p = {p}");
        let (analytic, drawn) = prepared(&system, "analytic", 6);
        let p = homogeneity(&found, &analytic.ftl.valid_histogram());
        assert!(p > ALPHA, "{victim}: theory, p = {p}");
        let (simulated, closed) = (report.write_amplification, drawn.write_amplification);
        let ratio = simulated.zip(closed).map(|(s, c)| s / c);
        assert!(
            ratio.is_some_and(|r| (0.96..1.04).contains(&r)),
            "{victim}: {simulated:?}, theory {closed:?}"
        );
    }
}

/// The test above can fail: neither a drive that has not been overwritten for long enough nor another policy passes.
#[test]
fn other_states_are_told_apart() {
    let system = small(&[]);
    let (steady, _) = prepared(&system, "steady", 3);
    let others = [
        prepared(&system, "uniform:invalid=13%", 4).0,
        prepared(&system, "steady:share=97%", 4).0,
        prepared(&system, "zipf:theta=0.8,writes=3", 4).0,
        prepared(&small(&["flash.ftl.gc.victim=random"]), "steady", 4).0,
    ];
    for (n, other) in others.iter().enumerate() {
        let p = homogeneity(&steady.ftl.valid_histogram(), &other.ftl.valid_histogram());
        assert!(p < ALPHA, "state {n}: p = {p}");
    }
}

#[test]
fn write_amplification_of_drive_write_1_is_that_of_drive_write_10() {
    let overrides =
        ["flash.geometry.blocks=128", "flash.geometry.pages=32", "flash.ftl.over_provisioning=20%"];
    let system = small(&overrides);
    let slow = Pace::Open(Time::from_ms(100));
    for (state, pace) in [("steady", slow), ("steady", Pace::Closed(16)), ("analytic", slow)] {
        let (device, report) = prepared(&system, state, 1);
        let units = device.ftl.logical();
        let (_, marks) = write_in_time(device, units, (10 * units, units), pace, 2);
        assert_eq!(marks.len(), 10);
        let of =
            |n: usize| amplification(if n == 0 { FtlCounters::default() } else { marks[n - 1] }, marks[n]);
        let change = of(9) / of(0) - 1.0;
        assert!(change.abs() < 0.02, "{state}: {} in drive write 1, {} in 10", of(0), of(9));
        if matches!(pace, Pace::Open(_)) {
            let said = report.write_amplification.expect("it was overwritten");
            assert!((said / of(9) - 1.0).abs() < 0.03, "{state}: {said}, then {}", of(9));
        }
    }
}

// Impossible states are refused, with the arithmetic.

/// The refusal of a state: what, and help.
fn refused(overrides: &[&str], state: &str) -> (String, String) {
    let system = small(overrides);
    let mut device = system.device(1).expect("a device");
    let parsed = precondition::parse(state).unwrap_or_else(|fault| panic!("{fault}"));
    match precondition::apply(&parsed, system.drive().expect("a drive").flash, &mut device.ftl, 1) {
        Ok(report) => panic!("{state} was accepted: {report:?}"),
        Err(fault) => (fault.what.clone(), fault.help.unwrap_or_default()),
    }
}

#[test]
fn shares_that_are_nothing_or_more_than_all() {
    for state in ["sequential", "uniform", "zipf", "steady", "analytic"] {
        let (what, help) = refused(&[], &format!("{state}:share=0%"));
        assert_eq!(what, "a share of 0.0 of 111411 map units is zero units", "{state}");
        assert!(help.contains("none"));
        // 4e-6 of 111 411 units rounds to none.
        assert!(refused(&[], &format!("{state}:share=0.0004%")).0.contains("is zero units"));
        let over = precondition::parse(&format!("{state}:share=101%")).expect_err("more than all");
        assert!(over.to_string().contains("101%"), "{over}");
    }
}

#[test]
fn invalid_shares_that_need_more_than_there_is() {
    // 89 129 units; 8 groups of 251 blocks of 64 units and one unit: 128 520. At most 30.64 %.
    let (what, help) = refused(&[], "uniform:share=80%,invalid=31%");
    for part in [
        "0.31 needs 129172",
        "89129 valid ones over 0.69",
        "8 groups hold 128520",
        "251 of 256",
        "4 kept free",
    ] {
        assert!(what.contains(part), "{part}: {what}");
    }
    assert!(help.contains("at most 30.64 %"), "{help}");
    assert!(refused(&[], "uniform:share=80%,invalid=100%").0.contains("1.0 needs inf"));
    let (device, report) = bench::prepared(&small(&[]), "uniform:share=80%,invalid=30.64%", 1);
    // Up to one unit in each die beyond it, so that its planes are in step: 4 of 128 520.
    let above = report.invalid_share - 0.3064;
    assert!(above > -1e-5 && above < 1e-5 + 4.0 / 128_520.0 && device.ftl.counters.erases == 0);
}

#[test]
fn a_device_without_spare_space() {
    // 250 blocks of 64 units beside 4 free ones and 2 frontiers, and all of them logical: 16 000 of 16 384.
    let none: &[&str] = &["flash.ftl.over_provisioning=2.34375%"];
    for state in ["steady", "zipf", "analytic", "steady:distribution=zipf"] {
        let (what, _) = refused(none, state);
        for part in [
            "256 reclaim units of 64",
            "4 are kept free and 2 are frontiers",
            "250 hold 16000",
            "16000 are mapped",
        ] {
            assert!(what.contains(part), "{state}, {part}: {what}");
        }
    }
    // A device that does not need to reclaim can be full.
    bench::prepared(&small(none), "uniform", 1);
}

#[test]
fn parameters_without_a_meaning() {
    assert!(refused(&[], "steady:tolerance=0%").0.contains("never steady to within 0 %"));
    for theta in ["0.0", "-1.0", "51.0", "nan", "inf"] {
        assert!(refused(&[], &format!("zipf:theta={theta}")).0.contains("must be above 0"), "{theta}");
        let nested = format!("steady:distribution.zipf.theta={theta}");
        assert!(refused(&[], &nested).0.contains("must be above 0"), "{theta}");
    }
    for writes in ["0.0", "-2.0", "1001.0", "nan"] {
        assert!(refused(&[], &format!("zipf:writes={writes}")).0.contains("drive writes"), "{writes}");
    }
}

#[test]
fn steady_states_without_a_theory() {
    for victim in ["cost_benefit", "windowed_greedy"] {
        let (what, help) = refused(&[&format!("flash.ftl.gc.victim={victim}")], "analytic");
        assert!(what.contains(victim) && help.contains("steady"), "{what}");
    }
    let one_shot = [
        "flash.cell.bits=3",
        "flash.cell.programming=one_shot",
        "flash.geometry.page_size=16KiB",
        "flash.geometry.pages=24",
    ];
    let (what, _) = refused(&one_shot, "analytic:share=50%");
    // Program units of 12 in blocks of 96: 5.5 / 96 = 5.7 %.
    assert!(what.contains("(12 - 1) / 2 of the 96 units") && what.contains("5.7 %"), "{what}");
}

#[test]
fn traces_that_do_not_fit_or_are_not_there() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    // The last unit is number 111,410.
    std::fs::write(file.path(), format!("0 0 0 40 0\n1 0 {} 16 0\n", 111_410 * 8)).expect("written");
    let state = |more: &str| format!("trace:file={},format=mqsim,remap=error{more}", file.path().display());
    let (what, _) = refused(&[], &state(""));
    assert!(what.contains("device"), "{what}");
    let (what, help) = refused(&[], &state(",passes=0"));
    assert!(what.contains("0 passes") && help.contains("1000"), "{what}");
    let (what, help) = refused(&[], "trace");
    assert!(what.contains("needs a trace") && help.contains("file"), "{what}");
    let (what, _) = refused(&[], "trace:file=no-such-file.trace");
    assert!(what.contains("cannot read the trace"), "{what}");
}

#[test]
#[should_panic(expected = "from an empty device")]
fn a_device_that_was_used() {
    let system = small(&[]);
    let (mut device, _) = bench::prepared(&system, "sequential", 1);
    let state = precondition::parse("sequential").expect("a state");
    let _ = precondition::apply(&state, system.drive().expect("a drive").flash, &mut device.ftl, 1);
}
