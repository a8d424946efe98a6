//! Sweeps: every combination of values in a TOML file, each run's document in a store that is keyed by what decides it.

mod axis;
mod file;
mod human;
mod on;
#[cfg(feature = "parquet")]
mod parquet;
mod point;
mod search;
mod worker;

#[cfg(feature = "parquet")]
pub(crate) use self::parquet::parquet;
pub(crate) use file::Sweep;
pub(crate) use human::{Table, answer_csv, found, human};
pub(crate) use on::{Answer as OfWorker, Cluster, On, Order};
pub(crate) use point::{Point, point, refuse_unusable};
pub(crate) use search::{Answer, Ended, choice};
pub(crate) use worker::{Store, Where, Work, run_all, simulate};

use crate::progress::Counter;
use config::{Diagnostic, Resolved};
use human::{View, aligned};
use machine::{Loaded, result::metrics, run::Plan, spec::Kind, workloads::files_of};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};
use worker::hex;

// What became of the runs of a sweep.

/// What became of a point.
pub(crate) enum Outcome {
    /// It ran, now or earlier.
    Done(Ran),
    /// It cannot run.
    Failed(Diagnostic),
    /// An interrupt came first.
    NotRun,
}

/// What the tables need of a result document. The documents themselves lie in the store: a sweep of any length fits memory.
pub(crate) struct Ran {
    /// Its name in the store.
    pub(crate) key: String,
    /// Whether all its checks passed.
    pub(crate) well: bool,
    /// The sweep's metrics; none where the run has none of the name.
    metrics: Vec<Option<Value>>,
    /// The resolved spec as JSON.
    pub(crate) config: String,
}

impl Ran {
    fn new(key: String, document: &Value, metrics: &[String]) -> Ran {
        Ran {
            key,
            well: document.get("ok") == Some(&Value::Bool(true)),
            metrics: metrics.iter().map(|name| metric(document, name)).collect(),
            config: document.get("spec").map(Value::to_string).unwrap_or_default(),
        }
    }
}

impl Outcome {
    /// Whether it ran and all its checks passed.
    pub(crate) fn is_well(&self) -> bool {
        matches!(self, Outcome::Done(run) if run.well)
    }

    /// The `at`th of the sweep's metrics.
    fn metric(&self, at: usize) -> &Value {
        match self {
            Outcome::Done(run) => run.metrics[at].as_ref().unwrap_or(&Value::Null),
            _ => &Value::Null,
        }
    }

    /// The `at`th of the sweep's metrics, if it is a number.
    pub(crate) fn number(&self, at: usize) -> Option<f64> {
        self.metric(at).as_f64()
    }

    /// Whether it ran and has the `at`th of the sweep's metrics, be it null.
    fn has(&self, at: usize) -> bool {
        matches!(self, Outcome::Done(run) if run.metrics[at].is_some())
    }
}

/// `io.read.latency_ns.p99` of a document.
fn metric(document: &Value, name: &str) -> Option<Value> {
    let found = name.split('.').try_fold(document, |at, part| match at {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    });
    found.cloned()
}

// What decides a run, as a name of it.

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

// The table that grows while a sweep runs: a line for each run that has ended, above a bar with the time that is left. On
// standard error, if that is a terminal; elsewhere a line every ten seconds says how many runs have ended.

/// The least width of a metric's column: what comes later may be wider than what came first.
const METRIC: usize = 9;

/// The growing table and its bar.
pub(crate) struct Live<'s> {
    sweep: &'s Sweep,
    points: &'s [Point],
    /// Runs of earlier rounds.
    before: usize,
    counter: Counter,
    /// Runs that have ended, and those of them that were taken from the store.
    ended: usize,
    taken: usize,
    /// The columns, known from the first run that has metrics.
    view: Option<(View, Vec<usize>)>,
    /// Whether it was told what the first run lacks.
    told: bool,
}

impl<'s> Live<'s> {
    /// An empty table of a round's runs, behind those of `before`.
    pub(crate) fn new(sweep: &'s Sweep, points: &'s [Point], before: usize) -> Live<'s> {
        Live { sweep, points, before, counter: Counter::new(), ended: 0, taken: 0, view: None, told: false }
    }

    /// A run has ended; `made` unless it was taken from the store.
    fn ended(&mut self, number: usize, outcome: &Outcome, made: bool) {
        if !self.counter.bar().is_hidden() {
            self.lines(number, outcome).into_iter().for_each(|line| self.counter.bar().println(line));
        }
        if matches!(outcome, Outcome::Done(_)) && !std::mem::replace(&mut self.told, true) {
            self.tell_what_lacks(number, outcome);
        }
        self.ended += 1;
        self.taken += usize::from(!made);
        if !made {
            // What costs nothing says nothing about the rest.
            self.counter.bar().reset_eta();
        }
        self.counter.show(self.ended, self.points.len(), self.taken);
    }

    /// A metric that the first run lacks may be misspelt, and others may lack it as well: who waits for them should know.
    fn tell_what_lacks(&self, number: usize, outcome: &Outcome) {
        for (at, name) in self.sweep.named().iter().enumerate() {
            if !outcome.has(at) {
                self.counter
                    .bar()
                    .suspend(|| tell!("note: run {} has no metric `{name}`", self.before + number));
            }
        }
    }

    /// The lines that a run adds.
    fn lines(&mut self, number: usize, outcome: &Outcome) -> Vec<String> {
        let mut lines = Vec::new();
        if self.view.is_none() && matches!(outcome, Outcome::Done(_)) {
            let view = View::new(self.sweep, self.points, std::iter::once(outcome));
            let widths = self.widths(&view);
            lines.extend(view.legend().lines().map(str::to_owned));
            lines.push(aligned(view.header(), &widths));
            self.view = Some((view, widths));
        }
        lines.push(match &self.view {
            Some((view, widths)) => {
                aligned(&view.row(self.before + number, &self.points[number], outcome), widths)
            }
            None => format!("run {} failed", self.before + number),
        });
        lines
    }

    /// Widths for all labels, and for metrics as they usually are.
    fn widths(&self, view: &View) -> Vec<usize> {
        let mut widths: Vec<usize> = view.header().iter().map(|head| head.chars().count()).collect();
        let mut labels = 0;
        for (number, point) in self.points.iter().enumerate() {
            let cells = view.labels(self.before + number, point);
            labels = cells.len();
            for (width, cell) in widths.iter_mut().zip(&cells) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths[labels..].iter_mut().for_each(|width| *width = METRIC.max(*width));
        widths
    }

    /// Takes the bar away; what was printed stays.
    pub(crate) fn end(&self) {
        self.counter.end();
    }
}

// Metrics of a sweep's file that no run can have, and those that none has had.

/// Refuses what the document of no run whatever has.
///
/// # Errors
/// The first such metric.
fn refuse_unknown(names: &[String], resolved: &Resolved) -> Result<(), Diagnostic> {
    names
        .iter()
        .enumerate()
        .try_for_each(|(at, name)| refuse_unknown_at(name, &format!("metrics.{at}"), resolved))
}

/// As [`refuse_unknown`], of a metric that stands somewhere in the file.
///
/// # Errors
/// No result has it.
fn refuse_unknown_at(name: &str, place: &str, resolved: &Resolved) -> Result<(), Diagnostic> {
    let known = metrics::all();
    if known.iter().any(|metric| metrics::is_instance(metric, name)) {
        return Ok(());
    }
    let mut fault = resolved.diagnose(place, format!("no metric `{name}`"));
    let help = "`nandscape explain NAME` finds metrics; docs/metrics.md has all";
    if let Some(meant) = known.iter().find_map(|metric| metrics::with_indices(metric, name)) {
        fault.what += ": a list's element is called by its number";
        fault.nearest = Some(meant);
        return Err(fault.help(help));
    }
    fault = fault.allowed(name, known.iter().map(|metric| metric.key.replace('*', "0")));
    fault.allowed.clear();
    Err(fault.help(help).pointed(name))
}

/// The unit of a metric.
fn unit_of(name: &str) -> Option<&'static str> {
    metrics::all().into_iter().find(|metric| metrics::is_instance(metric, name)).map(|metric| metric.unit)
}

/// Refuses metrics of parts that no run has, of which there are at most so many of a kind.
///
/// # Errors
/// The first such metric.
fn refuse_absent_parts(sweep: &Sweep, most: impl Fn(Kind) -> usize) -> Result<(), Diagnostic> {
    for (at, name) in sweep.named().iter().enumerate() {
        let mut parts = name.split('.');
        let (head, number) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let kind = Kind::ALL.iter().find(|kind| kind.name() == head);
        let (Some(kind), Ok(number)) = (kind, number.parse::<usize>()) else { continue };
        let count = most(*kind);
        if number < count {
            continue;
        }
        let has = match count {
            0 => format!("has no `{}`", kind.name()),
            1 => format!("has one `{}`, number 0", kind.name()),
            _ => format!("has {count} of `{}`, numbers 0 to {}", kind.name(), count - 1),
        };
        let what = format!("no run can have the metric `{name}`: the system {has}");
        let mut fault = sweep.diagnose_metric(at, what).help("docs/metrics.md has all metrics");
        fault.nearest =
            (count > 0).then(|| [head, "0"].into_iter().chain(parts).collect::<Vec<_>>().join("."));
        return Err(fault);
    }
    Ok(())
}

/// Refuses metrics that no run has had, once that is known: all have ended, or one has and all are alike.
///
/// # Errors
/// The first such metric.
pub(crate) fn refuse_absent(sweep: &Sweep, outcomes: &[Outcome], store: &Store) -> Result<(), Diagnostic> {
    let is_known = sweep.is_alike() || !outcomes.iter().any(|outcome| matches!(outcome, Outcome::NotRun));
    let run = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Done(run) => Some(run),
        _ => None,
    });
    let (Some(run), true) = (run, is_known) else { return Ok(()) };
    let lacking = (0..sweep.named().len()).find(|at| outcomes.iter().all(|outcome| !outcome.has(*at)));
    let Some(at) = lacking else { return Ok(()) };
    let name = &sweep.metrics[at];
    let mut keys = Vec::new();
    leaves("", &store.document(&run.key).unwrap_or_default(), &mut keys);
    let mut fault = sweep.diagnose_metric(at, format!("no run has the metric `{name}`")).allowed(name, keys);
    fault.allowed.clear();
    Err(fault.help("the documents of runs have all that there is; docs/metrics.md says what each is"))
}

/// The keys of a document that are figures or texts.
fn leaves(key: &str, value: &Value, found: &mut Vec<String>) {
    let below = |part: &str| if key.is_empty() { part.to_owned() } else { format!("{key}.{part}") };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| leaves(&below(name), value, found)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| leaves(&below(&at.to_string()), value, found));
        }
        _ => found.push(key.to_owned()),
    }
}
