//! What is read from a run of a GPU.

use config::Diagnostic;
use machine::result::{Document, GpuResult};

/// The GPU's part of a document.
///
/// # Errors
/// A document without one.
pub(super) fn gpu(document: &Document) -> Result<&GpuResult, Diagnostic> {
    document.gpu.first().ok_or_else(|| Diagnostic::new(format!("{} has no GPU", document.system)))
}

/// Instructions a cycle.
pub(super) fn ipc(document: &Document) -> Result<f64, Diagnostic> {
    Ok(gpu(document)?.ipc)
}

/// Bytes a second that flash arrays read and programmed.
pub(super) fn array(document: &Document) -> Result<f64, Diagnostic> {
    let found = gpu(document)?.memory.array_bandwidth_bytes_per_s;
    found.ok_or_else(|| Diagnostic::new(format!("{} has no flash behind its cache", document.system)))
}

/// Bytes a second between shared cache and memory.
pub(super) fn traffic(document: &Document) -> Result<f64, Diagnostic> {
    Ok(gpu(document)?.memory.bandwidth_bytes_per_s)
}
