//! What every case has found, frozen: a digest of its documents. It shows that a change to the code's shape has changed no
//! result; it does not show that a result is right.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The variable that has the digests written instead of compared: `cargo xtask golden --bless` sets it.
const BLESS: &str = "NANDSCAPE_BLESS";

/// Digests by case.
pub(crate) type Digests = BTreeMap<String, u64>;

/// A digest of documents without what they cost: FNV-1a, 64 bit, parameters from draft-eastlake-fnv, section 5.
pub(crate) fn digest<'a>(documents: impl Iterator<Item = &'a Value>) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    documents
        .fold(0xcbf2_9ce4_8422_2325, |hash, document| document.to_string().as_bytes().iter().fold(hash, step))
}

/// Compares digests with the committed ones, or writes them.
///
/// # Errors
/// The cases whose digest is another one.
pub(crate) fn compare(name: &str, digests: &Digests) -> Result<(), String> {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../../tests/golden/keys/{name}.txt"));
    let text: String = digests.iter().map(|(case, digest)| format!("{digest:016x} {case}\n")).collect();
    if std::env::var_os(BLESS).is_some() {
        return std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()));
    }
    let committed = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let differing: Vec<&str> =
        text.lines().filter(|line| !committed.lines().any(|old| old == *line)).collect();
    let gone = committed.lines().filter(|old| {
        let case = old.split_once(' ').map_or(*old, |(_, case)| case);
        !digests.contains_key(case)
    });
    let lines: Vec<String> = differing
        .iter()
        .map(|line| format!("other results: {line}"))
        .chain(gone.map(|line| format!("no such case any more: {line}")))
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    let remedy =
        "if the change is meant: `cargo xtask golden --bless`, and `Results change: yes` in CHANGELOG.md";
    Err(format!("{}\n{} of {}; {remedy}", lines.join("\n"), lines.len(), digests.len()))
}
