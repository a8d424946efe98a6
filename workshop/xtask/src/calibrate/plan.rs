//! What host and guest tell each other, in two files of a shared folder.

use super::sample::Sample;
use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The file with what to do.
pub(super) const PLAN: &str = "plan.json";
/// The file with what came of it.
pub(super) const OUTCOME: &str = "outcome.json";

/// On what a job works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Target {
    /// Files of an ext4 that was made with its defaults, mounted with `noatime`.
    Ext4,
    /// The block device itself.
    Raw,
}

/// What a guest does, once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Makes the file system first; nothing is measured.
    pub(super) prepare: bool,
    /// On what.
    pub(super) target: Target,
    /// Names as in `vm.dirty_ratio` and `queue.read_ahead_kb`, and values.
    pub(super) settings: Vec<(String, String)>,
    /// Options of fio without the leading `--`; a `filename` is a name in the file system.
    pub(super) fio: Vec<String>,
}

/// A write that took longer than a millisecond.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Stall {
    /// When it returned, since its fio job began.
    pub(super) t_ms: u64,
    /// How long it took.
    pub(super) ns: u64,
}

/// What a guest has seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// Of the kernel, its memory and its block device, by name.
    pub(super) facts: BTreeMap<String, String>,
    /// From the start of fio to its end.
    pub(super) samples: Vec<Sample>,
    /// fio's report.
    pub(super) fio: serde_json::Value,
    /// Long writes of each fio job, in the order of the jobs.
    pub(super) stalls: Vec<Vec<Stall>>,
}

/// Reads a file of the shared folder.
pub(super) fn load<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<T> {
    let text = fs::read(folder.join(name)).with_context(|| format!("no {name}"))?;
    serde_json::from_slice(&text).with_context(|| format!("{name} cannot be read"))
}

/// Writes a file of the shared folder; it is there whole or not at all.
pub(super) fn save<T: Serialize>(folder: &Path, name: &str, what: &T) -> Result<()> {
    let unfinished = folder.join(format!("{name}.part"));
    let file = fs::File::create(&unfinished)?;
    serde_json::to_writer(&file, what)?;
    file.sync_all()?;
    Ok(fs::rename(unfinished, folder.join(name))?)
}
