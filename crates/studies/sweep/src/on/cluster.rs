//! A cluster, behind a process of Python that speaks with it.

use super::On;
use super::order::{Answer, Order};
use config::Diagnostic;
use outside::Fault;
use serde::Deserialize;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What speaks with Dask.
const BROKER: &str = include_str!("broker.py");
/// Names the Python to run it with.
const PYTHON: &str = "NANDSCAPE_PYTHON";
/// How long it may take to let go of a cluster.
const PARTING: Duration = Duration::from_secs(8);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// A cluster that is there.
pub(crate) struct Cluster {
    child: Mutex<Child>,
    /// Closed when nothing more is wanted.
    to: Mutex<Option<ChildStdin>>,
    from: Mutex<BufReader<ChildStdout>>,
    program: PathBuf,
    folder: PathBuf,
    state_cache: Option<PathBuf>,
    /// Threads of the cluster when it was found.
    threads: usize,
}

/// What the other side says.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Said {
    /// Threads of the cluster.
    Ready { ready: usize },
    /// What a worker has answered for a run.
    Answered { run: usize, answer: String },
    /// Why a run could not be made.
    Failed { run: usize, fault: String },
    /// There is no such cluster.
    Refused { refused: String, help: String },
    /// It is gone.
    Lost { lost: String },
}

impl Cluster {
    /// Finds a cluster, or makes it. States of drives are shared in the folder, if there is one.
    ///
    /// # Errors
    /// There is no Python, it has no Dask, or there is no such cluster.
    pub(crate) fn open(on: &On, state_cache: Option<PathBuf>) -> Result<Cluster, Diagnostic> {
        let python = std::env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
        let started = Command::new(&python)
            .args(["-c", BROKER, &json!(on).to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = started.map_err(|fault| {
            Diagnostic::new(format!("--on: cannot start `{python}`, which speaks with the cluster: {fault}"))
                .help(format!("Python 3.11 or later with `distributed` is needed; {PYTHON} names it"))
        })?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Diagnostic::new("--on: the process that speaks with the cluster has no pipes"));
        };
        let here = |fault: std::io::Error| Diagnostic::new(format!("cannot tell where this is: {fault}"));
        let mut cluster = Cluster {
            child: Mutex::new(child),
            to: Mutex::new(Some(to)),
            from: Mutex::new(BufReader::new(from)),
            program: std::env::current_exe().map_err(here)?,
            folder: std::env::current_dir().map_err(here)?,
            state_cache: state_cache.map(std::path::absolute).transpose().map_err(here)?,
            threads: 0,
        };
        match cluster.hear() {
            Said::Ready { ready } => {
                cluster.threads = ready;
                Ok(cluster)
            }
            Said::Refused { refused, help } => Err(Diagnostic::new(format!("--on: {refused}")).help(help)),
            Said::Lost { lost } => Err(Diagnostic::new(format!("--on: {lost}"))),
            said => Err(Diagnostic::new(format!("--on: an answer before a question: {said:?}"))),
        }
    }

    /// Whether the cluster had workers when it was found.
    pub(crate) fn has_workers(&self) -> bool {
        self.threads > 0
    }

    /// The folder of states that workers share.
    pub(crate) fn state_cache(&self) -> Option<PathBuf> {
        self.state_cache.clone()
    }

    /// Gives out a run; whether there is somebody to give it to.
    pub(crate) fn give(&self, run: usize, order: &Order) -> bool {
        let line = json!({ "run": run, "order": order, "program": self.program, "folder": self.folder });
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        to.as_mut().is_some_and(|to| writeln!(to, "{line}").and_then(|()| to.flush()).is_ok())
    }

    /// What is said next.
    pub(crate) fn hear(&self) -> Said {
        let mut line = String::new();
        let mut from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = |why: String| Said::Lost { lost: why };
        match from.read_line(&mut line) {
            Ok(0) => lost("the process that speaks with the cluster has ended".to_owned()),
            Ok(_) => serde_json::from_str(&line).unwrap_or_else(|fault| lost(format!("{fault}: {line}"))),
            Err(fault) => lost(fault.to_string()),
        }
    }

    /// Nothing more is wanted: what is under way is cancelled, and a cluster that was made for this sweep goes.
    pub(crate) fn close(&self) {
        drop(self.to.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.close();
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        while begun.elapsed() < PARTING {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        // It is ours, and has had its time.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Answer {
    /// The line that a worker has printed.
    ///
    /// # Errors
    /// It is none of an answer.
    pub(crate) fn read(line: &str) -> Result<Answer, Fault> {
        serde_json::from_str(line)
            .map_err(|fault| Diagnostic::new(format!("a worker's answer is not one: {fault}")).into())
    }
}
