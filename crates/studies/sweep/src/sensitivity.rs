//! How far each key of a spec moves a metric: one key at a time, smaller and larger.

use super::point::metric;
use super::worker::simulate;
use config::Diagnostic;
use machine::plan::nearby::Nearby;
use machine::result::Document;
use machine::run::Plan;
use machine::state::States;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A key has an effect if it moves the metric by this share: *chosen*, above the scatter of one seed's events.
const MOVES: f64 = 0.005;

/// A metric's sensitivity to the keys of a spec.
#[derive(Debug, Serialize)]
pub struct Sensitivity {
    /// The metric's key in the result document.
    pub metric: String,
    /// The metric's unit.
    pub unit: &'static str,
    /// The metric of the machine as it is.
    pub base: f64,
    /// Keys with both neighbours, the one with the widest effect first.
    pub effects: Vec<Effect>,
    /// True if an interrupt came before every run was made.
    pub partial: bool,
}

/// Effect of one key.
#[derive(Debug, Serialize)]
pub struct Effect {
    /// The key with its values.
    #[serde(flatten)]
    pub key: Nearby,
    /// The metric with the smaller value.
    pub with_less: Side,
    /// The metric with the larger value.
    pub with_more: Side,
}

/// A metric with one value changed.
#[derive(Debug, Default, Serialize)]
pub struct Side {
    /// The metric; none if the value was not tried or has no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// (value - base) / |base|.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
    /// Reason why the machine cannot run with the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Effect {
    /// The larger relative change of the two directions, without sign.
    pub fn width(&self) -> f64 {
        let of = |side: &Side| side.relative.unwrap_or(0.0).abs();
        of(&self.with_less).max(of(&self.with_more))
    }

    /// Returns whether the key moves the metric.
    pub fn moves(&self) -> bool {
        self.width() >= MOVES
    }

    /// Returns the reason why no value next to the key's can be run; none if one can.
    pub fn refused(&self) -> Option<&str> {
        let sides = [&self.with_less, &self.with_more];
        let is_known = sides.iter().any(|side| side.value.is_some());
        sides.into_iter().find_map(|side| side.refused.as_deref()).filter(|_| !is_known)
    }
}

/// The plans that an analysis runs: the machine as it is, then each key with its smaller and its larger value.
pub fn plans(plan: &Plan, keys: &[Nearby]) -> Vec<Plan> {
    let with = |key: &str, value: &str| {
        let mut plan = plan.clone();
        plan.set.push(format!("{key}={value}"));
        plan
    };
    let sides = keys.iter().flat_map(|one| [&one.less, &one.more].map(|side| (one, side)));
    let changed = sides.filter_map(|(one, side)| Some(with(&one.key, side.as_deref()?)));
    std::iter::once(plan.clone()).chain(changed).collect()
}

/// Runs the machine and its neighbours, `jobs` at a time, and orders the keys by their effect on `metric`. `tell` gets the number of
/// runs that have ended. An interrupt by `stop` leaves out the runs not yet made.
///
/// # Errors
/// A machine that cannot be run as it is, or whose result lacks the metric.
pub fn sensitivity(
    plan: &Plan,
    keys: Vec<Nearby>,
    metric: &str,
    jobs: usize,
    states: Option<&(dyn States + Sync)>,
    stop: &AtomicBool,
    tell: &(dyn Fn(usize) + Sync),
) -> Result<Sensitivity, Diagnostic> {
    let plans = plans(plan, &keys);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found: Mutex<Vec<Option<Result<f64, Diagnostic>>>> = Mutex::new(plans.iter().map(|_| None).collect());
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(plan) = plans.get(at) else { return };
            let Some(ended) = one(plan, metric, states, stop).transpose() else { return };
            let failed_first = at == 0 && ended.is_err();
            found.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(ended);
            tell(done.fetch_add(1, Ordering::Relaxed) + 1);
            if failed_first {
                next.store(plans.len(), Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, plans.len()) {
            scope.spawn(work);
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter();
    let interrupted =
        || Diagnostic::new("interrupted before the unchanged machine had run: no result to compare with");
    let base = found.next().flatten().ok_or_else(interrupted)??;
    let mut partial = false;
    let mut side = |wanted: &Option<String>| match wanted.as_ref().map(|_| found.next().flatten()) {
        None => Side::default(),
        Some(None) => {
            partial = true;
            Side::default()
        }
        Some(Some(Err(fault))) => Side { refused: Some(fault.one_line()), ..Side::default() },
        Some(Some(Ok(value))) => {
            let relative = (base != 0.0).then(|| (value - base) / base.abs());
            Side { value: Some(value), relative, refused: None }
        }
    };
    let mut effects: Vec<Effect> = keys
        .into_iter()
        .map(|key| Effect { with_less: side(&key.less), with_more: side(&key.more), key })
        .collect();
    effects.sort_by(|a, b| b.width().total_cmp(&a.width()));
    let unit = super::validate::unit_of(metric).unwrap_or_default();
    Ok(Sensitivity { metric: metric.to_owned(), unit, base, effects, partial })
}

/// The metric of a run; none if it was interrupted.
fn one(
    plan: &Plan,
    metric: &str,
    states: Option<&(dyn States + Sync)>,
    stop: &AtomicBool,
) -> Result<Option<f64>, Diagnostic> {
    let Some(document) = simulate(plan, states.map(|states| states as &dyn States), stop)? else {
        return Ok(None);
    };
    if let Some(check) = document.checks.iter().find(|check| !check.ok) {
        return Err(Diagnostic::new(format!("a check of the run failed: {}", check.name)));
    }
    number(&document, metric).map(Some).ok_or_else(|| {
        Diagnostic::new(format!("the run has no number `{metric}`"))
            .help("docs/metrics.md says which runs have it")
    })
}

fn number(document: &Document, name: &str) -> Option<f64> {
    // Text and numbers: serialising cannot fail.
    metric(&serde_json::to_value(document).unwrap_or_default(), name)?.as_f64()
}
