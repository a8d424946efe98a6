//! Which thread of a core runs next.

use super::Function;
use compute::ooo::sched::{Choice, Moment, ThreadScheduler, ThreadView as Seen};
use engine::Time;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The word for a new job.
const NEW: &str = "new";

/// What is said of a choice that cannot be.
fn refused(what: &str) -> PyErr {
    PyValueError::new_err(format!("the policy {what}"))
}

/// A choice that the family's contract allows.
fn allowed(py: Python<'_>, said: &Py<PyAny>, view: &Seen<'_>) -> PyResult<Choice> {
    if let Ok(word) = said.extract::<String>(py) {
        return match word.as_str() {
            NEW if view.new => Ok(Choice::New),
            NEW => Err(refused("wants a new job, and there is none, or no thread to run it")),
            _ => Err(refused(&format!(
                "has said `{word}`: `new`, the place of a halted job, or None to sleep"
            ))),
        };
    }
    match said.extract::<Option<u32>>(py)? {
        Some(n) if (n as usize) < view.halted.len() => Ok(Choice::Resume(n)),
        Some(n) => Err(refused(&format!("goes on with halted job {n} of {}", view.halted.len()))),
        None if view.new => Err(refused("sleeps while there is a new job")),
        None if view.is_due() => Err(refused("sleeps while the oldest halted job is due")),
        None => Ok(Choice::Sleep(view.due())),
    }
}

impl ThreadScheduler for Function {
    fn choose(&mut self, view: &Seen<'_>) -> Choice {
        let decide = |py: Python<'_>, function: &Py<PyAny>| {
            let said = function.call1(py, (ThreadView::of(view),))?;
            allowed(py, &said, view)
        };
        self.ask(decide).unwrap_or(match (view.new, view.halted.is_empty()) {
            (true, _) => Choice::New,
            (false, false) => Choice::Resume(0),
            (false, true) => Choice::Sleep(None),
        })
    }
}

/// What a scheduler of threads may look at, as it is when it is asked. Times are in nanoseconds.
#[pyclass(frozen, module = "nandscape._native")]
pub(crate) struct ThreadView {
    /// Why it is asked: `ended`, the running job has ended or nothing runs; `missed`, its page is in flash.
    #[pyo3(get)]
    moment: &'static str,
    /// The present.
    #[pyo3(get)]
    now: f64,
    /// Whether a new job is there, and a thread to run it.
    #[pyo3(get)]
    new: bool,
    /// The halted jobs in the order in which they were halted: since when, and whether the core was told that the page has come.
    #[pyo3(get)]
    halted: Vec<(f64, bool)>,
    /// How long flash takes to answer, as measured; none before the first answer.
    #[pyo3(get)]
    response: Option<f64>,
    /// Whether the oldest has been halted for as long.
    #[pyo3(get)]
    due: bool,
}

impl ThreadView {
    fn of(view: &Seen<'_>) -> ThreadView {
        ThreadView {
            moment: if view.moment == Moment::Ended { "ended" } else { "missed" },
            now: view.now.as_ns_f64(),
            new: view.new,
            halted: view.halted.iter().map(|job| (job.since.as_ns_f64(), job.arrived)).collect(),
            response: view.response.map(Time::as_ns_f64),
            due: view.is_due(),
        }
    }
}
