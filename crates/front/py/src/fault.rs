//! Diagnostics as exceptions of the Python package.

use config::Diagnostic;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Input that a fault is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Of {
    /// System, or an override of it.
    Spec,
    /// Workload, or its run options.
    Workload,
}

/// Unusable input.
#[derive(Debug)]
pub(crate) struct Fault {
    of: Of,
    diagnostic: Diagnostic,
}

impl Fault {
    /// Creates a fault of a system.
    pub(crate) fn spec(diagnostic: Diagnostic) -> Fault {
        Fault { of: Of::Spec, diagnostic }
    }

    /// Creates a fault of a workload, or of the system if it is placed at a key of the system.
    pub(crate) fn workload(diagnostic: Diagnostic) -> Fault {
        // Keys of an fio job have no table.
        let at_key = diagnostic.place.as_ref().is_some_and(|place| place.key.contains('.'));
        Fault { of: if at_key { Of::Spec } else { Of::Workload }, diagnostic }
    }
}

/// Rewrites command-line options as the keywords of Python.
fn pythonic(text: &str) -> String {
    ["set", "precondition", "warmup", "workload"]
        .iter()
        .fold(text.to_owned(), |text, option| text.replace(&format!("--{option}"), option))
}

impl Fault {
    /// Converts the fault to the package's exception.
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
