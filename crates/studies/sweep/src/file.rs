//! File of a sweep.

use super::axes::{Axis, Key, WORKLOAD, axes};
use super::jobs::{TraceText, Words, Workload, system, warmup, workloads};
use super::search::{Search, SearchText};
use super::validate::refuse_unknown;
use config::{Diagnostic, Layers, Place, Presets, Resolved};
use machine::Warmup;
use requests::trace::{Remap, TraceOptions};
use serde::Deserialize;
use std::path::Path;

/// Contents of the file as written.
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

/// One system, or an axis of systems.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`system` is a system or an array of systems")]
enum Systems {
    One(String),
    Several(Vec<String>),
}

/// One number, or an axis of seeds.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a seed is a whole number from 0; give several as an array")]
enum Seeds {
    One(u64),
    Several(Vec<u64>),
}

/// Seeds: `seed = 7` is one, `seeds = 7` are the first seven, an array lists them.
fn seeds(text: &Text, resolved: &Resolved) -> Result<Vec<u64>, Diagnostic> {
    let (key, found) = match (&text.seed, &text.seeds) {
        (Some(_), Some(_)) => {
            return Err(resolved
                .diagnose("seeds", "`seed` and `seeds` are both given")
                .help("give one: `seed = 7` is one seed, `seeds = 7` are seven, an array lists them"));
        }
        (None, None) => return Ok(vec![1]),
        (Some(Seeds::One(seed)), None) => return Ok(vec![*seed]),
        (None, Some(Seeds::One(count))) => ("seeds", (1..=*count).collect()),
        (Some(Seeds::Several(seeds)), None) => ("seed", seeds.clone()),
        (None, Some(Seeds::Several(seeds))) => ("seeds", seeds.clone()),
    };
    if found.is_empty() {
        return Err(resolved.diagnose(key, format!("`{key}` is empty: it needs at least one seed")));
    }
    Ok(found)
}

/// Default metrics of a table; a metric that a run lacks stays empty.
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

/// Sweep, checked as far as possible without running it.
pub struct Sweep {
    /// Systems that runs start from.
    pub(crate) systems: Vec<String>,
    /// True if systems are an axis.
    pub has_systems: bool,
    /// Workloads of a run, by run, without the options of axes.
    pub(crate) workloads: Vec<Vec<String>>,
    /// True if the file lists workloads.
    has_workloads: bool,
    /// Seeds.
    pub(crate) seeds: Vec<u64>,
    /// Start of the measured windows.
    pub(crate) warmup: Option<Warmup>,
    /// Queue depth for replaying traces.
    pub(crate) queue_depth: Option<u32>,
    /// Trace options.
    pub(crate) trace: TraceOptions,
    /// Text of both in the file.
    pub(crate) words: Words,
    /// Axes.
    pub(crate) axes: Vec<Axis>,
    /// Search that chooses the runs, if not all combinations are made.
    pub(crate) search: Option<Search>,
    /// Metrics of the table.
    pub metrics: Vec<String>,
    /// Number of metrics that the file names: all or none.
    named: usize,
    /// Parsed file, for places in diagnostics.
    text: Resolved,
}

/// Presets of a sweep file: none, as it inherits from files only.
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
    /// All faults of the file, with places.
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
            return Err(resolved.diagnose("system", "`system` is empty: it needs at least one system"));
        }
        let seeds = seeds(&text, &resolved)?;
        let begins = text.warmup.as_deref().map(warmup).transpose();
        let trace = text.trace.options(Remap::Fit);
        let mut metrics = text.metrics;
        let named = metrics.len();
        if named == 0 {
            metrics.extend(METRICS.map(str::to_owned));
        }
        // The searched key is a column as well.
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

    /// Place of the workloads, or of the `n`th of them if known.
    pub(super) fn place_of_workload(&self, n: usize) -> Place {
        self.place(&if self.has_workloads { format!("workloads.{n}") } else { WORKLOAD.to_owned() })
    }

    /// Place of a key in the file.
    pub(super) fn place(&self, key: &str) -> Place {
        self.text.place(key)
    }

    /// Metrics that the file names; a default metric that a run lacks stays empty.
    pub fn named(&self) -> &[String] {
        &self.metrics[..self.named]
    }

    /// Returns whether runs differ only in their seeds, so that all lack what one lacks.
    pub(crate) fn is_alike(&self) -> bool {
        let one_each = self.axes.iter().all(|axis| axis.rows.len() == 1);
        self.systems.len() == 1 && self.workloads.len() == 1 && one_each && self.search.is_none()
    }

    /// Creates a diagnostic about a metric that the file names.
    pub(super) fn diagnose_metric(&self, at: usize, what: String) -> Diagnostic {
        self.text.diagnose(&format!("metrics.{at}"), what)
    }

    /// Number of runs.
    ///
    /// # Errors
    /// More than 1,000,000 runs.
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
                    .help("put values that step together in a [[zip]] table")
            })
    }
}

/// Adds the place of a key to a diagnostic without one, or with only that of the equivalent option of `run`.
fn placed(diagnostic: Diagnostic, resolved: &Resolved, key: &str) -> Diagnostic {
    let is_placed = diagnostic.place.as_ref().is_some_and(|place| !place.source.starts_with("--"));
    if is_placed { diagnostic } else { diagnostic.at(resolved.place(key)) }
}
