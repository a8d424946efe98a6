//! A drive fitted to what was measured of it: a few figures choose a few values, one each, and everything else that was measured is held against
//! what the fitted drive does. The machine itself is asked, not a formula.
//!
//! Few points leave much open: a saturated read does not say whose limit it is, nor an idle one whose time. So the same figures are met by other
//! drives too (`reading`), and what those predict differently is printed as the spread of the predictions.
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

/// What to fit.
pub struct Request<'a> {
    /// The system that the fit begins with.
    pub like: &'a str,
    /// Changes of it that are known: geometry, link, cell.
    pub set: &'a [String],
    /// What was measured.
    pub points: Vec<Point>,
    /// Whether programs are fitted too, by the largest writes in order.
    pub program: bool,
    /// The runs' seed.
    pub seed: u64,
    /// Runs at once, where they do not wait for each other. Results do not depend on it.
    pub jobs: usize,
    /// Set to give up.
    pub stop: &'a AtomicBool,
    /// States of drives that runs share.
    pub states: Option<&'a (dyn States + Sync)>,
    /// Told after each run how many there were, and how many there will be, about.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// Fits.
///
/// # Errors
/// A system without a drive that has queues; points that cannot choose anything, or are of no SSD, or of several drives; an end before its time.
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
        // What a reading looks for comes last, and holds.
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

/// How many runs there will be, about.
fn about(chosen: &Chosen, points: &[Point]) -> u64 {
    const LOOKS: usize = 8;
    const GRID: usize = 9;
    const READINGS: usize = 4;
    let one = LOOKS * chosen.targets.len() + GRID;
    (points.len() + one + READINGS * (points.len() + one)) as u64
}

/// How far repetitions of a job on one drive may be apart, the most over the least: those of one state are within tens of per cent.
const APART: f64 = 1.5;

/// Points of one job are one: their figures are means over those that have them.
///
/// # Errors
/// Means of latency or rates so far apart that they are not of one drive in one state.
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
    Err(Diagnostic::new(format!("{what}: that is not one drive in one state")).help(format!(
        "repetitions count as their mean, and may be {APART} times apart; fit one drive at a time, and say `worn` of points of a drive that had been written over"
    )))
}

/// Does tasks on as many threads as asked for; what came of them, in their order, or the first fault of that order.
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
