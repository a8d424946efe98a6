//! Running the points of a sweep, several at a time. Each run has one thread and shares nothing but states after preconditioning,
//! which are the same whoever makes them: what it finds does not depend on how many run beside it.

mod remote;

use super::file::Words;
use super::on::Cluster;
use super::point::Point;
use super::{Keys, Live, Outcome, Ran};
use crate::output::{Fault, cannot_write, make_folder, write_durable, write_whole};
use crate::outside::{Clocks, STOP, peak_rss};
use crate::states::Shared;
use config::Diagnostic;
use machine::result::{Document, SCHEMA};
use machine::run::{Observers, Outside, Plan, run_observed};
use machine::state::States;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{
    collections::BTreeMap,
    fs::{File, TryLockError},
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

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

// Results by what decides them: a run that is in the store need not be made again.

/// A folder of result documents, while one sweep works in it.
pub(crate) struct Store {
    folder: PathBuf,
    keys: Keys,
    /// What the documents were when they were written.
    digests: Digests,
    /// Held as long as the store is.
    _lock: File,
}

impl Store {
    /// A store in a folder, for runs of these workloads. With `resume` there may be documents in it.
    ///
    /// # Errors
    /// The file of a workload cannot be read; another sweep is at work in the folder; it has results and they are not to be
    /// taken, or they are not what they were when they were written.
    pub(crate) fn open<'p>(
        out: &Path,
        workloads: impl Iterator<Item = &'p String>,
        resume: bool,
    ) -> Result<Store, Fault> {
        let keys = Keys::of(workloads)?;
        let folder = out.join("runs");
        make_folder(&folder).map_err(|fault| cannot_write(&folder, &fault))?;
        let lock = lock(out)?;
        let documents = documents(&folder).map_err(|fault| cannot_write(&folder, &fault))?;
        if !resume && !documents.is_empty() {
            let what = format!("{} has the results of {} runs already", out.display(), documents.len());
            return Err(Diagnostic::new(what)
                .help("--resume takes them and runs only the rest; --out names another folder; without `runs` in it this one is empty")
                .into());
        }
        let digests = Digests::read(&out.join("digests.jsonl"), &documents)?;
        Ok(Store { folder, keys, digests, _lock: lock })
    }

    /// The name of a run's document.
    ///
    /// # Errors
    /// The system cannot be read.
    pub(crate) fn key(&self, plan: &Plan) -> Result<String, Diagnostic> {
        self.keys.key(plan)
    }

    /// The document of a key, if it is there and known to be what was written.
    pub(crate) fn load(&self, key: &str) -> Option<Value> {
        if self.digests.knows(key) { self.document(key) } else { None }
    }

    /// The document of a key, if it is there: known to be what was written by who has written it.
    pub(super) fn document(&self, key: &str) -> Option<Value> {
        let document: Value = serde_json::from_slice(&std::fs::read(self.path(key)).ok()?).ok()?;
        (document.get("schema")? == SCHEMA).then_some(document)
    }

    /// Puts a document in, whole or not at all: it is on the disk before it has its name.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn save(&self, key: &str, document: &str) -> Result<(), Fault> {
        self.digests.add(key, document)?;
        write_durable(&self.path(key), document.as_bytes())
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

/// Keeps other sweeps out of a folder, as long as the file is open.
fn lock(out: &Path) -> Result<File, Fault> {
    let path = out.join("sweep.lock");
    let cannot = |fault: std::io::Error| cannot_write(&path, &fault);
    let mut file =
        File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => {
            let name = std::process::id().to_string();
            file.set_len(0).and_then(|()| file.write_all(name.as_bytes())).map_err(cannot)?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut process = String::new();
            // Where a lock keeps others from reading, nobody knows who it is.
            let _ = file.read_to_string(&mut process);
            let who = if process.is_empty() { String::new() } else { format!(" (process {process})") };
            Err(Diagnostic::new(format!("another sweep is at work in {}{who}", out.display()))
                .help("--resume takes its results once it has ended; --out names another folder")
                .into())
        }
        // Where files cannot be locked, nobody is kept out.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// Keys of the documents in a folder. What killed sweeps have left half written is removed.
fn documents(folder: &Path) -> std::io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') {
            std::fs::remove_file(&path)?;
        } else if let Some(key) = name.strip_suffix(".json") {
            found.push((key.to_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

// What the documents of a store were when they were written: a line for each in `digests.jsonl`, on the disk before the document
// has its name. A document that has been changed since is refused, with the parts of it that differ.

/// Changed documents that are named; the others are only counted.
const NAMED: usize = 8;

/// What a document was.
#[derive(Clone, Serialize, Deserialize)]
struct Digest {
    /// Its name in the store.
    key: String,
    /// SHA-256 of its bytes.
    sha256: String,
    /// The first 16 digits of the SHA-256 of each of its members.
    parts: BTreeMap<String, String>,
}

impl Digest {
    fn of(key: &str, text: &[u8]) -> Digest {
        let parts = match serde_json::from_slice(text) {
            Ok(Value::Object(members)) => members
                .into_iter()
                .map(|(name, value)| (name, hex(&Sha256::digest(value.to_string().as_bytes())[..8])))
                .collect(),
            _ => BTreeMap::new(),
        };
        Digest { key: key.to_owned(), sha256: hex(&Sha256::digest(text)), parts }
    }

    /// Names of the members that another one has otherwise, or has not.
    fn differing(&self, other: &Digest) -> Vec<String> {
        let names =
            self.parts.keys().chain(other.parts.keys().filter(|name| !self.parts.contains_key(*name)));
        names.filter(|name| self.parts.get(*name) != other.parts.get(*name)).cloned().collect()
    }
}

/// The digests of a store.
pub(super) struct Digests {
    path: PathBuf,
    /// Of the documents that were there at the beginning.
    known: BTreeMap<String, Digest>,
    /// The file, and whether its last line is whole.
    file: Mutex<(File, bool)>,
}

impl Digests {
    /// Reads the digests and holds the documents against them. One without a digest, or that is no document any more, is not known,
    /// and will be made again.
    ///
    /// # Errors
    /// A document that is not what it was; files that cannot be read or written.
    pub(super) fn read(path: &Path, documents: &[(String, PathBuf)]) -> Result<Digests, Fault> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // Of a sweep that was killed, the last line may be cut off; a document that was made again has the later line.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Digest>(line).ok());
        let mut known: BTreeMap<String, Digest> = lines.map(|digest| (digest.key.clone(), digest)).collect();
        known.retain(|key, _| documents.iter().any(|(there, _)| there == key));
        let mut changed = Vec::new();
        for (key, path) in documents {
            let (Some(then), Ok(text)) = (known.get(key), std::fs::read(path)) else { continue };
            let now = Digest::of(key, &text);
            if now.parts.is_empty() {
                // A disk has lost it: it is no document any more.
                known.remove(key);
            } else if now.sha256 != then.sha256 {
                let parts = then.differing(&now).join("`, `");
                let what = if parts.is_empty() { "its layout".to_owned() } else { format!("`{parts}`") };
                changed.push(format!("{} (what differs: {what})", path.display()));
            }
        }
        if !changed.is_empty() {
            return Err(refused(&changed).into());
        }
        let lines = known.values().map(line).collect::<String>();
        write_whole(path, lines.as_bytes())?;
        let file = File::options().append(true).open(path).map_err(|fault| cannot_write(path, &fault))?;
        Ok(Digests { path: path.to_owned(), known, file: Mutex::new((file, true)) })
    }

    /// Whether a document was there at the beginning and is what it was.
    pub(super) fn knows(&self, key: &str) -> bool {
        self.known.contains_key(key)
    }

    /// A document is about to get its name.
    ///
    /// # Errors
    /// The digest cannot be written.
    pub(super) fn add(&self, key: &str, document: &str) -> Result<(), Fault> {
        let text = line(&Digest::of(key, document.as_bytes()));
        let mut guard = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, whole) = &mut *guard;
        let text = if *whole { text } else { format!("\n{text}") };
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        *whole = written.is_ok();
        written.map_err(|fault| cannot_write(&self.path, &fault))
    }
}

/// Bytes as a digest is written.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn line(digest: &Digest) -> String {
    // Text: serialising cannot fail.
    serde_json::to_string(digest).unwrap_or_default() + "\n"
}

fn refused(changed: &[String]) -> Diagnostic {
    let named = changed[..changed.len().min(NAMED)].join(", ");
    let more = changed.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Diagnostic::new(format!("results were changed since they were written: {named}{more}"))
        .help("what is removed is made again; only what a run has found may stand in the table")
}
