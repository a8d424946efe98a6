//! Which runs each figure needs, and what it is worked out from; and the figures under other assumptions than those
//! of its rows: sweeps, which do not count.

use super::super::Effort;
use super::super::expected::Figure;
use super::super::mean::{Metric, Values};
use super::super::row::Row;
use super::super::study::{Entry, Found, Point};
use super::suite::Suite;
use super::{curve, miss_interval, service_p99, service_p99_width, tail, throughput};
use config::Diagnostic;

/// Note on AstriFlash-noDP.
const TABLES: &str = "does not follow from stated parameters: what walks find in flash";

/// A figure's entry; none if the effort leaves it out. What comes out of programs had been seen when their skew, their
/// work and the flash of the counted rows were decided, some of it by figures (`papers/astriflash/README.md` says
/// which).
pub(super) fn entry(figure: &Figure, suite: &Suite) -> Option<Entry> {
    let id = figure.id.strip_prefix("astriflash.")?;
    if let Some(cell) = id.strip_prefix("service_p99.") {
        let (program, system) = cell.split_once('.')?;
        let entry = service(figure, suite, program, system).map(Entry::fitted)?;
        let row = |row: Row| if row.id.ends_with("-nodp") { row.remark(TABLES) } else { row };
        return Some(entry.changed(figure.id.clone(), row));
    }
    Some(match id {
        "tput.astriflash" => share(figure, suite, "astriflash").fitted(),
        "tput.ideal" => share(figure, suite, "astriflash-ideal").fitted(),
        "tput.os_swap" => share(figure, suite, "os-swap").seen(),
        "tput.flash_sync" => share(figure, suite, "flash-sync").seen(),
        "tput.tpcc_lowest" => ranking(figure, suite).fitted(),
        "tail.same_p99_throughput" => tail::entry(figure, suite).fitted(),
        "motivation.miss_curve_knee" => curve::entry(figure, suite, curve::knee_of),
        "motivation.miss_ratio" => curve::entry(figure, suite, curve::ratio_at_3),
        "miss_interval.least" => interval(figure, suite, Values::min),
        "miss_interval.most" => interval(figure, suite, Values::max),
        _ => return tail::constants_entry(figure),
    })
}

fn new(
    figure: &Figure,
    points: Vec<Point>,
    compute: impl Fn(&Figure, &Found) -> Result<Row, Diagnostic> + Send + Sync + 'static,
) -> Entry {
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, points, move |found| compute(&figure, found))
}

/// The ratio of a metric, program by program.
fn ratio(
    figure: &Figure,
    over: Vec<Point>,
    under: Vec<Point>,
    metric: Metric,
    row: impl Fn(&Figure, &Values) -> Result<Row, Diagnostic> + Send + Sync + 'static,
) -> Entry {
    new(figure, [over.clone(), under.clone()].concat(), move |figure, found| {
        row(figure, &Values::ratios(found, &over, &under, metric)?)
    })
}

/// Throughput as a share of DRAM-only's: the arithmetic mean over programs, since the paper says "an average of".
fn share(figure: &Figure, suite: &Suite, system: &str) -> Entry {
    let (over, under) = (suite.on(system), suite.on("dram-only"));
    ratio(figure, over, under, throughput, |figure, values| {
        figure.row(100.0 * values.arithmetic(), values.note())
    })
}

/// Share of each program's throughput that AstriFlash retains.
fn ranking(figure: &Figure, suite: &Suite) -> Entry {
    let of = |system: &'static str| {
        let runs = |(paper, ours): &(&'static str, &'static str)| (*paper, suite.saturated(system, ours));
        suite.programs.iter().map(runs).collect::<Vec<_>>()
    };
    let (over, under) = (of("astriflash"), of("dram-only"));
    let all = over.iter().chain(&under).flat_map(|(_, points)| points.clone()).collect();
    new(figure, all, move |figure, found| {
        let kept = |((program, over), (_, under)): (&(&'static str, Vec<Point>), &(_, Vec<Point>))| {
            Ok((*program, Values::ratios(found, over, under, throughput)?.arithmetic()))
        };
        let kept: Vec<(&str, f64)> = over.iter().zip(&under).map(kept).collect::<Result<_, Diagnostic>>()?;
        Ok(figure.order(&kept, "throughput over DRAM-only's"))
    })
}

/// A cell of Table II: 99th percentile of the service latency over Flash-Sync's.
fn service(figure: &Figure, suite: &Suite, program: &str, system: &str) -> Option<Entry> {
    let (over, under) = match suite.program(program) {
        Some(ours) => (suite.saturated(system, ours), suite.saturated("flash-sync", ours)),
        None if program == "geomean" => (suite.on(system), suite.on("flash-sync")),
        None => return None,
    };
    Some(new(figure, [over.clone(), under.clone()].concat(), move |figure, found| {
        let values = Values::ratios(found, &over, &under, service_p99)?;
        let width = |points| Values::of(found, points, service_p99_width).map(|widths| 100.0 * widths.max());
        let (own, other) = (width(&over)?, width(&under)?);
        let known =
            format!("95 % intervals of the percentiles: at most +-{own:.1} %, Flash-Sync's +-{other:.1} %");
        figure.row(values.geometric(), format!("{}; {known}", values.note()))
    }))
}

/// The extreme of the work between misses: a core's time between them on AstriFlash, less what it waits there, which is
/// as much less as its throughput is below DRAM-only's.
fn interval(figure: &Figure, suite: &Suite, extreme: fn(&Values) -> f64) -> Entry {
    let (points, dram) = (suite.on("astriflash"), suite.on("dram-only"));
    new(figure, [points.clone(), dram.clone()].concat(), move |figure, found| {
        let share = Values::ratios(found, &points, &dram, throughput)?;
        let values = Values::of(found, &points, miss_interval)?.times(share);
        figure.row(extreme(&values), format!("in DRAM-only's time: {}", values.note()))
    })
}

/// An assumption.
struct Variant {
    /// Prefix of its rows' names, after the paper's.
    name: &'static str,
    /// Figures, or what their names begin with.
    figures: &'static [&'static str],
    /// True for a row so slow that it runs only with `--full`.
    long: bool,
    suite: fn(&Suite) -> Suite,
}

/// Throughput, the knee, and the work between misses, which the skew was chosen from.
const OF_A_SKEW: &[&str] =
    &["tput.astriflash", "motivation.miss_curve_knee", "motivation.miss_ratio", "miss_interval."];

/// Table II's column of noDP, of the programs that its tables matter to most, and its mean.
const WITHOUT_PARTITION: &[&str] = &[
    "service_p99.geomean.astriflash-nodp",
    "service_p99.masstree.astriflash-nodp",
    "service_p99.silo.astriflash-nodp",
    "service_p99.tatp.astriflash-nodp",
    "service_p99.tpcc.astriflash-nodp",
];

const VARIANTS: &[Variant] = &[
    Variant {
        name: "planes",
        figures: &[
            "tput.astriflash",
            "tput.ideal",
            "tput.os_swap",
            "tput.flash_sync",
            "service_p99.geomean.",
        ],
        long: false,
        suite: Suite::with_planes,
    },
    Variant { name: "shootdown", figures: &["tput.os_swap"], long: false, suite: Suite::shootdown },
    Variant { name: "components", figures: &["tput.os_swap"], long: false, suite: Suite::components },
    Variant { name: "shipped", figures: &["tput.os_swap"], long: false, suite: Suite::shipped },
    Variant {
        name: "overlapped",
        figures: &["tput.flash_sync", "service_p99."],
        long: false,
        suite: Suite::overlapped,
    },
    Variant { name: "uncached", figures: WITHOUT_PARTITION, long: false, suite: Suite::uncached_tables },
    Variant { name: "shared_tables", figures: WITHOUT_PARTITION, long: false, suite: Suite::shared_tables },
    Variant { name: "skew.1.1", figures: OF_A_SKEW, long: true, suite: |suite| suite.skewed("1.1") },
    Variant { name: "skew.1.15", figures: OF_A_SKEW, long: true, suite: |suite| suite.skewed("1.15") },
    Variant { name: "skew.1.25", figures: OF_A_SKEW, long: true, suite: |suite| suite.skewed("1.25") },
    Variant { name: "skew.1.3", figures: OF_A_SKEW, long: true, suite: |suite| suite.skewed("1.3") },
    Variant {
        name: "cores.16",
        figures: &[
            "tput.astriflash",
            "tput.ideal",
            "tput.os_swap",
            "tput.flash_sync",
            "service_p99.geomean.astriflash",
            "miss_interval.",
        ],
        long: true,
        suite: Suite::whole_machine,
    },
];

/// The rows that all variants have of these figures.
pub(super) fn variant_entries(figures: &[Figure], suite: &Suite, effort: Effort) -> Vec<Entry> {
    let run = |variant: &&Variant| !variant.long || effort == Effort::Whole;
    VARIANTS.iter().filter(run).flat_map(|variant| of_variant(variant, figures, suite)).collect()
}

fn of_variant(variant: &Variant, figures: &[Figure], suite: &Suite) -> Vec<Entry> {
    let suite = (variant.suite)(suite);
    let entry = |figure: &Figure| {
        let id = figure.id.strip_prefix("astriflash.")?;
        let shown = |name: &&str| if name.ends_with('.') { id.starts_with(name) } else { id == *name };
        let entry = variant.figures.iter().any(shown).then(|| self::entry(figure, &suite))??;
        let name = format!("astriflash.{}.{id}", variant.name);
        Some(entry.changed(name, Row::swept))
    };
    figures.iter().filter_map(entry).collect()
}
