//! Which runs each figure needs, and what it is worked out from; and the figures under other assumptions than those
//! of its rows: sweeps, which do not count.

use super::super::expected::Figure;
use super::super::mean::{Metric, Values};
use super::super::row::Row;
use super::super::study::{Entry, Found, Point};
use super::super::{Effort, Reading};
use super::{
    Load, OVER_TIME, Suite, foreground, mean, p99, p99_over_mean, programmed, used, wasted, worst_bin,
};
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

/// Fall of the 99th percentile with a buffer that never fills, which must not have evicted anything.
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

/// An assumption.
struct Variant {
    /// Prefix of its rows' names, after the paper's.
    name: &'static str,
    suite: fn(Suite) -> Suite,
}

/// The falls of four systems, which every variant shows.
const FALLS: &[&str] = &["p99.fd_buf", "p99.fd_ftl", "p99.fd", "p99.oracle"];

fn texts(set: &[&str]) -> Vec<String> {
    set.iter().map(|text| (*text).to_owned()).collect()
}

/// Returns whether a system distinguishes foreground from background.
fn has_two_speeds(system: &str) -> bool {
    !matches!(system, "fastdrain-vanilla" | "fastdrain-oracle")
}

/// Overrides for this many MiB in flight; Vanilla makes room for as much.
fn way(system: &str, mebibytes: u32) -> Vec<String> {
    let mut set = vec![format!("flash.buffer.in_flight={mebibytes}MiB")];
    if system == "fastdrain-vanilla" {
        set.push(format!("flash.buffer.low={}%", 100.0 * (1.0 - f64::from(mebibytes) / 512.0)));
    }
    set
}

/// Vanilla begins to drain before it is full.
fn early(system: &str, percent: u32) -> Vec<String> {
    let from = [format!("flash.buffer.high={percent}%"), format!("flash.buffer.low={percent}%")];
    if system == "fastdrain-vanilla" { from.to_vec() } else { Vec::new() }
}

fn window(system: &str, window: &str) -> Vec<String> {
    let set = format!("flash.buffer.destage={{ two_speed = {{ window = \"{window}\" }} }}");
    if has_two_speeds(system) { vec![set] } else { Vec::new() }
}

fn open(system: &str, open: u32) -> Vec<String> {
    let set = format!("flash.ftl.pages={{ by_type = {{ open = {open} }} }}");
    if matches!(system, "fastdrain" | "fastdrain-ftl") { vec![set] } else { Vec::new() }
}

/// Decisions made before the first figures were seen, as far as they were changed later.
fn first(system: &str) -> Vec<String> {
    let mut set = texts(&["flash.buffer.in_flight=4MiB", "host.linux.block.max_sectors=1.25MiB"]);
    if system == "fastdrain-vanilla" {
        set.push("flash.buffer.low=99.609375%".into());
    }
    set
}

const VARIANTS: &[Variant] = &[
    Variant {
        name: "first",
        suite: |suite| Suite { load: Load::Open(0.5, 8), durable: false, set: first, ..suite },
    },
    Variant { name: "load.eight_cores", suite: |suite| Suite { load: Load::Open(0.5, 8), ..suite } },
    Variant { name: "load.quarter", suite: |suite| Suite { load: Load::Open(0.25, 1), ..suite } },
    Variant { name: "closed.1", suite: |suite| Suite { load: Load::Closed(1), ..suite } },
    Variant { name: "closed.32", suite: |suite| Suite { load: Load::Closed(32), ..suite } },
    Variant { name: "uploads.in_memory", suite: |suite| Suite { durable: false, ..suite } },
    Variant { name: "ungzip.1", suite: |suite| Suite { processes: 1, ..suite } },
    Variant { name: "ungzip.2", suite: |suite| Suite { processes: 2, ..suite } },
    Variant { name: "ungzip.4", suite: |suite| Suite { processes: 4, ..suite } },
    Variant { name: "ungzip.8", suite: |suite| Suite { processes: 8, ..suite } },
    Variant { name: "ungzip.150MB", suite: |suite| Suite { ungzip: ",rate=150MB/s".into(), ..suite } },
    Variant { name: "ungzip.200MB", suite: |suite| Suite { ungzip: ",rate=200MB/s".into(), ..suite } },
    Variant { name: "way.2MiB", suite: |suite| Suite { set: |system| way(system, 2), ..suite } },
    Variant { name: "way.4MiB", suite: |suite| Suite { set: |system| way(system, 4), ..suite } },
    Variant { name: "way.64MiB", suite: |suite| Suite { set: |system| way(system, 64), ..suite } },
    Variant { name: "vanilla.50", suite: |suite| Suite { set: |system| early(system, 50), ..suite } },
    Variant { name: "vanilla.80", suite: |suite| Suite { set: |system| early(system, 80), ..suite } },
    Variant { name: "vanilla.95", suite: |suite| Suite { set: |system| early(system, 95), ..suite } },
    Variant {
        name: "ratios.low",
        suite: |suite| Suite {
            set: |_| {
                texts(&[
                    "host.linux.writeback.dirty_background_ratio=3%",
                    "host.linux.writeback.dirty_ratio=5%",
                ])
            },
            ..suite
        },
    },
    Variant {
        name: "memory.2GiB",
        suite: |suite| Suite { set: |_| texts(&["host.linux.memory=2GiB"]), ..suite },
    },
    Variant {
        name: "memory.3.5GiB",
        suite: |suite| Suite { set: |_| texts(&["host.linux.memory=3584MiB"]), ..suite },
    },
    Variant {
        name: "reads_wait",
        suite: |suite| Suite { set: |_| texts(&["flash.buffer.full_reads=wait"]), ..suite },
    },
    Variant {
        name: "reads_first",
        suite: |suite| Suite {
            set: |_| texts(&["flash.die.scheduler={ read_first = { max_wait = \"20ms\" } }"]),
            ..suite
        },
    },
    Variant {
        name: "wbt",
        suite: |suite| Suite { set: |_| texts(&["host.linux.block.wbt_lat=2ms"]), ..suite },
    },
    Variant { name: "idle.1ms", suite: |suite| Suite { set: |system| window(system, "1ms"), ..suite } },
    Variant { name: "idle.10ms", suite: |suite| Suite { set: |system| window(system, "10ms"), ..suite } },
    Variant { name: "open.4", suite: |suite| Suite { set: |system| open(system, 4), ..suite } },
    Variant { name: "open.16", suite: |suite| Suite { set: |system| open(system, 16), ..suite } },
    Variant {
        name: "delalloc.off",
        suite: |suite| Suite { set: |_| texts(&["host.linux.fs={ ext4 = { delalloc = false } }"]), ..suite },
    },
];

/// The rows that all variants have of these figures, with one seed each; they are there with everything.
pub(super) fn variant_entries(figures: &[Figure], effort: Effort, reading: &Reading) -> Vec<Entry> {
    let run = |_: &&Variant| effort == Effort::Whole;
    VARIANTS.iter().filter(run).flat_map(|variant| of_variant(variant, figures, reading)).collect()
}

fn of_variant(variant: &Variant, figures: &[Figure], reading: &Reading) -> Vec<Entry> {
    let suite = (variant.suite)(Suite::of(Effort::Full, reading));
    let entry = |figure: &Figure| {
        let id = figure.id.strip_prefix("fastdrain.")?;
        let entry = FALLS.contains(&id).then(|| self::entry(figure, &suite))??;
        Some(entry.changed(format!("fastdrain.{}.{id}", variant.name), Row::swept))
    };
    figures.iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_can_be_built() {
        for variant in VARIANTS {
            let suite = (variant.suite)(Suite::of(Effort::Full, &Reading::default()));
            for system in
                ["fastdrain-vanilla", "fastdrain-buf", "fastdrain-ftl", "fastdrain", "fastdrain-oracle"]
            {
                let loaded = machine::load(system, &(suite.set)(system));
                assert!(loaded.is_ok(), "{} on {system}: {:?}", variant.name, loaded.err());
            }
        }
    }
}
