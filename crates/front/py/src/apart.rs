//! Worker thread for a machine, so that the interpreter stays free and interrupts are handled.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Poll interval for interrupts.
const LOOK: Duration = Duration::from_millis(50);
/// Time to wait for work that was told to stop: opening a long trace does not check for stops.
const PATIENCE: Duration = Duration::from_secs(2);

type Job<S> = Box<dyn FnOnce(&mut S) + Send>;

/// Thread that owns a state which cannot leave it, and runs jobs on it one after another.
pub(crate) struct Apart<S> {
    jobs: Sender<Job<S>>,
    /// Stop flag that ends a job early.
    stop: Arc<AtomicBool>,
}

impl<S: 'static> Apart<S> {
    /// Starts the thread with the state that `make` creates in it.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
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

    /// Runs a job, and waits for it with the interpreter released.
    ///
    /// # Errors
    /// An exception raised by a Python signal handler; the job is told to stop. `RuntimeError` if the job panics; the
    /// state is lost then.
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
            // The caller may have gone.
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
    /// Ends the current job early.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl<S> Drop for Apart<S> {
    /// Stops the current job: nothing waits for its result.
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits with the interpreter released. Only shared data can be used meanwhile, hence the lock, which is uncontended.
fn heard<T: Send>(py: Python<'_>, told: &Mutex<Receiver<T>>, wait: Duration) -> Result<T, RecvTimeoutError> {
    py.detach(|| told.lock().map_err(|_| RecvTimeoutError::Disconnected)?.recv_timeout(wait))
}

/// Converts a panic to an exception.
fn failure(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    PyRuntimeError::new_err(format!("internal error in nandscape, please report it: {text}"))
}
