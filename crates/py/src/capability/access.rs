//! `AccessMode`.

use pyo3::prelude::*;

/// Access that a grant gives on a path.
///
/// READ includes listing and executing; WRITE includes creating, removing and renaming, but not reading back.
#[pyclass(eq, hash, frozen, from_py_object, module = "nono_py", rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AccessMode {
    Read,
    Write,
    ReadWrite,
}

#[pymethods]
impl AccessMode {
    #[pyo3(name = "__str__")]
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "a method of a class takes its object so")]
    pub(super) fn word(&self) -> String {
        nono::AccessMode::from(*self).to_string()
    }
}

impl From<AccessMode> for nono::AccessMode {
    fn from(mode: AccessMode) -> nono::AccessMode {
        match mode {
            AccessMode::Read => nono::AccessMode::Read,
            AccessMode::Write => nono::AccessMode::Write,
            AccessMode::ReadWrite => nono::AccessMode::ReadWrite,
        }
    }
}

impl From<nono::AccessMode> for AccessMode {
    fn from(mode: nono::AccessMode) -> AccessMode {
        match mode {
            nono::AccessMode::Read => AccessMode::Read,
            nono::AccessMode::Write => AccessMode::Write,
            nono::AccessMode::ReadWrite => AccessMode::ReadWrite,
        }
    }
}
