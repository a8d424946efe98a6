//! What the tests share.

use std::io::Cursor;
use std::path::PathBuf;

use config::Diagnostic;
use engine::Time;
use proto::{IoOp, IoRequest};
use requests::trace::{TraceNotes, TraceOptions, TraceReader};

/// Reads a text to its end.
pub(crate) fn read_with(
    content: impl AsRef<[u8]>,
    options: &TraceOptions,
) -> Result<(Vec<IoRequest>, TraceNotes), Diagnostic> {
    let mut reader = TraceReader::from_read("test", Cursor::new(content.as_ref().to_vec()), options)?;
    let requests = drain(&mut reader)?;
    Ok((requests, reader.notes().clone()))
}

/// Every request that is left.
pub(crate) fn drain(reader: &mut TraceReader) -> Result<Vec<IoRequest>, Diagnostic> {
    let mut all = Vec::new();
    while let Some(request) = reader.next()? {
        all.push(request);
    }
    Ok(all)
}

/// Options that name a format.
pub(crate) fn format(name: &str) -> TraceOptions {
    TraceOptions { format: Some(name.to_owned()), ..TraceOptions::default() }
}

/// Reads a text of a named format.
pub(crate) fn read(name: &str, content: &str) -> Vec<IoRequest> {
    read_with(content, &format(name)).unwrap_or_else(|e| panic!("{e}")).0
}

/// A request without force unit access.
pub(crate) fn request(ps: u64, op: IoOp, offset: u64, bytes: u64, flow: u16) -> IoRequest {
    IoRequest { at: Time::from_ps(ps), op, offset, bytes, flow, fua: false }
}

/// A file of the shared data, or `None` with a word on stdout.
pub(crate) fn data(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("NANDSCAPE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"),
        PathBuf::from,
    );
    let path = root.join("block_io").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: no data ({name})");
    None
}
