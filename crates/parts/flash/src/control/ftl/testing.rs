//! What the FTL's tests share.

use super::gc::{Victim, VictimContext, greedy::Greedy};
use super::{Ftl, Thresholds, wear::WearRule};
use crate::media::geometry::{Geometry, Reclaim, Shape, tests::small};
use proto::Lpn;

/// An empty FTL over a small device, with another victim policy.
pub(crate) fn ftl_with(reclaim: Reclaim, logical: u64, victim: Box<dyn Victim>) -> Ftl {
    let blocks = if reclaim == Reclaim::Superblock { 24 } else { 16 };
    let geo = Geometry::new(Shape { blocks, ..small(reclaim) });
    Ftl::new(geo, (logical, 0), 1, WearRule::default(), Thresholds { start: 3, stop: 4, hard: 1 }, victim)
}

/// An empty FTL over a small device.
pub(crate) fn ftl(reclaim: Reclaim, logical: u64) -> Ftl {
    let context = VictimContext { seed: 1, device: "flash".into() };
    ftl_with(reclaim, logical, Box::new(Greedy::new(&context)))
}

/// The naive reference: what each logical unit's slot must satisfy.
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
