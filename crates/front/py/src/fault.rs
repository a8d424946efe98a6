//! Diagnostics as exceptions of the package.

use config::Diagnostic;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What is unusable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Of {
    /// The system, or what is set in it.
    Spec,
    /// The workload, or how it is run.
    Workload,
}

/// Unusable input.
#[derive(Debug)]
pub(crate) struct Fault {
    of: Of,
    diagnostic: Diagnostic,
}

impl Fault {
    /// A fault of a system.
    pub(crate) fn spec(diagnostic: Diagnostic) -> Fault {
        Fault { of: Of::Spec, diagnostic }
    }

    /// A fault of a workload, unless it stands at a key of the system.
    pub(crate) fn workload(diagnostic: Diagnostic) -> Fault {
        // Keys of an fio job have no tables above them.
        let at_key = diagnostic.place.as_ref().is_some_and(|place| place.key.contains('.'));
        Fault { of: if at_key { Of::Spec } else { Of::Workload }, diagnostic }
    }
}

/// As a caller of Python has written it: options of the command are keywords there.
fn pythonic(text: &str) -> String {
    ["set", "precondition", "warmup", "workload"]
        .iter()
        .fold(text.to_owned(), |text, option| text.replace(&format!("--{option}"), option))
}

impl Fault {
    /// The exception of the package.
    pub(crate) fn raised(&self, py: Python<'_>) -> PyErr {
        self.exception(py).unwrap_or_else(|fault| fault)
    }

    fn exception(&self, py: Python<'_>) -> PyResult<PyErr> {
        let class = py.import("nandscape._errors")?.getattr(match self.of {
            Of::Spec => "SpecError",
            Of::Workload => "WorkloadError",
        })?;
        let Diagnostic { what, place, nearest, allowed, help, .. } = &self.diagnostic;
        let text = self.diagnostic.to_string();
        let fields = PyDict::new(py);
        fields.set_item("what", what)?;
        fields.set_item("key", place.as_ref().map_or("", |place| place.key.as_str()))?;
        fields.set_item("place", place.as_ref().map(|place| pythonic(&place.to_string())))?;
        fields.set_item("nearest", nearest)?;
        fields.set_item("allowed", allowed)?;
        fields.set_item("help", help.as_deref().map(pythonic))?;
        let message = pythonic(text.strip_prefix("error: ").unwrap_or(&text));
        Ok(PyErr::from_value(class.call((message,), Some(&fields))?))
    }
}
