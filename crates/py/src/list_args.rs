//! Lists as arguments, read item by item: their `len()` is not trusted for allocating memory.

use std::ops::Deref;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PySequence, PyString};

/// Extracts any sequence but a string.
pub(crate) fn many<'py, T: FromPyObjectOwned<'py>>(object: &Bound<'py, PyAny>) -> PyResult<Vec<T>> {
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("expected a list, not a str"));
    }
    let mut items = Vec::new();
    for item in object.cast::<PySequence>()?.try_iter()? {
        items.push(item?.extract().map_err(Into::into)?);
    }
    Ok(items)
}

/// Extracts a sequence, or None.
pub(crate) fn some_many<'py, T: FromPyObjectOwned<'py>>(
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<Vec<T>>> {
    if object.is_none() { Ok(None) } else { many(object).map(Some) }
}

/// Sequence, as an extractable type.
#[derive(Clone, Debug)]
pub(crate) struct Many<T>(Vec<T>);

impl<T> Default for Many<T> {
    fn default() -> Many<T> {
        Many(Vec::new())
    }
}

impl<T> Deref for Many<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<'a, 'py, T: FromPyObjectOwned<'py>> FromPyObject<'a, 'py> for Many<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Many<T>> {
        many(&object).map(Many)
    }
}
