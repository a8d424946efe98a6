//! Common items of the FTL's tests.

use super::gc::{Victim, VictimContext, greedy::Greedy};
use super::{Ftl, Thresholds, wear::WearRule};
use engine::Time;
use nand::dies::arbiter::Arbitration;
use nand::dies::sched::Scheduling;
use nand::dies::timing::{Timing, Wear};
use nand::dies::{Backend, BackendPolicy, MultiPlane, Sharing, Suspend};
use nand::geometry::{Digit, Geometry, Reclaim, Shape};
use net::Rate;
use proto::Lpn;

/// Returns the shape of a small device.
pub(crate) fn small(reclaim: Reclaim) -> Shape {
    Shape {
        channels: 2,
        ways: 3,
        dies: 2,
        planes: 2,
        blocks: 8,
        pages: 12,
        page_bytes: 16384,
        unit_bytes: 4096,
        program_pages: 3,
        reclaim,
        stripe: [Digit::Channel, Digit::Way, Digit::Die, Digit::Plane],
        interleave: true,
        parity: None,
    }
}

/// Creates an idle back end.
pub(crate) fn idle(geo: &Geometry) -> Backend {
    let us = Time::from_us(1);
    let timing = Timing {
        read: vec![us],
        program: vec![us],
        passes: 1,
        one_shot: false,
        erase: us,
        page_type: vec![0; geo.shape.pages as usize],
        wear_ppm: Wear::default(),
        spread: None,
        slc: None,
        errors: None,
        read_command: us,
        column_command: us,
        program_command: us,
        erase_command: us,
        data_out: us,
        data_in: us,
        rate: Rate::new(1_000_000_000),
        most_bytes: geo.shape.page_bytes.max(geo.shape.unit_bytes),
        pages_per_unit: geo.pages_per_unit(),
        program_pages: geo.shape.program_pages,
    };
    let policy = BackendPolicy {
        scheduler: Scheduling::oldest.build(&()),
        arbiter: Arbitration::fifo.build(&()),
        sharing: Sharing { rule: MultiPlane::Off, search: 1 },
        independent_reads: false,
        register_reads: false,
        joins_reads: false,
        suspend: Suspend { program: false, erase: false, latency: us, resume: us, least: us, limit: 0 },
        budget: None,
        tells_idle: false,
        fold: false,
        wanted: None,
        link: None,
    };
    Backend::new(geo, timing, policy)
}

/// Creates an empty FTL over a small device, with a given victim policy.
pub(crate) fn ftl_with(reclaim: Reclaim, logical: u64, victim: Box<dyn Victim>) -> Ftl {
    let blocks = if reclaim == Reclaim::Superblock { 24 } else { 16 };
    let geo = Geometry::new(Shape { blocks, ..small(reclaim) });
    Ftl::new(geo, (logical, 0), 1, WearRule::default(), Thresholds { start: 3, stop: 4, hard: 1 }, victim)
}

/// Creates an empty FTL over a small device.
pub(crate) fn ftl(reclaim: Reclaim, logical: u64) -> Ftl {
    let context = VictimContext { seed: 1, device: "flash".into() };
    ftl_with(reclaim, logical, Box::new(Greedy::new(&context)))
}

/// Naive reference: checks the slot of each logical unit.
pub(crate) fn check(ftl: &Ftl, written: &[bool]) {
    let mut per_ru = vec![0; ftl.geo.ru_count as usize];
    for (lpn, written) in written.iter().enumerate() {
        let slot = ftl.lookup(Lpn(lpn as u64));
        assert_eq!(slot.is_some(), *written, "unit {lpn}");
        if let Some(slot) = slot {
            assert!(ftl.is_valid(slot));
            assert_eq!(ftl.lpn_at(slot), Some(Lpn(lpn as u64)));
            per_ru[ftl.geo.ru_of_slot(slot) as usize] += 1;
        }
    }
    assert_eq!(ftl.mapped(), written.iter().filter(|w| **w).count() as u64);
    for (ru, count) in per_ru.iter().enumerate() {
        assert_eq!(ftl.valid_units(ru as u64), *count, "valid count of reclaim unit {ru}");
        let mut cursor = 0;
        let mut found = 0;
        while ftl.next_valid(ru as u64, &mut cursor).is_some() {
            found += 1;
        }
        assert_eq!(found, *count, "valid slots of reclaim unit {ru}");
    }
}
