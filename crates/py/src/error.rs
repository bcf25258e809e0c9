//! Exceptions: `NonoError` and its subclasses, and the cases that use ordinary Python exceptions.
//!
//! A path that is missing or closed is `FileNotFoundError` or `PermissionError`, with `errno` and `filename`; a wrong
//! argument is `ValueError`. Everything else is a `NonoError`, which is a `RuntimeError`. All carry `path` and `kind`.

use std::io;
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyPermissionError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use pyo3::{PyTypeInfo, create_exception};

use crate::paths;

create_exception!(
    nono_py,
    NonoError,
    PyRuntimeError,
    "Base class of nono's exceptions.\n\n`kind` is a fixed word for the cause, `path` the path it is about, or None."
);
create_exception!(nono_py, SandboxError, NonoError, "The sandbox is not available, or not as requested.");
create_exception!(nono_py, ExecError, NonoError, "A command could not be started.");
create_exception!(nono_py, PolicyError, NonoError, "A policy cannot be enforced.");
create_exception!(nono_py, ProxyError, NonoError, "The filtering proxy cannot serve.");
create_exception!(nono_py, SnapshotError, NonoError, "A snapshot could not be taken, read or restored.");
create_exception!(nono_py, CheckpointError, NonoError, "A checkpoint could not be taken, read or restored.");
create_exception!(nono_py, SessionError, NonoError, "A supervised run could not be started or completed.");
create_exception!(
    nono_py,
    Cancelled,
    NonoError,
    "The work was cancelled; what was there before is as it was."
);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    for class in [
        py.get_type::<NonoError>(),
        py.get_type::<SandboxError>(),
        py.get_type::<ExecError>(),
        py.get_type::<PolicyError>(),
        py.get_type::<ProxyError>(),
        py.get_type::<SnapshotError>(),
        py.get_type::<CheckpointError>(),
        py.get_type::<SessionError>(),
        py.get_type::<Cancelled>(),
    ] {
        module.add(class.name()?, class)?;
    }
    // Defaults on the class, for instances without their own values.
    let base = py.get_type::<NonoError>();
    base.setattr("path", py.None())?;
    base.setattr("kind", "error")?;
    py.get_type::<SnapshotError>().setattr("report", py.None())
}

/// Exception for work that was cancelled.
pub(crate) fn cancelled() -> PyErr {
    Raise::new("cancelled", "cancelled").as_a::<Cancelled>()
}

/// Errors of the library, as exceptions.
pub(crate) trait Raised<T, E> {
    fn raised(self, exception: impl FnOnce(&E) -> PyErr) -> PyResult<T>;
}

impl<T, E> Raised<T, E> for Result<T, E> {
    fn raised(self, exception: impl FnOnce(&E) -> PyErr) -> PyResult<T> {
        self.map_err(|error| exception(&error))
    }
}

/// Builder of an exception.
#[derive(Debug)]
pub(crate) struct Raise {
    message: String,
    kind: &'static str,
    path: Option<PathBuf>,
}

impl Raise {
    /// `kind` is a fixed word in snake_case, which never changes for the same cause.
    pub(crate) fn new(kind: &'static str, message: impl ToString) -> Raise {
        Raise { message: message.to_string(), kind, path: None }
    }

    pub(crate) fn about(self, path: impl Into<PathBuf>) -> Raise {
        self.maybe_about(Some(path))
    }

    pub(crate) fn maybe_about(mut self, path: Option<impl Into<PathBuf>>) -> Raise {
        self.path = path.map(Into::into);
        self
    }

    /// Exception of class `E`, one of those above.
    pub(crate) fn as_a<E: PyTypeInfo>(self) -> PyErr {
        Python::attach(|py| {
            let error = PyErr::from_type(py.get_type::<E>(), (self.message.clone(),));
            self.finish(py, error)
        })
    }

    pub(crate) fn value_error(self) -> PyErr {
        self.as_a::<PyValueError>()
    }

    /// Python's own exception for this error of the system, with `errno` and `filename`.
    pub(crate) fn os_error(self, source: &io::Error) -> PyErr {
        let class = |py: Python<'_>| -> Py<PyType> {
            match source.kind() {
                io::ErrorKind::NotFound => py.get_type::<PyFileNotFoundError>(),
                io::ErrorKind::PermissionDenied => py.get_type::<PyPermissionError>(),
                _ => py.get_type::<PyOSError>(),
            }
            .unbind()
        };
        Python::attach(|py| {
            let filename = self.path.as_deref().map(|path| paths::to_python(py, path).unbind());
            let arguments = (source.raw_os_error(), self.message.clone(), filename);
            let error = PyErr::from_type(class(py).into_bound(py), arguments);
            self.finish(py, error)
        })
    }

    /// `FileNotFoundError` for a missing path.
    pub(crate) fn not_found(path: &Path, message: impl ToString) -> PyErr {
        Raise::new("not_found", message).about(path).os_error(&io::Error::from_raw_os_error(2))
    }

    fn finish(self, py: Python<'_>, error: PyErr) -> PyErr {
        let value = error.value(py);
        let path = self.path.as_deref().map(|path| paths::to_python(py, path));
        // Exceptions accept any attribute; if not, the exception is raised without it.
        let _ = value.setattr("kind", self.kind);
        let _ = value.setattr("path", path);
        error
    }
}
