//! What is read from a run.

use config::Diagnostic;
use machine::result::Document;

/// Block commands a second.
pub(super) fn iops(document: &Document) -> Result<f64, Diagnostic> {
    Ok(document.io.kinds.all.iops)
}

/// From a command's entry in its queue to its completion, ns.
pub(super) fn response(document: &Document) -> Result<f64, Diagnostic> {
    let mean = document.io.kinds.all.device_latency_ns.mean;
    mean.ok_or_else(|| Diagnostic::new(format!("{} completed no block command", document.system)))
}

/// When the last kernel ended, ns.
pub(super) fn end(document: &Document) -> Result<f64, Diagnostic> {
    let apps = document.gpu.iter().flat_map(|gpu| &gpu.applications);
    let ended = apps.map(|app| app.ended_ns).collect::<Option<Vec<f64>>>();
    let last = ended.and_then(|all| all.into_iter().reduce(f64::max));
    last.ok_or_else(|| Diagnostic::new(format!("{} has a program that has not ended", document.system)))
}

/// Reads and writes of a run, and what the drive did for them.
pub(super) fn account(document: &Document) -> String {
    let count = |of: &Option<machine::result::OpResult>| of.as_ref().map_or(0, |op| op.requests);
    let io = &document.io.kinds;
    let merged = document.flash.first().map_or(0, |flash| flash.reads.rmw);
    format!("{} reads, {} writes, {merged} units read to be merged", count(&io.read), count(&io.write))
}
