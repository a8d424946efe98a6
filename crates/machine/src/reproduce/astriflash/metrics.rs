//! What is read from a run of a server.

use crate::result::Document;
use config::Diagnostic;

/// A number of the part of a document that is the server's.
///
/// # Errors
/// A document without it.
fn number(document: &Document, path: &str) -> Result<f64, Diagnostic> {
    let value = serde_json::to_value(document).ok();
    let found = value.as_ref().and_then(|value| value.pointer(&format!("/cpu/{path}"))?.as_f64());
    found.ok_or_else(|| Diagnostic::new(format!("{} has no cpu.{}", document.system, path.replace('/', "."))))
}

/// Jobs a second, of all cores.
pub(super) fn throughput(document: &Document) -> Result<f64, Diagnostic> {
    number(document, "throughput_per_s")
}

/// 99th percentile of the time from a job's beginning to its end, ns.
pub(super) fn service_p99(document: &Document) -> Result<f64, Diagnostic> {
    number(document, "service_ns/p99")
}

/// Mean of the same, ns.
pub(super) fn service_mean(document: &Document) -> Result<f64, Diagnostic> {
    number(document, "service_ns/mean")
}

/// 99th percentile of the time from a job's arrival to its end, ns.
pub(super) fn response_p99(document: &Document) -> Result<f64, Diagnostic> {
    number(document, "response_ns/p99")
}

/// Mean time of a core between two misses that halt a thread, us.
pub(super) fn miss_interval(document: &Document) -> Result<f64, Diagnostic> {
    Ok(number(document, "miss_interval_ns")? / 1e3)
}
