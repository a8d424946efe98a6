//! What collection takes back.

use super::Function;
use ftl::page_map::gc::{Victim, VictimView};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

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
