//! What a large drive costs in memory, counted in what its tables allocate.

use super::gc::{VictimContext, greedy::Greedy};
use super::testing::ftl;
use super::wear::WearRule;
use super::{Ftl, Thresholds};
use nand::geometry::{Digit, Geometry, Reclaim, Shape};
use nand::sparse::{Bits, Table};
use proto::{Lpn, Slot};

const GIB: u64 = 1 << 30;
/// 100 GB.
const TOUCHED: u64 = 100_000_000_000;

/// 64 TiB: 32 channels of 8 packages of 4 dies of 4 planes, blocks of 18 MiB.
fn large() -> Geometry {
    Geometry::new(Shape {
        channels: 32,
        ways: 8,
        dies: 4,
        planes: 4,
        blocks: 911,
        pages: 1152,
        page_bytes: 16384,
        unit_bytes: 4096,
        program_pages: 3,
        reclaim: Reclaim::Block,
        stripe: [Digit::Channel, Digit::Way, Digit::Die, Digit::Plane],
        interleave: true,
        parity: None,
    })
}

/// Bytes a reclaim unit that was filled: what filling a small device adds, over its reclaim units.
fn record_bytes() -> u64 {
    let of = |units: u64| {
        let mut ftl = ftl(Reclaim::Block, 24 * 16 * 48);
        ftl.assume_sequential(units * 24 * 48);
        ftl.groups.iter().map(|g| g.bytes()).sum::<u64>()
    };
    // The list of those freed comes with the first that is.
    (of(16) - of(0)).div_ceil(24 * 16) + size_of::<u32>() as u64
}

/// Bytes of the map, the flags and the out-of-band words once `bytes` at the beginning of the logical space have been
/// written over a drive that was filled in order: onto the next units of each group.
fn touched_bytes(geo: &Geometry, logical: u64, bytes: u64) -> u64 {
    let units = bytes / u64::from(geo.shape.unit_bytes);
    let (mut map, mut oob, mut valid) =
        (Table::new(logical, geo.slots + 2), Table::new(geo.slots, logical + 2), Bits::new(geo.slots));
    // No chunk is smaller than this: every one that is touched is touched here.
    let step = 1 << 12;
    (0..units).step_by(step).chain([units - 1]).for_each(|lpn| map.set(lpn, 0));
    let per_group = units.div_ceil(u64::from(geo.groups));
    for group in 0..u64::from(geo.groups) {
        // The old copies lie at the beginning of the group, the new ones behind them.
        let first = geo.first_slot(group * u64::from(geo.shape.blocks)).0;
        for unit in (0..2 * per_group).step_by(step).chain([2 * per_group - 1]) {
            if unit < per_group {
                valid.flip(first + unit);
            } else {
                oob.set(first + unit, 0);
                valid.flip(first + unit);
            }
        }
    }
    map.bytes() + oob.bytes() + valid.bytes()
}

#[test]
fn a_64_tib_drive_of_which_100_gb_are_written_fits_in_a_gib() {
    let geo = large();
    assert!(geo.raw_bytes() >= 64 << 40, "{} B", geo.raw_bytes());
    let logical = geo.slots / 100 * 93;
    let tables = touched_bytes(&geo, logical, TOUCHED);
    let records = record_bytes() * geo.ru_count + 8 * geo.block_count;
    // Lists and frontiers of the groups, whatever is written.
    let group = size_of::<super::Group>() as u64 + (1024 / 64 + 1024) * 8;
    let total = tables + records + group * u64::from(geo.groups);
    assert!(total < GIB * 9 / 10, "{total} B leave less than a tenth of 1 GiB for all else");
}

#[test]
fn d16_fits_in_64_mib_whatever_is_written() {
    let geo = Geometry::new(Shape {
        channels: 8,
        ways: 4,
        dies: 1,
        planes: 2,
        blocks: 512,
        pages: 128,
        page_bytes: 4096,
        unit_bytes: 4096,
        program_pages: 1,
        reclaim: Reclaim::Block,
        stripe: [Digit::Channel, Digit::Way, Digit::Die, Digit::Plane],
        interleave: true,
        parity: None,
    });
    let (slots, logical) = (geo.slots, geo.slots / 100 * 88);
    let context = VictimContext { seed: 1, device: "flash".into() };
    let thresholds = Thresholds { start: 25, stop: 26, hard: 2 };
    let mut ftl =
        Ftl::new(geo, (logical, 0), 1, WearRule::default(), thresholds, Box::new(Greedy::new(&context)));
    ftl.assume_sequential(logical);
    // A write in every chunk of every table.
    (0..slots).step_by(4096).for_each(|slot| ftl.fill(Slot(slot), None));
    (0..logical).step_by(4096).for_each(|lpn| assert!(ftl.trim(Lpn(lpn))));
    // A word a unit in the map and out of band, a flag a unit, and records.
    let bytes = ftl.bytes();
    assert!(bytes >= 4 * logical + 4 * slots + slots / 8, "{bytes} B");
    assert!(bytes < 40 << 20, "{bytes} B leave less than 24 MiB for all else");
}
