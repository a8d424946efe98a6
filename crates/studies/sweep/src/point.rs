//! Runs of a sweep and their outcomes.

use super::axes::{Key, assignment, option_text};
use super::file::Sweep;
use super::jobs::with_options;
use config::Diagnostic;
use machine::run::Plan;
use serde_json::Value;

/// Run, by the indices of its values.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Cell {
    /// Index of the system.
    pub(crate) system: usize,
    /// Index of the workload.
    pub(crate) workload: usize,
    /// Index of the value on each axis.
    pub(crate) steps: Vec<usize>,
    /// Index of the value chosen by a search.
    pub(crate) sought: Option<u64>,
    /// Index of the seed.
    pub(crate) seed: usize,
}

/// Run with its labels and plan.
#[derive(Clone)]
pub struct Point {
    /// Position among all combinations.
    pub(crate) cell: Cell,
    /// Values that distinguish the run, by column of the table.
    pub labels: Vec<Value>,
    /// Plan of the run.
    pub plan: Plan,
}

/// Columns of [`Point::labels`].
pub fn columns(sweep: &Sweep) -> Vec<String> {
    let axes = sweep.axes.iter().flat_map(|axis| &axis.keys);
    let keys = axes.chain(sweep.search.iter().map(|search| &search.key)).map(Key::column);
    let system = sweep.has_systems.then(|| "system".to_owned());
    system.into_iter().chain(["workload".to_owned()]).chain(keys).chain(["seed".to_owned()]).collect()
}

/// All combinations: systems, workloads, then the axes in order, then seeds; the last changes fastest.
pub(crate) fn cells(sweep: &Sweep) -> Vec<Cell> {
    let mut cells = Vec::new();
    for system in 0..sweep.systems.len() {
        for workload in 0..sweep.workloads.len() {
            let mut steps = vec![0; sweep.axes.len()];
            loop {
                let of_seed = |seed| Cell { system, workload, steps: steps.clone(), sought: None, seed };
                cells.extend((0..sweep.seeds.len()).map(of_seed));
                if !advance(sweep, &mut steps) {
                    break;
                }
            }
        }
    }
    cells
}

/// Advances to the next combination; returns false after the last.
pub(super) fn advance(sweep: &Sweep, steps: &mut [usize]) -> bool {
    for (step, axis) in steps.iter_mut().zip(&sweep.axes).rev() {
        *step += 1;
        if *step < axis.rows.len() {
            return true;
        }
        *step = 0;
    }
    false
}

/// Keys and values set by a combination.
pub(super) fn settings(sweep: &Sweep, cell: &Cell) -> Vec<(Key, toml::Value)> {
    let axes = sweep.axes.iter().zip(&cell.steps).flat_map(|(axis, step)| axis.settings(*step));
    let mut all: Vec<(Key, toml::Value)> = axes.map(|(key, value)| (key.clone(), value.clone())).collect();
    if let (Some(search), Some(sought)) = (&sweep.search, cell.sought) {
        all.push((search.key.clone(), search.values.at(sought)));
    }
    all
}

/// Options that a combination adds to its workloads.
fn options(settings: &[(Key, toml::Value)]) -> Vec<(&str, String)> {
    settings.iter().filter_map(|(key, value)| Some((key.option()?, option_text(value)?))).collect()
}

/// Plan of a combination; without its workloads, only its system.
pub(super) fn plan(sweep: &Sweep, cell: &Cell, has_workloads: bool) -> Plan {
    let settings = settings(sweep, cell);
    let workloads = if has_workloads { sweep.workloads[cell.workload].as_slice() } else { &[] };
    Plan {
        system: sweep.systems[cell.system].clone(),
        text: None,
        set: settings.iter().filter_map(|(key, value)| assignment((key, value))).collect(),
        workloads: workloads.iter().map(|text| with_options(text, &options(&settings))).collect(),
        seed: sweep.seeds.get(cell.seed).copied().unwrap_or(1),
        precondition: None,
        warmup: sweep.warmup,
        trace: sweep.trace.clone(),
        queue_depth: sweep.queue_depth,
    }
}

/// Run of a combination, with its labels.
pub(crate) fn point(sweep: &Sweep, cell: Cell) -> Point {
    let plan = plan(sweep, &cell, true);
    let settings = settings(sweep, &cell);
    let mut labels: Vec<Value> = sweep.has_systems.then(|| plan.system.clone().into()).into_iter().collect();
    labels.push(name_of_workload(sweep, &cell).into());
    labels.extend(settings.iter().map(|(_, value)| label(value)));
    labels.push(plan.seed.into());
    Point { cell, labels, plan }
}

/// Workloads of a run, with the options that all runs have.
fn name_of_workload(sweep: &Sweep, cell: &Cell) -> String {
    let fixed = sweep.axes.iter().filter(|axis| axis.rows.len() == 1).flat_map(|axis| axis.settings(0));
    let fixed: Vec<(Key, toml::Value)> = fixed.map(|(key, value)| (key.clone(), value.clone())).collect();
    let options = options(&fixed);
    let texts = sweep.workloads[cell.workload].iter().map(|text| with_options(text, &options));
    texts.collect::<Vec<_>>().join(" + ")
}

/// Label of an axis value; anything but a number, bool or string becomes TOML text.
pub(super) fn label(value: &toml::Value) -> Value {
    match value {
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::String(text) => text.clone().into(),
        other => other.to_string().into(),
    }
}

/// Outcome of a point.
pub enum Outcome {
    /// The run ended, now or earlier.
    Done(Ran),
    /// The run failed.
    Failed(Diagnostic),
    /// An interrupt came first.
    NotRun,
}

/// Part of a result document that the tables need. The documents stay in the store, so that a sweep of any length fits
/// memory.
pub struct Ran {
    /// Key of the document in the store.
    pub(crate) key: String,
    /// True if all its checks passed.
    pub well: bool,
    /// Metrics of the sweep; `None` where the run lacks one.
    metrics: Vec<Option<Value>>,
    /// Resolved spec as JSON.
    pub(crate) config: String,
}

impl Ran {
    pub(super) fn new(key: String, document: &Value, metrics: &[String]) -> Ran {
        Ran {
            key,
            well: document.get("ok") == Some(&Value::Bool(true)),
            metrics: metrics.iter().map(|name| metric(document, name)).collect(),
            config: document.get("spec").map(Value::to_string).unwrap_or_default(),
        }
    }
}

impl Outcome {
    /// Returns whether it ran and all its checks passed.
    pub fn is_well(&self) -> bool {
        matches!(self, Outcome::Done(run) if run.well)
    }

    /// Value of the `at`th metric of the sweep.
    pub fn metric(&self, at: usize) -> &Value {
        match self {
            Outcome::Done(run) => run.metrics[at].as_ref().unwrap_or(&Value::Null),
            _ => &Value::Null,
        }
    }

    /// Number of the `at`th metric of the sweep, if it is a number.
    pub(crate) fn number(&self, at: usize) -> Option<f64> {
        self.metric(at).as_f64()
    }

    /// Returns whether it ran and has the `at`th metric of the sweep, even if null.
    pub fn has(&self, at: usize) -> bool {
        matches!(self, Outcome::Done(run) if run.metrics[at].is_some())
    }
}

/// Metric of a document, such as `io.read.latency_ns.p99`.
pub(crate) fn metric(document: &Value, name: &str) -> Option<Value> {
    let found = name.split('.').try_fold(document, |at, part| match at {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    });
    found.cloned()
}
