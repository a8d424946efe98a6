//! What is to be run.

use crate::fault::Fault;
use ::machine::Warmup;
use ::machine::run::Plan as OfMachine;
use pyo3::prelude::*;

/// What is to be run: as the command is told it.
#[pyclass(frozen, module = "nandscape._native")]
#[derive(Clone)]
pub(crate) struct Plan {
    plan: OfMachine,
    /// The state of the drives at the beginning, if it is another than the system's.
    state: Option<String>,
}

impl Plan {
    /// As a machine takes it. The system is read for that, if a state was given: it is done in the machine's thread.
    ///
    /// # Errors
    /// The system cannot be read, or has no such state.
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
}
