//! Policies written in Python.

use compute::ooo::sched::{Choice, Moment, ThreadScheduler, ThreadView as Seen};
use config::Diagnostic;
use engine::Time;
use ftl::page_map::gc::{Victim, VictimView};
use machine::run::{Policies, Schedulers};
use mem::dram_cache::admit::Admission;
use pyo3::{
    exceptions::{PyKeyError, PyValueError},
    prelude::*,
};
use spec::{Loaded, MemorySpec};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Functions with the keys of the policies that they implement.
pub(crate) type Functions = Vec<(String, Py<PyAny>)>;

/// Exception raised by a policy, kept until its run raises it.
#[derive(Clone, Default)]
pub(crate) struct Trouble(Arc<Mutex<Option<PyErr>>>);

impl Trouble {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the exception.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.lock().take()
    }
}

/// Function that decides, and ends the run if it fails.
pub(crate) struct Function {
    function: Arc<Py<PyAny>>,
    trouble: Trouble,
    /// Stop flag of the policy's run.
    stop: Arc<AtomicBool>,
}

impl Function {
    /// Calls the function; `None` once it has raised an exception. The run ends at its next check, and decisions until
    /// then do not matter.
    fn ask<T>(&self, decide: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<T>) -> Option<T> {
        if self.trouble.lock().is_some() {
            return None;
        }
        match Python::attach(|py| decide(py, &self.function)) {
            Ok(decided) => Some(decided),
            Err(raised) => {
                *self.trouble.lock() = Some(raised);
                self.stop.store(true, Ordering::Relaxed);
                None
            }
        }
    }
}

/// Builds policies of a system from functions.
///
/// # Errors
/// A key is not a policy of the system that can be written in Python.
pub(crate) fn policies(
    loaded: &Loaded,
    functions: Functions,
    trouble: &Trouble,
    stop: &Arc<AtomicBool>,
) -> Result<Policies, Diagnostic> {
    let spec = &loaded.spec;
    let victims = spec.flash.iter().map(|part| format!("{}.ftl.gc.victim", part.table())).collect::<Vec<_>>();
    let admission = |part: &spec::Part<MemorySpec>| match part.spec {
        MemorySpec::DramCache(_) => Some(format!("{}.dram_cache.admission", part.table())),
        _ => None,
    };
    let admissions = spec.memory.iter().map(admission).collect::<Vec<_>>();
    let schedulers =
        spec.cpu.iter().map(|part| format!("{}.threads.scheduler", part.table())).collect::<Vec<_>>();
    let mut policies = Policies::default();
    for (name, function) in functions {
        let function = Arc::new(function);
        let (trouble, stop) = (trouble.clone(), Arc::clone(stop));
        let made = move || Function {
            function: Arc::clone(&function),
            trouble: trouble.clone(),
            stop: Arc::clone(&stop),
        };
        let of = |keys: &[String]| (0..keys.len()).filter(|n| keys[*n] == name).collect::<Vec<_>>();
        let drives = of(&victims);
        let servers = of(&schedulers);
        let memories: Vec<usize> =
            (0..admissions.len()).filter(|n| admissions[*n].as_ref() == Some(&name)).collect();
        if drives.is_empty() && memories.is_empty() && servers.is_empty() {
            let what = format!("`policies` names `{name}`, which cannot be written in Python");
            let known = victims.iter().chain(admissions.iter().flatten()).chain(&schedulers).cloned();
            return Err(Diagnostic::new(what).allowed(&name, known));
        }
        policies.victims.extend(drives.into_iter().map(|n| (n, Box::new(made()) as _)));
        policies.admissions.extend(memories.into_iter().map(|n| (n, Box::new(made()) as _)));
        let made = Arc::new(made);
        policies.schedulers.extend(servers.into_iter().map(|n| {
            let made = Arc::clone(&made);
            (n, Box::new(move || Box::new(made()) as Box<dyn ThreadScheduler>) as Schedulers)
        }));
    }
    Ok(policies)
}

// Admission: which missing pages a DRAM cache keeps.

impl Admission for Function {
    fn admits(&mut self, page: u64) -> bool {
        self.ask(|py, function| function.call1(py, (page,))?.extract::<bool>(py)).unwrap_or(true)
    }
}

// Thread scheduler: which thread of a core runs next.

/// Word for a new job.
const NEW: &str = "new";

/// Exception for an invalid choice.
fn refused(what: &str) -> PyErr {
    PyValueError::new_err(format!("the policy {what}"))
}

/// Converts a choice, if the contract of the family allows it.
fn allowed(py: Python<'_>, said: &Py<PyAny>, view: &Seen<'_>) -> PyResult<Choice> {
    if let Ok(word) = said.extract::<String>(py) {
        return match word.as_str() {
            NEW if view.new => Ok(Choice::New),
            NEW => Err(refused("chose a new job, but no job or no thread is available")),
            _ => Err(refused(&format!(
                "returned `{word}`: allowed are `new`, the index of a halted job, or None to sleep"
            ))),
        };
    }
    match said.extract::<Option<u32>>(py)? {
        Some(n) if (n as usize) < view.halted.len() => Ok(Choice::Resume(n)),
        Some(n) => Err(refused(&format!("chose halted job {n} of {}", view.halted.len()))),
        None if view.new => Err(refused("chose to sleep while a new job is waiting")),
        None if view.is_due() => Err(refused("chose to sleep while the oldest halted job is due")),
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

/// View of a thread scheduler at the time of the call. Times are in nanoseconds.
#[pyclass(frozen, module = "nandscape._native")]
pub(crate) struct ThreadView {
    /// Reason of the call: `ended`, the running job has ended or nothing runs; `missed`, its page is in flash.
    #[pyo3(get)]
    moment: &'static str,
    /// Current time.
    #[pyo3(get)]
    now: f64,
    /// True if a new job is waiting and a thread can run it.
    #[pyo3(get)]
    new: bool,
    /// Halted jobs in the order of halting: the time of halting, and whether the core knows that the page has arrived.
    #[pyo3(get)]
    halted: Vec<(f64, bool)>,
    /// Measured response time of flash; `None` before the first response.
    #[pyo3(get)]
    response: Option<f64>,
    /// True if the oldest job has been halted for that time.
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

// Victim: what GC reclaims.

impl Victim for Function {
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32> {
        let decide = |py: Python<'_>, function: &Py<PyAny>| {
            let found = function.call1(py, (View::of(view),))?.extract::<Option<u32>>(py)?;
            match found {
                Some(unit) if !view.by_age().any(|closed| closed == unit) => {
                    let what = format!("the policy chose unit {unit}, which is not closed");
                    Err(PyValueError::new_err(what))
                }
                found => Ok(found),
            }
        };
        self.ask(decide).unwrap_or_else(|| view.by_valid().next())
    }
}

/// View of a victim policy at the time of the call: the closed reclaim units of one group.
#[pyclass(frozen, module = "nandscape._native")]
pub(crate) struct View {
    /// Map units written to flash so far: the clock of ages.
    #[pyo3(get)]
    now: u64,
    /// Map units per reclaim unit.
    #[pyo3(get)]
    units_per_ru: u32,
    /// Map units per program unit.
    #[pyo3(get)]
    units_per_program: u32,
    /// Closed units in the order of closing.
    #[pyo3(get)]
    by_age: Vec<u32>,
    /// Head of each occupied bucket, fewest valid units first; within a bucket, the least recently changed unit.
    #[pyo3(get)]
    by_valid: Vec<u32>,
    /// Valid map units, age and erase count, by the unit's number; `None` for a unit that is not closed.
    units: Vec<Option<(u32, u64, u32)>>,
}

impl View {
    fn of(view: &VictimView<'_>) -> View {
        let by_age: Vec<u32> = view.by_age().collect();
        let mut units = vec![None; by_age.iter().max().map_or(0, |most| *most as usize + 1)];
        for unit in &by_age {
            units[*unit as usize] = Some((view.valid(*unit), view.age(*unit), view.erases(*unit)));
        }
        View {
            now: view.now,
            units_per_ru: view.units_per_ru,
            units_per_program: view.units_per_program,
            by_valid: view.by_valid().collect(),
            by_age,
            units,
        }
    }

    fn unit(&self, unit: usize) -> PyResult<(u32, u64, u32)> {
        let found = self.units.get(unit).copied().flatten();
        found.ok_or_else(|| PyKeyError::new_err(format!("unit {unit} is not closed")))
    }
}

#[pymethods]
impl View {
    fn __len__(&self) -> usize {
        self.by_age.len()
    }

    /// Number of valid map units of a closed unit.
    fn valid(&self, unit: usize) -> PyResult<u32> {
        Ok(self.unit(unit)?.0)
    }

    /// Map units written to flash since the unit was closed.
    fn age(&self, unit: usize) -> PyResult<u64> {
        Ok(self.unit(unit)?.1)
    }

    /// Erase count of the most worn block of the unit.
    fn erases(&self, unit: usize) -> PyResult<u32> {
        Ok(self.unit(unit)?.2)
    }
}
