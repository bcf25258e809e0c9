//! `FsCapability` and `CapabilitySource`: a grant and its source.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::access::AccessMode;
use crate::paths::{self, PathText};
use crate::plain;

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
#[pyclass(frozen, get_all, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct FsCapability {
    /// The path as it was given.
    original: PathText,
    /// The path it resolved to when it was granted: absolute, without links.
    resolved: PathText,
    /// The access it gives.
    access: AccessMode,
    /// Whether exactly one file is granted, rather than a directory with everything below.
    is_file: bool,
    /// The source that asked for it.
    source: CapabilitySource,
}

impl From<&nono::FsCapability> for FsCapability {
    fn from(grant: &nono::FsCapability) -> FsCapability {
        FsCapability {
            original: PathText(grant.original.clone()),
            resolved: PathText(grant.resolved.clone()),
            access: grant.access.into(),
            is_file: grant.is_file,
            source: CapabilitySource(grant.source.clone()),
        }
    }
}

#[pymethods]
impl FsCapability {
    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let rest = format!("', access={}, is_file={})", self.access.word(), self.is_file);
        let start = PyString::new(py, "FsCapability(path='");
        paths::join(py, &[start, paths::to_python(py, &self.resolved.0), PyString::new(py, &rest)])
    }

    fn __str__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let access = PyString::new(py, &format!(" ({})", self.access.word()));
        paths::join(py, &[paths::to_python(py, &self.resolved.0), access])
    }

    /// The grant as a plain dict: `original`, `resolved`, `access`, `is_file`, `source`.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        plain::attributes(slf, "original resolved access is_file source")
    }
}
