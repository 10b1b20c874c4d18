//! Tables in Arrow's C data interface: other libraries of Python read them in place, without a copy.

use arrow_array::RecordBatch;
use arrow_array::RecordBatchIterator;
use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, SchemaRef};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyString};
use std::collections::HashMap;

/// Batches of rows of one table.
#[pyclass(module = "cutline._native", frozen)]
pub struct Batches {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Batches {
    /// Returns the table of these batches, which have this schema.
    pub const fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    fn index(&self, name: &str) -> PyResult<usize> {
        self.schema.index_of(name).map_err(|_| PyKeyError::new_err(name.to_owned()))
    }
}

#[pymethods]
impl Batches {
    /// Returns the batches as a stream (the Arrow PyCapsule interface). The library that reads it shares the memory. Another schema
    /// may be requested; this one is given anyway, as the interface permits.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _has_one_form = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// Returns the schema (the Arrow PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Returns name, unit and meaning of each column.
    fn columns(&self) -> Vec<(String, String, String)> {
        let of = |field: &arrow_schema::FieldRef| {
            let said = |key: &str| field.metadata().get(key).cloned();
            let (unit, meaning) = (said("unit").unwrap_or_else(|| "-".to_owned()), said("meaning"));
            (field.name().clone(), unit, meaning.unwrap_or_default())
        };
        self.schema.fields().iter().map(of).collect()
    }

    /// Returns the cells of a column from row `start` on, at most `count`; `None` for a cell that is null.
    #[pyo3(signature = (name, start = 0, count = usize::MAX))]
    fn column<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        start: usize,
        count: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let at = self.index(name)?;
        let cells = PyList::empty(py);
        let (mut skipped, mut left) = (start, count);
        for batch in &self.batches {
            let from = skipped.min(batch.num_rows());
            skipped -= from;
            let taken = left.min(batch.num_rows() - from);
            left -= taken;
            let array = batch.column(at).slice(from, taken);
            match array.data_type() {
                DataType::Int64 => append(&cells, array.as_primitive::<Int64Type>().iter())?,
                DataType::Float64 => append(&cells, array.as_primitive::<Float64Type>().iter())?,
                DataType::Boolean => append(&cells, array.as_boolean().iter())?,
                DataType::Utf8View => {
                    let mut last: Option<(&str, Bound<'_, PyString>)> = None;
                    for text in array.as_string_view() {
                        let Some(text) = text else {
                            cells.append(py.None())?;
                            continue;
                        };
                        // Rows beside each other often have the same name.
                        let known = last.take().filter(|(known, _)| *known == text);
                        let (_, object) =
                            last.insert(known.unwrap_or_else(|| (text, PyString::new(py, text))));
                        cells.append(&*object)?;
                    }
                }
                other => return Err(PyRuntimeError::new_err(format!("a column of {other}"))),
            }
        }
        Ok(cells)
    }

    /// Returns a column of numbers as the memory of an array: whether these are whole numbers of 64 bits, which is so if no cell is
    /// null, or floating-point numbers, in which a null is NaN; and the numbers in the machine's byte order.
    fn numbers<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(bool, Bound<'py, PyBytes>)> {
        let at = self.index(name)?;
        let arrays = || self.batches.iter().map(|batch| batch.column(at));
        let is_whole = arrays().all(|array| *array.data_type() == DataType::Int64 && array.null_count() == 0);
        let mut bytes = Vec::with_capacity(8 * self.__len__());
        for array in arrays() {
            match array.data_type() {
                DataType::Int64 if is_whole => {
                    bytes.extend(
                        array.as_primitive::<Int64Type>().values().iter().flat_map(|one| one.to_ne_bytes()),
                    );
                }
                DataType::Int64 => {
                    let real = |one: Option<i64>| one.map_or(f64::NAN, |one| one as f64).to_ne_bytes();
                    bytes.extend(array.as_primitive::<Int64Type>().iter().flat_map(real));
                }
                DataType::Float64 => {
                    let real = |one: Option<f64>| one.unwrap_or(f64::NAN).to_ne_bytes();
                    bytes.extend(array.as_primitive::<Float64Type>().iter().flat_map(real));
                }
                DataType::Boolean => {
                    let real = |one: Option<bool>| one.map_or(f64::NAN, f64::from).to_ne_bytes();
                    bytes.extend(array.as_boolean().iter().flat_map(real));
                }
                other => {
                    return Err(PyRuntimeError::new_err(format!("a column of {other} has no numbers")));
                }
            }
        }
        Ok((is_whole, PyBytes::new(py, &bytes)))
    }

    /// Returns a column of texts: the different texts in the order in which they come first, and the number of its text for each
    /// row, -1 for a null, as the memory of an array of 64-bit numbers.
    fn codes<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(Vec<String>, Bound<'py, PyBytes>)> {
        let at = self.index(name)?;
        let (mut texts, mut numbers) = (Vec::new(), HashMap::new());
        let mut bytes = Vec::with_capacity(8 * self.__len__());
        for batch in &self.batches {
            let array = batch.column(at);
            let array = array.as_string_view_opt();
            let array =
                array.ok_or_else(|| PyRuntimeError::new_err(format!("{name} is no column of texts")))?;
            for text in array {
                let code = text.map_or(-1, |text| {
                    *numbers.entry(text).or_insert_with(|| {
                        texts.push(text.to_owned());
                        texts.len() as i64 - 1
                    })
                });
                bytes.extend(code.to_ne_bytes());
            }
        }
        Ok((texts, PyBytes::new(py, &bytes)))
    }

    /// Returns whether a column has texts.
    fn has_texts(&self, name: &str) -> PyResult<bool> {
        Ok(*self.schema.field(self.index(name)?).data_type() == DataType::Utf8View)
    }
}

fn append<'py, T>(cells: &Bound<'py, PyList>, values: impl Iterator<Item = Option<T>>) -> PyResult<()>
where
    T: IntoPyObject<'py>,
{
    for value in values {
        cells.append(value)?;
    }
    Ok(())
}
