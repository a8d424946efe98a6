//! What is read from a run of a server.

use config::Diagnostic;
use machine::result::{CpuResult, Document};

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
pub(super) fn throughput(document: &Document) -> Result<f64, Diagnostic> {
    Ok(cpu(document)?.throughput_per_s)
}

/// 99th percentile of the time from a job's beginning on a core to its end, ns.
pub(super) fn service_p99(document: &Document) -> Result<f64, Diagnostic> {
    some(cpu(document)?.service_ns.p99, "no job ended", document)
}

/// Half the width of its 95 % confidence interval, as a share of it.
pub(super) fn service_p99_width(document: &Document) -> Result<f64, Diagnostic> {
    let width = some(cpu(document)?.service_ci95_ns.p99, "too few jobs for an interval", document)?;
    Ok(width / service_p99(document)?)
}

/// Mean of the same, ns.
pub(super) fn service_mean(document: &Document) -> Result<f64, Diagnostic> {
    some(cpu(document)?.service_ns.mean, "no job ended", document)
}

/// 99th percentile of the time from a job's arrival to its end, ns.
pub(super) fn latency_p99(document: &Document) -> Result<f64, Diagnostic> {
    some(cpu(document)?.latency_ns.p99, "no job ended", document)
}

/// Mean time of a core from one page that it needed from flash to the next, us.
pub(super) fn miss_interval(document: &Document) -> Result<f64, Diagnostic> {
    Ok(some(cpu(document)?.miss_interval_ns, "no page was in flash", document)? / 1e3)
}

/// Pages fetched from flash, of a job on the mean.
pub(super) fn misses_of_a_job(document: &Document) -> Result<f64, Diagnostic> {
    let cpu = cpu(document)?;
    let fetches = cpu.memory.behind.dram_cache.as_ref().map(|cache| cache.fetches as f64 / cpu.jobs as f64);
    some(fetches, "no DRAM cache", document)
}

/// Share of reads that came to a die at work for garbage collection.
pub(super) fn behind_gc(document: &Document) -> Result<f64, Diagnostic> {
    some(document.flash.first().map(|flash| flash.reads.behind_gc_share), "no flash", document)
}
