//! What became of the runs of a sweep.

use config::Diagnostic;
use serde_json::Value;

/// What became of a point.
pub enum Outcome {
    /// It ran, now or earlier.
    Done(Ran),
    /// It cannot run.
    Failed(Diagnostic),
    /// An interrupt came first.
    NotRun,
}

/// What the tables need of a result document. The documents themselves lie in the store: a sweep of any length fits memory.
pub struct Ran {
    /// Its name in the store.
    pub(crate) key: String,
    /// Whether all its checks passed.
    pub well: bool,
    /// The sweep's metrics; none where the run has none of the name.
    metrics: Vec<Option<Value>>,
    /// The resolved spec as JSON.
    pub(crate) config: String,
}

impl Ran {
    pub(super) fn new(key: String, document: &Value, metrics: &[String]) -> Ran {
        Ran {
            key,
            well: document.get("ok") == Some(&Value::Bool(true)),
            metrics: metrics.iter().map(|name| metric(document, name)).collect(),
            config: document.get("spec").map(Value::to_string).unwrap_or_default(),
        }
    }
}

impl Outcome {
    /// Whether it ran and all its checks passed.
    pub fn is_well(&self) -> bool {
        matches!(self, Outcome::Done(run) if run.well)
    }

    /// The `at`th of the sweep's metrics.
    pub fn metric(&self, at: usize) -> &Value {
        match self {
            Outcome::Done(run) => run.metrics[at].as_ref().unwrap_or(&Value::Null),
            _ => &Value::Null,
        }
    }

    /// The `at`th of the sweep's metrics, if it is a number.
    pub(crate) fn number(&self, at: usize) -> Option<f64> {
        self.metric(at).as_f64()
    }

    /// Whether it ran and has the `at`th of the sweep's metrics, be it null.
    pub fn has(&self, at: usize) -> bool {
        matches!(self, Outcome::Done(run) if run.metrics[at].is_some())
    }
}

/// `io.read.latency_ns.p99` of a document.
fn metric(document: &Value, name: &str) -> Option<Value> {
    let found = name.split('.').try_fold(document, |at, part| match at {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    });
    found.cloned()
}
