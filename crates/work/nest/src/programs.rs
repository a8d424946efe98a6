//! Shipped kernels.

/// Name and text of every shipped kernel. A new one needs a file and a line here.
const PROGRAMS: &[(&str, &str)] = &[
    ("atax", include_str!("../programs/atax.toml")),
    ("bicg", include_str!("../programs/bicg.toml")),
    ("2dcon", include_str!("../programs/2dcon.toml")),
    ("mvt", include_str!("../programs/mvt.toml")),
    ("adi", include_str!("../programs/adi.toml")),
    ("fdtd", include_str!("../programs/fdtd.toml")),
    ("gesum", include_str!("../programs/gesum.toml")),
    ("syrk", include_str!("../programs/syrk.toml")),
    ("3mm", include_str!("../programs/3mm.toml")),
    ("covar", include_str!("../programs/covar.toml")),
    ("gemm", include_str!("../programs/gemm.toml")),
    ("2mm", include_str!("../programs/2mm.toml")),
    ("syr2k", include_str!("../programs/syr2k.toml")),
    ("corr", include_str!("../programs/corr.toml")),
    ("nw", include_str!("../programs/nw.toml")),
    ("path", include_str!("../programs/path.toml")),
    ("serial", include_str!("../programs/serial.toml")),
];

/// Returns name and text of every shipped kernel: the fourteen of Table 2 of the FlashAbacus paper in its order, then
/// the loop nests of its section 5.6, and one with a serial share of work (Figure 3b).
pub fn programs() -> &'static [(&'static str, &'static str)] {
    PROGRAMS
}

/// Name and text of GPU programs that are also loop nests.
const OF_GPUS: &[(&str, &str)] = &[
    ("gaus", include_str!("../programs/gpu/gaus.toml")),
    ("FDT", include_str!("../programs/gpu/fdt.toml")),
    ("gram", include_str!("../programs/gpu/gram.toml")),
];

/// Returns name and text of the GPU programs that are also loop nests, by their GPU names: an accelerator or a server
/// executes the nests instead.
pub fn programs_of_gpus() -> &'static [(&'static str, &'static str)] {
    OF_GPUS
}
