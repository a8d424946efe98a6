//! The kernels that are shipped.

/// Name and text of every shipped kernel. A new one is a file and a line.
const PROGRAMS: &[(&str, &str)] =
    &[("gemm", include_str!("../programs/gemm.toml")), ("atax", include_str!("../programs/atax.toml"))];

/// Name and text of every shipped kernel, in the order of Table 2 of the FlashAbacus paper.
pub fn programs() -> &'static [(&'static str, &'static str)] {
    PROGRAMS
}
