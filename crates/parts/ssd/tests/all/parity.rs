//! Superblock parity in a device at work: rates and write amplification by formula, and what rebuilding a page takes.

use crate::bench::{Bench, DIES, UNITS, build, close, combination};
use config::units::{Duration, Share};
use engine::{Rng, Time};
use ftl::page_map::functional::{FunctionalWriter, Placement};
use proto::{IoOp, Lpn};
use ssd::spec::{ErrorsSpec, FlashSpec, RetrySpec};

/// Planes.
const GROUPS: u64 = 8;
/// Pages of a block.
const PAGES: u64 = 48;
/// Times beside which links and channels take next to nothing.
const PROGRAM: Time = Time::from_ms(100);
const READ: Time = Time::from_ms(4);

/// Four dies, with sets of `data + 1`.
fn spec(data: Option<u32>) -> FlashSpec {
    let mut spec = combination().spec();
    spec.cell.program = vec![Duration::new(PROGRAM); 2];
    spec.cell.read = vec![Duration::new(READ); 2];
    spec.cell.erase = Duration::new(Time::from_us(1));
    spec.ftl.parity = data;
    // Sets of two take half of what there is.
    spec.ftl.over_provisioning = Share::percent(70);
    spec
}

#[test]
fn writes_share_their_dies_with_parity() {
    // A block of each plane, parity in one part of `data + 1`.
    for data in [1, 3] {
        let pages = GROUPS * PAGES * data / (data + 1);
        let mut bench = Bench::of(&spec(Some(data as u32)));
        let time = bench.run(IoOp::Write, 0..pages);
        // A die programs all pages of its planes' blocks, whatever they hold.
        assert!(close(time, PROGRAM.times(GROUPS * PAGES / DIES)), "{time:?}");
        bench.rest();
        assert_eq!(bench.programs(), [pages, 0]);
        let seen = bench.device.parity().expect("there is parity");
        assert_eq!((seen.programs, bench.device.units_of_parity()), (pages / data, pages / data * UNITS));
        let read = bench.run(IoOp::Read, 0..pages);
        assert!(close(read, READ.times(pages / DIES)), "{read:?}");
        bench.rest();
    }
    let mut without = Bench::of(&spec(None));
    let time = without.run(IoOp::Write, 0..GROUPS * PAGES);
    assert!(close(time, PROGRAM.times(GROUPS * PAGES / DIES)), "{time:?}");
    assert_eq!((without.device.parity(), without.device.units_of_parity()), (None, 0));
}

/// What parity takes away of a block is as if the block were smaller: collection moves as much then, unit for unit.
#[test]
fn collection_works_as_with_blocks_of_the_pages_that_hold_data() {
    let moves = |data: Option<u32>, pages: u32, over: u8| {
        let mut spec = spec(data);
        spec.geometry.pages = pages;
        spec.ftl.over_provisioning = Share::percent(over);
        let mut ftl = build(&spec).ftl;
        let units = 7_000;
        assert!(ftl.logical() >= units, "{}", ftl.logical());
        let mut writer = FunctionalWriter::new(&ftl, Placement::Striped);
        let mut rng = Rng::stream(3, "test");
        let lpns: Vec<Lpn> = (0..100_000).map(|_| Lpn(rng.below(units))).collect();
        writer.write_all(&mut ftl, lpns).expect("there is spare space");
        writer.finish(&mut ftl).expect("there is spare space");
        (
            ftl.counters.moves,
            ftl.counters.erases,
            (0..units).map(|lpn| ftl.lookup(Lpn(lpn))).collect::<Vec<_>>(),
        )
    };
    // The same share of 7,372 units in all.
    for (data, over) in [(1, 40), (3, 60)] {
        let with = moves(Some(data), 48, 70);
        assert!(with.0 > 1_000, "{}", with.0);
        assert_eq!(with, moves(None, 48 * data / (data + 1), over));
    }
}

/// Two further steps for every page, which end well or do not.
fn failing(fresh: f64) -> FlashSpec {
    let mut spec = spec(Some(3));
    spec.cell.errors = Some(ErrorsSpec {
        fresh,
        wear: 0.0,
        retention: 0.0,
        reads: 0.0,
        age: None,
        types: None,
        spread: Share::percent(0),
        retry: RetrySpec { correctable: 0.004, gain: 0.5, limit: 2, latency: Duration::new(Time::ZERO) },
    });
    spec
}

#[test]
fn a_page_that_cannot_be_corrected_is_rebuilt_from_the_other_dies() {
    let read = |spec: &FlashSpec| {
        let mut bench = Bench::of(spec);
        bench.run(IoOp::Write, 0..GROUPS * PAGES / 4);
        bench.rest();
        let time = bench.run(IoOp::Read, 5..6);
        bench.rest();
        (
            time,
            bench.device.parity().expect("there is parity"),
            bench.device.backend.counters.uncorrectable_reads,
        )
    };
    // 0.01 needs two halvings.
    let (time, seen, uncorrectable) = read(&failing(0.01));
    assert!(close(time, READ.times(3)), "{time:?}");
    assert_eq!((seen.rebuilt, seen.lost, uncorrectable), (0, 0, 0));
    // 0.1 would need five. Three pages of other dies are read at once, and none of them can be corrected either.
    let (time, seen, uncorrectable) = read(&failing(0.1));
    assert!(close(time, READ.times(6)), "{time:?}");
    assert_eq!((seen.rebuilt, seen.lost, uncorrectable), (0, 1, 4));
}

#[test]
fn sets_must_fill_the_device_and_its_blocks() {
    let fault = |change: fn(&mut FlashSpec)| {
        let mut spec = spec(Some(3));
        change(&mut spec);
        let fault = spec.geometry().expect_err("it cannot be laid out");
        (fault.key.clone(), format!("{} {}", fault.what, fault.help.unwrap_or_default()))
    };
    for data in [0, 2, 4, 7, u32::MAX - 1] {
        let mut spec = spec(Some(3));
        spec.ftl.parity = Some(data);
        let fault = spec.geometry().expect_err("it cannot be laid out");
        assert_eq!(fault.key, "ftl.parity");
        assert!(fault.help.unwrap_or_default().starts_with("allowed are 1, 3, "), "{}", fault.what);
    }
    let (key, text) = fault(|spec| spec.geometry.pages = 34);
    assert!(key == "ftl.parity" && text.contains("allowed are 1,"), "{text}");
    let (key, text) = fault(|spec| spec.geometry.pages = 33);
    assert!(key == "ftl.parity" && text.contains("no number does here"), "{text}");
    assert_eq!(fault(|spec| spec.ftl.gc.copy_back = true).0, "ftl.gc.copy_back");
}
