//! Running the points of a sweep, several at a time, here or on a cluster. Each run has one thread and shares nothing but states after
//! preconditioning, which are the same whoever makes them: what it finds does not depend on how many run beside it.

use super::cluster::{Cluster, On};
use super::jobs::Words;
use super::point::{Outcome, Point, Ran};
use super::store::Store;
use crate::cluster::{Answer, Order, Said};
use config::Diagnostic;
use machine::result::Document;
use machine::run::{Observers, Outside, Plan, run_observed};
use machine::state::States;
use outside::{Clocks, Fault, peak_rss};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    /// Set to end early.
    pub(crate) stop: &'static AtomicBool,
}

/// States of drives that runs share.
type Shared = dyn States + Send + Sync;

/// Where runs are made.
pub struct Where(Kind);

enum Kind {
    /// In threads of this process.
    Here {
        /// Runs at a time.
        jobs: usize,
        /// States of drives that the runs share.
        states: Option<Arc<Shared>>,
    },
    /// On a cluster.
    Cluster {
        /// What speaks with it.
        cluster: Box<Cluster>,
        /// Runs at a time, if that is limited.
        jobs: Option<usize>,
        /// Why there is no cluster any more.
        lost: Mutex<Option<String>>,
    },
}

impl Where {
    /// `jobs` threads of this process, whose runs share `states`.
    pub fn here(jobs: usize, states: Option<Arc<Shared>>) -> Where {
        Where(Kind::Here { jobs, states })
    }

    /// The cluster that `--on` names, with `jobs` runs at a time if that is limited. Its runs share states in the folder, if there is one.
    ///
    /// # Errors
    /// The text names no cluster; there is no Python, it has no Dask, or there is no such cluster.
    pub fn cluster(on: &str, states: Option<PathBuf>, jobs: Option<usize>) -> Result<Where, Diagnostic> {
        let cluster = Cluster::open(&On::read(on)?, states)?;
        Ok(Where(Kind::Cluster { cluster: Box::new(cluster), jobs, lost: Mutex::default() }))
    }

    /// Whether runs can begin at once: a cluster may still be without workers.
    pub fn has_workers(&self) -> bool {
        match &self.0 {
            Kind::Here { .. } => true,
            Kind::Cluster { cluster, .. } => cluster.has_workers(),
        }
    }

    /// Why a cluster is gone.
    pub(crate) fn why_lost(&self) -> Option<String> {
        match &self.0 {
            Kind::Here { .. } => None,
            Kind::Cluster { lost, .. } => lost.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// How long runs have to end once they are asked to. One that reads a trace of gigabytes does not listen: it is left behind.
const GRACE: Duration = Duration::from_millis(800);

/// How often it is looked whether they are asked to.
const LOOK: Duration = Duration::from_millis(50);

/// Runs every point. A run that has ended is in the store before another begins on its thread. `live` is called for every run
/// that has ended.
pub(crate) fn run_all(work: Work, live: &mut dyn FnMut(usize, &Outcome, bool)) -> Vec<Outcome> {
    let work = Arc::new(work);
    let mut outcomes: Vec<Outcome> = work.points.iter().map(|_| Outcome::NotRun).collect();
    let next = Arc::new(AtomicUsize::new(0));
    let lacks = |outcome: &Outcome| {
        matches!(outcome, Outcome::Done(_)) && (0..work.needed).any(|at| !outcome.has(at))
    };
    let (tell, told) = mpsc::channel();
    let threads: Vec<JoinHandle<()>> = match &work.place.0 {
        Kind::Here { jobs, states } => (0..(*jobs).min(work.points.len()))
            .map(|_| {
                let (work, next, tell) = (Arc::clone(&work), Arc::clone(&next), tell.clone());
                let states = states.clone();
                std::thread::spawn(move || run_some(&work, states.as_deref(), &next, &tell))
            })
            .collect(),
        Kind::Cluster { .. } => {
            let (work, next, tell) = (Arc::clone(&work), Arc::clone(&next), tell.clone());
            vec![std::thread::spawn(move || run_on_cluster(&work, &next, &tell))]
        }
    };
    drop(tell);
    let mut asked: Option<Instant> = None;
    loop {
        match told.recv_timeout(LOOK) {
            Ok((at, outcome, made)) => {
                if !matches!(outcome, Outcome::NotRun) {
                    live(at, &outcome, made);
                }
                if lacks(&outcome) {
                    next.store(work.points.len(), Ordering::Relaxed);
                }
                outcomes[at] = outcome;
            }
            Err(RecvTimeoutError::Timeout) if work.stop.load(Ordering::Relaxed) => {
                if asked.is_none()
                    && let Kind::Cluster { cluster, .. } = &work.place.0
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
    while !work.stop.load(Ordering::Relaxed) {
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
    match simulate(plan, states.map(|shared| shared as &dyn States), work.stop)? {
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

/// Runs a plan; none if it was stopped by `stop` before its end.
///
/// # Errors
/// What is unusable about it.
pub fn simulate(
    plan: &Plan,
    states: Option<&dyn States>,
    stop: &AtomicBool,
) -> Result<Option<Document>, Diagnostic> {
    let clocks = Clocks::start();
    let mut outside = Outside {
        cpu_s: &|| clocks.cpu_s(),
        wall_s: &|| clocks.wall_s(),
        peak_rss: &peak_rss,
        stop,
        watch: &mut |_| {},
        states,
    };
    let document = run_observed(plan, &mut outside, Observers::default())?;
    // Of an interrupt in the last checks, a failed check has come; of one before, a part.
    let whole = document.filter(|_| !stop.load(Ordering::Relaxed));
    Ok(whole.filter(|document| !document.partial || document.is_stuck()))
}

// Points on a cluster: given out as many at a time as it has work for, kept here as they come back.

/// Runs that are given out for each thread of the cluster: enough that none waits for the next.
const AHEAD: usize = 4;

/// Runs that are given out to a cluster whose workers have not come yet.
const FIRST: usize = 64;

/// Gives points out until none is left, or the cluster is gone.
fn run_on_cluster(work: &Work, next: &AtomicUsize, tell: &Sender<Ended>) {
    let Kind::Cluster { cluster, jobs, lost } = &work.place.0 else { return };
    let most = |threads: usize| jobs.unwrap_or((threads * AHEAD).max(FIRST));
    let (mut room, mut out) = (most(0), BTreeMap::<usize, String>::new());
    let told = |ended: Ended| {
        // Whoever has given up waiting has the store.
        let _ = tell.send(ended);
    };
    loop {
        while out.len() < room && !work.stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(point) = work.points.get(at) else { break };
            let key = match work.store.key(&point.plan) {
                Ok(key) => key,
                Err(fault) => {
                    told((at, Outcome::Failed(fault), true));
                    continue;
                }
            };
            if let Some(taken) = taken(&key, work) {
                told((at, taken, false));
                continue;
            }
            let order = Order::of(&work.words, &point.plan, &key, cluster.state_cache());
            if !cluster.give(at, &order) {
                break;
            }
            out.insert(at, key);
        }
        if out.is_empty() || work.stop.load(Ordering::Relaxed) {
            return;
        }
        let (at, came) = match cluster.hear() {
            Said::Ready { ready } => {
                room = most(ready);
                continue;
            }
            Said::Answered { run, answer } => (run, Answer::read(&answer)),
            Said::Failed { run, fault } => (run, Err(Fault::from(Diagnostic::new(fault)))),
            Said::Lost { lost: why } | Said::Refused { refused: why, .. } => {
                *lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                return;
            }
        };
        // A run has one answer.
        let Some(key) = out.remove(&at) else { continue };
        let outcome = came.and_then(|answer| match answer {
            Answer::Document(text) => kept(key, &text, work),
            Answer::Failure(diagnostic) => Ok(Outcome::Failed(diagnostic)),
        });
        told((at, outcome.unwrap_or_else(|fault| Outcome::Failed(fault.diagnostic())), true));
    }
}
