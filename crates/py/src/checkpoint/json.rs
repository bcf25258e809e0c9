//! The JSON of `--json` as plain Python values, so that both interfaces give the same data.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{Map, Value};

use crate::paths;

pub(super) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.into_pyobject(py)?.into_any(),
            (None, Some(number)) => number.into_pyobject(py)?.into_any(),
            (None, None) => number.as_f64().into_pyobject(py)?.into_any(),
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(all) => {
            let list = PyList::empty(py);
            for one in all {
                list.append(to_python(py, one)?)?;
            }
            list.into_any()
        }
        Value::Object(map) => match bytes(map) {
            // Bytes that are not UTF-8 become surrogates.
            Some(bytes) => paths::os_str(py, &OsString::from_vec(bytes)).into_any(),
            None => dict(py, map)?.into_any(),
        },
    })
}

fn dict<'py>(py: Python<'py>, map: &Map<String, Value>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in map {
        dict.set_item(key, to_python(py, value)?)?;
    }
    Ok(dict)
}

/// Bytes of `{"hex": "…"}`, as `JsonText` writes text that is not UTF-8.
fn bytes(map: &Map<String, Value>) -> Option<Vec<u8>> {
    let text = map.get("hex").filter(|_| map.len() == 1)?.as_str()?;
    if text.len() % 2 != 0 {
        return None;
    }
    let digits = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(digits).collect()
}
