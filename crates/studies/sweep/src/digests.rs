//! What the documents of a store were when they were written: a line for each in `digests.jsonl`, on the disk before the document
//! has its name. A document that has been changed since is refused, with the parts of it that differ.

use config::Diagnostic;
use outside::{Fault, cannot_write, write_whole};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Changed documents that are named; the others are only counted.
const NAMED: usize = 8;

/// What a document was.
#[derive(Clone, Serialize, Deserialize)]
struct Digest {
    /// Its name in the store.
    key: String,
    /// SHA-256 of its bytes.
    sha256: String,
    /// The first 16 digits of the SHA-256 of each of its members.
    parts: BTreeMap<String, String>,
}

impl Digest {
    fn of(key: &str, text: &[u8]) -> Digest {
        let parts = match serde_json::from_slice(text) {
            Ok(Value::Object(members)) => members
                .into_iter()
                .map(|(name, value)| (name, hex(&Sha256::digest(value.to_string().as_bytes())[..8])))
                .collect(),
            _ => BTreeMap::new(),
        };
        Digest { key: key.to_owned(), sha256: hex(&Sha256::digest(text)), parts }
    }

    /// Names of the members that another one has otherwise, or has not.
    fn differing(&self, other: &Digest) -> Vec<String> {
        let names =
            self.parts.keys().chain(other.parts.keys().filter(|name| !self.parts.contains_key(*name)));
        names.filter(|name| self.parts.get(*name) != other.parts.get(*name)).cloned().collect()
    }
}

/// The digests of a store.
pub(super) struct Digests {
    path: PathBuf,
    /// Of the documents that were there at the beginning.
    known: BTreeMap<String, Digest>,
    /// The file, and whether its last line is whole.
    file: Mutex<(File, bool)>,
}

impl Digests {
    /// Reads the digests and holds the documents against them. One without a digest, or that is no document any more, is not known,
    /// and will be made again.
    ///
    /// # Errors
    /// A document that is not what it was; files that cannot be read or written.
    pub(super) fn read(path: &Path, documents: &[(String, PathBuf)]) -> Result<Digests, Fault> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // Of a sweep that was killed, the last line may be cut off; a document that was made again has the later line.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Digest>(line).ok());
        let mut known: BTreeMap<String, Digest> = lines.map(|digest| (digest.key.clone(), digest)).collect();
        known.retain(|key, _| documents.iter().any(|(there, _)| there == key));
        let mut changed = Vec::new();
        for (key, path) in documents {
            let (Some(then), Ok(text)) = (known.get(key), std::fs::read(path)) else { continue };
            let now = Digest::of(key, &text);
            if now.parts.is_empty() {
                // A disk has lost it: it is no document any more.
                known.remove(key);
            } else if now.sha256 != then.sha256 {
                let parts = then.differing(&now).join("`, `");
                let what = if parts.is_empty() { "its layout".to_owned() } else { format!("`{parts}`") };
                changed.push(format!("{} (what differs: {what})", path.display()));
            }
        }
        if !changed.is_empty() {
            return Err(refused(&changed).into());
        }
        let lines = known.values().map(line).collect::<String>();
        write_whole(path, lines.as_bytes())?;
        let file = File::options().append(true).open(path).map_err(|fault| cannot_write(path, &fault))?;
        Ok(Digests { path: path.to_owned(), known, file: Mutex::new((file, true)) })
    }

    /// Whether a document was there at the beginning and is what it was.
    pub(super) fn knows(&self, key: &str) -> bool {
        self.known.contains_key(key)
    }

    /// A document is about to get its name.
    ///
    /// # Errors
    /// The digest cannot be written.
    pub(super) fn add(&self, key: &str, document: &str) -> Result<(), Fault> {
        let text = line(&Digest::of(key, document.as_bytes()));
        let mut guard = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, whole) = &mut *guard;
        let text = if *whole { text } else { format!("\n{text}") };
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        *whole = written.is_ok();
        written.map_err(|fault| cannot_write(&self.path, &fault))
    }
}

/// Bytes as a digest is written.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn line(digest: &Digest) -> String {
    // Text: serialising cannot fail.
    serde_json::to_string(digest).unwrap_or_default() + "\n"
}

fn refused(changed: &[String]) -> Diagnostic {
    let named = changed[..changed.len().min(NAMED)].join(", ");
    let more = changed.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Diagnostic::new(format!("results were changed since they were written: {named}{more}"))
        .help("what is removed is made again; only what a run has found may stand in the table")
}
