//! ZnG (Zhang and Jung, ISCA 2020). What was decided before the first ratio was seen stands in `papers/zng/README.md`.

mod constants;
mod gc;
mod rows;
mod slice;
mod suite;

use super::expected::Expected;
use super::study::{Entry, Point};
use super::{Effort, Reading};
use config::Diagnostic;
use machine::result::{Document, GpuResult};
use suite::{Suite, Variant};

/// The paper's figures.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/zng/expected.toml"))
}

/// The readings of the paper.
pub(super) const READINGS: &str = include_str!("../../../../../papers/zng/readings.toml");

/// Figures that only `--full` works out: designs of parts, and programs alone.
const DESIGNS: [&str; 6] = [
    "zng.read.",
    "zng.write.",
    "zng.net.",
    "zng.motivation.direct",
    "zng.motivation.read",
    "zng.motivation.write",
];

/// The rows: those that take minutes, or all.
pub(super) fn entries(effort: Effort, reading: &Reading) -> Vec<Entry> {
    let suite = Suite::of(effort, reading);
    let expected = expected();
    let left_out = |id: &str| effort == Effort::Full && DESIGNS.iter().any(|begin| id.starts_with(begin));
    let figures = expected.figures().iter().filter(|figure| !left_out(&figure.id));
    let mut entries: Vec<Entry> =
        figures.clone().filter_map(|figure| rows::entry(figure, &suite, effort)).collect();
    entries.extend(figures.clone().filter_map(|figure| rows::of_the_other_engine(figure, &suite)));
    if effort == Effort::Whole {
        entries.extend(figures.clone().flat_map(|figure| rows::at_other_scales(figure, &suite)));
        entries.extend(figures.clone().flat_map(|figure| rows::varied(figure, &suite)));
        entries.extend(figures.clone().filter_map(|figure| gc::over_the_run(figure, &suite)));
        entries.extend(figures.flat_map(|figure| rows::in_windows(figure, &suite)));
    }
    entries
}

// Metrics of a run of a GPU.

/// The GPU's part of a document.
///
/// # Errors
/// A document without one.
fn gpu(document: &Document) -> Result<&GpuResult, Diagnostic> {
    document.gpu.first().ok_or_else(|| Diagnostic::new(format!("{} has no GPU", document.system)))
}

/// Instructions a cycle.
fn ipc(document: &Document) -> Result<f64, Diagnostic> {
    Ok(gpu(document)?.ipc)
}

/// Bytes a second that flash arrays read and programmed.
fn array(document: &Document) -> Result<f64, Diagnostic> {
    let found = gpu(document)?.memory.array_bandwidth_bytes_per_s;
    found.ok_or_else(|| Diagnostic::new(format!("{} has no flash behind its cache", document.system)))
}

/// Bytes a second between shared cache and memory.
fn traffic(document: &Document) -> Result<f64, Diagnostic> {
    Ok(gpu(document)?.memory.bandwidth_bytes_per_s)
}

// Systems and their variants that the paper's figures compare.

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

/// Figures among them that include ZnG's own platforms.
const DIRECT: &[&str] = &[
    "perf.zng_vs_hybridgpu",
    "perf.wropt_vs_rdopt",
    "perf.base_and_rdopt_below_hybridgpu",
    "bw.zng_vs_optane",
    "bw.rdopt_vs_hybridgpu",
    "bw.wropt_vs_rdopt",
    "bw.zng_vs_wropt",
];

/// Figures among them that include HybridGPU.
const ENGINE: &[&str] = &[
    "perf.zng_vs_hybridgpu",
    "perf.hybridgpu_vs_hetero",
    "perf.optane_vs_hybridgpu",
    "perf.base_and_rdopt_below_hybridgpu",
    "bw.hybridgpu_flash",
    "bw.rdopt_vs_hybridgpu",
    "lat.ssd_engine_share",
];

/// Figures among them that parked pages in the shared cache may affect.
const PARKED: &[&str] = &[
    "perf.zng_vs_hybridgpu",
    "perf.base_and_rdopt_below_hybridgpu",
    "bw.zng_vs_optane",
    "bw.zng_vs_wropt",
    "read.redirection_reaccess_rise",
    "write.redundancy_redirection",
];

/// The table with one decision the other way (papers/zng, third reading): its name, what it sets, and the figures
/// shown.
const VARIANTS: [(&str, Variant, &[&str]); 7] = [
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

/// HybridGPU's buffer with a bus of this many MB/s.
fn bus(system: &str, rate: u32) -> Vec<String> {
    (system == "hybridgpu").then(|| format!("memory.engine.dram.bandwidth={rate}MB/s")).into_iter().collect()
}

/// ZnG with room for this many KiB of parked pages.
fn parked(system: &str, room: u32) -> Vec<String> {
    (system == "zng").then(|| format!("l2.parked={room}KiB")).into_iter().collect()
}

/// Redirection of dirty pages into the shared cache, off: no share is above all.
const NO_REDIRECTION: [&str; 2] = ["memory.direct.redirect.threshold=100%", "l2.parked=0B"];

fn with(point: Point, sets: &[&str]) -> Point {
    sets.iter().fold(point, |point, set| point.set(set))
}

/// Fig. 12, in its order: SRAM, STT-MRAM, dynamic prefetch, redirection. All have ZnG's registers.
fn read_designs(suite: &Suite, pair: &str) -> [Point; 4] {
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
fn write_designs(suite: &Suite, pair: &str) -> [Point; 3] {
    let zng = || with(suite.point("zng", pair, 1, 1), &NO_REDIRECTION);
    [zng().set("memory.direct.registers.network=private"), zng(), suite.point("zng", pair, 1, 1)]
}

/// Fig. 14, in its order: SWnet, HW-FCnet, HW-NiF.
fn networks(suite: &Suite, pair: &str) -> [Point; 3] {
    let zng = |network: &str| {
        suite.point("zng", pair, 1, 1).set(&format!("memory.direct.registers.network={network}"))
    };
    [zng("swnet"), zng("fcnet"), suite.point("zng", pair, 1, 1)]
}

/// Fig. 16b, in its order, with the names of its legend.
fn prefetchers(suite: &Suite, pair: &str) -> [(&'static str, Point); 5] {
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
fn thresholds(suite: &Suite, pair: &str) -> Vec<((&'static str, &'static str), Point)> {
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
