//! Changes and restores: the same for sessions, checkpoints and turns of agents.

pub(crate) mod changes;
pub(crate) mod restore;

use nono::rollback::Conflicts;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Argument `conflicts` of everything that restores.
pub(crate) fn conflicts(word: &str) -> PyResult<Conflicts> {
    match word {
        "keep" => Ok(Conflicts::Keep),
        "force" => Ok(Conflicts::Force),
        "merge" => Ok(Conflicts::Merge { markers: false }),
        "merge_with_markers" => Ok(Conflicts::Merge { markers: true }),
        _ => Err(PyValueError::new_err(format!(
            "conflicts must be \"keep\", \"merge\", \"merge_with_markers\" or \"force\", not {word:?}"
        ))),
    }
}
