//! Specs for tests.

use super::spec::{DumpExtent, GroupDump, GroupGeometry, GroupReclaim, GroupsSpec};
use super::translation::GroupTranslation;
use super::victim::GroupVictim;
use config::units::{Bytes, Duration};
use engine::Time;

/// The prototype's 32 GB: 16 packages with so many dies each. 256 pages a block are of MT29F64G08's data sheet; as many blocks as
/// make 32 GB.
pub fn prototype(dies: u32, translation: GroupTranslation) -> GroupsSpec {
    GroupsSpec {
        geometry: GroupGeometry {
            channels: 4,
            packages: 4,
            dies,
            planes: 2,
            blocks: 512 / dies,
            pages: 256,
            page: Bytes::from_kib(8),
        },
        translation,
        metadata_pages: 2,
        reclaim: GroupReclaim { victim: GroupVictim::round_robin, reserve: 2, below: 4, moves: 8 },
        dump: GroupDump { period: Duration::new(Time::from_ms(1000)), extent: DumpExtent::changed },
    }
}

/// 1,024 groups of 512 B, 16 pages a block of which two hold metadata: eight groups hold the map. 64 blocks of 14 groups of data
/// with the literal translation, 16 of 56 with the striped one.
pub fn small(translation: GroupTranslation) -> GroupsSpec {
    GroupsSpec {
        geometry: GroupGeometry {
            channels: 1,
            packages: 2,
            dies: 2,
            planes: 1,
            blocks: 16,
            pages: 16,
            page: Bytes::new(512),
        },
        reclaim: GroupReclaim { victim: GroupVictim::round_robin, reserve: 1, below: 3, moves: 4 },
        ..prototype(2, translation)
    }
}
