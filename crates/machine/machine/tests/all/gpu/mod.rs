//! Whole machines with a GPU: every platform runs, twice the same, and what is known in advance comes out.

mod ladder;
mod limits;
mod narrow;
mod paging;
mod platforms;
mod script;
mod series;
mod sharing;
mod traces;

use machine::result::Document;
use machine::run::{Plan, run_alone};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Every shipped platform of a GPU.
const PLATFORMS: [&str; 8] =
    ["ideal", "optane", "hetero", "hybridgpu", "zng-base", "zng-rdopt", "zng-wropt", "zng"];

/// A file of the data sets, or `None` with a word on the terminal.
fn data(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("NANDSCAPE_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"), PathBuf::from);
    let file = root.join(path);
    if !file.exists() {
        println!("skipped: no data");
        return None;
    }
    Some(file)
}

/// Runs workloads side by side; every check must pass.
fn run(system: &str, workloads: &[&str], set: &[&str]) -> Document {
    let mut plan = Plan::new(system, "");
    plan.workloads = workloads.iter().map(|text| (*text).to_owned()).collect();
    let plan = set.iter().fold(plan, |plan, assignment| plan.set(assignment));
    let document = run_alone(&plan).unwrap_or_else(|refused| panic!("{system}, {workloads:?}: {refused}"));
    let failed: Vec<_> = document.checks.iter().filter(|check| !check.ok).collect();
    assert!(document.ok && !document.partial, "{system}, {workloads:?}: {failed:?}");
    document
}

/// The result without what differs from run to run.
fn lasting(document: &Document) -> Value {
    let mut value = serde_json::to_value(document).expect("a document has a JSON form");
    value.as_object_mut().expect("a document is a table").remove("run");
    value
}

/// A figure of a result document, by its path.
fn figure(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}"))
}

/// Panics unless a value is within a share of what is expected.
#[track_caller]
fn near(what: &str, found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{what}: {found} instead of {expected}");
}
