//! The file of a sweep.

use super::axis::{Axis, Key, WORKLOAD};
use super::refuse_unknown;
use super::search::{Search, SearchText, axes};
use crate::plan_args::warmup;
use crate::trace_args::TraceArgs;
use config::{Diagnostic, Layers, Place, Presets, Resolved};
use machine::{
    Warmup,
    workloads::{WORKLOADS, file_of, part_and_workload},
};
use serde::Deserialize;
use std::path::Path;
use workload::trace::{Remap, TraceOptions};

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
    trace: TraceArgs,
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

/// How runs are read, as the file says it.
#[derive(Clone)]
pub(crate) struct Words {
    /// When the measured windows begin.
    pub(crate) warmup: Option<String>,
    /// Reading of traces.
    pub(crate) trace: TraceArgs,
}

/// A sweep, checked as far as that is possible without running it.
pub(crate) struct Sweep {
    /// The systems that runs start from.
    pub(crate) systems: Vec<String>,
    /// Whether they are an axis.
    pub(crate) has_systems: bool,
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
    pub(crate) fn named(&self) -> &[String] {
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
    pub(crate) fn count(&self) -> Result<usize, Diagnostic> {
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

// The workloads of a sweep: where their files are, and what options make of them.

/// One workload, or several that run at the same time.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a workload is a text, and several that run at the same time an array of texts"
)]
pub(super) enum Workload {
    One(String),
    Together(Vec<String>),
}

/// What options are added to where a file names no workload.
const FIO: &str = "fio:";

/// The workloads of runs: those that the file lists, or jobs in fio's words of which all is said in `[workload]`.
///
/// # Errors
/// There are none, or options are to be put on what takes none.
pub(super) fn workloads(
    folder: &Path,
    listed: Option<&[Workload]>,
    options: &[String],
    resolved: &Resolved,
) -> Result<Vec<Vec<String>>, Diagnostic> {
    let Some(listed) = listed else {
        if options.is_empty() {
            return Err(resolved
                .diagnose(
                    "workloads",
                    "nothing is to be run: there is neither `workloads` nor a table [workload]",
                )
                .help(
                    "`workloads = [\"randread\"]`, or `[workload]` with fio's options: `rw = \"randread\"`",
                ));
        }
        return Ok(vec![vec![FIO.to_owned()]]);
    };
    if listed.is_empty() {
        return Err(resolved.diagnose("workloads", "`workloads` is empty: there is nothing to run"));
    }
    let found: Vec<Vec<String>> = listed.iter().map(|workload| located(folder, workload)).collect();
    for (n, together) in found.iter().enumerate().filter(|_| !options.is_empty()) {
        let place = format!("workloads.{n}");
        let refused = |what: String| {
            resolved
                .diagnose(&place, what)
                .help("options of files stand in the files; a job of several is an fio job file")
        };
        let [text] = together.as_slice() else {
            return Err(refused(
                "options of [workload] cannot be put on several workloads at the same time".into(),
            ));
        };
        if file_of(text).is_some() {
            return Err(refused(format!("options of [workload] cannot be put on the file {text}")));
        }
        if let Some(name) = options.iter().find(|name| has(text, name)) {
            return Err(refused(format!("`{name}` stands in `{text}` already, and in [workload]")));
        }
    }
    Ok(found)
}

/// Whether a workload has an option already.
fn has(text: &str, name: &str) -> bool {
    let text = spelt(text);
    let options = text.split_once(':').map_or("", |(_, options)| options);
    options.split(',').any(|option| option.split('=').next() == Some(name))
}

/// A shipped workload as the job that it stands for.
fn spelt(text: &str) -> String {
    let (part, bare) = part_and_workload(text).map_or((None, text), |(part, bare)| (Some(part), bare));
    let job = WORKLOADS.iter().find(|(name, ..)| *name == bare).map_or(bare, |(.., job)| *job);
    part.map_or_else(|| job.to_owned(), |part| format!("{part}={job}"))
}

/// A workload with options behind its own.
pub(super) fn with_options(text: &str, options: &[(&str, String)]) -> String {
    if options.is_empty() {
        return text.to_owned();
    }
    let mut text = spelt(text);
    for (name, value) in options {
        let before = match text.split_once(':') {
            None => ":",
            Some((_, "")) => "",
            Some(_) => ",",
        };
        text += &format!("{before}{name}={value}");
    }
    text
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

/// A system: a shipped one, or a file.
pub(super) fn system(folder: &Path, name: &str) -> String {
    let is_file = name.ends_with(".toml") || name.contains(['/', '\\']);
    if is_file { beside(folder, name) } else { name.to_owned() }
}

fn beside(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_behind_those_of_the_workload() {
        let options = [("bs", "8k".to_owned()), ("iodepth", "4".to_owned())];
        assert_eq!(with_options("fio:", &options), "fio:bs=8k,iodepth=4");
        assert_eq!(with_options("fio:rw=read", &options), "fio:rw=read,bs=8k,iodepth=4");
        assert_eq!(with_options("drive=fio:rw=read", &options[..1]), "drive=fio:rw=read,bs=8k");
        assert_eq!(with_options("tatp", &[("size", "1GiB".into())]), "tatp:size=1GiB");
        assert_eq!(with_options("randread", &[]), "randread");
        let spelt = with_options("randread", &[("rate_iops", "5".into())]);
        assert!(spelt.starts_with("fio:rw=randread,") && spelt.ends_with(",rate_iops=5"), "{spelt}");
    }

    #[test]
    fn what_a_workload_says_itself_is_known() {
        assert!(has("randread", "iodepth") && has("fio:rw=read,bs=4k", "bs") && has("a=fio:bs=4k", "bs"));
        assert!(!has("fio:rw=read", "bs") && !has("tatp", "size"));
    }
}
