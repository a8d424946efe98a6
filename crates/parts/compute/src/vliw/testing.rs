//! What tests of cores share.

use super::spec::{
    AcceleratorMemory, CacheSpec, CoreSpec, ExpansionSpec, LatencySpec, UnitsSpec, WorkerPower,
};
use config::units::{Bandwidth, Bytes, Frequency, Power};
use nest::Kernel;

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
        prefetch: None,
        write_back: 65,
    }
}

/// A level of caches, by its size in KiB, ways, bytes of a line, and cycles of a miss.
pub(super) fn cache(kib: u64, ways: u32, line: u64, miss: u32) -> CacheSpec {
    CacheSpec { size: Bytes::from_kib(kib), ways, line: Bytes::new(line), miss }
}

/// 8 MiB at 6.4 GB/s.
pub(super) fn memory() -> AcceleratorMemory {
    AcceleratorMemory { size: Bytes::from_kib(8 << 10), bandwidth: Bandwidth::new(6_400_000_000) }
}

/// A core's power by state, all different.
pub(super) fn power() -> WorkerPower {
    WorkerPower { idle: Power::new(88), waits: Power::new(209), computes: Power::new(641) }
}

/// A shipped program with sizes of its own.
fn sized(name: &str, of: impl Fn(&str) -> Option<i64>) -> Kernel {
    let (_, text) = nest::programs().iter().find(|(known, _)| *known == name).expect("a program");
    let whole = Kernel::read(text, name, &[]).expect("a program");
    let sizes: Vec<_> =
        whole.sizes().iter().filter_map(|(size, _)| Some((size.clone(), of(size)?))).collect();
    Kernel::read(text, name, &sizes).expect("sizes")
}

/// A shipped program as it is.
pub(super) fn whole(name: &str) -> Kernel {
    sized(name, |_| None)
}

/// A shipped program with all its sizes so large.
pub(super) fn shipped(name: &str, side: i64) -> Kernel {
    sized(name, |_| Some(side))
}

/// A shipped program with some sizes.
pub(super) fn with_sizes(name: &str, sizes: &[(&str, i64)]) -> Kernel {
    sized(name, |size| sizes.iter().find(|(known, _)| *known == size).map(|(_, side)| *side))
}

/// A product element by element, each of which needs a column of 1,024 rows: 64 page groups.
pub(super) fn columns() -> Kernel {
    let text = r#"
name = "columns"
[sizes]
n = 1024
[arrays.A]
shape = ["n", "n"]
element = "f32"
section = "input"
[arrays.B]
shape = ["n", "n"]
element = "f32"
section = "input"
[arrays.C]
shape = ["n", "n"]
element = "f32"
section = "output"
[[microblocks]]
split = "i"
code = "for i in 0..n { for j in 0..n { for k in 0..n { C[i][j] += A[i][k] * B[k][j]; } } }"
"#;
    Kernel::read(text, "columns.toml", &[]).expect("a kernel")
}
