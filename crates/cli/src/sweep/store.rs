//! Results by what decides them: a run that is in the store need not be made again.

use crate::output::write_durable;
use config::Diagnostic;
use machine::Loaded;
use machine::result::SCHEMA;
use machine::run::Plan;
use machine::workloads::files_of;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A folder of result documents.
pub(crate) struct Store {
    folder: PathBuf,
    /// SHA-256 of the workloads' files, by path.
    files: BTreeMap<PathBuf, String>,
}

impl Store {
    /// A store in a folder, for runs of these plans.
    ///
    /// # Errors
    /// The file of a workload cannot be read.
    pub(crate) fn new<'p>(folder: &Path, plans: impl Iterator<Item = &'p Plan>) -> Result<Store, Diagnostic> {
        let mut files = BTreeMap::new();
        for text in plans.flat_map(|plan| &plan.workloads) {
            for path in files_of(text)? {
                if let Entry::Vacant(entry) = files.entry(path) {
                    let fault = |e| Diagnostic::new(format!("cannot read {}: {e}", entry.key().display()));
                    let hash = hash_of_file(entry.key()).map_err(fault)?;
                    entry.insert(hash);
                }
            }
        }
        Ok(Store { folder: folder.to_owned(), files })
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
            "spec": serde_json::to_value(&loaded.spec).unwrap_or_default(),
            "workloads": plan.workloads.iter().map(workload).collect::<Vec<_>>(),
            "seed": plan.seed,
            "warmup": format!("{:?}", plan.warmup),
            "trace": format!("{:?}", plan.trace),
            "queue_depth": plan.queue_depth,
        });
        Ok(hex(&Sha256::digest(all.to_string().as_bytes())))
    }

    /// The document of a key, if it is there and whole.
    pub(crate) fn load(&self, key: &str) -> Option<Value> {
        let document: Value = serde_json::from_slice(&std::fs::read(self.path(key)).ok()?).ok()?;
        (document.get("schema")? == SCHEMA).then_some(document)
    }

    /// Puts a document in, whole or not at all: it is on the disk before it has its name.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn save(&self, key: &str, document: &str) -> Result<(), Diagnostic> {
        write_durable(&self.path(key), document.as_bytes())
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
