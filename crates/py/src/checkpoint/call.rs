//! One call of an agent's tool, as a context manager.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use super::shared_manager::CheckpointManager;
use super::text;
use super::work::{self, Taking};

use crate::error::{CheckpointError, Raise};

/// A call of an agent's tool: a checkpoint before, and the state after it recorded. Restores nothing by itself.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct CheckpointCall {
    manager: Py<CheckpointManager>,
    taking: Taking,
    /// Whether the call fails without a checkpoint.
    required: bool,
    result: Mutex<Option<Py<PyAny>>>,
}

impl CheckpointCall {
    pub(super) fn new(manager: Py<CheckpointManager>, taking: Taking, required: bool) -> CheckpointCall {
        CheckpointCall { manager, taking, required, result: Mutex::new(None) }
    }

    fn begun(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        result.as_ref().map(|result| result.clone_ref(py))
    }

    fn left(&self, py: Python<'_>) -> PyResult<()> {
        self.manager.get().quick(py, |library| work::left(library, &self.taking))
    }
}

#[pymethods]
impl CheckpointCall {
    /// Result of the checkpoint before the call; None until the call began.
    #[getter]
    fn result(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.begun(py)
    }

    /// The id of the call, as checkpoints have it.
    #[getter]
    fn call(&self) -> Option<&str> {
        self.taking.origin.call.as_deref()
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        let this = slf.get();
        if this.begun(py).is_some() {
            return Err(
                Raise::new("used", "this call began already: create another one").as_a::<CheckpointError>()
            );
        }
        let result = this.manager.get().ensure(py, (), &this.taking)?;
        let result = result.into_pyobject(py)?;
        if this.required {
            result.call_method0("raise_if_failed")?;
        }
        *this.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result.unbind());
        Ok(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<Py<PyAny>>,
        exc_value: Option<Py<PyAny>>,
        traceback: Option<Py<PyAny>>,
    ) -> PyResult<bool> {
        let _ = (exc_value, traceback);
        // With checkpoints off nothing is recorded. After a failed checkpoint the changes are still the tool's.
        let Some(result) = self.begun(py) else { return Ok(false) };
        if result.getattr(py, "why")?.extract(py).is_ok_and(|why: String| why == "disabled") {
            return Ok(false);
        }
        match self.left(py) {
            // The tool's exception is raised; this one is only reported.
            Err(error) if exc_type.is_some() => error.write_unraisable(py, None),
            other => other?,
        }
        Ok(false)
    }

    fn __repr__(&self) -> String {
        format!("CheckpointCall(reason={})", text(&self.taking.reason))
    }
}
