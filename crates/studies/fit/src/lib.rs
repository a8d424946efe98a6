//! Fits a drive to measurements: a few metrics choose a few values, one each, and all other measurements are compared
//! with the fitted drive. The machine itself is simulated, instead of a formula.
//!
//! Few points leave much open: a saturated read does not tell whose limit it is, nor an idle one whose time. Other
//! drives meet the same metrics too (`reading`), and differences between their predictions are printed as the range of
//! the predictions.
//!
//! * Knows values of a drive that a measurement can choose.
//! * Does not know any measured drive: points come from the caller.
//! * Read first: `choose/mod.rs`; then `base.rs`.

mod base;
mod choose;
mod job;
mod knob;
mod point;
mod reading;
mod report;
mod search;
mod table;

pub use job::{Figures, Job, Measure};

pub use point::Point;
pub use report::{Fit, Other, Prediction, Row, Value, factor};

use base::{Base, Bench};
use choose::{Chosen, all_met, assignments, solve};
use config::Diagnostic;
use machine::state::States;
use reading::{Reading, readings};
use report::{Asked, BLOCK, Seen, grid, predictions, rows};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Input of a fit.
pub struct Request<'a> {
    /// System that the fit starts from.
    pub like: &'a str,
    /// Known overrides: geometry, link, cell.
    pub set: &'a [String],
    /// Measured points.
    pub points: Vec<Point>,
    /// True if the program time is fitted too, from the largest sequential writes.
    pub program: bool,
    /// Seed of the runs.
    pub seed: u64,
    /// Number of parallel runs. Results do not depend on it.
    pub jobs: usize,
    /// Stop flag.
    pub stop: &'a AtomicBool,
    /// Drive states that runs share.
    pub states: Option<&'a (dyn States + Sync)>,
    /// Callback after each run, with the number of runs so far and the approximate total.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// Fits a drive to the points.
///
/// # Errors
/// The system has no drive with queues; the points cannot choose a value, are not of an SSD, or are of several drives;
/// or the fit is interrupted.
pub fn fit(request: &Request<'_>) -> Result<Fit, Diagnostic> {
    let loaded = machine::load(request.like, request.set)?;
    let base = Base::of(&loaded, request.like)?;
    let points = merged(&request.points)?;
    let chosen = choose::choose(&points, &base, request.program, base.thread > 0.0)?;
    let bench = Bench {
        like: request.like,
        set: request.set,
        base: &base,
        seed: request.seed,
        stop: request.stop,
        states: request.states,
        runs: AtomicU64::new(0),
        about: about(&chosen, &points),
        progress: request.progress,
    };
    let fixed = chosen.fixed(&base);
    let found = solve(&bench, &fixed, &chosen.targets)?;
    let values = [fixed.clone(), assignments(&bench, &found)].concat();
    let run = |point: &Point| bench.run(&values, &point.job, point.worn);
    let documents = all(&points, request.jobs, run)?;
    let predicts = |point: &Point| point.job.in_flight() <= base.queue && !chosen.is_all_fitted(point);
    let grid = grid(&base, points.iter().map(|point| point.job.block).min().unwrap_or(BLOCK));
    let predict = |values: &[String], asked: &Asked| bench.figure(values, &asked.job, false, asked.measure);
    let predicted = all(&grid, request.jobs, |asked| predict(&values, asked))?;
    let read = |reading: &Reading| {
        // The knob of a reading comes last, and is kept.
        let set = [fixed.clone(), reading.set.clone()].concat();
        let found = solve(&bench, &set, &reading.targets)?;
        let values = [set, assignments(&bench, &found)].concat();
        let is_met = all_met(&found);
        let (mut predicted, mut seen) = (Vec::new(), Vec::new());
        if is_met {
            predicted = grid.iter().map(|asked| predict(&values, asked)).collect::<Result<_, _>>()?;
            let look = |point: &Point| {
                let document =
                    predicts(point).then(|| bench.run(&values, &point.job, point.worn)).transpose()?;
                Ok::<_, Diagnostic>(Seen::of(document.as_ref(), &point.job))
            };
            seen = points.iter().map(look).collect::<Result<_, _>>()?;
        }
        Ok(Other { name: reading.name.to_owned(), values, is_met, predicted, seen })
    };
    let others = all(&readings(&chosen, &base), request.jobs, read)?;
    Ok(Fit {
        like: request.like.to_owned(),
        set: request.set.to_vec(),
        values: Value::all(&chosen, &found, &base),
        points: rows(&points, &documents, &chosen, &others, &base),
        predictions: predictions(&grid, &predicted, &others, &chosen),
        readings: others,
        notes: chosen.notes,
        runs: bench.runs.into_inner(),
    })
}

/// Approximate number of runs.
fn about(chosen: &Chosen, points: &[Point]) -> u64 {
    const LOOKS: usize = 8;
    const GRID: usize = 9;
    const READINGS: usize = 4;
    let one = LOOKS * chosen.targets.len() + GRID;
    (points.len() + one + READINGS * (points.len() + one)) as u64
}

/// Maximum ratio between repetitions of a job on one drive: those of one state are within tens of per cent.
const APART: f64 = 1.5;

/// Merges points of one job: their metrics are means over the points that have them.
///
/// # Errors
/// Means of latency or rates differ too much for one drive in one state.
fn merged(points: &[Point]) -> Result<Vec<Point>, Diagnostic> {
    let mut all: Vec<(Point, Vec<&Point>)> = Vec::new();
    for point in points {
        match all.iter_mut().find(|(of, _)| (of.job, of.worn, of.held) == (point.job, point.worn, point.held))
        {
            Some((_, of)) => of.push(point),
            None => all.push((point.clone(), vec![point])),
        }
    }
    for (_, of) in &all {
        refuse_apart(of, "IOPS", &|figures| figures.iops)?;
        refuse_apart(of, "us", &|figures| figures.mean)?;
    }
    let mean = |of: &[&Point], figure: &dyn Fn(&Point) -> Option<f64>| {
        let found: Vec<f64> = of.iter().filter_map(|point| figure(point)).collect();
        (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
    };
    let one = |(point, of): (Point, Vec<&Point>)| {
        let more = if of.len() > 1 { format!(" and {} more", of.len() - 1) } else { String::new() };
        Point {
            figures: Figures {
                iops: mean(&of, &|p| p.figures.iops),
                mean: mean(&of, &|p| p.figures.mean),
                p99: mean(&of, &|p| p.figures.p99),
                p99_9: mean(&of, &|p| p.figures.p99_9),
                p99_999: mean(&of, &|p| p.figures.p99_999),
            },
            busy: mean(&of, &|p| p.busy),
            place: format!("{}{more}", point.place),
            ..point
        }
    };
    Ok(all.into_iter().map(one).collect())
}

fn refuse_apart(
    points: &[&Point],
    unit: &str,
    figure: &dyn Fn(&Figures) -> Option<f64>,
) -> Result<(), Diagnostic> {
    let of = |point: &&Point| Some((figure(&point.figures)?, point.place.clone()));
    let mut found: Vec<(f64, String)> = points.iter().filter_map(of).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some((least, at_least)), Some((most, at_most))) = (found.first(), found.last()) else {
        return Ok(());
    };
    if *most <= least * APART {
        return Ok(());
    }
    let job = points.first().map(|point| point.job.to_string()).unwrap_or_default();
    let what = format!("{job} has {least:.4} {unit} ({at_least}) and {most:.4} {unit} ({at_most})");
    Err(Diagnostic::new(format!("{what}: these are not from one drive in one state")).help(format!(
        "repetitions are averaged, and may differ by a factor of {APART}; fit one drive at a time, and mark points of a drive that had been written over as `worn`"
    )))
}

/// Runs tasks on up to `jobs` threads; returns their results in order, or the first error in that order.
fn all<T: Sync, R: Send>(
    tasks: &[T],
    jobs: usize,
    task: impl Fn(&T) -> Result<R, Diagnostic> + Sync,
) -> Result<Vec<R>, Diagnostic> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = tasks.get(at) else { break };
            let result = task(one);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.clamp(1, tasks.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
