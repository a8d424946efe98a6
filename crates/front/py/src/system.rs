//! Systems, and what they and their results are made of.

use crate::fault::Fault;
use ::machine::result::metrics as of_result;
use ::machine::run::Plan as OfMachine;
use ::machine::systems::SYSTEMS;
use ::machine::workloads::WORKLOADS;
use pyo3::prelude::*;

/// A system with its overrides: the resolved spec as TOML, and as a result document has it, in JSON.
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

/// The names of the systems that are shipped.
#[pyfunction]
pub(crate) fn systems() -> Vec<&'static str> {
    SYSTEMS.iter().map(|(name, _)| *name).collect()
}

/// The workloads that are shipped: name, meaning, job.
#[pyfunction]
pub(crate) fn workloads() -> Vec<(&'static str, &'static str, &'static str)> {
    WORKLOADS.to_vec()
}

/// Keys of a spec below a prefix: key, kind with units, limits and default, meaning.
#[pyfunction]
pub(crate) fn params(py: Python<'_>, prefix: &str) -> PyResult<Vec<(String, String, String)>> {
    let found = config::schema::params(::machine::spec::document(), prefix);
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

/// The JSON Schema of a system file.
#[pyfunction]
pub(crate) fn schema() -> String {
    ::machine::spec::of_file().to_string()
}
