//! Store of results, keyed by everything that decides a run: a stored run need not be made again.
//!
//! The store has a line for each document in `digests.jsonl`, on disk before the document has its name. A document that
//! was changed since is refused, with a list of the parts that differ.

use super::file::Sweep;
use config::Diagnostic;
use machine::plan::workloads::files_of;
use machine::result::SCHEMA;
use machine::run::Plan;
use outside::{Fault, cannot_write, make_folder, write_durable, write_whole};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Folder of result documents, used by one sweep at a time.
pub struct Store {
    folder: PathBuf,
    keys: Keys,
    /// Digests of the documents when they were written.
    digests: Digests,
    /// Lock, held as long as the store.
    _lock: File,
}

impl Store {
    /// Opens a store in a folder, for runs of a sweep. With `resume` it may hold documents.
    ///
    /// # Errors
    /// The file of a workload cannot be read; another sweep is using the folder; the folder has results without
    /// `resume`, or results that were changed since they were written.
    pub fn open(out: &Path, sweep: &Sweep, resume: bool) -> Result<Store, Fault> {
        let keys = Keys::of(sweep.workloads.iter().flatten())?;
        let folder = out.join("runs");
        make_folder(&folder).map_err(|fault| cannot_write(&folder, &fault))?;
        let lock = lock(out)?;
        let documents = documents(&folder).map_err(|fault| cannot_write(&folder, &fault))?;
        if !resume && !documents.is_empty() {
            let what = format!("{} already has the results of {} runs", out.display(), documents.len());
            return Err(Diagnostic::new(what)
                .help("give --resume to reuse them and run only the rest, --out for a different folder, or remove its `runs`")
                .into());
        }
        let digests = Digests::read(&out.join("digests.jsonl"), &documents)?;
        Ok(Store { folder, keys, digests, _lock: lock })
    }

    /// Name of a run's document.
    ///
    /// # Errors
    /// The system cannot be read.
    pub(crate) fn key(&self, plan: &Plan) -> Result<String, Diagnostic> {
        self.keys.key(plan)
    }

    /// Document of a key, if it exists and is verified.
    pub(crate) fn load(&self, key: &str) -> Option<Value> {
        if self.digests.knows(key) { self.document(key) } else { None }
    }

    /// Document of a key, if it exists; only the writer can know that it is unchanged.
    pub(super) fn document(&self, key: &str) -> Option<Value> {
        let document: Value = serde_json::from_slice(&std::fs::read(self.path(key)).ok()?).ok()?;
        (document.get("schema")? == SCHEMA).then_some(document)
    }

    /// Saves a document, whole or not at all: it is on disk before it has its name.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn save(&self, key: &str, document: &str) -> Result<(), Fault> {
        self.digests.add(key, document)?;
        write_durable(&self.path(key), document.as_bytes())
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

/// Locks a folder against other sweeps, as long as the file is open.
fn lock(out: &Path) -> Result<File, Fault> {
    let path = out.join("sweep.lock");
    let cannot = |fault: std::io::Error| cannot_write(&path, &fault);
    let mut file =
        File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => {
            let name = std::process::id().to_string();
            file.set_len(0).and_then(|()| file.write_all(name.as_bytes())).map_err(cannot)?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut process = String::new();
            // Where a lock prevents reading, the owner is unknown.
            let _ = file.read_to_string(&mut process);
            let who = if process.is_empty() { String::new() } else { format!(" (process {process})") };
            Err(Diagnostic::new(format!("another sweep is using {}{who}", out.display()))
                .help("give --resume once it has ended, or --out for a different folder")
                .into())
        }
        // Without file locking, other sweeps are not kept out.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// Keys of the documents in a folder. Half-written files of killed sweeps are removed.
fn documents(folder: &Path) -> std::io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') {
            std::fs::remove_file(&path)?;
        } else if let Some(key) = name.strip_suffix(".json") {
            found.push((key.to_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

/// Names of runs, given the contents of the files that their workloads name.
pub(crate) struct Keys {
    /// SHA-256 of the files, by path.
    files: BTreeMap<PathBuf, String>,
}

impl Keys {
    /// Reads the files of workloads.
    ///
    /// # Errors
    /// A file cannot be read, or can be read only once.
    pub(crate) fn of<'p>(workloads: impl Iterator<Item = &'p String>) -> Result<Keys, Diagnostic> {
        let mut files = BTreeMap::new();
        for text in workloads {
            for path in files_of(text)? {
                if path.metadata().is_ok_and(|there| !there.is_file()) {
                    let what = format!("{} is a pipe, and every point of a sweep reads it", path.display());
                    return Err(Diagnostic::new(what).help("write the trace to a file first"));
                }
                if let Entry::Vacant(entry) = files.entry(path) {
                    let fault = |e| Diagnostic::new(format!("cannot read {}: {e}", entry.key().display()));
                    let hash = hash_of_file(entry.key()).map_err(fault)?;
                    entry.insert(hash);
                }
            }
        }
        Ok(Keys { files })
    }

    /// SHA-256 of everything that decides a run: the resolved spec, workloads with the contents of their files, reading
    /// options, seed, and version of the program and its results.
    ///
    /// # Errors
    /// The system cannot be read.
    pub(crate) fn key(&self, plan: &Plan) -> Result<String, Diagnostic> {
        let loaded = machine::load(&plan.system, &plan.set)?;
        let workload = |text: &String| {
            let files = files_of(text).unwrap_or_default();
            let hashes: Vec<_> = files.iter().map(|file| self.files.get(file)).collect();
            json!({ "text": text, "sha256": hashes })
        };
        let all = json!({
            "version": identity::VERSION,
            "results": identity::RESULTS,
            "spec": loaded.spec.to_json(),
            "workloads": plan.workloads.iter().map(workload).collect::<Vec<_>>(),
            "seed": plan.seed,
            "warmup": format!("{:?}", plan.warmup),
            "trace": format!("{:?}", plan.trace),
            "queue_depth": plan.queue_depth,
        });
        Ok(hex(&Sha256::digest(all.to_string().as_bytes())))
    }
}

fn hash_of_file(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// Maximum number of changed documents named; the others are only counted.
const NAMED: usize = 8;

/// Digest of a document.
#[derive(Clone, Serialize, Deserialize)]
struct DocumentDigest {
    /// Key of the document in the store.
    key: String,
    /// SHA-256 of its bytes.
    sha256: String,
    /// First 16 digits of the SHA-256 of each of its members.
    parts: BTreeMap<String, String>,
}

impl DocumentDigest {
    fn of(key: &str, text: &[u8]) -> DocumentDigest {
        let parts = match serde_json::from_slice(text) {
            Ok(Value::Object(members)) => members
                .into_iter()
                .map(|(name, value)| (name, hex(&Sha256::digest(value.to_string().as_bytes())[..8])))
                .collect(),
            _ => BTreeMap::new(),
        };
        DocumentDigest { key: key.to_owned(), sha256: hex(&Sha256::digest(text)), parts }
    }

    /// Names of the members that differ from those of another digest.
    fn differing(&self, other: &DocumentDigest) -> Vec<String> {
        let names =
            self.parts.keys().chain(other.parts.keys().filter(|name| !self.parts.contains_key(*name)));
        names.filter(|name| self.parts.get(*name) != other.parts.get(*name)).cloned().collect()
    }
}

/// Digests of a store.
pub(super) struct Digests {
    path: PathBuf,
    /// Digests of the documents that existed at the start.
    known: BTreeMap<String, DocumentDigest>,
    /// Digest file, and whether its last line is complete.
    file: Mutex<(File, bool)>,
}

impl Digests {
    /// Reads the digests and compares the documents with them. A document without a digest, or a damaged one,
    /// is unknown and will be made again.
    ///
    /// # Errors
    /// A document was changed, or files cannot be read or written.
    pub(super) fn read(path: &Path, documents: &[(String, PathBuf)]) -> Result<Digests, Fault> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // The last line of a killed sweep may be cut off; a document that was made again has the later line.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<DocumentDigest>(line).ok());
        let mut known: BTreeMap<String, DocumentDigest> =
            lines.map(|digest| (digest.key.clone(), digest)).collect();
        known.retain(|key, _| documents.iter().any(|(there, _)| there == key));
        let mut changed = Vec::new();
        for (key, path) in documents {
            let (Some(then), Ok(text)) = (known.get(key), std::fs::read(path)) else { continue };
            let now = DocumentDigest::of(key, &text);
            if now.parts.is_empty() {
                // The disk has lost it: the text is not a document any more.
                known.remove(key);
            } else if now.sha256 != then.sha256 {
                let parts = then.differing(&now).join("`, `");
                let what = if parts.is_empty() { "its layout".to_owned() } else { format!("`{parts}`") };
                changed.push(format!("{} (differs in {what})", path.display()));
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

    /// Returns whether a document existed at the start and is unchanged.
    pub(super) fn knows(&self, key: &str) -> bool {
        self.known.contains_key(key)
    }

    /// Adds the digest of a document that is about to get its name.
    ///
    /// # Errors
    /// The digest cannot be written.
    pub(super) fn add(&self, key: &str, document: &str) -> Result<(), Fault> {
        let text = line(&DocumentDigest::of(key, document.as_bytes()));
        let mut guard = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, whole) = &mut *guard;
        let text = if *whole { text } else { format!("\n{text}") };
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        *whole = written.is_ok();
        written.map_err(|fault| cannot_write(&self.path, &fault))
    }
}

/// Formats bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn line(digest: &DocumentDigest) -> String {
    // Text: serialising cannot fail.
    serde_json::to_string(digest).unwrap_or_default() + "\n"
}

fn refused(changed: &[String]) -> Diagnostic {
    let named = changed[..changed.len().min(NAMED)].join(", ");
    let more = changed.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Diagnostic::new(format!("results were changed since they were written: {named}{more}"))
        .help("remove them to make them again: the table may hold only unchanged results")
}
