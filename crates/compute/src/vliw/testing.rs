//! What tests of cores share.

use super::spec::{CacheSpec, CoreSpec, ExpansionSpec, LatencySpec, UnitsSpec};
use config::units::{Bytes, Frequency};

/// A C66x core at 1 GHz.
pub(super) fn core() -> CoreSpec {
    CoreSpec {
        clock: Frequency::new(1_000_000_000),
        units: UnitsSpec { multiply: 2, general: 4, memory: 2 },
        latency: LatencySpec {
            load: 5,
            store: 1,
            add: 3,
            multiply: 4,
            compare: 1,
            divide: 27,
            square_root: 27,
        },
        divide: ExpansionSpec { multiply: 5, general: 7 },
        square_root: ExpansionSpec { multiply: 7, general: 5 },
        l1: cache(32, 2, 64, 8),
        l2: cache(512, 4, 128, 85),
        write_back: 65,
    }
}

/// A level of caches, by its size in KiB, ways, bytes of a line, and cycles of a miss.
pub(super) fn cache(kib: u64, ways: u32, line: u64, miss: u32) -> CacheSpec {
    CacheSpec { size: Bytes::from_kib(kib), ways, line: Bytes::new(line), miss }
}
