//! Points that undo in a directory can go back to.

use std::path::PathBuf;

use nono::audit::moment;
use nono::checkpoints::{CheckpointManager, Host, settings};
use nono::directory::point_json;
use nono::rollback::RollbackError;
use nono::snapshot::time::{now_ms, utc_offset};
use nono::undo::{Points, UndoError, Undoing};
use pyo3::prelude::*;

use super::sessions::catalogue;
use super::{error, host};
use crate::blocking::long;
use crate::error::{Raise, SessionError};
use crate::list_args::some_many;
use crate::paths::PathArg;
use crate::plain;

/// What `nono undo` goes back to in a directory (this one, if none is given), newest first: sessions, and checkpoints
/// that were taken before an agent or a command worked. Each is a dict with `kind` ("session" or "checkpoint"), `id`,
/// `time`, `command` or `reason`, and counts. `paths`: only what changed these. `to` (a session, a checkpoint, or a
/// time such as "10:15", "2h" or "2026-08-01 10:15"): those to go back through, one after the other, until then.
#[pyfunction]
#[pyo3(signature = (path = None, *, paths = None, to = None))]
pub(crate) fn undo_points(
    py: Python<'_>,
    path: Option<PathArg>,
    #[pyo3(from_py_with = some_many)] paths: Option<Vec<PathArg>>,
    to: Option<String>,
) -> PyResult<Bound<'_, PyAny>> {
    let catalogue = catalogue(py)?;
    let here = host::here()?;
    let dir = path.map_or_else(|| here.clone(), |path| here.join(path.0));
    let dir = dir.canonicalize().map_err(|source| Raise::not_found(&dir, source))?;
    let paths: Vec<PathBuf> = paths.unwrap_or_default().into_iter().map(|path| here.join(path.0)).collect();
    let context = host::outside(py, None, "looked at")?.context;
    let no_home = || Raise::new("no_home", "HOME is not set").as_a::<SessionError>();
    let home = context.home.ok_or_else(no_home)?;
    let config = settings::load(&context.state_dir.join("config.toml"))
        .map_err(|error| Raise::new("settings", error).as_a::<SessionError>())?;
    let manager = CheckpointManager::new(Host { state_dir: context.state_dir, home }, config);
    let points = long(py, (), |_| {
        let undoing = Undoing { catalogue: &catalogue, checkpoints: &manager, dir: &dir };
        let found = match to.as_deref() {
            None => undoing.points(&paths),
            Some(to) => until(&undoing, to, &paths)?,
        };
        match found {
            Err(UndoError::Rollback(RollbackError::NoneHere { .. })) => Ok(Points::default()),
            Err(UndoError::Rollback(error)) => Err(error::rollback(&error)),
            Err(UndoError::Checkpoint(error)) => Err(crate::checkpoint::failed(&error)),
            Ok(points) => Ok(points),
        }
    })?;
    // Unreadable points are never left out silently.
    if let Some(problem) = &points.problem {
        return Err(crate::checkpoint::failed(problem));
    }
    plain::plain(py, &points.list.iter().map(point_json).collect())
}

fn until(undoing: &Undoing<'_>, to: &str, paths: &[PathBuf]) -> PyResult<Result<Points, UndoError>> {
    match undoing.until(to, paths) {
        Ok(Some(points)) => Ok(Ok(points)),
        Err(error) => Ok(Err(error)),
        Ok(None) => {
            let at = moment(to, now_ms(), utc_offset).ok_or_else(|| {
                Raise::new("not_found", format!("{to} is not a session, a checkpoint here, or a time"))
                    .value_error()
            })?;
            Ok(undoing.since(at / 1000, paths))
        }
    }
}
