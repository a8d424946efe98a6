//! The file of a sweep.

use super::axes::{Axis, Key, WORKLOAD, axes};
use super::jobs::{TraceText, Words, Workload, system, warmup, workloads};
use super::search::{Search, SearchText};
use super::validate::refuse_unknown;
use config::{Diagnostic, Layers, Place, Presets, Resolved};
use machine::Warmup;
use requests::trace::{Remap, TraceOptions};
use serde::Deserialize;
use std::path::Path;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    system: Systems,
    workloads: Option<Vec<Workload>>,
    seed: Option<Seeds>,
    seeds: Option<Seeds>,
    warmup: Option<String>,
    queue_depth: Option<u32>,
    #[serde(default)]
    trace: TraceText,
    #[serde(default)]
    workload: toml::Table,
    #[serde(default)]
    set: toml::Table,
    #[serde(default)]
    zip: Vec<toml::Table>,
    search: Option<SearchText>,
    #[serde(default)]
    metrics: Vec<String>,
}

/// One system, or an axis of them.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`system` is a system or an array of systems")]
enum Systems {
    One(String),
    Several(Vec<String>),
}

/// One number, or an axis of seeds.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a seed is a whole number from 0; several stand in an array")]
enum Seeds {
    One(u64),
    Several(Vec<u64>),
}

/// Seeds: `seed = 7` is one, `seeds = 7` are the first seven, an array says which.
fn seeds(text: &Text, resolved: &Resolved) -> Result<Vec<u64>, Diagnostic> {
    let (key, found) = match (&text.seed, &text.seeds) {
        (Some(_), Some(_)) => {
            return Err(resolved
                .diagnose("seeds", "`seed` and `seeds` are given")
                .help("`seed = 7` is one seed, `seeds = 7` are seven, an array says which"));
        }
        (None, None) => return Ok(vec![1]),
        (Some(Seeds::One(seed)), None) => return Ok(vec![*seed]),
        (None, Some(Seeds::One(count))) => ("seeds", (1..=*count).collect()),
        (Some(Seeds::Several(seeds)), None) => ("seed", seeds.clone()),
        (None, Some(Seeds::Several(seeds))) => ("seeds", seeds.clone()),
    };
    if found.is_empty() {
        return Err(resolved.diagnose(key, format!("`{key}` is empty: there is nothing to run")));
    }
    Ok(found)
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
pub struct Sweep {
    /// The systems that runs start from.
    pub(crate) systems: Vec<String>,
    /// Whether they are an axis.
    pub has_systems: bool,
    /// The workloads of a run, by run, without the options of axes.
    pub(crate) workloads: Vec<Vec<String>>,
    /// Whether the file lists them.
    has_workloads: bool,
    /// Seeds.
    pub(crate) seeds: Vec<u64>,
    /// When the measured windows begin.
    pub(crate) warmup: Option<Warmup>,
    /// Replays traces at a queue depth.
    pub(crate) queue_depth: Option<u32>,
    /// Reading of traces.
    pub(crate) trace: TraceOptions,
    /// What the file says of both.
    pub(crate) words: Words,
    /// What varies.
    pub(crate) axes: Vec<Axis>,
    /// What chooses the runs, if not all combinations are made.
    pub(crate) search: Option<Search>,
    /// Metrics of the table.
    pub metrics: Vec<String>,
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
    pub fn read(path: &Path) -> Result<Sweep, Diagnostic> {
        let mut name = path.display().to_string();
        if !name.ends_with(".toml") && !name.contains(['/', '\\']) {
            name = format!("./{name}");
        }
        let mut resolved = Layers::load(&name, &NoPresets)?;
        let text: Text = resolved.parse()?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let axes = axes(&text.workload, &text.set, &text.zip, &resolved)?;
        refuse_unknown(&text.metrics, &resolved)?;
        let search = text.search.as_ref().map(|search| Search::read(search, &axes, &resolved)).transpose()?;
        let sought = search.iter().map(|search| &search.key);
        let options = axes.iter().flat_map(|axis| &axis.keys).chain(sought).filter_map(Key::option);
        let options: Vec<String> = options.map(str::to_owned).collect();
        let workloads = workloads(folder, text.workloads.as_deref(), &options, &resolved)?;
        let (systems, has_systems) = match &text.system {
            Systems::One(name) => (vec![name.clone()], false),
            Systems::Several(names) => (names.clone(), true),
        };
        if systems.is_empty() {
            return Err(resolved.diagnose("system", "`system` is empty: there is nothing to run"));
        }
        let seeds = seeds(&text, &resolved)?;
        let begins = text.warmup.as_deref().map(warmup).transpose();
        let trace = text.trace.options(Remap::Fit);
        let mut metrics = text.metrics;
        let named = metrics.len();
        if named == 0 {
            metrics.extend(METRICS.map(str::to_owned));
        }
        // What is searched by is a column as well.
        let by = search.iter().map(|search| search.metric.clone());
        metrics.extend(by.filter(|metric| !metrics.contains(metric)).collect::<Vec<_>>());
        Ok(Sweep {
            systems: systems.iter().map(|name| system(folder, name)).collect(),
            has_systems,
            workloads,
            has_workloads: text.workloads.is_some(),
            seeds,
            warmup: begins.map_err(|d| placed(d, &resolved, "warmup"))?,
            queue_depth: text.queue_depth,
            trace: trace.map_err(|d| placed(d, &resolved, "trace"))?,
            words: Words { warmup: text.warmup, trace: text.trace },
            axes,
            search,
            metrics,
            named,
            text: resolved,
        })
    }

    /// Where the workloads stand, the `n`th of them if it can be told.
    pub(super) fn place_of_workload(&self, n: usize) -> Place {
        self.place(&if self.has_workloads { format!("workloads.{n}") } else { WORKLOAD.to_owned() })
    }

    /// Where something stands in the file.
    pub(super) fn place(&self, key: &str) -> Place {
        self.text.place(key)
    }

    /// The metrics that the file names; what a run lacks of others stays empty.
    pub fn named(&self) -> &[String] {
        &self.metrics[..self.named]
    }

    /// Whether runs differ in their seeds alone, so that what one lacks all lack.
    pub(crate) fn is_alike(&self) -> bool {
        let one_each = self.axes.iter().all(|axis| axis.rows.len() == 1);
        self.systems.len() == 1 && self.workloads.len() == 1 && one_each && self.search.is_none()
    }

    /// Something is wrong about a metric that the file names.
    pub(super) fn diagnose_metric(&self, at: usize, what: String) -> Diagnostic {
        self.text.diagnose(&format!("metrics.{at}"), what)
    }

    /// How many runs it is.
    ///
    /// # Errors
    /// More than anybody means.
    pub fn count(&self) -> Result<usize, Diagnostic> {
        const MOST: usize = 1_000_000;
        let sizes = self.axes.iter().map(|axis| axis.rows.len()).chain([
            self.systems.len(),
            self.workloads.len(),
            self.seeds.len(),
        ]);
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

/// The place of a key for a diagnostic that has none, or only that of the option of `run` that does the same.
fn placed(diagnostic: Diagnostic, resolved: &Resolved, key: &str) -> Diagnostic {
    let is_placed = diagnostic.place.as_ref().is_some_and(|place| !place.source.starts_with("--"));
    if is_placed { diagnostic } else { diagnostic.at(resolved.place(key)) }
}
