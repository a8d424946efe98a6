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

/// Functions with the keys whose policies they stand for.
pub(crate) type Functions = Vec<(String, Py<PyAny>)>;

/// The exception that a policy has raised, until the run that it ends raises it.
#[derive(Clone, Default)]
pub(crate) struct Trouble(Arc<Mutex<Option<PyErr>>>);

impl Trouble {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes it.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.lock().take()
    }
}

/// A function that decides, and what it does to the run when it fails.
pub(crate) struct Function {
    function: Arc<Py<PyAny>>,
    trouble: Trouble,
    /// Ends the run that the policy is in.
    stop: Arc<AtomicBool>,
}

impl Function {
    /// What the function says; none once it has raised something. The run ends at the next look: until then, what it does is of no account.
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

/// Functions as policies of a system.
///
/// # Errors
/// A key that names no policy of the system that can be written in Python.
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

// Which missing pages a DRAM cache keeps.

impl Admission for Function {
    fn admits(&mut self, page: u64) -> bool {
        self.ask(|py, function| function.call1(py, (page,))?.extract::<bool>(py)).unwrap_or(true)
    }
}

// Which thread of a core runs next.

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

// What collection takes back.

impl Victim for Function {
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32> {
        let decide = |py: Python<'_>, function: &Py<PyAny>| {
            let found = function.call1(py, (View::of(view),))?.extract::<Option<u32>>(py)?;
            match found {
                Some(unit) if !view.by_age().any(|closed| closed == unit) => {
                    let what = format!("the policy has chosen unit {unit}, which is not closed");
                    Err(PyValueError::new_err(what))
                }
                found => Ok(found),
            }
        };
        self.ask(decide).unwrap_or_else(|| view.by_valid().next())
    }
}

/// What a victim policy may look at: the closed reclaim units of one group, as they are when it is asked.
#[pyclass(frozen, module = "nandscape._native")]
pub(crate) struct View {
    /// Map units written to flash so far: the clock that ages are measured on.
    #[pyo3(get)]
    now: u64,
    /// Map units a reclaim unit.
    #[pyo3(get)]
    units_per_ru: u32,
    /// Map units a program unit.
    #[pyo3(get)]
    units_per_program: u32,
    /// The closed units, the one closed first before the others.
    #[pyo3(get)]
    by_age: Vec<u32>,
    /// The head of each occupied bucket, fewest valid units first; in a bucket, the one unchanged for longest.
    #[pyo3(get)]
    by_valid: Vec<u32>,
    /// Valid map units, age and erases, by the unit's number; none of a unit that is not closed.
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

    /// Valid map units of a closed unit.
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
