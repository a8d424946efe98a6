//! What decides a run, as a name of it.

use super::digests::hex;
use config::Diagnostic;
use machine::Loaded;
use machine::plan::workloads::files_of;
use machine::run::Plan;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

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
