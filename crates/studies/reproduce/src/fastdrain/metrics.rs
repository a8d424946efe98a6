//! What is read from a run of a service on a host.

use config::Diagnostic;
use machine::result::{Document, OpResult, PagesByType, ProgramResult};

/// The service of a run, which is the first of its programs, and what it answered most.
///
/// # Errors
/// A document without a program that answered a request.
fn service(document: &Document) -> Result<(&ProgramResult, &OpResult), Diagnostic> {
    let program = document.host.first().and_then(|host| host.programs.first());
    let served = program.and_then(|program| {
        let most = program.requests.values().max_by_key(|kind| kind.requests)?;
        (most.requests > 0).then_some((program, most))
    });
    served.ok_or_else(|| Diagnostic::new(format!("the service answered no request on {}", document.system)))
}

fn some(value: Option<f64>, what: &str, document: &Document) -> Result<f64, Diagnostic> {
    value.ok_or_else(|| Diagnostic::new(format!("{what} in the run on {}", document.system)))
}

/// Requests a second.
pub(super) fn rate(document: &Document) -> Result<f64, Diagnostic> {
    Ok(service(document)?.1.iops)
}

/// 99th percentile of the response time, ms.
pub(super) fn p99(document: &Document) -> Result<f64, Diagnostic> {
    Ok(some(service(document)?.1.latency_ns.p99, "too few requests for a percentile", document)? / 1e6)
}

/// Mean of the response time, ms.
pub(super) fn mean(document: &Document) -> Result<f64, Diagnostic> {
    Ok(some(service(document)?.1.latency_ns.mean, "no request was answered", document)? / 1e6)
}

/// 99th percentile over mean.
pub(super) fn p99_over_mean(document: &Document) -> Result<f64, Diagnostic> {
    Ok(p99(document)? / mean(document)?)
}

/// Largest mean of a bin of 100 ms, ms.
pub(super) fn worst_bin(document: &Document) -> Result<f64, Diagnostic> {
    Ok(some(service(document)?.0.worst_window_ns, "no request was answered", document)? / 1e6)
}

fn pages(document: &Document) -> Result<&PagesByType, Diagnostic> {
    let found = document.flash.first().and_then(|flash| flash.pages_by_type.as_ref());
    found.ok_or_else(|| Diagnostic::new(format!("{} programs its pages in order", document.system)))
}

/// Programmed pages of those programmed and skipped, per cent.
pub(super) fn used(document: &Document) -> Result<f64, Diagnostic> {
    Ok(100.0 * some(pages(document)?.used_share, "no page was programmed", document)?)
}

/// Skipped pages of those programmed and skipped, per cent.
pub(super) fn wasted(document: &Document) -> Result<f64, Diagnostic> {
    Ok(100.0 - used(document)?)
}

/// Map units that were programmed for the host.
pub(super) fn programmed(document: &Document) -> Result<f64, Diagnostic> {
    let flash = document.flash.first();
    some(flash.map(|flash| flash.host_programs as f64), "no flash", document)
}

/// Share of what left the buffer that left it in the foreground, per cent.
pub(super) fn foreground(document: &Document) -> Result<f64, Diagnostic> {
    let evictions = document.flash.first().and_then(|flash| flash.evictions.as_ref());
    Ok(evictions.map_or(0.0, |e| {
        100.0 * e.foreground_units as f64 / (e.foreground_units + e.background_units).max(1) as f64
    }))
}
