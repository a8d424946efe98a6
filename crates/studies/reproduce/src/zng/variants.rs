//! Systems and their variants that the paper's figures compare.

use super::super::study::Point;
use super::suite::{Suite, Variant};

/// Figures of whole platforms, which every variant of the table may move.
const PLATFORMS: &[&str] = &[
    "perf.zng_vs_hybridgpu",
    "perf.hybridgpu_vs_hetero",
    "perf.optane_vs_hybridgpu",
    "perf.wropt_vs_rdopt",
    "perf.base_and_rdopt_below_hybridgpu",
    "bw.zng_vs_optane",
    "bw.hybridgpu_flash",
    "bw.rdopt_vs_hybridgpu",
    "bw.wropt_vs_rdopt",
    "bw.zng_vs_wropt",
];
/// Those of them that ZnG's own platforms are in.
const DIRECT: &[&str] = &[
    "perf.zng_vs_hybridgpu",
    "perf.wropt_vs_rdopt",
    "perf.base_and_rdopt_below_hybridgpu",
    "bw.zng_vs_optane",
    "bw.rdopt_vs_hybridgpu",
    "bw.wropt_vs_rdopt",
    "bw.zng_vs_wropt",
];
/// Those that HybridGPU is in.
const ENGINE: &[&str] = &[
    "perf.zng_vs_hybridgpu",
    "perf.hybridgpu_vs_hetero",
    "perf.optane_vs_hybridgpu",
    "perf.base_and_rdopt_below_hybridgpu",
    "bw.hybridgpu_flash",
    "bw.rdopt_vs_hybridgpu",
    "lat.ssd_engine_share",
];
/// Those that what is parked in the shared cache may move.
const PARKED: &[&str] = &[
    "perf.zng_vs_hybridgpu",
    "perf.base_and_rdopt_below_hybridgpu",
    "bw.zng_vs_optane",
    "bw.zng_vs_wropt",
    "read.redirection_reaccess_rise",
    "write.redundancy_redirection",
];

/// The table with one decision the other way (papers/zng, third reading): its name, what it sets, and the figures shown.
pub(super) const VARIANTS: [(&str, Variant, &[&str]); 7] = [
    ("corun.shared", |_, _| vec!["gpu.kernels=shared".into(), "gpu.repeat=false".into()], PLATFORMS),
    ("lines", lines, DIRECT),
    ("apart", apart, DIRECT),
    ("wide", |system, factor| bus(system, 12_800 / factor), ENGINE),
    ("unbound", |system, _| bus(system, 1_000_000), ENGINE),
    ("parked.3MiB", |system, factor| parked(system, 3_072 / factor), PARKED),
    ("parked.21MiB", |system, factor| parked(system, 21_504 / factor), PARKED),
];

fn lines(system: &str, _: u32) -> Vec<String> {
    let moved = matches!(system, "zng" | "zng-rdopt");
    moved.then(|| "memory.direct.transfer=lines".to_owned()).into_iter().collect()
}

fn apart(system: &str, _: u32) -> Vec<String> {
    let direct = system.starts_with("zng");
    direct.then(|| "memory.direct.array.merge_reads=false".to_owned()).into_iter().collect()
}

/// HybridGPU's buffer with a bus of so many MB/s.
fn bus(system: &str, rate: u32) -> Vec<String> {
    (system == "hybridgpu").then(|| format!("memory.engine.dram.bandwidth={rate}MB/s")).into_iter().collect()
}

/// ZnG with room for so many KiB of parked pages.
fn parked(system: &str, room: u32) -> Vec<String> {
    (system == "zng").then(|| format!("l2.parked={room}KiB")).into_iter().collect()
}

/// Redirection of dirty pages into the shared cache, off: no share is above all.
const NO_REDIRECTION: [&str; 2] = ["memory.direct.redirect.threshold=100%", "l2.parked=0B"];

fn with(point: Point, sets: &[&str]) -> Point {
    sets.iter().fold(point, |point, set| point.set(set))
}

/// Fig. 12, in its order: SRAM, STT-MRAM, dynamic prefetch, redirection. All have ZnG's registers.
pub(super) fn read_designs(suite: &Suite, pair: &str) -> [Point; 4] {
    let zng = || with(suite.point("zng", pair, 1, 1), &NO_REDIRECTION);
    [
        with(zng(), &["l2.write_latency=1", "l2.prefetch=none"])
            .set(&format!("l2.sets={}", suite.sram_sets())),
        with(zng(), &["l2.prefetch=none"]),
        zng(),
        suite.point("zng", pair, 1, 1),
    ]
}

/// Fig. 13, in its order: eight private registers a plane, registers grouped by the network in flash, redirection.
pub(super) fn write_designs(suite: &Suite, pair: &str) -> [Point; 3] {
    let zng = || with(suite.point("zng", pair, 1, 1), &NO_REDIRECTION);
    [zng().set("memory.direct.registers.network=private"), zng(), suite.point("zng", pair, 1, 1)]
}

/// Fig. 14, in its order: SWnet, HW-FCnet, HW-NiF.
pub(super) fn networks(suite: &Suite, pair: &str) -> [Point; 3] {
    let zng = |network: &str| {
        suite.point("zng", pair, 1, 1).set(&format!("memory.direct.registers.network={network}"))
    };
    [zng("swnet"), zng("fcnet"), suite.point("zng", pair, 1, 1)]
}

/// Fig. 16b, in its order, with the names of its legend.
pub(super) fn prefetchers(suite: &Suite, pair: &str) -> [(&'static str, Point); 5] {
    let zng = |prefetch: &str| suite.point("zng", pair, 1, 1).set(&format!("l2.prefetch={prefetch}"));
    [
        ("nopref", zng("none")),
        ("1kb", zng("{ fixed = { chunk = \"1KiB\" } }")),
        ("4kb", zng("{ fixed = { chunk = \"4KiB\" } }")),
        ("predict-4kb", zng("{ predicted = { entries = 512, cutoff = 12, chunk = \"4KiB\" } }")),
        ("dyn-pref", suite.point("zng", pair, 1, 1)),
    ]
}

/// Fig. 16a: thresholds of the access monitor, high and low.
pub(super) fn thresholds(suite: &Suite, pair: &str) -> Vec<((&'static str, &'static str), Point)> {
    let mut all = Vec::new();
    for high in ["10%", "30%", "50%", "70%"] {
        for low in ["1%", "5%", "10%"] {
            let point = suite
                .point("zng", pair, 1, 1)
                .set(&format!("l2.prefetch.dynamic.high={high}"))
                .set(&format!("l2.prefetch.dynamic.low={low}"));
            all.push(((high, low), point));
        }
    }
    all
}
