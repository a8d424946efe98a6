//! Completion in shells: the program itself names systems, workloads, keys and metrics, so that what is new is completed too.

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use machine::plan::workloads::WORKLOADS;
use machine::result::metrics;
use spec::systems::SYSTEMS;
use std::ffi::OsStr;

/// Variable by which a shell's script asks for candidates.
pub(crate) const VARIABLE: &str = "NANDSCAPE_COMPLETE";

/// Candidates among `names` that begin with what has been typed.
fn among(names: impl IntoIterator<Item = String>, typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    names.into_iter().filter(|name| name.starts_with(typed)).map(CompletionCandidate::new).collect()
}

/// Shipped systems, and files.
pub(crate) fn systems(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = among(SYSTEMS.iter().map(|(name, _)| (*name).to_owned()), typed);
    found.extend(PathCompleter::file().complete(typed));
    found
}

/// Shipped workloads and programs, and files.
pub(crate) fn workloads(typed: &OsStr) -> Vec<CompletionCandidate> {
    let shipped = WORKLOADS.iter().map(|(name, ..)| *name);
    let programs = programs::program::entries().map(|entry| entry.name);
    let services = programs::service::entries().map(|entry| entry.name);
    let host = programs::host::entries().map(|entry| entry.name);
    let names = shipped.chain(programs).chain(services).chain(host).chain(programs::kernels::names());
    let mut found = among(names.map(str::to_owned), typed);
    found.extend(PathCompleter::file().complete(typed));
    found
}

/// Keys of a spec, with the sign that a value follows.
pub(crate) fn settings(typed: &OsStr) -> Vec<CompletionCandidate> {
    among(machine::catalogue::params().into_iter().map(|param| format!("{}=", param.key)), typed)
}

/// Beginnings of keys of a spec.
pub(crate) fn keys(typed: &OsStr) -> Vec<CompletionCandidate> {
    among(machine::catalogue::params().into_iter().map(|param| param.key), typed)
}

/// Metrics, of the first element of each list.
pub(crate) fn figures(typed: &OsStr) -> Vec<CompletionCandidate> {
    among(metrics::all().into_iter().map(|metric| metric.key.replace('*', "0")), typed)
}

/// Targets of `reproduce`.
pub(crate) fn targets(typed: &OsStr) -> Vec<CompletionCandidate> {
    let names = reproduce::TARGETS.iter().map(|target| target.name).chain(["all"]);
    among(names.map(str::to_owned), typed)
}

/// Everything that `explain` knows by one name.
pub(crate) fn names(typed: &OsStr) -> Vec<CompletionCandidate> {
    among(crate::commands::explain::names(), typed)
}
