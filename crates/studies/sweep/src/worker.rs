//! Runs the points of a sweep, several at a time, here or on a cluster. Each run has one thread and shares only states
//! after preconditioning, which are the same whatever run makes them: results do not depend on the number of parallel
//! runs.

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

/// Work of one round.
pub(crate) struct Work {
    /// Runs of the round.
    pub(crate) points: Arc<Vec<Point>>,
    /// Store of documents.
    pub(crate) store: Arc<Store>,
    /// Place where runs are made.
    pub(crate) place: Arc<Where>,
    /// True if documents in the store are reused.
    pub(crate) resume: bool,
    /// Trace options and warm-up, in the words of the file.
    pub(crate) words: Words,
    /// Names of the metrics.
    pub(crate) metrics: Vec<String>,
    /// Number of metrics that the first run must have before others start: if it lacks one, all do.
    pub(crate) needed: usize,
    /// Stop flag.
    pub(crate) stop: &'static AtomicBool,
}

/// Drive states that runs share.
type Shared = dyn States + Send + Sync;

/// Place where runs are made.
pub struct Where(Kind);

enum Kind {
    /// Threads of this process.
    Here {
        /// Number of parallel runs.
        jobs: usize,
        /// Drive states that the runs share.
        states: Option<Arc<Shared>>,
    },
    /// Cluster.
    Cluster {
        /// Connection to the cluster.
        cluster: Box<Cluster>,
        /// Maximum number of parallel runs, if limited.
        jobs: Option<usize>,
        /// Reason why the cluster is gone.
        lost: Mutex<Option<String>>,
    },
}

impl Where {
    /// Uses `jobs` threads of this process, whose runs share `states`.
    pub fn here(jobs: usize, states: Option<Arc<Shared>>) -> Where {
        Where(Kind::Here { jobs, states })
    }

    /// Connects to the cluster of `--on`, with `jobs` parallel runs if limited. Its runs share states in the folder, if
    /// given.
    ///
    /// # Errors
    /// The text does not name a cluster, Python or Dask is missing, or the cluster does not exist.
    pub fn cluster(on: &str, states: Option<PathBuf>, jobs: Option<usize>) -> Result<Where, Diagnostic> {
        let cluster = Cluster::open(&On::read(on)?, states)?;
        Ok(Where(Kind::Cluster { cluster: Box::new(cluster), jobs, lost: Mutex::default() }))
    }

    /// Returns whether runs can begin at once: a cluster may still lack workers.
    pub fn has_workers(&self) -> bool {
        match &self.0 {
            Kind::Here { .. } => true,
            Kind::Cluster { cluster, .. } => cluster.has_workers(),
        }
    }

    /// Reason why a cluster is gone.
    pub(crate) fn why_lost(&self) -> Option<String> {
        match &self.0 {
            Kind::Here { .. } => None,
            Kind::Cluster { lost, .. } => lost.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// Grace period of runs after a stop request. A run that reads a trace of gigabytes does not check for it, and is
/// abandoned.
const GRACE: Duration = Duration::from_millis(800);

/// Poll interval for stop requests.
const LOOK: Duration = Duration::from_millis(50);

/// Runs every point. A finished run is in the store before the next begins on its thread. `live` is called for every
/// finished run.
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

/// Number of a run, its outcome, and whether it was made now.
type Ended = (usize, Outcome, bool);

/// Takes one run after another until none is left.
fn run_some(work: &Work, states: Option<&Shared>, next: &AtomicUsize, tell: &Sender<Ended>) {
    while !work.stop.load(Ordering::Relaxed) {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(point) = work.points.get(at) else { return };
        let came = outcome(&point.plan, work, states);
        let (outcome, made) = came.unwrap_or_else(|why| (Outcome::Failed(why.diagnostic()), true));
        if tell.send((at, outcome, made)).is_err() {
            // The receiver has gone.
            return;
        }
    }
}

/// Outcome of a plan, and whether it was made now.
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

/// Outcome of a run from the store, if reuse is allowed.
fn taken(key: &str, work: &Work) -> Option<Outcome> {
    let document = work.resume.then(|| work.store.load(key)).flatten()?;
    Some(Outcome::Done(Ran::new(key.to_owned(), &document, &work.metrics)))
}

/// Stores a document.
fn kept(key: String, text: &str, work: &Work) -> Result<Outcome, Fault> {
    work.store.save(&key, text)?;
    // Read back, so that a resumed run and a new one give the same table.
    let document = serde_json::from_str(text)
        .map_err(|fault| Diagnostic::new(format!("the result document is not JSON: {fault}")))?;
    Ok(Outcome::Done(Ran::new(key, &document, &work.metrics)))
}

/// Runs a plan; returns `None` if `stop` ended it early.
///
/// # Errors
/// The plan is unusable.
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
    // An interrupt during the final checks leaves a failed check; an earlier one, a partial result.
    let whole = document.filter(|_| !stop.load(Ordering::Relaxed));
    Ok(whole.filter(|document| !document.partial || document.is_stuck()))
}

// Points on a cluster: sent out up to its capacity, stored here as they come back.

/// Runs in flight per thread of the cluster: enough to keep all threads busy.
const AHEAD: usize = 4;

/// Runs in flight on a cluster without workers so far.
const FIRST: usize = 64;

/// Sends points out until none is left, or the cluster is gone.
fn run_on_cluster(work: &Work, next: &AtomicUsize, tell: &Sender<Ended>) {
    let Kind::Cluster { cluster, jobs, lost } = &work.place.0 else { return };
    let most = |threads: usize| jobs.unwrap_or((threads * AHEAD).max(FIRST));
    let (mut room, mut out) = (most(0), BTreeMap::<usize, String>::new());
    let told = |ended: Ended| {
        // If the receiver has given up, the store still has the document.
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
        // Each run gets one answer.
        let Some(key) = out.remove(&at) else { continue };
        let outcome = came.and_then(|answer| match answer {
            Answer::Document(text) => kept(key, &text, work),
            Answer::Failure(diagnostic) => Ok(Outcome::Failed(diagnostic)),
        });
        told((at, outcome.unwrap_or_else(|fault| Outcome::Failed(fault.diagnostic())), true));
    }
}
