//! Results by what decides them: a run that is in the store need not be made again.
//!
//! The store has a line for each document in `digests.jsonl`, on the disk before the document has its name. A
//! document that has been changed since is refused, with the parts of it that differ.

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

/// A folder of result documents, while one sweep works in it.
pub struct Store {
    folder: PathBuf,
    keys: Keys,
    /// What the documents were when they were written.
    digests: Digests,
    /// Held as long as the store is.
    _lock: File,
}

impl Store {
    /// A store in a folder, for runs of a sweep. With `resume` there may be documents in it.
    ///
    /// # Errors
    /// The file of a workload cannot be read; another sweep is at work in the folder; it has results and they are not to be
    /// taken, or they are not what they were when they were written.
    pub fn open(out: &Path, sweep: &Sweep, resume: bool) -> Result<Store, Fault> {
        let keys = Keys::of(sweep.workloads.iter().flatten())?;
        let folder = out.join("runs");
        make_folder(&folder).map_err(|fault| cannot_write(&folder, &fault))?;
        let lock = lock(out)?;
        let documents = documents(&folder).map_err(|fault| cannot_write(&folder, &fault))?;
        if !resume && !documents.is_empty() {
            let what = format!("{} has the results of {} runs already", out.display(), documents.len());
            return Err(Diagnostic::new(what)
                .help("--resume takes them and runs only the rest; --out names another folder; without `runs` in it this one is empty")
                .into());
        }
        let digests = Digests::read(&out.join("digests.jsonl"), &documents)?;
        Ok(Store { folder, keys, digests, _lock: lock })
    }

    /// The name of a run's document.
    ///
    /// # Errors
    /// The system cannot be read.
    pub(crate) fn key(&self, plan: &Plan) -> Result<String, Diagnostic> {
        self.keys.key(plan)
    }

    /// The document of a key, if it is there and known to be what was written.
    pub(crate) fn load(&self, key: &str) -> Option<Value> {
        if self.digests.knows(key) { self.document(key) } else { None }
    }

    /// The document of a key, if it is there: known to be what was written by who has written it.
    pub(super) fn document(&self, key: &str) -> Option<Value> {
        let document: Value = serde_json::from_slice(&std::fs::read(self.path(key)).ok()?).ok()?;
        (document.get("schema")? == SCHEMA).then_some(document)
    }

    /// Puts a document in, whole or not at all: it is on the disk before it has its name.
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

/// Keeps other sweeps out of a folder, as long as the file is open.
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
            // Where a lock keeps others from reading, nobody knows who it is.
            let _ = file.read_to_string(&mut process);
            let who = if process.is_empty() { String::new() } else { format!(" (process {process})") };
            Err(Diagnostic::new(format!("another sweep is at work in {}{who}", out.display()))
                .help("--resume takes its results once it has ended; --out names another folder")
                .into())
        }
        // Where files cannot be locked, nobody is kept out.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// Keys of the documents in a folder. What killed sweeps have left half written is removed.
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

/// Names of runs, given the content of the files that their workloads name.
pub(crate) struct Keys {
    /// SHA-256 of the files, by path.
    files: BTreeMap<PathBuf, String>,
}

impl Keys {
    /// Reads the files of workloads.
    ///
    /// # Errors
    /// One cannot be read, or not more than once.
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

    /// The SHA-256 of all that decides a run: the resolved spec, workloads with the content of their files, reading
    /// options, seed, and version of the program and of its results.
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

/// Changed documents that are named; the others are only counted.
const NAMED: usize = 8;

/// What a document was.
#[derive(Clone, Serialize, Deserialize)]
struct DocumentDigest {
    /// Its name in the store.
    key: String,
    /// SHA-256 of its bytes.
    sha256: String,
    /// The first 16 digits of the SHA-256 of each of its members.
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

    /// Names of the members that another one has otherwise, or has not.
    fn differing(&self, other: &DocumentDigest) -> Vec<String> {
        let names =
            self.parts.keys().chain(other.parts.keys().filter(|name| !self.parts.contains_key(*name)));
        names.filter(|name| self.parts.get(*name) != other.parts.get(*name)).cloned().collect()
    }
}

/// The digests of a store.
pub(super) struct Digests {
    path: PathBuf,
    /// Of the documents that were there at the beginning.
    known: BTreeMap<String, DocumentDigest>,
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
        let lines = text.lines().filter_map(|line| serde_json::from_str::<DocumentDigest>(line).ok());
        let mut known: BTreeMap<String, DocumentDigest> =
            lines.map(|digest| (digest.key.clone(), digest)).collect();
        known.retain(|key, _| documents.iter().any(|(there, _)| there == key));
        let mut changed = Vec::new();
        for (key, path) in documents {
            let (Some(then), Ok(text)) = (known.get(key), std::fs::read(path)) else { continue };
            let now = DocumentDigest::of(key, &text);
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
        let text = line(&DocumentDigest::of(key, document.as_bytes()));
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

fn line(digest: &DocumentDigest) -> String {
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
