//! Parts by name: what names mean, and what they do not.

mod names;
mod refused;
mod several;

use machine::result::Document;
use machine::run::{Plan, run_alone};
use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;

/// A drive of 16 MiB in 2 channels of 2 dies of 2 planes.
pub(crate) const SMALL: &str = "
geometry = { channels = 2, ways = 2, blocks = 32, pages = 16 }
ftl = { gc = { start = 3, stop = 4, hard = 1 }, over_provisioning = '25%' }
precondition = 'sequential'
";

/// A machine in a file, and workloads for it.
pub(crate) struct Bench {
    _folder: TempDir,
    path: PathBuf,
}

impl Bench {
    pub(crate) fn new(text: &str) -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, text).expect("a file");
        Bench { path, _folder: folder }
    }

    fn plan(&self, workloads: &[&str]) -> Plan {
        let mut plan = Plan::new(&self.path.to_string_lossy(), "");
        plan.workloads = workloads.iter().map(|text| (*text).to_owned()).collect();
        plan
    }

    /// A run whose checks all hold.
    pub(crate) fn run(&self, workloads: &[&str]) -> Document {
        let document = run_alone(&self.plan(workloads)).unwrap_or_else(|fault| panic!("{fault}"));
        let failed: Vec<_> = document.checks.iter().filter(|check| !check.ok).collect();
        assert!(document.ok, "{failed:#?}");
        document
    }

    /// The diagnostic of a run that is refused.
    pub(crate) fn refused(&self, workloads: &[&str]) -> String {
        match run_alone(&self.plan(workloads)) {
            Ok(_) => panic!("it is not refused"),
            Err(fault) => fault.to_string(),
        }
    }
}

/// A document without what tells machines apart that do the same: the spec, names, and what the run cost.
pub(crate) fn found(document: &Document) -> Value {
    fn nameless(value: &mut Value) {
        match value {
            Value::Object(table) => {
                table.remove("name");
                table.remove("drive");
                table.values_mut().for_each(nameless);
            }
            Value::Array(items) => items.iter_mut().for_each(nameless),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(document).expect("a document has a JSON form");
    let all = value.as_object_mut().expect("an object");
    for apart in ["system", "spec", "spec_sha256", "run", "workload", "checks"] {
        all.remove(apart);
    }
    nameless(&mut value);
    value
}

pub(crate) fn figure(document: &Document, path: &str) -> f64 {
    let value = serde_json::to_value(document).expect("a document has a JSON form");
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}"))
}
