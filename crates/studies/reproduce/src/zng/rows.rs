//! Which runs each figure needs, and what it is worked out from.

use super::super::Effort;
use super::super::expected::Figure;
use super::super::mean::{Metric, Values};
use super::super::row::Row;
use super::super::study::{Entry, Found, Point};
use super::suite::{Suite, Variant};
use super::{array, constants, gc, gpu, ipc, traffic};
use config::Diagnostic;
use machine::result::Document;

type Computed = Result<Row, Diagnostic>;

/// Platforms of Fig. 10.
const PLATFORMS: [&str; 7] = ["hetero", "hybridgpu", "optane", "zng-base", "zng-rdopt", "zng-wropt", "zng"];

/// A figure's entry; none if the effort leaves it out, or if it is not a row.
pub(super) fn entry(figure: &Figure, suite: &Suite, effort: Effort) -> Option<Entry> {
    let id = figure.id.strip_prefix("zng.")?;
    let on = |system: &str| suite.on(system);
    let entry = match id {
        // All had been seen when the model was corrected from sources. The bound on what may be parked was chosen by
        // such figures once: rows `zng.parked` show that it moves none of them.
        "perf.zng_vs_hybridgpu" => ratio(figure, on("zng"), on("hybridgpu"), ipc).seen(),
        "perf.hybridgpu_vs_hetero" => {
            let named = |system: &str| suite.named_on(system);
            gain(figure, named("hybridgpu"), named("hetero"), ipc).seen()
        }
        "perf.optane_vs_hybridgpu" => gain(figure, on("optane"), on("hybridgpu"), ipc).seen(),
        "perf.wropt_vs_rdopt" => ratio(figure, on("zng-wropt"), on("zng-rdopt"), ipc).seen(),
        "perf.base_and_rdopt_below_hybridgpu" => ranking(figure, suite).seen(),
        "bw.zng_vs_optane" => ratio(figure, on("zng"), on("optane"), traffic).seen(),
        "bw.hybridgpu_flash" => bandwidth(figure, suite).seen(),
        "bw.rdopt_vs_hybridgpu" => ratio(figure, on("zng-rdopt"), on("hybridgpu"), array).seen(),
        "bw.wropt_vs_rdopt" => gain(figure, on("zng-wropt"), on("zng-rdopt"), array).seen(),
        "bw.zng_vs_wropt" => gain(figure, on("zng"), on("zng-wropt"), array).seen(),
        "lat.ssd_engine_share" => mean(figure, on("hybridgpu"), suite.engine.share()).seen(),
        "motivation.direct_znand_slowdown_worst" => worst_slowdown(figure, suite).seen(),
        "motivation.read_reaccess" => {
            mean(figure, suite.alone("zng-base"), |d| direct(d, |r| r.requests_of_a_page)).seen()
        }
        "motivation.write_redundancy" => {
            mean(figure, suite.alone("zng-base"), |d| direct(d, |r| r.writes_of_a_page)).seen()
        }
        "read.stt_mram_reaccess_cut" => read_cut(figure, suite, [1, 0]).seen(),
        "read.dyn_prefetch_reaccess_cut" => read_cut(figure, suite, [2, 1]).seen(),
        "read.redirection_reaccess_rise" => read_rise(figure, suite).seen(),
        "write.redundancy_baseline" => write_redundancy(figure, suite, 0).seen(),
        "write.redundancy_redirection" => write_redundancy(figure, suite, 2).seen(),
        "write.redundancy_nif_cut" => write_cut(figure, suite).seen(),
        "net.fcnet_vs_swnet" => gain(figure, network(suite, 1), network(suite, 0), ipc).seen(),
        "net.nif_vs_fcnet" => percent_of(figure, network(suite, 2), network(suite, 1)).seen(),
        "pred.accuracy_mean" => mean(figure, on("zng"), accuracy).seen(),
        "pred.accuracy_worst" => least(figure, on("zng"), accuracy).seen(),
        _ if effort == Effort::Whole => {
            let own = sensitivity(figure, suite).or_else(|| gc::entry(figure, suite));
            return own.or_else(|| constants::program_entry(figure)).or_else(|| constants::entry(figure));
        }
        _ => return constants::entry(figure),
    };
    Some(entry)
}

/// The ranking of the platforms on larger slices and on whole machines: it should not depend on the scale.
pub(super) fn at_other_scales(figure: &Figure, suite: &Suite) -> Vec<Entry> {
    if figure.id != "zng.perf.base_and_rdopt_below_hybridgpu" {
        return Vec::new();
    }
    let scaled = |halvings: usize| {
        let suite = suite.scaled(halvings);
        let id = format!("zng.scale_sweep.{}", suite.factor());
        ranking(figure, &suite).changed(id, Row::swept)
    };
    [2, 1, 0].map(scaled).into()
}

/// The share of the SSD engine with its parts counted otherwise, from the same runs.
pub(super) fn of_the_other_engine(figure: &Figure, suite: &Suite) -> Option<Entry> {
    let other = suite.engine.other();
    let entry = mean(figure, suite.on("hybridgpu"), other.share());
    (figure.id == "zng.lat.ssd_engine_share")
        .then(|| entry.changed(format!("{}.{}", figure.id, other.name()), Row::swept))
}

/// The figures of variants of the table.
pub(super) fn varied(figure: &Figure, suite: &Suite) -> Vec<Entry> {
    let Some(id) = figure.id.strip_prefix("zng.") else { return Vec::new() };
    let shown = super::VARIANTS.iter().filter(|(_, _, figures)| figures.contains(&id));
    let entry = |(name, variant, _): &(&str, Variant, _)| {
        let entry = entry(figure, &suite.varied(*variant), Effort::Full)?;
        Some(entry.changed(format!("zng.{name}.{id}"), Row::swept))
    };
    shown.filter_map(entry).collect()
}

/// Figures that are also worked out from runs that end after a time.
const WINDOWED: [&str; 18] = [
    "perf.zng_vs_hybridgpu",
    "perf.hybridgpu_vs_hetero",
    "perf.optane_vs_hybridgpu",
    "perf.wropt_vs_rdopt",
    "perf.base_and_rdopt_below_hybridgpu",
    "bw.zng_vs_optane",
    "bw.hybridgpu_flash",
    "bw.wropt_vs_rdopt",
    "bw.zng_vs_wropt",
    "lat.ssd_engine_share",
    "motivation.read_reaccess",
    "motivation.write_redundancy",
    "read.stt_mram_reaccess_cut",
    "read.dyn_prefetch_reaccess_cut",
    "read.redirection_reaccess_rise",
    "write.redundancy_baseline",
    "write.redundancy_nif_cut",
    "write.redundancy_redirection",
];

/// Figures of runs that are all cut off after a time: the paper does not state how long its runs are.
pub(super) fn in_windows(figure: &Figure, suite: &Suite) -> Vec<Entry> {
    let Some(id) = figure.id.strip_prefix("zng.").filter(|id| WINDOWED.contains(id)) else {
        return Vec::new();
    };
    let cut = |window: &'static str| {
        let entry = entry(figure, &suite.cut(window), Effort::Full)?;
        Some(entry.changed(format!("zng.window.{window}.{id}"), Row::swept))
    };
    ["3ms", "10ms", "30ms", "100ms"].into_iter().filter_map(cut).collect()
}

/// Rows of section V-D that take many runs.
fn sensitivity(figure: &Figure, suite: &Suite) -> Option<Entry> {
    let prefetch = |n: usize| -> Vec<Point> {
        suite.design_pairs.iter().map(|w| super::prefetchers(suite, w)[n].1.clone()).collect()
    };
    Some(match figure.id.strip_prefix("zng.")? {
        "pref.1kb_vs_nopref" => gain(figure, prefetch(1), prefetch(0), ipc).seen(),
        "pref.4kb_vs_nopref" => gain(figure, prefetch(2), prefetch(0), ipc).seen(),
        "pref.dyn_vs_predict4kb_best" => best_gain(figure, prefetch(4), prefetch(3)).seen(),
        "pref.predict4kb_over_4kb" => prefetch_ranking(figure, suite).seen(),
        "pref.best_thresholds" => threshold_grid(figure, suite).seen(),
        "scale.corun4_similar_to_ideal" => {
            corun(figure, suite, 4, &["betw", "back"], |zng, ideal| 100.0 * zng / ideal)
        }
        "scale.corun8_read_vs_ideal" => {
            corun(figure, suite, 8, &["betw"], |zng, ideal| 100.0 * (1.0 - zng / ideal))
        }
        "scale.corun8_write_vs_ideal" => {
            corun(figure, suite, 8, &["back"], |zng, ideal| 100.0 * (1.0 - zng / ideal))
        }
        _ => return None,
    })
}

fn network(suite: &Suite, n: usize) -> Vec<Point> {
    suite.design_pairs.iter().map(|w| super::networks(suite, w)[n].clone()).collect()
}

fn new(
    figure: &Figure,
    points: Vec<Point>,
    compute: impl Fn(&Figure, &Found) -> Computed + Send + Sync + 'static,
) -> Entry {
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, points, move |found| compute(&figure, found))
}

/// The geometric mean of a ratio.
fn ratio(figure: &Figure, over: Vec<Point>, under: Vec<Point>, metric: Metric) -> Entry {
    new(figure, [over.clone(), under.clone()].concat(), move |figure, found| {
        let values = Values::ratios(found, &over, &under, metric)?;
        figure.row(values.geometric(), values.note())
    })
}

/// The geometric mean of a ratio, as a gain in per cent.
fn gain(figure: &Figure, over: Vec<Point>, under: Vec<Point>, metric: Metric) -> Entry {
    new(figure, [over.clone(), under.clone()].concat(), move |figure, found| {
        let values = Values::ratios(found, &over, &under, metric)?;
        figure.row(100.0 * (values.geometric() - 1.0), values.note())
    })
}

/// The largest gain in per cent.
fn best_gain(figure: &Figure, over: Vec<Point>, under: Vec<Point>) -> Entry {
    new(figure, [over.clone(), under.clone()].concat(), move |figure, found| {
        let values = Values::ratios(found, &over, &under, ipc)?;
        figure.row(100.0 * (values.max() - 1.0), values.note())
    })
}

/// The geometric mean of a ratio of instructions a cycle, in per cent.
fn percent_of(figure: &Figure, over: Vec<Point>, under: Vec<Point>) -> Entry {
    new(figure, [over.clone(), under.clone()].concat(), move |figure, found| {
        let values = Values::ratios(found, &over, &under, ipc)?;
        figure.row(100.0 * values.geometric(), values.note())
    })
}

/// The arithmetic mean of a metric that is not a ratio.
fn mean(figure: &Figure, points: Vec<Point>, metric: Metric) -> Entry {
    new(figure, points.clone(), move |figure, found| {
        let values = Values::of(found, &points, metric)?;
        figure.row(values.arithmetic(), values.note())
    })
}

/// Bytes a second of HybridGPU's flash arrays. A slice's bandwidth is its share of the machine's.
fn bandwidth(figure: &Figure, suite: &Suite) -> Entry {
    let (points, factor) = (suite.on("hybridgpu"), f64::from(suite.factor()));
    new(figure, points.clone(), move |figure, found| {
        let values = Values::of(found, &points, |d| Ok(array(d)? / 1e9))?;
        figure.row(factor * values.arithmetic(), format!("times {factor}: {}", values.note()))
    })
}

/// The least of a metric.
fn least(figure: &Figure, points: Vec<Point>, metric: Metric) -> Entry {
    new(figure, points.clone(), move |figure, found| {
        let values = Values::of(found, &points, metric)?;
        figure.row(values.min(), values.note())
    })
}

/// The platforms' instructions a cycle over ZnG's: the bars of Fig. 10.
fn ranking(figure: &Figure, suite: &Suite) -> Entry {
    let of = |system: &'static str| (system, suite.on(system));
    let platforms = PLATFORMS.map(of);
    let all = platforms.iter().flat_map(|(_, points)| points.clone()).collect();
    new(figure, all, move |figure, found| {
        let zng = &platforms[PLATFORMS.len() - 1].1;
        let bar = |(system, points): &(&'static str, Vec<Point>)| {
            Ok((*system, Values::ratios(found, points, zng, ipc)?.geometric()))
        };
        let bars: Vec<(&str, f64)> = platforms.iter().map(bar).collect::<Result<_, Diagnostic>>()?;
        Ok(figure.order(&bars, "IPC over ZnG's, geometric means"))
    })
}

fn direct(document: &Document, figure: fn(&machine::result::DirectResult) -> f64) -> Result<f64, Diagnostic> {
    let direct = gpu(document)?.memory.behind.direct.as_ref();
    direct
        .map(figure)
        .ok_or_else(|| Diagnostic::new(format!("{} has no flash on its network", document.system)))
}

fn accuracy(document: &Document) -> Result<f64, Diagnostic> {
    let share = gpu(document)?.l2.prediction_accuracy_share;
    share.map(|s| 100.0 * s).ok_or_else(|| Diagnostic::new("no prediction was judged"))
}

/// Fig. 5a: how much slower flash without a buffer is than GDDR5, worst workload.
fn worst_slowdown(figure: &Figure, suite: &Suite) -> Entry {
    let (ideal, flash) = (suite.alone("ideal"), suite.alone("zng-base"));
    new(figure, [ideal.clone(), flash.clone()].concat(), move |figure, found| {
        let values = Values::ratios(found, &ideal, &flash, ipc)?;
        figure.row(values.max(), values.note())
    })
}

fn designs<const N: usize>(suite: &Suite, of: fn(&Suite, &str) -> [Point; N], n: usize) -> Vec<Point> {
    suite.design_pairs.iter().map(|w| of(suite, w)[n].clone()).collect()
}

fn reaccess(document: &Document) -> Result<f64, Diagnostic> {
    direct(document, |r| r.reads_of_a_page)
}

fn redundancy(document: &Document) -> Result<f64, Diagnostic> {
    direct(document, |r| r.programs_of_a_page)
}

/// Fig. 12: the fall from one design to the next, in per cent of the former.
fn read_cut(figure: &Figure, suite: &Suite, [to, from]: [usize; 2]) -> Entry {
    let (to, from) = (designs(suite, super::read_designs, to), designs(suite, super::read_designs, from));
    new(figure, [to.clone(), from.clone()].concat(), move |figure, found| {
        let values = Values::ratios(found, &to, &from, reaccess)?;
        figure
            .row(100.0 * (1.0 - values.geometric()), format!("of the design before; left: {}", values.note()))
    })
}

fn read_rise(figure: &Figure, suite: &Suite) -> Entry {
    let (with, without) = (designs(suite, super::read_designs, 3), designs(suite, super::read_designs, 2));
    gain(figure, with, without, reaccess)
}

/// Fig. 13: programs of a page.
fn write_redundancy(figure: &Figure, suite: &Suite, design: usize) -> Entry {
    mean(figure, designs(suite, super::write_designs, design), redundancy)
}

fn write_cut(figure: &Figure, suite: &Suite) -> Entry {
    let (to, from) = (designs(suite, super::write_designs, 1), designs(suite, super::write_designs, 0));
    new(figure, [to.clone(), from.clone()].concat(), move |figure, found| {
        let values = Values::ratios(found, &to, &from, redundancy)?;
        figure.row(100.0 * (1.0 - values.geometric()), format!("left: {}", values.note()))
    })
}

/// Fig. 16b: designs over no prefetch.
fn prefetch_ranking(figure: &Figure, suite: &Suite) -> Entry {
    let of = |n: usize| -> (&'static str, Vec<Point>) {
        let all: Vec<_> =
            suite.design_pairs.iter().map(|w| super::prefetchers(suite, w)[n].clone()).collect();
        (all[0].0, all.into_iter().map(|(_, point)| point).collect())
    };
    let designs: Vec<_> = (0..5).map(of).collect();
    let all = designs.iter().flat_map(|(_, points)| points.clone()).collect();
    new(figure, all, move |figure, found| {
        let bar = |(name, points): &(&'static str, Vec<Point>)| {
            Ok((*name, Values::ratios(found, points, &designs[0].1, ipc)?.geometric()))
        };
        let bars: Vec<(&str, f64)> = designs.iter().map(bar).collect::<Result<_, Diagnostic>>()?;
        Ok(figure.order(&bars, "IPC over that without prefetch, geometric means"))
    })
}

/// Fig. 16a: the paper's thresholds beside the best of the grid.
fn threshold_grid(figure: &Figure, suite: &Suite) -> Entry {
    let grids: Vec<_> = suite.design_pairs.iter().take(2).map(|w| super::thresholds(suite, w)).collect();
    let all = grids.iter().flatten().map(|(_, point)| point.clone()).collect();
    new(figure, all, move |figure, found| {
        let mut cells = Vec::new();
        for n in 0..grids[0].len() {
            let points: Vec<Point> = grids.iter().map(|grid| grid[n].1.clone()).collect();
            cells.push((grids[0][n].0, Values::of(found, &points, ipc)?.geometric()));
        }
        let best = cells.iter().map(|(_, ipc)| *ipc).fold(0.0, f64::max);
        let paper = cells.iter().find(|(cell, _)| *cell == ("30%", "5%")).map_or(f64::NAN, |(_, ipc)| *ipc);
        let shown: Vec<String> =
            cells.iter().map(|((high, low), ipc)| format!("{high}/{low} {:.4}", ipc / best)).collect();
        Ok(figure.grid(paper / best, shown.join(", ")))
    })
}

/// Fig. 15a: gain of several instances over one, on ZnG and on Ideal; the mean over programs.
fn corun(
    figure: &Figure,
    suite: &Suite,
    instances: usize,
    programs: &[&str],
    of: fn(f64, f64) -> f64,
) -> Entry {
    let sides = ["zng", "ideal"].map(|system| {
        [instances, 1].map(|n| programs.iter().map(|p| suite.point(system, p, n, 1)).collect::<Vec<_>>())
    });
    let all = sides.iter().flatten().flatten().cloned().collect();
    new(figure, all, move |figure, found| {
        let gain = |[many, one]: &[Vec<Point>; 2]| Values::ratios(found, many, one, ipc);
        let (zng, ideal) = (gain(&sides[0])?, gain(&sides[1])?);
        let note = format!("ZnG {}; Ideal {}", zng.note(), ideal.note());
        figure.row(of(zng.geometric(), ideal.geometric()), note)
    })
}
