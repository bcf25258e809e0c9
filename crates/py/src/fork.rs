//! Values that PyO3 computes on first use, computed when the module is loaded.
//!
//! PyO3 keeps each behind a lock, and lets other threads run while it is held. A process that is forked meanwhile has a
//! copy of a lock that is never released, and its first call would wait forever. Values of nono's own are kept without
//! locks (`once_cell::race`).

use std::path::Path;

use pyo3::prelude::*;
use pyo3::type_object::PyTypeInfo;
use pyo3::types::{PyIterator, PyList, PyMapping, PySequence};

/// Computes those that nono's functions use: in arguments, in results, and in the message about a wrong argument.
pub(crate) fn fill_caches(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let _ = PyList::empty(py).try_iter()?.size_hint();
    let _ = (PyIterator::type_object(py), PySequence::type_object(py), PyMapping::type_object(py));
    Path::new("/").into_pyobject(py)?;
    let not_bool = PyList::empty(py).extract::<bool>().err().map(|error| error.to_string());
    let wrong_argument = module.getattr("sandboxed_exec")?.call1((0, 0)).err().map(|error| error.to_string());
    debug_assert!(not_bool.is_some() && wrong_argument.is_some(), "messages about wrong arguments");
    Ok(())
}
