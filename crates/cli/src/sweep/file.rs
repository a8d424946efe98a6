//! The file of a sweep.

use super::axis::{Axis, flatten, zipped};
use super::metrics::refuse_unknown;
use crate::plan_args::warmup;
use crate::trace_args::TraceArgs;
use config::{Diagnostic, Layers, Place, Presets, Resolved};
use machine::Warmup;
use machine::workloads::{file_of, part_and_workload};
use serde::Deserialize;
use std::path::Path;
use workload::trace::{Remap, TraceOptions};

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    system: String,
    workloads: Vec<Workload>,
    #[serde(default = "first_seed")]
    seeds: Vec<u64>,
    warmup: Option<String>,
    queue_depth: Option<u32>,
    #[serde(default)]
    trace: TraceArgs,
    #[serde(default)]
    set: toml::Table,
    #[serde(default)]
    zip: Vec<toml::Table>,
    #[serde(default)]
    metrics: Vec<String>,
}

/// One workload, or several that run at the same time.
#[derive(Deserialize)]
#[serde(untagged)]
enum Workload {
    One(String),
    Together(Vec<String>),
}

fn first_seed() -> Vec<u64> {
    vec![1]
}

/// Metrics of a table if the file names none; what a run does not have stays empty.
const METRICS: [&str; 10] = [
    "io.all.iops",
    "io.all.bandwidth_bytes_per_s",
    "io.read.latency_ns.mean",
    "io.read.latency_ns.p99",
    "io.write.latency_ns.mean",
    "io.write.latency_ns.p99",
    "flash.0.write_amplification",
    "flash.0.gc_runs",
    "flash.0.erases",
    "simulated_ns",
];

/// A sweep, checked as far as that is possible without running it.
pub(crate) struct Sweep {
    /// The system that all runs start from.
    pub(crate) system: String,
    /// The workloads of a run, by run.
    pub(crate) workloads: Vec<Vec<String>>,
    /// Seeds.
    pub(crate) seeds: Vec<u64>,
    /// When the measured windows begin.
    pub(crate) warmup: Option<Warmup>,
    /// Replays traces at a queue depth.
    pub(crate) queue_depth: Option<u32>,
    /// Reading of traces.
    pub(crate) trace: TraceOptions,
    /// What varies.
    pub(crate) axes: Vec<Axis>,
    /// Metrics of the table.
    pub(crate) metrics: Vec<String>,
    /// How many of them the file names: all or none.
    named: usize,
    /// The file, to say where something stands in it.
    text: Resolved,
}

/// A sweep inherits from files only.
struct NoPresets;

impl Presets for NoPresets {
    fn find(&self, _: &str) -> Option<(String, String)> {
        None
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Sweep {
    /// Reads a file. Paths in it are relative to it.
    ///
    /// # Errors
    /// Everything that is wrong with it, with places.
    pub(crate) fn read(path: &Path) -> Result<Sweep, Diagnostic> {
        let mut name = path.display().to_string();
        if !name.ends_with(".toml") && !name.contains(['/', '\\']) {
            name = format!("./{name}");
        }
        let mut resolved = Layers::load(&name, &NoPresets)?;
        let text: Text = resolved.parse()?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let axes = axes(&text, &resolved)?;
        refuse_unknown(&text.metrics, &resolved)?;
        for (key, is_empty) in [("workloads", text.workloads.is_empty()), ("seeds", text.seeds.is_empty())] {
            if is_empty {
                return Err(resolved.diagnose(key, format!("`{key}` is empty: there is nothing to run")));
            }
        }
        let warmup = text.warmup.as_deref().map(warmup).transpose();
        let trace = text.trace.options(Remap::Fit);
        let named = text.metrics.len();
        let metrics = if named == 0 { METRICS.map(str::to_owned).to_vec() } else { text.metrics.clone() };
        Ok(Sweep {
            system: if is_file(&text.system) { beside(folder, &text.system) } else { text.system.clone() },
            workloads: text.workloads.iter().map(|workload| located(folder, workload)).collect(),
            seeds: text.seeds.clone(),
            warmup: warmup.map_err(|d| placed(d, &resolved, "warmup"))?,
            queue_depth: text.queue_depth,
            trace: trace.map_err(|d| placed(d, &resolved, "trace"))?,
            axes,
            metrics,
            named,
            text: resolved,
        })
    }

    /// Where a value of an axis stands.
    pub(super) fn place_of(&self, axis: &Axis, key: &str, step: usize) -> Place {
        self.text.place(&format!("{}.{key}.{step}", axis.table))
    }

    /// Where the workloads stand, the `n`th of them if it can be told.
    pub(super) fn place_of_workload(&self, n: usize) -> Place {
        self.text.place(&format!("workloads.{n}"))
    }

    /// The metrics that the file names; what a run lacks of others stays empty.
    pub(crate) fn named(&self) -> &[String] {
        &self.metrics[..self.named]
    }

    /// Whether runs differ in their seeds alone, so that what one lacks all lack.
    pub(crate) fn is_alike(&self) -> bool {
        self.workloads.len() == 1 && self.axes.iter().all(|axis| axis.rows.len() == 1)
    }

    /// Something is wrong about a metric that the file names.
    pub(super) fn diagnose_metric(&self, at: usize, what: String) -> Diagnostic {
        self.text.diagnose(&format!("metrics.{at}"), what)
    }

    /// How many runs it is.
    ///
    /// # Errors
    /// More than anybody means.
    pub(crate) fn count(&self) -> Result<usize, Diagnostic> {
        const MOST: usize = 1_000_000;
        let sizes =
            self.axes.iter().map(|axis| axis.rows.len()).chain([self.workloads.len(), self.seeds.len()]);
        sizes
            .into_iter()
            .try_fold(1_usize, |all, size| all.checked_mul(size))
            .filter(|n| *n <= MOST)
            .ok_or_else(|| {
                Diagnostic::new(format!("the sweep has more than {MOST} runs"))
                    .help("values that go together stand in a [[zip]] table: they step as one")
            })
    }
}

fn is_file(name: &str) -> bool {
    name.ends_with(".toml") || name.contains(['/', '\\'])
}

fn beside(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// A file, or every part of a trace.
fn all_beside(folder: &Path, text: &str) -> String {
    let whole = beside(folder, text);
    if let (false, Some(list)) = (Path::new(&whole).exists(), text.strip_prefix('@')) {
        return format!("@{}", beside(folder, list));
    }
    if Path::new(&whole).exists() || !text.contains('+') {
        return whole;
    }
    text.split('+').map(|part| beside(folder, part)).collect::<Vec<_>>().join("+")
}

fn located(folder: &Path, workload: &Workload) -> Vec<String> {
    let found = |text: &str| match file_of(text) {
        Some(_) if text.contains(['/', '\\', '.']) => all_beside(folder, text),
        _ => text.to_owned(),
    };
    let located = |text: &String| match part_and_workload(text) {
        Some((part, workload)) => format!("{part}={}", found(workload)),
        None => found(text),
    };
    match workload {
        Workload::One(text) => vec![located(text)],
        Workload::Together(texts) => texts.iter().map(located).collect(),
    }
}

/// The place of a key for a diagnostic that has none, or only that of the option of `run` that does the same.
fn placed(diagnostic: Diagnostic, resolved: &Resolved, key: &str) -> Diagnostic {
    let is_placed = diagnostic.place.as_ref().is_some_and(|place| !place.source.starts_with("--"));
    if is_placed { diagnostic } else { diagnostic.at(resolved.place(key)) }
}

fn axes(text: &Text, resolved: &Resolved) -> Result<Vec<Axis>, Diagnostic> {
    let mut axes = Vec::new();
    let mut taken: Vec<String> = Vec::new();
    let mut tables = vec![("set".to_owned(), &text.set, false)];
    tables.extend(text.zip.iter().enumerate().map(|(n, table)| (format!("zip.{n}"), table, true)));
    for (name, table, is_zip) in tables {
        let listed = flatten(table);
        for (key, values) in &listed {
            let fault = |what: String| resolved.diagnose(&format!("{name}.{key}"), what);
            refuse_unknown_key(key).map_err(|d| d.at(resolved.place(&format!("{name}.{key}"))))?;
            if let Some(other) = taken.iter().find(|other| overlap(key, other)) {
                let part = if key == other { String::new() } else { format!(", with `{other}`") };
                return Err(fault(format!("`{key}` varies already{part}"))
                    .help("a key has one axis; keys that go together stand in one [[zip]] table"));
            }
            if values.is_empty() {
                return Err(fault(format!("`{key}` has no values: there is nothing to run")));
            }
            taken.push(key.clone());
        }
        if is_zip {
            axes.push(zipped(&name, listed).map_err(|what| resolved.diagnose(&name, what))?);
        } else {
            axes.extend(listed.into_iter().map(|(key, values)| Axis::of(&name, key, values)));
        }
    }
    Ok(axes)
}

/// Whether two keys are one, or one is a part of the other.
fn overlap(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A misspelt key is an error of the sweep, not of each of its runs.
fn refuse_unknown_key(key: &str) -> Result<(), Diagnostic> {
    let known: Vec<String> = machine::catalogue::params().into_iter().map(|p| p.key).collect();
    let is_part_of = |known: &str, key: &str| {
        known == key || known.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'))
    };
    // Of a part with a name of its own, the rest must be a key of some kind: which, its system says.
    let below = |key: &str| key.split_once('.').map(|(_, rest)| rest.to_owned());
    let rest =
        below(key).filter(|_| !known.iter().any(|known| known.split('.').next() == key.split('.').next()));
    let of_some_kind = |known: &String| {
        rest.as_ref().zip(below(known)).is_some_and(|(rest, known)| is_part_of(&known, rest))
    };
    if known.iter().any(|known| is_part_of(known, key) || of_some_kind(known)) {
        return Ok(());
    }
    let mut fault = Diagnostic::new(format!("a spec has no key `{key}`")).allowed(key, known);
    fault.allowed.clear();
    Err(fault.help("`nandscape params` lists every key").pointed(key))
}
