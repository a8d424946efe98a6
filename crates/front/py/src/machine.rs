//! Machine that runs in steps.

use crate::apart::Apart;
use crate::fault::Fault;
use crate::policy::{Functions, Trouble, policies};
use crate::requests::Requests;
use crate::table::Table;
use config::Diagnostic;
use config::units::Duration;
use engine::Time;
use machine::Warmup;
use machine::plan::workloads::WORKLOADS;
use machine::result::metrics as of_result;
use machine::run::{Observers, Outside, Plan as OfMachine, Policies, Session, Several, Stage};
use outside::{Clocks, peak_rss};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use spec::systems::SYSTEMS;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use timeline::{Format, Timeline, show};

/// State of a machine's thread.
struct State {
    session: Option<Session>,
    requests: Option<Requests>,
    timeline: Option<Timeline>,
    trouble: Trouble,
    clocks: Clocks,
    /// Time spent in jobs, in seconds.
    busy_s: f64,
    stop: Arc<AtomicBool>,
}

impl State {
    /// Builds the machine. Only after a failure does it find out whether the system or a workload is at fault.
    fn open(&mut self, plan: &OfMachine, functions: Functions) -> Result<(), Fault> {
        let of = |fault: Diagnostic| {
            if plan.load().is_err() { Fault::spec(fault) } else { Fault::workload(fault) }
        };
        let policies = if functions.is_empty() {
            Policies::default()
        } else {
            let loaded = plan.load().map_err(of)?;
            policies(&loaded, functions, &self.trouble, &self.stop).map_err(of)?
        };
        let observers = self.observers();
        let opened = self.lend(|outside| Session::open(plan, outside, observers, policies));
        self.session = opened.map_err(of)?;
        Ok(())
    }

    /// Observers of the run.
    fn observers(&self) -> Observers {
        let mut observers = self.timeline.as_ref().map(Timeline::observers).unwrap_or_default();
        let own = self.requests.as_ref().map(|requests| Box::new(requests.clone()) as _);
        observers.requests = match (own, observers.requests.take()) {
            (Some(one), Some(other)) => Some(Box::new(Several(vec![one, other]))),
            (one, other) => one.or(other),
        };
        observers
    }

    /// Gives a session access to the clock and other outside services.
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

/// Running machine in a thread of its own.
#[pyclass(frozen, module = "nandscape._native")]
pub(crate) struct Machine(Apart<State>);

impl Machine {
    /// Runs a job, and raises any exception of a policy.
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

    /// Runs a job on the session; see [`Machine::with`].
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
    /// Builds the machine and preconditions it. `requests` records requests, `waits` also their waits. `functions` are
    /// policies by the keys that they implement.
    #[new]
    #[pyo3(signature = (plan, *, requests = false, waits = false, timeline = None, functions = Vec::new()))]
    fn new(
        py: Python<'_>,
        plan: &Plan,
        requests: bool,
        waits: bool,
        timeline: Option<&str>,
        functions: Functions,
    ) -> PyResult<Machine> {
        let fault = |what: String| {
            let help = "give `all`, `slowest`, or a window such as `window=1ms..2ms`";
            Fault::workload(Diagnostic::new(format!("`timeline`: {what}")).help(help)).raised(py)
        };
        let shown = timeline.map(show).transpose().map_err(fault)?;
        let plan = plan.clone();
        let apart = Apart::begin(move |stop| State {
            session: None,
            requests: requests.then(|| Requests::new(waits)),
            timeline: None,
            trouble: Trouble::default(),
            clocks: Clocks::start(),
            busy_s: 0.0,
            stop,
        })?;
        let machine = Machine(apart);
        let opened = machine.with(py, move |state| {
            let plan = plan.resolved()?;
            if let Some(shown) = shown {
                state.timeline = Some(Timeline::new(shown, &plan.load().map_err(Fault::spec)?));
            }
            state.open(&plan, functions)
        })?;
        opened.map_err(|fault| fault.raised(py))?;
        Ok(machine)
    }

    /// Runs to the end, or through the first event at or after a time (`10ms`).
    #[pyo3(signature = (until = None))]
    fn run(&self, py: Python<'_>, until: Option<&str>) -> PyResult<()> {
        let read = |text: &str| text.parse::<Duration>().map(|until| until.time());
        let pause = until.map(read).transpose().map_err(|fault| Fault::workload(fault).raised(py))?;
        let ran = self.on(py, move |session, outside| session.run(outside, pause.unwrap_or(Time::MAX)))?;
        ran.map_err(|fault| Fault::workload(fault).raised(py))
    }

    /// Changes policies from now on: overrides of the spec, and functions by the keys that they implement.
    fn change(&self, py: Python<'_>, set: Vec<String>, functions: Functions) -> PyResult<()> {
        let changed = self.with(py, move |state| {
            let Some(mut session) = state.session.take() else { return Ok(()) };
            let policies = policies(session.system(), functions, &state.trouble, &state.stop);
            let changed = policies.and_then(|policies| session.change(&set, policies));
            state.session = Some(session);
            changed
        })?;
        changed.map_err(|fault| Fault::spec(fault).raised(py))
    }

    /// Takes the timeline in Perfetto's format, if recorded, with notes on omitted events.
    fn timeline<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyBytes>, Vec<String>)>> {
        let written = self.with(py, |state| {
            let timeline = state.timeline.take()?;
            let mut session = state.session.take()?;
            let document = state.lend(|outside| session.document(outside));
            let mut bytes = Vec::new();
            let told = timeline.write(&document, Format::Pftrace, &mut bytes);
            state.session = Some(session);
            Some(told.map(|told| (bytes, told)))
        })?;
        let written = written.transpose().map_err(|fault| PyRuntimeError::new_err(fault.to_string()))?;
        Ok(written.map(|(bytes, told)| (PyBytes::new(py, &bytes), told)))
    }

    /// Wall-clock time spent in the machine's own thread, in seconds; the rest of a run's time is Python's.
    fn busy_s(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |state| state.busy_s)
    }

    /// Ends the current job early; its caller goes on.
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

    /// Result document so far, in JSON.
    fn result(&self, py: Python<'_>) -> PyResult<String> {
        self.on(py, |session, outside| session.document(outside).to_json())
    }

    /// Requests so far, if recorded; `take` moves them out instead of copying.
    #[pyo3(signature = (*, take = false))]
    fn requests(&self, py: Python<'_>, take: bool) -> PyResult<Option<Table>> {
        let table = self.with(py, move |state| {
            state.requests.as_ref().map(|requests| if take { requests.take() } else { requests.so_far() })
        })?;
        table.transpose().map_err(|fault| PyRuntimeError::new_err(fault.to_string()))
    }
}

/// Run to make, as given to the command.
#[pyclass(frozen, module = "nandscape._native")]
#[derive(Clone)]
pub(crate) struct Plan {
    plan: OfMachine,
    /// Initial state of the drives, if it differs from the system's.
    state: Option<String>,
}

impl Plan {
    /// Converts to the machine's plan. If a state was given, the system is read: call this in the machine's thread.
    ///
    /// # Errors
    /// The system cannot be read, or does not know the state.
    pub(crate) fn resolved(self) -> Result<OfMachine, Fault> {
        let Plan { mut plan, state } = self;
        if let Some(state) = state {
            plan.set.extend(plan.overrides_of_state(&state).map_err(Fault::spec)?);
        }
        Ok(plan)
    }
}

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (system, text, set, workloads, seed, precondition, warmup, queue_depth))]
    #[expect(clippy::too_many_arguments, reason = "the package names each")]
    fn new(
        py: Python<'_>,
        system: String,
        text: Option<String>,
        set: Vec<String>,
        workloads: Vec<String>,
        seed: u64,
        precondition: Option<String>,
        warmup: Option<&str>,
        queue_depth: Option<u32>,
    ) -> PyResult<Plan> {
        let mut plan = OfMachine { text, set, workloads, seed, queue_depth, ..OfMachine::new(&system, "") };
        let help = "warmup takes a number of requests or a time";
        let read = |text: &str| text.parse::<Warmup>().map_err(|fault| Fault::workload(fault.help(help)));
        plan.warmup = warmup.map(read).transpose().map_err(|fault| fault.raised(py))?;
        Ok(Plan { plan, state: precondition })
    }

    /// The plan with one more override, `key=value`.
    fn with_set(&self, set: String) -> Plan {
        let mut plan = self.clone();
        plan.plan.set.push(set);
        plan
    }
}

// Systems, their parameters, and the fields of results.

/// Resolves a system with its overrides: the spec as TOML, and in JSON as in a result document.
#[pyfunction]
pub(crate) fn resolve(
    py: Python<'_>,
    name: &str,
    text: Option<String>,
    set: Vec<String>,
) -> PyResult<(String, String)> {
    let plan = OfMachine { text, set, ..OfMachine::new(name, "") };
    let loaded = py.detach(|| plan.load()).map_err(|fault| Fault::spec(fault).raised(py))?;
    Ok((loaded.to_toml(), loaded.spec.to_json().to_string()))
}

/// Names of the shipped systems.
#[pyfunction]
pub(crate) fn systems() -> Vec<&'static str> {
    SYSTEMS.iter().map(|(name, _)| *name).collect()
}

/// Shipped workloads: name, meaning, job.
#[pyfunction]
pub(crate) fn workloads() -> Vec<(&'static str, &'static str, &'static str)> {
    WORKLOADS.to_vec()
}

/// Spec keys below a prefix: key, kind with units, limits and default, meaning.
#[pyfunction]
pub(crate) fn params(py: Python<'_>, prefix: &str) -> PyResult<Vec<(String, String, String)>> {
    let found = config::schema::params(spec::document(), prefix);
    let found = found.map_err(|fault| Fault::spec(fault).raised(py))?;
    Ok(found.into_iter().map(|param| (param.key.clone(), param.kind_and_default(), param.doc)).collect())
}

/// Fields of the result document: key with `*` for an index or a name, unit, meaning.
#[pyfunction]
pub(crate) fn metrics() -> Vec<(String, &'static str, String)> {
    let whole = |metric: of_result::Metric| {
        let of = metric.of.map(|of| format!(" Of: {of}")).unwrap_or_default();
        (metric.key, metric.unit, format!("{}{of}", metric.doc))
    };
    of_result::all().into_iter().map(whole).collect()
}

/// Refuses the name of a metric that no result document has.
#[pyfunction]
pub(crate) fn refuse_unknown_metric(py: Python<'_>, name: &str) -> PyResult<()> {
    of_result::refuse_unknown(name).map_err(|fault| Fault::workload(fault).raised(py))
}

/// Numbers of a plan's spec with their neighbours: key, value, the value over and times `factor` where there is one. `below` selects
/// keys by their beginnings.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "the package names each")]
pub(crate) fn nearby(
    py: Python<'_>,
    plan: &Plan,
    below: Vec<String>,
    factor: f64,
) -> PyResult<Vec<(String, String, Option<String>, Option<String>)>> {
    let plan = plan.clone();
    let found = py.detach(|| {
        let plan = plan.resolved()?;
        machine::plan::nearby::nearby(&plan, &below, factor).map_err(Fault::spec)
    });
    let found = found.map_err(|fault| fault.raised(py))?;
    Ok(found.into_iter().map(|one| (one.key, one.now, one.less, one.more)).collect())
}

/// The page of a result document, as `nandscape report` draws it.
#[pyfunction]
pub(crate) fn report(py: Python<'_>, name: &str, document: &str) -> PyResult<String> {
    let page =
        py.detach(|| ::report::Run::read(name, document.as_bytes()).map(|run| ::report::run(&run, None)));
    page.map_err(|fault| Fault::workload(fault).raised(py))
}

/// JSON Schema of a system file.
#[pyfunction]
pub(crate) fn schema() -> String {
    spec::of_file().to_string()
}
