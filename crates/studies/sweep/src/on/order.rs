//! What a worker is told of a run, and what it answers: each a line of JSON.

use crate::keys::Keys;
use crate::words::{TraceText, Words, warmup};
use config::Diagnostic;
use machine::run::Plan;
use requests::trace::Remap;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A run in the words of its sweep.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The version of the program that asks.
    version: String,
    /// The name of its document: all that decides it.
    key: String,
    system: String,
    set: Vec<String>,
    workloads: Vec<String>,
    seed: u64,
    warmup: Option<String>,
    trace: TraceText,
    queue_depth: Option<u32>,
    /// A folder of states that all workers see.
    pub state_cache: Option<PathBuf>,
}

/// What came of it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Answer {
    /// The result document.
    Document(String),
    /// It cannot run.
    Failure(Diagnostic),
}

impl Order {
    /// The run of a plan.
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

    /// The plan, if it is here what it is there.
    ///
    /// # Errors
    /// Another version of the program, other files, or none.
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
                "the worker's files are not those of the sweep, or its nandscape is another build",
            )
            .help("workers see the files of systems and traces by the same paths, with the same content"));
        }
        Ok(plan)
    }
}
