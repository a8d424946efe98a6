//! Running the points of a sweep, several at a time. Each run has one thread and shares nothing but states after preconditioning,
//! which are the same whoever makes them: what it finds does not depend on how many run beside it.

mod remote;

use super::file::Words;
use super::live::Live;
use super::on::Cluster;
use super::outcome::{Outcome, Ran};
use super::point::Point;
use super::store::Store;
use crate::output::Fault;
use crate::outside::{Clocks, STOP, peak_rss};
use crate::states::Shared;
use config::Diagnostic;
use machine::result::Document;
use machine::run::{Observers, Outside, Plan, run_observed};
use machine::state::States;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a sweep is run.
pub(crate) struct Work {
    /// The runs.
    pub(crate) points: Arc<Vec<Point>>,
    /// Where documents are kept.
    pub(crate) store: Arc<Store>,
    /// Where they are made.
    pub(crate) place: Arc<Where>,
    /// Whether what is in the store is taken from there.
    pub(crate) resume: bool,
    /// Reading of traces and warm-up, in the words of the file.
    pub(crate) words: Words,
    /// Names of the metrics.
    pub(crate) metrics: Vec<String>,
    /// How many of the metrics a run must have for others to begin behind it: what it lacks all lack.
    pub(crate) needed: usize,
}

/// Where runs are made.
pub(crate) enum Where {
    /// In threads of this process.
    Here {
        /// Runs at a time.
        jobs: usize,
        /// States of drives that the runs share.
        states: Option<Arc<Shared>>,
    },
    /// On a cluster.
    Cluster {
        cluster: Box<Cluster>,
        /// Runs at a time, if that is limited.
        jobs: Option<usize>,
        /// Why there is no cluster any more.
        lost: Mutex<Option<String>>,
    },
}

impl Where {
    /// A cluster.
    pub(crate) fn cluster(cluster: Cluster, jobs: Option<usize>) -> Where {
        Where::Cluster { cluster: Box::new(cluster), jobs, lost: Mutex::default() }
    }

    /// Why a cluster is gone.
    pub(crate) fn why_lost(&self) -> Option<String> {
        match self {
            Where::Here { .. } => None,
            Where::Cluster { lost, .. } => lost.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// How long runs have to end once they are asked to. One that reads a trace of gigabytes does not listen: it is left behind.
const GRACE: Duration = Duration::from_millis(800);

/// How often it is looked whether they are asked to.
const LOOK: Duration = Duration::from_millis(50);

/// Runs every point. A run that has ended is in the store before another begins on its thread. `live` is told of every run
/// that has ended.
pub(crate) fn run_all(work: Work, live: &mut Live<'_>) -> Vec<Outcome> {
    let work = Arc::new(work);
    let mut outcomes: Vec<Outcome> = work.points.iter().map(|_| Outcome::NotRun).collect();
    let next = Arc::new(AtomicUsize::new(0));
    let lacks = |outcome: &Outcome| {
        matches!(outcome, Outcome::Done(_)) && (0..work.needed).any(|at| !outcome.has(at))
    };
    let (tell, told) = mpsc::channel();
    let threads: Vec<JoinHandle<()>> = match &*work.place {
        Where::Here { jobs, states } => (0..(*jobs).min(work.points.len()))
            .map(|_| {
                let (work, next, tell) = (Arc::clone(&work), Arc::clone(&next), tell.clone());
                let states = states.clone();
                std::thread::spawn(move || run_some(&work, states.as_deref(), &next, &tell))
            })
            .collect(),
        Where::Cluster { .. } => {
            let (work, next, tell) = (Arc::clone(&work), Arc::clone(&next), tell.clone());
            vec![std::thread::spawn(move || remote::run(&work, &next, &tell))]
        }
    };
    drop(tell);
    let mut asked: Option<Instant> = None;
    loop {
        match told.recv_timeout(LOOK) {
            Ok((at, outcome, made)) => {
                if !matches!(outcome, Outcome::NotRun) {
                    live.ended(at, &outcome, made);
                }
                if lacks(&outcome) {
                    next.store(work.points.len(), Ordering::Relaxed);
                }
                outcomes[at] = outcome;
            }
            Err(RecvTimeoutError::Timeout) if STOP.load(Ordering::Relaxed) => {
                if asked.is_none()
                    && let Where::Cluster { cluster, .. } = &*work.place
                {
                    cluster.close();
                }
                if asked.get_or_insert_with(Instant::now).elapsed() > GRACE {
                    return outcomes;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    for thread in threads {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    outcomes
}

/// Number of a run, what became of it, and whether it was run for it.
type Ended = (usize, Outcome, bool);

/// Takes one run after another until none is left.
fn run_some(work: &Work, states: Option<&Shared>, next: &AtomicUsize, tell: &Sender<Ended>) {
    while !STOP.load(Ordering::Relaxed) {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(point) = work.points.get(at) else { return };
        let came = outcome(&point.plan, work, states);
        let (outcome, made) = came.unwrap_or_else(|why| (Outcome::Failed(why.diagnostic()), true));
        if tell.send((at, outcome, made)).is_err() {
            // Nobody waits any more.
            return;
        }
    }
}

/// What becomes of a plan, and whether it was run for it.
fn outcome(plan: &Plan, work: &Work, states: Option<&Shared>) -> Result<(Outcome, bool), Fault> {
    let key = work.store.key(plan)?;
    if let Some(taken) = taken(&key, work) {
        return Ok((taken, false));
    }
    match simulate(plan, states.map(|shared| shared as &dyn States))? {
        None => Ok((Outcome::NotRun, true)),
        Some(document) => Ok((kept(key, &document.to_json(), work)?, true)),
    }
}

/// What is in the store of a run, if it may be taken from there.
fn taken(key: &str, work: &Work) -> Option<Outcome> {
    let document = work.resume.then(|| work.store.load(key)).flatten()?;
    Some(Outcome::Done(Ran::new(key.to_owned(), &document, &work.metrics)))
}

/// Keeps a document.
fn kept(key: String, text: &str, work: &Work) -> Result<Outcome, Fault> {
    work.store.save(&key, text)?;
    // Read back, so that a run that is resumed and one that is made give the same table.
    let document = serde_json::from_str(text)
        .map_err(|fault| Diagnostic::new(format!("the result document is not JSON: {fault}")))?;
    Ok(Outcome::Done(Ran::new(key, &document, &work.metrics)))
}

/// Runs a plan; none if it was stopped before its end.
///
/// # Errors
/// What is unusable about it.
pub(crate) fn simulate(plan: &Plan, states: Option<&dyn States>) -> Result<Option<Document>, Diagnostic> {
    let clocks = Clocks::start();
    let mut outside = Outside {
        cpu_s: &|| clocks.cpu_s(),
        wall_s: &|| clocks.wall_s(),
        peak_rss: &peak_rss,
        stop: &STOP,
        watch: &mut |_| {},
        states,
    };
    let document = run_observed(plan, &mut outside, Observers::default())?;
    // Of an interrupt in the last checks, a failed check has come; of one before, a part.
    let whole = document.filter(|_| !STOP.load(Ordering::Relaxed));
    Ok(whole.filter(|document| !document.partial || document.is_stuck()))
}
