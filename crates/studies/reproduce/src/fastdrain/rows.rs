//! Which runs each figure needs, and what it is worked out from.

use super::super::expected::Figure;
use super::super::mean::{Metric, Values};
use super::super::row::Row;
use super::super::study::{Entry, Found, Point};
use super::{OVER_TIME, Suite, foreground, mean, p99, p99_over_mean, programmed, used, wasted, worst_bin};
use config::Diagnostic;

const VANILLA: &str = "fastdrain-vanilla";
const BUF: &str = "fastdrain-buf";
const FTL: &str = "fastdrain-ftl";
const FD: &str = "fastdrain";
const ORACLE: &str = "fastdrain-oracle";
const LSB: &str = "fastdrain-lsb";
const WRITE_POINT: &str = "fastdrain-writepoint";

/// A figure's entry; none for a name that is not known.
pub(super) fn entry(figure: &Figure, suite: &Suite) -> Option<Entry> {
    let (over_time, seeds) = (suite.only(OVER_TIME), suite.seeds.len());
    Some(match figure.id.strip_prefix("fastdrain.")? {
        "p99.fd_buf" => fall(figure, suite, BUF, VANILLA),
        "p99.fd_ftl" => fall(figure, suite, FTL, VANILLA),
        "p99.fd" => fall(figure, suite, FD, VANILLA),
        "p99.fd_vs_fd_ftl" => fall(figure, suite, FD, FTL),
        "p99.oracle" => oracle(figure, suite),
        "motivation.p99_over_mean" => of_each(figure, suite, VANILLA, p99_over_mean),
        "motivation.lsb_only" => fall(figure, suite, LSB, BUF),
        "waste.prior" => of_each(figure, suite, WRITE_POINT, wasted),
        "waste.fd_used" => of_each(figure, suite, FD, used),
        "series.vanilla_quiet" => new(figure, &over_time, &[], &[VANILLA], move |figure, on| {
            let values = on(VANILLA, mean)?;
            let note =
                format!("mean without the unpackers, ms: {}{}", values.note(), interval(&values, seeds, 1.0));
            figure.row(values.arithmetic(), note)
        }),
        "series.vanilla_peak" => of_each(figure, &over_time, VANILLA, worst_bin),
        "series.fd_ftl_worst" => ratio(figure, &over_time, [BUF, FTL], worst_bin),
        _ => return None,
    })
}

/// Reads a metric of every run on a system.
type Read<'a> = dyn Fn(&str, Metric) -> Result<Values, Diagnostic> + 'a;

/// A row from runs on some systems, beside the unpackers and alone.
fn new(
    figure: &Figure,
    suite: &Suite,
    beside: &[&'static str],
    alone: &[&'static str],
    compute: impl Fn(&Figure, &Read<'_>) -> Result<Row, Diagnostic> + Send + Sync + 'static,
) -> Entry {
    let (all, only) = (beside.to_vec(), alone.to_vec());
    let (of_row, of_runs, figure) = (suite.clone(), suite.clone(), figure.clone());
    let points = move |found: &Found| -> Result<Vec<Point>, Diagnostic> {
        let beside = all.iter().map(|system| of_runs.on(found, system));
        let alone = only.iter().map(|system| of_runs.alone(found, system));
        beside.chain(alone).collect::<Result<Vec<_>, _>>().map(|points| points.concat())
    };
    let beside = beside.to_vec();
    Entry::new(figure.id.clone(), suite.capacities(), move |found| {
        let read = |system: &str, metric: Metric| {
            let runs =
                if beside.contains(&system) { of_row.on(found, system) } else { of_row.alone(found, system) };
            Values::of(found, &runs?, metric)
        };
        compute(&figure, &read)
    })
    .then(points)
}

/// One less the mean of the ratios of the 99th percentiles, per cent; the ratio of the means beside it.
fn fall(figure: &Figure, suite: &Suite, over: &'static str, under: &'static str) -> Entry {
    let seeds = suite.seeds.len();
    new(figure, suite, &[over, under], &[], move |figure, on| fall_of(figure, on, (over, under), seeds))
}

fn fall_of(
    figure: &Figure,
    on: &Read<'_>,
    (over, under): (&str, &str),
    seeds: usize,
) -> Result<Row, Diagnostic> {
    let (ours, theirs) = (on(over, p99)?, on(under, p99)?);
    let ratios = ours.clone().over(theirs.clone());
    let of_means = 100.0 * (1.0 - ours.arithmetic() / theirs.arithmetic());
    let urgent = on(over, foreground)?.arithmetic();
    let note = format!(
        "ratios: {}; fall of the mean 99th percentile {of_means:.1} %; of what {over} evicts {urgent:.1} % in the foreground",
        ratios.note()
    );
    figure.row(100.0 * (1.0 - ratios.arithmetic()), format!("{note}{}", interval(&ratios, seeds, 100.0)))
}

/// The same for a buffer that never fills, which must not have evicted anything.
fn oracle(figure: &Figure, suite: &Suite) -> Entry {
    let seeds = suite.seeds.len();
    new(figure, suite, &[ORACLE, VANILLA], &[], move |figure, on| {
        let evicted = on(ORACLE, programmed)?.max();
        if evicted > 0.0 {
            let what = format!("a buffer without end has written {evicted} units to flash: it is too small");
            return Err(Diagnostic::new(what));
        }
        fall_of(figure, on, (ORACLE, VANILLA), seeds)
    })
}

/// The mean of a metric over all runs of a system.
fn of_each(figure: &Figure, suite: &Suite, system: &'static str, metric: Metric) -> Entry {
    let seeds = suite.seeds.len();
    new(figure, suite, &[system], &[], move |figure, on| {
        let values = on(system, metric)?;
        figure.row(values.arithmetic(), format!("{}{}", values.note(), interval(&values, seeds, 1.0)))
    })
}

/// The mean of the ratios of a metric.
fn ratio(figure: &Figure, suite: &Suite, systems: [&'static str; 2], metric: Metric) -> Entry {
    let seeds = suite.seeds.len();
    new(figure, suite, &systems, &[], move |figure, on| {
        let values = on(systems[0], metric)?.over(on(systems[1], metric)?);
        figure.row(values.arithmetic(), format!("{}{}", values.note(), interval(&values, seeds, 1.0)))
    })
}

/// The confidence interval of a mean over seeds, in the row's unit.
fn interval(values: &Values, seeds: usize, scale: f64) -> String {
    let half = values.interval(seeds);
    half.map_or(String::new(), |half| format!("; 95 % within +-{:.3} over {seeds} seeds", scale * half))
}
