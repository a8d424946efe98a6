//! Running the points of a sweep, several at a time. Each run has one thread and shares nothing: what it finds does
//! not depend on how many run beside it.

use super::live::Live;
use super::point::Point;
use super::store::Store;
use crate::outside::{Clocks, STOP, peak_rss};
use config::Diagnostic;
use machine::result::Document;
use machine::run::{Outside, Plan, run};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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
    /// The sweep's metrics; null where the run has none of the name.
    pub(crate) metrics: Vec<Value>,
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
    pub(super) fn metric(&self, at: usize) -> &Value {
        match self {
            Outcome::Done(run) => &run.metrics[at],
            _ => &Value::Null,
        }
    }
}

/// `io.read.latency_ns.p99` of a document.
fn metric(document: &Value, name: &str) -> Value {
    let found = name.split('.').try_fold(document, |at, part| match at {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    });
    found.cloned().unwrap_or_default()
}

/// How a sweep is run.
pub(crate) struct Work<'w> {
    /// Where documents are kept.
    pub(crate) store: &'w Store,
    /// Runs at a time.
    pub(crate) jobs: usize,
    /// Whether what is in the store is taken from there.
    pub(crate) resume: bool,
    /// Names of the metrics.
    pub(crate) metrics: &'w [String],
    /// Told of every run that has ended.
    pub(crate) live: &'w Live<'w>,
}

/// Runs every point. A run that has ended is in the store before another begins on its thread.
pub(crate) fn run_all(points: &[Point], work: &Work<'_>) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Outcome>> = Mutex::new(points.iter().map(|_| Outcome::NotRun).collect());
    let thread = || {
        while !STOP.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(point) = points.get(at) else { return };
            let (outcome, made) =
                outcome(&point.plan, work).unwrap_or_else(|why| (Outcome::Failed(why), true));
            if !matches!(outcome, Outcome::NotRun) {
                work.live.ended(at, &outcome, made);
            }
            outcomes.lock().unwrap_or_else(PoisonError::into_inner)[at] = outcome;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..work.jobs.min(points.len()) {
            scope.spawn(thread);
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What becomes of a plan, and whether it was run for it.
fn outcome(plan: &Plan, work: &Work<'_>) -> Result<(Outcome, bool), Diagnostic> {
    let key = work.store.key(plan)?;
    if work.resume
        && let Some(document) = work.store.load(&key)
    {
        return Ok((Outcome::Done(Ran::new(key, &document, work.metrics)), false));
    }
    let document = simulate(plan)?;
    if document.partial && !document.is_stuck() {
        return Ok((Outcome::NotRun, true));
    }
    let text = document.to_json();
    work.store.save(&key, &text)?;
    // Read back, so that a run that is resumed and one that is made give the same table.
    let document = serde_json::from_str(&text)
        .map_err(|fault| Diagnostic::new(format!("the result document is not JSON: {fault}")))?;
    Ok((Outcome::Done(Ran::new(key, &document, work.metrics)), true))
}

fn simulate(plan: &Plan) -> Result<Document, Diagnostic> {
    let clocks = Clocks::start();
    let mut outside = Outside {
        cpu_s: &|| clocks.cpu_s(),
        wall_s: &|| clocks.wall_s(),
        peak_rss: &peak_rss,
        stop: &STOP,
        watch: &mut |_| {},
    };
    run(plan, &mut outside)
}
