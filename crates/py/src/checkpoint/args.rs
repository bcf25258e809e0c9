//! Arguments: references to checkpoints, paths, patterns, and the origin of a call.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nono::checkpoints::{CheckpointTarget, Origin};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};

use crate::list_args::many;
use crate::paths::PathArg;

/// A number of the list (1 is the newest), an id or a beginning of one, a name, or a `Checkpoint`.
#[derive(Clone, Debug)]
pub(super) struct Which(pub(super) CheckpointTarget);

impl<'a, 'py> FromPyObject<'a, 'py> for Which {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Which> {
        if object.is_instance(&object.py().import("nono_py")?.getattr("Checkpoint")?)? {
            let id: String = object.getattr("id")?.extract()?;
            let id = serde_json::from_value(id.into());
            return Ok(Which(CheckpointTarget::Id(id.map_err(|_| PyValueError::new_err("no id"))?)));
        }
        if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
            let number = object.extract::<u64>().ok().filter(|number| *number > 0);
            let number =
                number.ok_or_else(|| PyValueError::new_err("checkpoints are counted from 1, the newest"))?;
            return Ok(Which(CheckpointTarget::Text(number.to_string())));
        }
        if let Ok(text) = object.cast::<PyString>() {
            let text: String = text.extract()?;
            if text.is_empty() {
                return Err(PyValueError::new_err("empty checkpoint: give its number, id or name"));
            }
            return Ok(Which(CheckpointTarget::Text(text)));
        }
        let kind = object.get_type().name()?;
        Err(PyTypeError::new_err(format!("a checkpoint is an int, a str or a Checkpoint, not {kind}")))
    }
}

/// One path, or several.
#[derive(Clone, Debug)]
pub(super) struct Paths(Vec<OsString>);

impl<'a, 'py> FromPyObject<'a, 'py> for Paths {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Paths> {
        let is_one = object.is_instance_of::<PyString>() || object.hasattr("__fspath__")?;
        let all = if is_one { vec![object.extract::<PathArg>()?] } else { many(&object)? };
        if all.is_empty() {
            return Err(PyValueError::new_err("the list of paths is empty; None means all of them"));
        }
        Ok(Paths(all.into_iter().map(|path| path.0.into_os_string()).collect()))
    }
}

/// One pattern, or several.
#[derive(Clone, Debug)]
pub(super) struct Globs(Vec<OsString>);

impl<'a, 'py> FromPyObject<'a, 'py> for Globs {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Globs> {
        let one = object.is_instance_of::<PyString>();
        let all = if one { vec![object.extract::<String>()?] } else { many(&object)? };
        if all.is_empty() {
            return Err(PyValueError::new_err("the list of patterns is empty; None means all paths"));
        }
        Ok(Globs(all.into_iter().map(OsString::from).collect()))
    }
}

/// Names and patterns, as they are given.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    pub(super) names: Vec<OsString>,
    pub(super) patterns: Vec<OsString>,
}

impl Chosen {
    pub(super) fn new(paths: Option<Paths>, globs: Option<Globs>) -> Chosen {
        let names = paths.map(|Paths(paths)| paths).unwrap_or_default();
        Chosen { names, patterns: globs.map(|Globs(globs)| globs).unwrap_or_default() }
    }

    pub(super) fn is_all(&self) -> bool {
        self.names.is_empty() && self.patterns.is_empty()
    }
}

pub(super) fn target(which: Option<Which>, turn: Option<String>) -> PyResult<CheckpointTarget> {
    match (which, turn) {
        (Some(Which(target)), None) => Ok(target),
        (None, Some(turn)) => Ok(CheckpointTarget::Turn(turn)),
        (Some(_), Some(_)) => Err(PyValueError::new_err("give a checkpoint or a turn, not both")),
        (None, None) => Err(PyValueError::new_err("give a checkpoint: its number, id or name, or turn=…")),
    }
}

/// Origin of a call, as given by the caller.
#[derive(Clone, Debug, Default)]
pub(super) struct Who {
    pub(super) agent: Option<String>,
    pub(super) session: Option<String>,
}

impl Who {
    /// Origin with the details of one call.
    pub(super) fn origin(&self, turn: Option<String>, tool: Option<String>, call: Option<String>) -> Origin {
        let Who { agent, session } = self.clone();
        Origin { agent, session, turn, prompt: None, tool, call, run: None }
    }
}

/// Absolute path, without resolving links, which the library does.
pub(super) fn absolute(path: PathArg) -> PyResult<PathBuf> {
    let PathArg(path) = path;
    if path.as_os_str().is_empty() {
        return Err(PyValueError::new_err("the path is empty"));
    }
    std::path::absolute(&path).map_err(PyErr::from)
}

/// The folder that relative paths are below.
pub(super) fn folder(dir: &Path) -> &Path {
    if dir.is_file() { dir.parent().unwrap_or(dir) } else { dir }
}
