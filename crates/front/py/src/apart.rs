//! Work in a thread of its own, so that the interpreter is free and an interrupt is heard.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How long an interrupt waits to be heard.
const LOOK: Duration = Duration::from_millis(50);
/// How long work that was told to stop is waited for: opening a long trace does not look up.
const PATIENCE: Duration = Duration::from_secs(2);

type Job<S> = Box<dyn FnOnce(&mut S) + Send>;

/// A thread that owns a state which cannot leave it, and does one job after another on it.
pub(crate) struct Apart<S> {
    jobs: Sender<Job<S>>,
    /// Set to end a job early.
    stop: Arc<AtomicBool>,
}

impl<S: 'static> Apart<S> {
    /// Begins with the state that `make` makes, in the thread.
    ///
    /// # Errors
    /// The operating system has no thread to give.
    pub(crate) fn begin(make: impl FnOnce(Arc<AtomicBool>) -> S + Send + 'static) -> PyResult<Apart<S>> {
        let (jobs, asked) = channel::<Job<S>>();
        let stop = Arc::new(AtomicBool::new(false));
        let for_state = Arc::clone(&stop);
        thread::Builder::new().name("nandscape".to_owned()).spawn(move || {
            let mut state = make(for_state);
            asked.into_iter().for_each(|job| job(&mut state));
        })?;
        Ok(Apart { jobs, stop })
    }

    /// Does a job, and waits for it without the interpreter.
    ///
    /// # Errors
    /// What a signal handler of Python raises: the job is told to stop. `RuntimeError` if it panics: the state is lost then.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        py: Python<'_>,
        job: impl FnOnce(&mut S) -> T + Send + 'static,
    ) -> PyResult<T> {
        let (tell, told) = channel();
        let told = Mutex::new(told);
        let stop = Arc::clone(&self.stop);
        let job = move |state: &mut S| {
            stop.store(false, Ordering::Relaxed);
            // Whoever asked may have gone.
            let _ = tell.send(catch_unwind(AssertUnwindSafe(|| job(state))));
        };
        self.jobs.send(Box::new(job)).map_err(|_| PyRuntimeError::new_err("the machine is gone"))?;
        loop {
            match heard(py, &told, LOOK) {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(panic)) => return Err(failure(&*panic)),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("the machine is gone"));
                }
                Err(RecvTimeoutError::Timeout) => py.check_signals().inspect_err(|_| {
                    self.stop();
                    let _ = heard(py, &told, PATIENCE);
                })?,
            }
        }
    }
}

impl<S> Apart<S> {
    /// Ends the job under way early.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl<S> Drop for Apart<S> {
    /// Nobody waits any more for what is under way.
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits without the interpreter. Only what threads may share can be used meanwhile: hence the lock, which nobody else takes.
fn heard<T: Send>(py: Python<'_>, told: &Mutex<Receiver<T>>, wait: Duration) -> Result<T, RecvTimeoutError> {
    py.detach(|| told.lock().map_err(|_| RecvTimeoutError::Disconnected)?.recv_timeout(wait))
}

/// A panic as an exception.
fn failure(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    PyRuntimeError::new_err(format!("a fault of nandscape's own, please report it: {text}"))
}
