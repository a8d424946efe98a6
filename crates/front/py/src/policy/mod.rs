//! Policies written in Python.

mod admission;
mod threads;
mod victim;

pub(crate) use threads::ThreadView;
pub(crate) use victim::View;

use ::machine::run::{Policies, Schedulers};
use ::machine::spec::{Loaded, MemorySpec};
use compute::ooo::sched::ThreadScheduler;
use config::Diagnostic;
use pyo3::prelude::*;
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
    let admission = |part: &::machine::spec::Part<MemorySpec>| match part.spec {
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
