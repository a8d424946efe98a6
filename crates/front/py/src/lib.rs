//! Extension module behind the Python package `nandscape`: it converts data, and releases the interpreter while a
//! machine runs. The package's interface is written in Python (`python/nandscape`).
//!
//! * Knows Python objects and the plans and documents that they represent.
//! * Does not know any rule of a spec: the machine refuses bad ones.
//! * Read first: `machine.rs`.

mod apart;
mod fault;
mod machine;
mod policy;
mod requests;
mod table;

use pyo3::prelude::*;

/// Functions that the package needs from Rust.
#[pymodule(gil_used = false)]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::machine::{
        Machine, Plan, metrics, nearby, params, refuse_unknown_metric, report, resolve, schema, systems,
        workloads,
    };
    #[pymodule_export]
    use super::policy::{ThreadView, View};
    #[pymodule_export]
    use super::table::{Column, Table};

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        identity::built_from(env!("NANDSCAPE_COMMIT"));
        m.add("__commit__", identity::commit())?;
        m.add("__results__", identity::RESULTS)?;
        m.add("__version__", identity::VERSION)
    }
}
