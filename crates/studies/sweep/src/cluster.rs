//! Runs on a cluster: its address or how to create it. A Python process talks to it; orders to a worker and its answers
//! are lines of JSON.

use crate::jobs::{TraceText, Words, warmup};
use crate::store::Keys;
use config::Diagnostic;
use machine::run::Plan;
use outside::Fault;
use requests::trace::Remap;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Cluster of `--on`.
#[derive(Debug, Serialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum On {
    /// Running Dask scheduler: `tcp://HOST:PORT`.
    Address(String),
    /// Cluster created for this sweep.
    Made(Made),
}

/// Cluster to be created by a batch system.
#[derive(Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Made {
    /// Batch system.
    cluster: Kind,
    /// Number of batch jobs; for `local`, of processes.
    jobs: u32,
    /// Arguments of the dask-jobqueue class, or of `LocalCluster`.
    #[serde(default)]
    options: toml::Table,
}

/// Batch system that creates a cluster.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Processes of this machine.
    Local,
    Slurm,
    Pbs,
    Lsf,
    Sge,
    Htcondor,
    Oar,
    Moab,
}

/// Example of a cluster file, for diagnostics.
const HELP: &str = "for example cluster = \"slurm\", jobs = 8, and in [options] the arguments of dask-jobqueue's SLURMCluster: cores, memory, queue, walltime";

impl On {
    /// Reads `--on`: `dask://HOST:PORT`, or a TOML file.
    ///
    /// # Errors
    /// The text is neither, or the file is invalid.
    pub(crate) fn read(text: &str) -> Result<On, Diagnostic> {
        if let Some(address) = text.strip_prefix("dask://") {
            let is_whole = address.rsplit_once(':').is_some_and(|(host, port)| {
                !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
            });
            if !is_whole {
                return Err(Diagnostic::new(format!("--on: `{text}` has no host and port")).help(
                    "`dask scheduler` prints its address: tcp://10.0.0.1:8786 is dask://10.0.0.1:8786",
                ));
            }
            return Ok(On::Address(format!("tcp://{address}")));
        }
        if !text.ends_with(".toml") {
            return Err(Diagnostic::new(format!("--on: `{text}` is not a cluster"))
                .help("give dask://HOST:PORT for a Dask scheduler, or FILE.toml for a batch system"));
        }
        let path = Path::new(text);
        let content = std::fs::read_to_string(path)
            .map_err(|fault| Diagnostic::new(format!("cannot read {text}: {fault}")).help(HELP))?;
        let made: Made = toml::from_str(&content).map_err(|fault| {
            let line = fault.span().map_or(0, |span| content[..span.start].matches('\n').count() + 1);
            Diagnostic::new(format!("{text}:{line}: {}", fault.message())).help(HELP)
        })?;
        if made.jobs == 0 {
            return Err(Diagnostic::new(format!("{text}: `jobs` is 0: it must be at least 1")).help(HELP));
        }
        Ok(On::Made(made))
    }
}

/// Program that talks to Dask.
const BROKER: &str = include_str!("broker.py");

/// Environment variable with the Python to run it.
const PYTHON: &str = "NANDSCAPE_PYTHON";

/// Maximum time for releasing a cluster.
const PARTING: Duration = Duration::from_secs(8);

/// Poll interval while releasing a cluster.
const LOOK: Duration = Duration::from_millis(20);

/// Connected cluster.
pub(crate) struct Cluster {
    child: Mutex<Child>,
    /// Orders to the process; closed at the end.
    to: Mutex<Option<ChildStdin>>,
    from: Mutex<BufReader<ChildStdout>>,
    program: PathBuf,
    folder: PathBuf,
    state_cache: Option<PathBuf>,
    /// Number of threads of the cluster at the start.
    threads: usize,
}

/// Message from the process.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Said {
    /// Number of threads of the cluster.
    Ready { ready: usize },
    /// Answer of a worker for a run.
    Answered { run: usize, answer: String },
    /// Reason why a run could not be made.
    Failed { run: usize, fault: String },
    /// The cluster does not exist.
    Refused { refused: String, help: String },
    /// The cluster is gone.
    Lost { lost: String },
}

impl Cluster {
    /// Connects to a cluster, or creates it. Drive states are shared in the folder, if given.
    ///
    /// # Errors
    /// Python or Dask is missing, or the cluster does not exist.
    pub(crate) fn open(on: &On, state_cache: Option<PathBuf>) -> Result<Cluster, Diagnostic> {
        let python = std::env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
        let started = Command::new(&python)
            .args(["-c", BROKER, &json!(on).to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = started.map_err(|fault| {
            Diagnostic::new(format!("--on: cannot start `{python}`, which talks to the cluster: {fault}"))
                .help(format!(
                    "install Python 3.11 or later with `distributed`; {PYTHON} names the interpreter"
                ))
        })?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Diagnostic::new("--on: the process that talks to the cluster has no pipes"));
        };
        let here = |fault: std::io::Error| {
            Diagnostic::new(format!("cannot find the current folder or program: {fault}"))
        };
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
            said => Err(Diagnostic::new(format!("--on: unexpected answer from the cluster: {said:?}"))),
        }
    }

    /// Returns whether the cluster had workers at the start.
    pub(crate) fn has_workers(&self) -> bool {
        self.threads > 0
    }

    /// Folder of states shared by the workers.
    pub(crate) fn state_cache(&self) -> Option<PathBuf> {
        self.state_cache.clone()
    }

    /// Sends a run; returns whether the process could take it.
    pub(crate) fn give(&self, run: usize, order: &Order) -> bool {
        let line = json!({ "run": run, "order": order, "program": self.program, "folder": self.folder });
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        to.as_mut().is_some_and(|to| writeln!(to, "{line}").and_then(|()| to.flush()).is_ok())
    }

    /// Waits for the next message.
    pub(crate) fn hear(&self) -> Said {
        let mut line = String::new();
        let mut from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = |why: String| Said::Lost { lost: why };
        match from.read_line(&mut line) {
            Ok(0) => lost("the process that talks to the cluster has ended".to_owned()),
            Ok(_) => serde_json::from_str(&line).unwrap_or_else(|fault| lost(format!("{fault}: {line}"))),
            Err(fault) => lost(fault.to_string()),
        }
    }

    /// Ends the work: pending runs are cancelled, and a cluster created for this sweep is closed.
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
        // The process is ours, and its time is up.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Answer {
    /// Parses the line that a worker has printed.
    ///
    /// # Errors
    /// The line is not an answer.
    pub(crate) fn read(line: &str) -> Result<Answer, Fault> {
        serde_json::from_str(line)
            .map_err(|fault| Diagnostic::new(format!("cannot parse a worker's answer: {fault}")).into())
    }
}

/// Run of a sweep, as sent to a worker.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Version of the program that sends it.
    version: String,
    /// Name of its document: a digest of all that decides it.
    key: String,
    system: String,
    set: Vec<String>,
    workloads: Vec<String>,
    seed: u64,
    warmup: Option<String>,
    trace: TraceText,
    queue_depth: Option<u32>,
    /// Folder of states visible to all workers.
    pub state_cache: Option<PathBuf>,
}

/// Answer of a worker.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Answer {
    /// Result document.
    Document(String),
    /// The run failed.
    Failure(Diagnostic),
}

impl Order {
    /// Builds the order of a plan.
    pub(crate) fn of(words: &Words, plan: &Plan, key: &str, state_cache: Option<PathBuf>) -> Order {
        Order {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            key: key.to_owned(),
            system: plan.system.clone(),
            set: plan.set.clone(),
            workloads: plan.workloads.clone(),
            seed: plan.seed,
            warmup: words.warmup.clone(),
            trace: words.trace.clone(),
            queue_depth: plan.queue_depth,
            state_cache,
        }
    }

    /// Rebuilds the plan, if it is the same here as at the sender.
    ///
    /// # Errors
    /// The version of the program or the files differ, or files are missing.
    pub fn plan(&self) -> Result<Plan, Diagnostic> {
        let here = env!("CARGO_PKG_VERSION");
        if self.version != here {
            let what = format!("the worker's nandscape is {here}, that of the sweep is {}", self.version);
            return Err(Diagnostic::new(what).help("install the same version on all machines of the cluster"));
        }
        let plan = Plan {
            system: self.system.clone(),
            text: None,
            set: self.set.clone(),
            workloads: self.workloads.clone(),
            seed: self.seed,
            precondition: None,
            warmup: self.warmup.as_deref().map(warmup).transpose()?,
            trace: self.trace.options(Remap::Fit)?,
            queue_depth: self.queue_depth,
        };
        if Keys::of(plan.workloads.iter())?.key(&plan)? != self.key {
            return Err(Diagnostic::new(
                "the worker's files differ from those of the sweep, or its nandscape is a different build",
            )
            .help(
                "workers must see the files of systems and traces at the same paths, with the same content",
            ));
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        assert_eq!(On::read("dask://node7:8786").unwrap(), On::Address("tcp://node7:8786".into()));
        assert_eq!(On::read("dask://[::1]:8786").unwrap(), On::Address("tcp://[::1]:8786".into()));
        for wrong in [
            "dask://",
            "dask://node7",
            "dask://node7:",
            "dask://:8786",
            "dask://node7:0",
            "tcp://a:1",
            "slurm",
        ] {
            let fault = On::read(wrong).unwrap_err();
            assert!(fault.what.contains(wrong) && fault.help.is_some(), "{fault}");
        }
    }

    #[test]
    fn a_file_names_a_batch_system() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = folder.path().join("c.toml");
            std::fs::write(&path, text).unwrap();
            On::read(&path.display().to_string())
        };
        let good = read("cluster = \"slurm\"\njobs = 4\n[options]\ncores = 8\n").unwrap();
        let On::Made(made) = &good else { panic!("{good:?}") };
        assert_eq!((made.cluster, made.jobs, made.options["cores"].as_integer()), (Kind::Slurm, 4, Some(8)));
        for (wrong, said) in [
            ("cluster = \"slurn\"\njobs = 4", "c.toml:1: unknown variant `slurn`"),
            ("cluster = \"slurm\"\njob = 4", "c.toml:2: unknown field `job`"),
            ("cluster = \"slurm\"\njobs = 0", "at least 1"),
            ("jobs = 2", "missing field `cluster`"),
        ] {
            let fault = read(wrong).unwrap_err();
            assert!(fault.what.contains(said), "{fault}");
        }
    }
}
