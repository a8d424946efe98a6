//! Results by what decides them: a run that is in the store need not be made again.

use super::digests::{Digests, hex};
use crate::output::{Fault, cannot_write, make_folder, write_durable};
use config::Diagnostic;
use machine::Loaded;
use machine::result::SCHEMA;
use machine::run::Plan;
use machine::workloads::files_of;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// A folder of result documents, while one sweep works in it.
pub(crate) struct Store {
    folder: PathBuf,
    /// SHA-256 of the workloads' files, by path.
    files: BTreeMap<PathBuf, String>,
    /// What the documents were when they were written.
    digests: Digests,
    /// Held as long as the store is.
    _lock: File,
}

impl Store {
    /// A store in a folder, for runs of these plans. With `resume` there may be documents in it.
    ///
    /// # Errors
    /// The file of a workload cannot be read; another sweep is at work in the folder; it has results and they are not to be
    /// taken, or they are not what they were when they were written.
    pub(crate) fn open<'p>(
        out: &Path,
        plans: impl Iterator<Item = &'p Plan>,
        resume: bool,
    ) -> Result<Store, Fault> {
        let mut files = BTreeMap::new();
        for text in plans.flat_map(|plan| &plan.workloads) {
            for path in files_of(text)? {
                if path.metadata().is_ok_and(|there| !there.is_file()) {
                    return Err(Diagnostic::new(format!(
                        "{} is a pipe, and every point of a sweep reads it",
                        path.display()
                    ))
                    .help("write the trace to a file first")
                    .into());
                }
                if let Entry::Vacant(entry) = files.entry(path) {
                    let fault = |e| Diagnostic::new(format!("cannot read {}: {e}", entry.key().display()));
                    let hash = hash_of_file(entry.key()).map_err(fault)?;
                    entry.insert(hash);
                }
            }
        }
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
        Ok(Store { folder, files, digests, _lock: lock })
    }

    /// The SHA-256 of all that decides a run: the resolved spec, workloads with the content of their files, reading
    /// options, seed, and version of the program.
    ///
    /// # Errors
    /// The system cannot be read.
    pub(crate) fn key(&self, plan: &Plan) -> Result<String, Diagnostic> {
        let loaded = Loaded::load(&plan.system, &plan.set)?;
        let workload = |text: &String| {
            let files = files_of(text).unwrap_or_default();
            let hashes: Vec<_> = files.iter().map(|file| self.files.get(file)).collect();
            json!({ "text": text, "sha256": hashes })
        };
        let all = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "spec": loaded.spec.to_json(),
            "workloads": plan.workloads.iter().map(workload).collect::<Vec<_>>(),
            "seed": plan.seed,
            "warmup": format!("{:?}", plan.warmup),
            "trace": format!("{:?}", plan.trace),
            "queue_depth": plan.queue_depth,
        });
        Ok(hex(&Sha256::digest(all.to_string().as_bytes())))
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
