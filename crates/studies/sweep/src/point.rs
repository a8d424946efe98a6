//! The runs of a sweep, and what became of them.

use super::axes::{Key, assignment, option_text};
use super::file::Sweep;
use super::jobs::with_options;
use config::Diagnostic;
use machine::run::Plan;
use serde_json::Value;

/// A run by the numbers of its values.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Cell {
    /// Of the systems.
    pub(crate) system: usize,
    /// Of the workloads.
    pub(crate) workload: usize,
    /// Of the values of each axis.
    pub(crate) steps: Vec<usize>,
    /// Of the values that a search chooses from.
    pub(crate) sought: Option<u64>,
    /// Of the seeds.
    pub(crate) seed: usize,
}

/// One run.
#[derive(Clone)]
pub struct Point {
    /// Where it is among all.
    pub(crate) cell: Cell,
    /// What distinguishes it, by column of the table.
    pub labels: Vec<Value>,
    /// The run.
    pub plan: Plan,
}

/// The columns of [`Point::labels`].
pub fn columns(sweep: &Sweep) -> Vec<String> {
    let axes = sweep.axes.iter().flat_map(|axis| &axis.keys);
    let keys = axes.chain(sweep.search.iter().map(|search| &search.key)).map(Key::column);
    let system = sweep.has_systems.then(|| "system".to_owned());
    system.into_iter().chain(["workload".to_owned()]).chain(keys).chain(["seed".to_owned()]).collect()
}

/// Every combination: systems, workloads, then the axes in order, then seeds; the last changes fastest.
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

/// The next combination; false after the last.
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

/// What a combination sets.
pub(super) fn settings(sweep: &Sweep, cell: &Cell) -> Vec<(Key, toml::Value)> {
    let axes = sweep.axes.iter().zip(&cell.steps).flat_map(|(axis, step)| axis.settings(*step));
    let mut all: Vec<(Key, toml::Value)> = axes.map(|(key, value)| (key.clone(), value.clone())).collect();
    if let (Some(search), Some(sought)) = (&sweep.search, cell.sought) {
        all.push((search.key.clone(), search.values.at(sought)));
    }
    all
}

/// The options that a combination puts on its workloads.
fn options(settings: &[(Key, toml::Value)]) -> Vec<(&str, String)> {
    settings.iter().filter_map(|(key, value)| Some((key.option()?, option_text(value)?))).collect()
}

/// The run of a combination; without its workloads, its system alone.
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

/// The run of a combination, with what distinguishes it.
pub(crate) fn point(sweep: &Sweep, cell: Cell) -> Point {
    let plan = plan(sweep, &cell, true);
    let settings = settings(sweep, &cell);
    let mut labels: Vec<Value> = sweep.has_systems.then(|| plan.system.clone().into()).into_iter().collect();
    labels.push(name_of_workload(sweep, &cell).into());
    labels.extend(settings.iter().map(|(_, value)| label(value)));
    labels.push(plan.seed.into());
    Point { cell, labels, plan }
}

/// The workloads of a run, with the options that all runs have.
fn name_of_workload(sweep: &Sweep, cell: &Cell) -> String {
    let fixed = sweep.axes.iter().filter(|axis| axis.rows.len() == 1).flat_map(|axis| axis.settings(0));
    let fixed: Vec<(Key, toml::Value)> = fixed.map(|(key, value)| (key.clone(), value.clone())).collect();
    let options = options(&fixed);
    let texts = sweep.workloads[cell.workload].iter().map(|text| with_options(text, &options));
    texts.collect::<Vec<_>>().join(" + ")
}

/// A value of an axis; what is no number, truth value or text is TOML.
pub(super) fn label(value: &toml::Value) -> Value {
    match value {
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::String(text) => text.clone().into(),
        other => other.to_string().into(),
    }
}

/// What became of a point.
pub enum Outcome {
    /// It ran, now or earlier.
    Done(Ran),
    /// It cannot run.
    Failed(Diagnostic),
    /// An interrupt came first.
    NotRun,
}

/// What the tables need of a result document. The documents themselves lie in the store: a sweep of any length fits memory.
pub struct Ran {
    /// Its name in the store.
    pub(crate) key: String,
    /// Whether all its checks passed.
    pub well: bool,
    /// The sweep's metrics; none where the run has none of the name.
    metrics: Vec<Option<Value>>,
    /// The resolved spec as JSON.
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
    /// Whether it ran and all its checks passed.
    pub fn is_well(&self) -> bool {
        matches!(self, Outcome::Done(run) if run.well)
    }

    /// The `at`th of the sweep's metrics.
    pub fn metric(&self, at: usize) -> &Value {
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
    pub fn has(&self, at: usize) -> bool {
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
