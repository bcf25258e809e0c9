//! `FsCapability` and `CapabilitySource`: a grant and its source.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::access::AccessMode;
use crate::{paths, plain};

/// Source of a grant: the user, a group of a policy, or nono itself.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct CapabilitySource(pub(super) nono::CapabilitySource);

#[pymethods]
impl CapabilitySource {
    /// The user, or a call of this package.
    #[staticmethod]
    fn user() -> CapabilitySource {
        CapabilitySource(nono::CapabilitySource::User)
    }

    /// The group of a policy.
    #[staticmethod]
    fn group(name: String) -> CapabilitySource {
        CapabilitySource(nono::CapabilitySource::Group(name))
    }

    /// nono itself.
    #[staticmethod]
    fn system() -> CapabilitySource {
        CapabilitySource(nono::CapabilitySource::System)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("CapabilitySource({})", self.0)
    }

    /// `kind` (user, group, profile, credential, system) and `name`, None where there is none.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (kind, name) = match &self.0 {
            nono::CapabilitySource::User => ("user", None),
            nono::CapabilitySource::Group(name) => ("group", Some(name)),
            nono::CapabilitySource::Profile(name) => ("profile", Some(name)),
            nono::CapabilitySource::Credential(name) => ("credential", Some(name)),
            nono::CapabilitySource::System => ("system", None),
        };
        let dict = PyDict::new(py);
        dict.set_item("kind", kind)?;
        dict.set_item("name", name)?;
        Ok(dict)
    }
}

/// One granted path: as it was given, and as it was resolved when it was granted.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct FsCapability(pub(super) nono::FsCapability);

#[pymethods]
impl FsCapability {
    /// The path as it was given.
    #[getter]
    fn original<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        paths::to_python(py, &self.0.original)
    }

    /// The path it resolved to when it was granted: absolute, without links.
    #[getter]
    fn resolved<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        paths::to_python(py, &self.0.resolved)
    }

    /// The access it gives.
    #[getter]
    fn access(&self) -> AccessMode {
        self.0.access.into()
    }

    /// Whether exactly one file is granted, rather than a directory with everything below.
    #[getter]
    fn is_file(&self) -> bool {
        self.0.is_file
    }

    /// The source that asked for it.
    #[getter]
    fn source(&self) -> CapabilitySource {
        CapabilitySource(self.0.source.clone())
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let rest = format!("', access={}, is_file={})", self.0.access, self.0.is_file);
        let start = PyString::new(py, "FsCapability(path='");
        paths::join(py, &[start, self.resolved(py), PyString::new(py, &rest)])
    }

    fn __str__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let access = PyString::new(py, &format!(" ({})", self.0.access));
        paths::join(py, &[self.resolved(py), access])
    }

    /// The grant as a plain dict: `original`, `resolved`, `access`, `is_file`, `source`.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        plain::attributes(slf, "original resolved access is_file source")
    }
}
