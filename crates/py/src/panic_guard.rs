//! Conversion of Rust panics, which are bugs of nono, to a `RuntimeError`, so that the host process goes on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;

use crate::error::{NonoError, Raise};

/// Runs work that may panic. Its data may be inconsistent afterwards, and is not used again.
pub(crate) fn guard<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(bug(&*panic)))
}

pub(crate) fn bug(panic: &(dyn Any + Send)) -> PyErr {
    let words = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Raise::new("bug", format!("this is a bug in nono, please report it: {words}")).as_a::<NonoError>()
}

/// Panics, for the tests of the above. Release builds do not have it.
#[cfg(debug_assertions)]
#[pyfunction]
#[allow(clippy::panic, reason = "this is what it is for")]
pub(crate) fn _panic(py: Python<'_>, beside: bool) -> PyResult<()> {
    if beside {
        return crate::blocking::long(py, (), |_| panic!("on purpose"));
    }
    guard(|| panic!("on purpose"))
}
