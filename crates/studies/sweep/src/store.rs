//! Results by what decides them: a run that is in the store need not be made again.

use super::digests::Digests;
use super::file::Sweep;
use super::keys::Keys;
use config::Diagnostic;
use machine::result::SCHEMA;
use machine::run::Plan;
use outside::{Fault, cannot_write, make_folder, write_durable};
use serde_json::Value;
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

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
