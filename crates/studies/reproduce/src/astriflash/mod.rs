//! AstriFlash (Gupta et al., HPCA 2023). What was decided before the first ratio was seen stands in
//! `papers/astriflash/README.md`.

mod curve;
mod rows;
mod suite;
mod tail;

use super::expected::{Expected, Figure};
use super::row::Row;
use super::study::{Entry, Found, Point};
use super::{Effort, Reading};
use config::Diagnostic;
use machine::result::{CpuResult, Document};
use suite::Suite;

/// The paper's figures.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/astriflash/expected.toml"))
}

/// The figure that the paper cites from elsewhere.
const COLLECTING: &str = "astriflash.gc.blocked";

/// The readings, as data.
pub(super) const READINGS: &str = include_str!("../../../../../papers/astriflash/readings.toml");

/// The rows. What a reading chooses are keys, which rows do not see.
pub(super) fn entries(effort: Effort, _: &Reading) -> Vec<Entry> {
    let suite = Suite::of(effort);
    let expected = expected();
    let figures = expected.figures();
    let own = figures.iter().filter_map(|figure| rows::entry(figure, &suite));
    let collecting = figures.iter().filter(|figure| figure.id == COLLECTING);
    let collecting = collecting.flat_map(|figure| collection_entries(figure, &suite, effort));
    let swept = rows::variant_entries(figures, &suite, effort);
    own.chain(collecting).chain(swept).chain(growth_entries(figures, &suite, effort)).collect()
}

// Metrics of a run of a server.

/// The server's part of a document.
///
/// # Errors
/// A document without one.
fn cpu(document: &Document) -> Result<&CpuResult, Diagnostic> {
    document.cpu.first().ok_or_else(|| Diagnostic::new(format!("{} has no cores", document.system)))
}

fn some(value: Option<f64>, what: &str, document: &Document) -> Result<f64, Diagnostic> {
    value.ok_or_else(|| Diagnostic::new(format!("{what} in the run on {}", document.system)))
}

/// Jobs a second, of all cores.
fn throughput(document: &Document) -> Result<f64, Diagnostic> {
    Ok(cpu(document)?.throughput_per_s)
}

/// 99th percentile of the time from a job's beginning on a core to its end, ns.
fn service_p99(document: &Document) -> Result<f64, Diagnostic> {
    some(cpu(document)?.service_ns.p99, "no job ended", document)
}

/// Half the width of its 95 % confidence interval, as a share of it.
fn service_p99_width(document: &Document) -> Result<f64, Diagnostic> {
    let width = some(cpu(document)?.service_ci95_ns.p99, "too few jobs for an interval", document)?;
    Ok(width / service_p99(document)?)
}

/// Mean of the same, ns.
fn service_mean(document: &Document) -> Result<f64, Diagnostic> {
    some(cpu(document)?.service_ns.mean, "no job ended", document)
}

/// 99th percentile of the time from a job's arrival to its end, ns.
fn latency_p99(document: &Document) -> Result<f64, Diagnostic> {
    some(cpu(document)?.latency_ns.p99, "no job ended", document)
}

/// Mean time of a core from one page that it needed from flash to the next, us.
fn miss_interval(document: &Document) -> Result<f64, Diagnostic> {
    Ok(some(cpu(document)?.miss_interval_ns, "no page was in flash", document)? / 1e3)
}

/// Pages fetched from flash, per job on average.
fn misses_of_a_job(document: &Document) -> Result<f64, Diagnostic> {
    let cpu = cpu(document)?;
    let fetches = cpu.memory.behind.dram_cache.as_ref().map(|cache| cache.fetches as f64 / cpu.jobs as f64);
    some(fetches, "no DRAM cache", document)
}

/// Share of reads that came to a die at work for garbage collection.
fn behind_gc(document: &Document) -> Result<f64, Diagnostic> {
    some(document.flash.first().map(|flash| flash.reads.behind_gc_share), "no flash", document)
}

// Section VI-D: how many requests garbage collection blocks. The paper cites the figure from drives of its reference
// [80]; here a drive that is worn in serves what AstriFlash asks of it.

/// Changes: the drive is new, pages are copied inside their plane, GC goes on before the host does,
/// there is four times the flash (the paper's 1 TB), or more over-provisioning.
const CHANGES: [(&str, &[&str]); 5] = [
    ("fresh", &["flash.precondition=sequential"]),
    ("copied_in_plane", &["flash.ftl.gc.copy_back=true"]),
    ("foreground", &["flash.ftl.gc.mode=foreground"]),
    ("four_times_planes", &["flash.geometry.channels=16"]),
    ("spare_28", &["flash.ftl.over_provisioning=28%", "flash.geometry.blocks=3836"]),
];

/// The paper's row, and what moves it.
fn collection_entries(figure: &Figure, suite: &Suite, effort: Effort) -> Vec<Entry> {
    if effort != Effort::Whole {
        return Vec::new();
    }
    let changed = CHANGES.iter().map(|(name, sets)| {
        let point = sets.iter().fold(suite.aged(), |point, set| point.set(set));
        collection_entry(figure, point).changed(format!("astriflash.gc.{name}"), Row::swept)
    });
    std::iter::once(collection_entry(figure, suite.aged())).chain(changed).collect()
}

fn collection_entry(figure: &Figure, point: Point) -> Entry {
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, vec![point.clone()], move |found| blocked_row(&figure, found, &point))
}

fn blocked_row(figure: &Figure, found: &Found, point: &Point) -> Result<Row, Diagnostic> {
    let document = found.get(point)?;
    let note = format!(
        "reads that come to a die at work for collection; {:.0} jobs/s, p99 of service {:.0} us",
        throughput(document)?,
        service_p99(document)? / 1e3
    );
    figure.row(100.0 * behind_gc(document)?, note)
}

// AstriFlash-noPS against the length of a run: new jobs go first, and a halted one is resumed when another one halts,
// so that the halted ones grow in number until as many are pending as may be. The paper states neither the bound nor
// the length.

/// The cell of Table II that is swept.
const FIGURE: &str = "astriflash.service_p99.tatp.astriflash-nops";

const PROGRAM: &str = "tatp";

/// Thousands of jobs, of all cores together, and whether this length runs only with `--full`.
const JOBS: [(u32, bool); 3] = [(8, false), (32, false), (128, true)];

/// Halted jobs of a core at most, and the same: V-A has 32 to 64 threads, of which one runs.
const PENDING: [(u32, bool); 3] = [(16, true), (32, false), (63, true)];

/// The 99th percentile of TATP's service over Flash-Sync's, for each length and bound.
fn growth_entries(figures: &[Figure], suite: &Suite, effort: Effort) -> Vec<Entry> {
    let Some(figure) = figures.iter().find(|figure| figure.id == FIGURE) else { return Vec::new() };
    let run = |long: bool| !long || effort == Effort::Whole;
    let lengths = || JOBS.iter().filter(move |(_, long)| run(*long));
    let bounds = PENDING.iter().filter(|(_, long)| run(*long));
    bounds
        .flat_map(|(pending, _)| lengths().map(|(jobs, _)| growth_entry(figure, suite, *pending, *jobs)))
        .collect()
}

fn growth_entry(figure: &Figure, suite: &Suite, pending: u32, jobs: u32) -> Entry {
    let own =
        suite.of_length("astriflash-nops", PROGRAM, jobs).set(&format!("cpu.threads.pending={pending}"));
    let other = suite.saturated("flash-sync", PROGRAM).swap_remove(0);
    let id = format!("astriflash.nops.pending_{pending}.jobs_{jobs}k");
    let figure = figure.clone();
    Entry::new(id.clone(), vec![own.clone(), other.clone()], move |found| {
        let (own, other) = (service_p99(found.get(&own)?)?, service_p99(found.get(&other)?)?);
        figure.row(own / other, format!("{:.2} ms, Flash-Sync {:.2} ms", own / 1e6, other / 1e6))
    })
    .changed(id, Row::swept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_row() {
        let mut figures: Vec<String> = expected().figures().iter().map(|figure| figure.id.clone()).collect();
        figures.retain(|id| id != COLLECTING);
        let rows: Vec<String> =
            entries(Effort::Full, &Reading::default()).into_iter().map(|entry| entry.id).collect();
        assert!(rows.starts_with(&figures), "{rows:?}");
        assert!(entries(Effort::Whole, &Reading::default()).iter().any(|entry| entry.id == COLLECTING));
    }
}
