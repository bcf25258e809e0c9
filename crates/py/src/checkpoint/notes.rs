//! Notes to agents about restores.

use nono::checkpoints::RestoreNote;
use nono::json::path as path_shape;
use pyo3::prelude::*;
use serde_json::json;

use super::text;
use crate::paths::PathText;
use crate::plain;

/// Note to an agent about a restore since its last query.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct CheckpointNote(RestoreNote);

impl From<RestoreNote> for CheckpointNote {
    fn from(note: RestoreNote) -> CheckpointNote {
        CheckpointNote(note)
    }
}

#[pymethods]
impl CheckpointNote {
    /// The project's folder.
    #[getter]
    fn project(&self) -> PathText {
        PathText(self.0.project.clone())
    }

    /// The id of the checkpoint that was gone back to.
    #[getter]
    fn checkpoint(&self) -> &str {
        self.0.checkpoint.as_str()
    }

    /// The agent's turns that were undone; with `came_back`, brought back.
    #[getter]
    fn turns_undone(&self) -> Vec<String> {
        self.0.turns_undone.clone()
    }

    /// Restored files, relative to the project; at most a hundred.
    #[getter]
    fn files(&self) -> Vec<String> {
        self.0.files.clone()
    }

    /// The id of the restore.
    #[getter]
    fn restore(&self) -> &str {
        &self.0.restore
    }

    /// Whether an undo brought these turns back, after the agent had the note that they are gone.
    #[getter]
    fn came_back(&self) -> bool {
        self.0.came_back
    }

    /// The values as a plain dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut value = json!(self.0);
        value["project"] = path_shape(&self.0.project);
        plain::plain(py, &value)
    }

    fn __repr__(&self) -> String {
        let (id, files) = (text(self.checkpoint()), self.0.files.len());
        format!("CheckpointNote(checkpoint={id}, files={files})")
    }
}
