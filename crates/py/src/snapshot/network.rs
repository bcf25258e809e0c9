//! Conversion of network events between Python's dicts and `session.json`.

use nono::audit::NetworkEntry;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

/// Keys, in the order of the dicts.
const KEYS: &str = "timestamp_unix_ms mode decision target port method path status reason route_id auth_mechanism \
                    auth_outcome managed_credential_active injection_mode denial_category";

/// Modes; `forward` is nono's own addition: a plain request through the proxy.
const MODES: &str = "connect connect_intercept reverse external forward";
const DECISIONS: &str = "allow deny";
const MECHANISMS: &str = "proxy_authorization phantom_header phantom_path phantom_query";
const OUTCOMES: &str = "succeeded failed";
const INJECTIONS: &str = "header url_path query_param basic_auth oauth2";
const DENIALS: &str = "authentication_failed endpoint_policy managed_credential_unavailable host_denied \
                       intercept_handshake_failed upstream_connect_failed connect_bypasses_l7 \
                       external_proxy_rejected";

/// Spellings of one value in Python and in `session.json`.
const OAUTH2: (&str, &str) = ("oauth2", "o_auth2");

/// Event in the format of `session.json`.
pub(crate) fn from_dict(event: &Bound<'_, PyAny>) -> PyResult<Value> {
    let wrong = |_| PyTypeError::new_err("a network event must be a dict");
    let event: &Bound<'_, PyDict> = event.cast::<PyDict>().map_err(wrong)?;
    let injection_mode = word(event, "injection_mode", INJECTIONS)?;
    let injection_mode = injection_mode.map(|mode| if mode == OAUTH2.0 { OAUTH2.1.to_owned() } else { mode });
    let entry = NetworkEntry {
        timestamp_unix_ms: required(event, "timestamp_unix_ms")?.extract()?,
        mode: needed(event, "mode", MODES)?,
        decision: needed(event, "decision", DECISIONS)?,
        target: required(event, "target")?.extract()?,
        route_id: plain(event, "route_id")?,
        auth_mechanism: word(event, "auth_mechanism", MECHANISMS)?,
        auth_outcome: word(event, "auth_outcome", OUTCOMES)?,
        managed_credential_active: plain(event, "managed_credential_active")?,
        injection_mode,
        denial_category: word(event, "denial_category", DENIALS)?,
        port: plain(event, "port")?,
        method: plain(event, "method")?,
        path: plain(event, "path")?,
        status: plain(event, "status")?,
        reason: plain(event, "reason")?,
    };
    serde_json::to_value(entry).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn required<'py>(event: &Bound<'py, PyDict>, key: &str) -> PyResult<Bound<'py, PyAny>> {
    let missing = || PyValueError::new_err(format!("a network event needs {key}"));
    event.get_item(key)?.ok_or_else(missing)
}

fn needed(event: &Bound<'_, PyDict>, key: &str, known: &str) -> PyResult<String> {
    one_of(key, required(event, key)?.extract()?, known)
}

fn one_of(key: &str, text: String, known: &str) -> PyResult<String> {
    if known.split(' ').any(|known| known == text) {
        return Ok(text);
    }
    let known = known.replace(' ', ", ");
    Err(PyValueError::new_err(format!("{text:?} is not a valid {key}; use one of {known}")))
}

fn word(event: &Bound<'_, PyDict>, key: &str, known: &str) -> PyResult<Option<String>> {
    let found = event.get_item(key)?.filter(|found| !found.is_none());
    found.map(|found| one_of(key, found.extract()?, known)).transpose()
}

/// Value of a key; a value of another type, or a number that is too large, counts as missing.
fn plain<'py, T>(event: &Bound<'py, PyDict>, key: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    Ok(event.get_item(key)?.and_then(|found| found.extract().ok()))
}

/// An event as a dict.
pub(crate) fn to_dict<'py>(py: Python<'py>, event: &Value) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for key in KEYS.split(' ') {
        match event.get(key) {
            Some(Value::String(text)) if key == "injection_mode" && text == OAUTH2.1 => {
                dict.set_item(key, OAUTH2.0)?;
            }
            Some(Value::String(text)) => dict.set_item(key, text)?,
            Some(Value::Bool(flag)) => dict.set_item(key, flag)?,
            Some(Value::Number(number)) => dict.set_item(key, number.as_u64())?,
            _ => dict.set_item(key, py.None())?,
        }
    }
    Ok(dict)
}

/// Whether this is an event at all; the error says what is wrong.
pub(crate) fn check(event: &Value) -> Result<(), serde_json::Error> {
    serde_json::from_value::<NetworkEntry>(event.clone()).map(drop)
}
