//! Running the points of a sweep, several at a time. Each run has one thread and shares nothing: what it finds does
//! not depend on how many run beside it.

use super::point::Point;
use super::store::Store;
use crate::outside::{Clocks, STOP, peak_rss};
use config::Diagnostic;
use indicatif::ProgressBar;
use machine::result::Document;
use machine::run::{Outside, Plan, run};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What became of a point.
pub(crate) enum Outcome {
    /// It ran, now or earlier.
    Done {
        /// Its name in the store.
        key: String,
        /// The result document.
        document: Value,
    },
    /// It cannot run.
    Failed(Diagnostic),
    /// An interrupt came first.
    NotRun,
}

impl Outcome {
    /// Whether it ran and all its checks passed.
    pub(crate) fn is_well(&self) -> bool {
        matches!(self, Outcome::Done { document, .. } if document.get("ok") == Some(&Value::Bool(true)))
    }
}

/// Runs every point on `jobs` threads. With `resume`, what is in the store is taken from there.
pub(crate) fn run_all(
    points: &[Point],
    store: &Store,
    jobs: usize,
    resume: bool,
    bar: &ProgressBar,
) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Outcome>> = Mutex::new(points.iter().map(|_| Outcome::NotRun).collect());
    let work = || {
        while !STOP.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(point) = points.get(at) else { return };
            let outcome = outcome(&point.plan, store, resume).unwrap_or_else(Outcome::Failed);
            outcomes.lock().unwrap_or_else(PoisonError::into_inner)[at] = outcome;
            bar.inc(1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(points.len()) {
            scope.spawn(work);
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn outcome(plan: &Plan, store: &Store, resume: bool) -> Result<Outcome, Diagnostic> {
    let key = store.key(plan)?;
    if resume && let Some(document) = store.load(&key) {
        return Ok(Outcome::Done { key, document });
    }
    let document = simulate(plan)?;
    if document.partial && !document.is_stuck() {
        return Ok(Outcome::NotRun);
    }
    let text = document.to_json();
    store.save(&key, &text)?;
    // Read back, so that a run that is resumed and one that is made give the same table.
    let document = serde_json::from_str(&text)
        .map_err(|fault| Diagnostic::new(format!("the result document is not JSON: {fault}")))?;
    Ok(Outcome::Done { key, document })
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
