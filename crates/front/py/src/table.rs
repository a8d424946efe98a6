//! Columns as Arrow arrays, exported through the PyCapsule interface without copies.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, RecordBatchIterator,
    StringArray,
};
use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyAttributeError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyInt, PyList, PyString};
use std::fmt::Display;
use std::sync::Arc;

/// Named columns of one length.
#[pyclass(frozen, module = "nandscape._native")]
pub(crate) struct Table(RecordBatch);

impl Table {
    pub(crate) fn of(batch: RecordBatch) -> Table {
        Table(batch)
    }
}

/// Column of a table.
#[pyclass(frozen, module = "nandscape._native")]
pub(crate) struct Column(ArrayRef);

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Values as a list; `None` where one is missing.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let array: &dyn Array = &*self.0;
        if let Some(floats) = array.as_primitive_opt::<Float64Type>() {
            return PyList::new(py, floats.iter().collect::<Vec<_>>());
        }
        if let Some(numbers) = array.as_primitive_opt::<Int64Type>() {
            return PyList::new(py, numbers.iter().collect::<Vec<_>>());
        }
        if let Some(numbers) = array.as_primitive_opt::<UInt64Type>() {
            return PyList::new(py, numbers.iter().collect::<Vec<_>>());
        }
        if let Some(numbers) = array.as_primitive_opt::<UInt16Type>() {
            return PyList::new(py, numbers.iter().collect::<Vec<_>>());
        }
        if let Some(numbers) = array.as_primitive_opt::<UInt32Type>() {
            return PyList::new(py, numbers.iter().collect::<Vec<_>>());
        }
        if let Some(truths) = array.as_boolean_opt() {
            return PyList::new(py, truths.iter().collect::<Vec<_>>());
        }
        if let Some(texts) = array.as_string_opt::<i32>() {
            return PyList::new(py, texts.iter().collect::<Vec<_>>());
        }
        if let Some(names) = array.as_dictionary_opt::<UInt8Type>()
            && let Some(names) = names.downcast_dict::<StringArray>()
        {
            return PyList::new(py, names.into_iter().collect::<Vec<_>>());
        }
        PyList::new(py, vec![None::<bool>; array.len()])
    }

    /// Memory of a numeric column without gaps, for NumPy to read in place.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let kind = match self.0.data_type() {
            DataType::Float64 => "f8",
            DataType::Int64 => "i8",
            DataType::UInt64 => "u8",
            DataType::UInt32 => "u4",
            DataType::UInt16 => "u2",
            _ => "",
        };
        if kind.is_empty() || self.0.null_count() > 0 {
            let what = "only a numeric column without missing values converts to an array: use to_list()";
            return Err(PyAttributeError::new_err(what));
        }
        let data = self.0.to_data();
        let address = data.buffers().first().map_or(0, |buffer| buffer.as_ptr() as usize);
        let order = if cfg!(target_endian = "little") { '<' } else { '>' };
        let fields = PyDict::new(py);
        fields.set_item("version", 3)?;
        fields.set_item("typestr", format!("{order}{kind}"))?;
        fields.set_item("shape", (self.0.len(),))?;
        fields.set_item("data", (address, true))?;
        Ok(fields)
    }
}

fn cannot(fault: impl Display) -> PyErr {
    PyValueError::new_err(fault.to_string())
}

/// Converts Python values to a column of the narrowest kind that holds them all; mixed kinds become text.
fn column(values: &Bound<'_, PyList>) -> PyResult<ArrayRef> {
    let there: Vec<_> = values.iter().filter(|value| !value.is_none()).collect();
    let all = |is: &dyn Fn(&Bound<'_, PyAny>) -> bool| there.iter().all(is);
    let is_bool = |value: &Bound<'_, PyAny>| value.is_instance_of::<PyBool>();
    let is_text = |value: &Bound<'_, PyAny>| value.is_instance_of::<PyString>();
    Ok(if there.is_empty() {
        Arc::new(NullArray::new(values.len()))
    } else if all(&is_bool) {
        Arc::new(BooleanArray::from(values.extract::<Vec<Option<bool>>>()?))
    } else if all(&|value| {
        value.is_instance_of::<PyInt>() && !is_bool(value) && value.extract::<i64>().is_ok()
    }) {
        Arc::new(Int64Array::from(values.extract::<Vec<Option<i64>>>()?))
    } else if all(&|value| !is_text(value) && !is_bool(value)) {
        Arc::new(Float64Array::from(values.extract::<Vec<Option<f64>>>()?))
    } else {
        let text = |value: Bound<'_, PyAny>| {
            if value.is_none() { Ok(None) } else { value.str()?.extract::<String>().map(Some) }
        };
        Arc::new(StringArray::from(values.iter().map(text).collect::<PyResult<Vec<_>>>()?))
    })
}

#[pymethods]
impl Table {
    /// Creates a table from lists of one length; `None` is a missing value.
    #[new]
    fn new(columns: &Bound<'_, PyDict>) -> PyResult<Table> {
        let named = columns
            .iter()
            .map(|(name, values)| Ok((name.extract::<String>()?, column(values.cast::<PyList>()?)?, true)));
        let named = named.collect::<PyResult<Vec<_>>>()?;
        RecordBatch::try_from_iter_with_nullable(named).map(Table).map_err(cannot)
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Returns a column.
    fn column(&self, name: &str) -> PyResult<Column> {
        let column = self.0.column_by_name(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        Ok(Column(Arc::clone(column)))
    }

    /// Schema, as `arrow_schema`.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema_ref().as_ref()).map_err(cannot)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Rows, as `arrow_array_stream`. A requested schema is ignored, which the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let rows = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(rows)), c"arrow_array_stream")
    }
}
