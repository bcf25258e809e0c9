//! Values of the library as plain Python values, in the format of `--json`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::capability::{AccessMode, CapabilitySource};
use crate::error::{NonoError, Raise};
use crate::paths;
use crate::proxy::InjectMode;
use crate::snapshot::values::ContentHash;

/// Value for a class of `python/nono_py`, made without the interpreter: its data are those of `--json`.
#[derive(Debug)]
pub(crate) struct Record {
    class: &'static str,
    data: Value,
    more: Vec<(&'static str, Extra)>,
}

/// Attribute of a [`Record`] that its data do not have.
#[derive(Debug)]
pub(crate) enum Extra {
    Json(Value),
    Bytes(Vec<u8>),
    Raised(PyErr),
    Record(Record),
    Object(Py<PyAny>),
}

impl Record {
    pub(crate) fn new(class: &'static str, data: Value) -> Record {
        Record { class, data, more: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, extra: Extra) -> Record {
        self.more.push((name, extra));
        self
    }
}

impl<'py> IntoPyObject<'py> for Record {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let more = PyDict::new(py);
        for (name, extra) in self.more {
            match extra {
                Extra::Json(value) => more.set_item(name, plain(py, &value)?)?,
                Extra::Bytes(bytes) => more.set_item(name, PyBytes::new(py, &bytes))?,
                Extra::Raised(error) => more.set_item(name, error.into_value(py))?,
                Extra::Record(record) => more.set_item(name, record)?,
                Extra::Object(object) => more.set_item(name, object)?,
            }
        }
        py.import("nono_py")?.getattr(self.class)?.call1((plain(py, &self.data)?, more))
    }
}

/// Converts any serialisable value.
pub(crate) fn value<'py, T: Serialize>(py: Python<'py>, value: &T) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(value).map_err(|error| {
        Raise::new("bug", format!("cannot serialise the value: {error}")).as_a::<NonoError>()
    })?;
    plain(py, &value)
}

pub(crate) fn plain<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.into_bound_py_any(py),
            (None, Some(number)) => number.into_bound_py_any(py),
            (None, None) => number.as_f64().into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(items) => {
            let items = items.iter().map(|item| plain(py, item)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        Value::Object(fields) => match any_bytes(fields) {
            Some(path) => Ok(paths::to_python(py, &path).into_any()),
            None => Ok(dict(py, fields)?.into_any()),
        },
    }
}

pub(crate) fn dict<'py>(py: Python<'py>, fields: &Map<String, Value>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, field) in fields {
        dict.set_item(name, plain(py, field)?)?;
    }
    Ok(dict)
}

/// The attributes `names` of an object, as a plain dict.
pub(crate) fn attributes<'py>(object: &Bound<'py, PyAny>, names: &str) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(object.py());
    for name in names.split(' ') {
        dict.set_item(name, simple(&object.getattr(name)?)?)?;
    }
    Ok(dict)
}

/// A value of a class of this package by its `to_dict()`, or its text if it is a single word; other values as they are,
/// also in lists and dicts.
pub(crate) fn simple<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let is_word = value.is_instance_of::<AccessMode>() || value.is_instance_of::<InjectMode>();
    if is_word || value.is_instance_of::<CapabilitySource>() || value.is_instance_of::<ContentHash>() {
        return Ok(value.str()?.into_any());
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let simple_dict = PyDict::new(value.py());
        for (key, value) in dict {
            simple_dict.set_item(key, simple(&value)?)?;
        }
        return Ok(simple_dict.into_any());
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| simple(&item?)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(value.py(), items)?.into_any());
    }
    if value.hasattr("to_dict")? { value.call_method0("to_dict") } else { Ok(value.clone()) }
}

/// Path that is not UTF-8, from its bytes or hexadecimal digits in JSON.
fn any_bytes(fields: &Map<String, Value>) -> Option<PathBuf> {
    if fields.len() != 1 {
        return None;
    }
    let bytes: Option<Vec<u8>> = match (fields.get("hex"), fields.get("bytes")) {
        (Some(Value::String(digits)), _) if digits.is_ascii() => {
            let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
            (0..digits.len()).step_by(2).map(byte).collect()
        }
        (_, Some(Value::Array(numbers))) => numbers
            .iter()
            .map(|number| number.as_u64().and_then(|number| u8::try_from(number).ok()))
            .collect(),
        _ => None,
    };
    bytes.map(|bytes| PathBuf::from(OsString::from_vec(bytes)))
}
