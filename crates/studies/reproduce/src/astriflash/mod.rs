//! AstriFlash (Gupta et al., HPCA 2023). What was decided before the first ratio was seen stands in `papers/astriflash/README.md`.

mod curve;
mod gc;
mod growth;
mod model;
mod rows;
mod suite;
mod tail;
mod variants;

use super::expected::Expected;
use super::study::Entry;
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
    let collecting = collecting.flat_map(|figure| gc::entries(figure, &suite, effort));
    let swept = variants::entries(figures, &suite, effort);
    own.chain(collecting).chain(swept).chain(growth::entries(figures, &suite, effort)).collect()
}

// What is read from a run of a server.

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

/// Pages fetched from flash, of a job on the mean.
fn misses_of_a_job(document: &Document) -> Result<f64, Diagnostic> {
    let cpu = cpu(document)?;
    let fetches = cpu.memory.behind.dram_cache.as_ref().map(|cache| cache.fetches as f64 / cpu.jobs as f64);
    some(fetches, "no DRAM cache", document)
}

/// Share of reads that came to a die at work for garbage collection.
fn behind_gc(document: &Document) -> Result<f64, Diagnostic> {
    some(document.flash.first().map(|flash| flash.reads.behind_gc_share), "no flash", document)
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
