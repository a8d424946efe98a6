//! A machine that is run in steps.

use crate::apart::Apart;
use crate::fault::Fault;
use crate::plan::Plan;
use crate::policy::{InPython, Trouble};
use crate::requests::Requests;
use crate::table::Table;
use ::machine::run::{Observers, Outside, Plan as OfMachine, Policies, Session, Stage};
use config::Diagnostic;
use config::units::Duration;
use kernel::Time;
use outside::{Clocks, peak_rss};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What the thread of a machine has.
struct State {
    session: Option<Session>,
    requests: Option<Requests>,
    trouble: Trouble,
    clocks: Clocks,
    /// Seconds that jobs have taken.
    busy_s: f64,
    stop: Arc<AtomicBool>,
}

impl State {
    /// Builds the machine. A fault of the system is told apart from one of a workload only when there is one.
    fn open(&mut self, plan: &OfMachine, victims: Victims) -> Result<(), Fault> {
        let of = |fault: Diagnostic| {
            if plan.load().is_err() { Fault::spec(fault) } else { Fault::workload(fault) }
        };
        let policies = self.policies(plan, victims).map_err(of)?;
        let observers = Observers {
            requests: self.requests.as_ref().map(|requests| Box::new(requests.clone()) as _),
            ..Observers::default()
        };
        let opened = self.lend(|outside| Session::open(plan, outside, observers, policies));
        self.session = opened.map_err(of)?;
        Ok(())
    }

    /// Functions by the key that names a policy of theirs: that of a table of drives.
    fn policies(&self, plan: &OfMachine, victims: Victims) -> Result<Policies, Diagnostic> {
        let mut policies = Policies::default();
        if victims.is_empty() {
            return Ok(policies);
        }
        let parts = plan.load()?.spec.flash;
        let key = |table: &str| format!("{table}.ftl.gc.victim");
        for (name, function) in victims {
            let of: Vec<usize> = (0..parts.len()).filter(|n| key(parts[*n].table()) == name).collect();
            if of.is_empty() {
                let what = format!("`policies` names `{name}`, which cannot be written in Python");
                return Err(Diagnostic::new(what).allowed(&name, parts.iter().map(|part| key(part.table()))));
            }
            let victim = || InPython {
                function: Python::attach(|py| function.clone_ref(py)),
                trouble: self.trouble.clone(),
                stop: Arc::clone(&self.stop),
            };
            policies.victims.extend(of.into_iter().map(|n| (n, Box::new(victim()) as _)));
        }
        Ok(policies)
    }

    /// Lends what a session needs of the outside.
    fn lend<T>(&self, job: impl FnOnce(&mut Outside<'_>) -> T) -> T {
        job(&mut Outside {
            cpu_s: &|| self.clocks.cpu_s(),
            wall_s: &|| self.clocks.wall_s(),
            peak_rss: &peak_rss,
            stop: &self.stop,
            watch: &mut |_: Stage<'_>| {},
            states: None,
        })
    }
}

/// Functions that stand for victim policies, with the key of each.
type Victims = Vec<(String, Py<PyAny>)>;

/// A machine that runs, in a thread of its own.
#[pyclass(frozen, module = "nandscape._native")]
pub(crate) struct Machine(Apart<State>);

impl Machine {
    /// Does a job, and raises what a policy has raised meanwhile.
    fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        job: impl FnOnce(&mut State) -> T + Send + 'static,
    ) -> PyResult<T> {
        let (done, trouble) = self.0.call(py, |state| {
            let begun = state.clocks.wall_s();
            let done = job(state);
            state.busy_s += state.clocks.wall_s() - begun;
            (done, state.trouble.take())
        })?;
        trouble.map_or(Ok(done), Err)
    }

    /// As [`Machine::with`], on the session.
    fn on<T: Send + 'static>(
        &self,
        py: Python<'_>,
        job: impl FnOnce(&mut Session, &mut Outside<'_>) -> T + Send + 'static,
    ) -> PyResult<T> {
        let done = self.with(py, |state| {
            let mut session = state.session.take()?;
            let done = state.lend(|outside| job(&mut session, outside));
            state.session = Some(session);
            Some(done)
        })?;
        done.ok_or_else(|| PyRuntimeError::new_err("the machine was interrupted before it was built"))
    }
}

#[pymethods]
impl Machine {
    /// Builds the machine and brings it into its state. `requests` are recorded, with `waits` also what each waited for. `victims` are functions by the keys whose policies they stand for.
    #[new]
    #[pyo3(signature = (plan, *, requests = false, waits = false, victims = Vec::new()))]
    fn new(py: Python<'_>, plan: &Plan, requests: bool, waits: bool, victims: Victims) -> PyResult<Machine> {
        let plan = plan.0.clone();
        let apart = Apart::begin(move |stop| State {
            session: None,
            requests: requests.then(|| Requests::new(waits)),
            trouble: Trouble::default(),
            clocks: Clocks::start(),
            busy_s: 0.0,
            stop,
        })?;
        let machine = Machine(apart);
        machine.with(py, move |state| state.open(&plan, victims))?.map_err(|fault| fault.raised(py))?;
        Ok(machine)
    }

    /// Runs to the end, or up to and with the first event at a time or later (`10ms`).
    #[pyo3(signature = (until = None))]
    fn run(&self, py: Python<'_>, until: Option<&str>) -> PyResult<()> {
        let read = |text: &str| text.parse::<Duration>().map(|until| until.time());
        let pause = until.map(read).transpose().map_err(|fault| Fault::workload(fault).raised(py))?;
        let ran = self.on(py, move |session, outside| session.run(outside, pause.unwrap_or(Time::MAX)))?;
        ran.map_err(|fault| Fault::workload(fault).raised(py))
    }

    /// Wall-clock seconds that the machine's own thread has worked: without it, what is left of a run's time is Python's.
    fn busy_s(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |state| state.busy_s)
    }

    /// Ends what is under way early; whoever waits for it goes on.
    fn stop(&self) {
        self.0.stop();
    }

    /// Simulated time in nanoseconds, events run, requests or jobs completed, and whether the run has ended.
    fn look(&self, py: Python<'_>) -> PyResult<(f64, u64, u64, bool)> {
        self.on(py, |session, _| {
            let machine = session.machine();
            (machine.now().as_ns_f64(), machine.events, machine.completed(), session.end().is_some())
        })
    }

    /// The result document so far, in JSON.
    fn result(&self, py: Python<'_>) -> PyResult<String> {
        self.on(py, |session, outside| session.document(outside).to_json())
    }

    /// The requests so far, if they are recorded; with `take` they are forgotten, and not copied.
    #[pyo3(signature = (*, take = false))]
    fn requests(&self, py: Python<'_>, take: bool) -> PyResult<Option<Table>> {
        let table = self.with(py, move |state| {
            state.requests.as_ref().map(|requests| if take { requests.take() } else { requests.so_far() })
        })?;
        table.transpose().map_err(|fault| PyRuntimeError::new_err(fault.to_string()))
    }
}
